//! Files cut short, altered, replaced by noise, or gone.

use std::fs;

use libc::EIO;

use crate::builder::avro::Codec;
use crate::builder::open::Opened;
use crate::{FIRST, ROWS, Shown, WHOLE, guarded, name, noise, refused, show, victim};

#[test]
fn a_file_cut_short_is_an_error_that_names_it() {
    for codec in [Codec::Null, Codec::Deflate] {
        let v = victim(codec);
        for file in v.files() {
            let bytes = fs::read(&file).unwrap();
            let header = bytes
                .windows(16)
                .position(|w| w == b"synchronisation.")
                .map(|at| at + 16);
            for step in 0..12 {
                let len = [
                    0,
                    1,
                    3,
                    4,
                    8,
                    bytes.len() - 1,
                    bytes.len() - 4,
                    bytes.len() - 9,
                ][..]
                    .get(step)
                    .copied()
                    .unwrap_or_else(|| noise(step) % bytes.len());
                // A vector is read by its offset alone.
                let blob = v.vector.content_offset.unwrap() + v.vector.content_size.unwrap();
                if file == v.t.local(&v.vector.path) && len as i64 >= blob {
                    continue;
                }
                // A list that ends behind its header is a list of nothing.
                if header == Some(len) && file == v.list {
                    continue;
                }
                let case = format!("{} cut to {len} of {} bytes", name(&file), bytes.len());
                refused(
                    &v.with(&file, &bytes[..len], WHOLE, &case),
                    name(&file),
                    &case,
                );
            }
        }
    }
}

#[test]
fn flipped_bits_never_make_more_or_fewer_rows_of_a_data_file() {
    let v = victim(Codec::Null);
    for file in [&v.first, &v.second] {
        let file = v.t.local(&file.path);
        let bytes = fs::read(&file).unwrap();
        for seed in 0..150 {
            let mut broken = bytes.clone();
            let at = noise(seed) % bytes.len();
            broken[at] ^= 1 << (noise(seed + 1000) % 8);
            let case = format!("{}: bit of byte {at} of {}", name(&file), bytes.len());
            match v.with(&file, &broken, WHOLE, &case) {
                Shown::Rows(ROWS) | Shown::Unreadable => {}
                // An altered key may be hit by the equality delete, or missed by it.
                Shown::Rows(rows) => assert!(rows.abs_diff(ROWS) == 1, "{case}: {rows} rows"),
                other => refused(&other, name(&file), &case),
            }
        }
    }
}

#[test]
fn flipped_bits_of_metadata_and_manifests_are_an_error_or_a_view() {
    for codec in [Codec::Null, Codec::Snappy] {
        let v = victim(codec);
        for file in [&v.metadata, &v.list, &v.manifest, &v.delete_manifest] {
            let bytes = fs::read(file).unwrap();
            for seed in 0..100 {
                let mut broken = bytes.clone();
                let at = noise(seed) % bytes.len();
                broken[at] ^= 1 << (noise(seed + 1000) % 8);
                let case = format!("{}: bit of byte {at} of {}", name(file), bytes.len());
                v.with(file, &broken, WHOLE, &case);
            }
        }
    }
}

#[test]
fn flipped_bits_of_a_manifest_with_checksums_are_errors() {
    // Snappy blocks carry a checksum of what they hold; behind the header there is nothing else.
    let v = victim(Codec::Snappy);
    let bytes = fs::read(&v.manifest).unwrap();
    let header = bytes
        .windows(16)
        .position(|w| w == b"synchronisation.")
        .unwrap()
        + 16;
    for seed in 0..60 {
        let mut broken = bytes.clone();
        let at = header + noise(seed) % (bytes.len() - header);
        broken[at] ^= 1 << (noise(seed + 1000) % 8);
        let case = format!("{}: bit of byte {at} of {}", name(&v.manifest), bytes.len());
        refused(
            &v.with(&v.manifest, &broken, WHOLE, &case),
            name(&v.manifest),
            &case,
        );
    }
}

#[test]
fn a_flipped_bit_of_a_vector_is_an_error_and_one_beside_it_is_none() {
    let v = victim(Codec::Null);
    let file = v.t.local(&v.vector.path);
    let bytes = fs::read(&file).unwrap();
    let blob = v.vector.content_offset.unwrap() as usize
        ..(v.vector.content_offset.unwrap() + v.vector.content_size.unwrap()) as usize;
    for at in 0..bytes.len() {
        let mut broken = bytes.clone();
        broken[at] ^= 1 << (at % 8);
        let case = format!("{}: bit of byte {at}", name(&file));
        let shown = v.with(&file, &broken, WHOLE, &case);
        if blob.contains(&at) {
            refused(&shown, name(&file), &case);
        } else {
            assert!(matches!(shown, Shown::Rows(ROWS)), "{case}: {shown:?}");
        }
    }
}

#[test]
fn flipped_bits_of_delete_files_are_an_error_or_a_view() {
    let v = victim(Codec::Null);
    for file in [&v.positions, &v.equality] {
        let file = v.t.local(&file.path);
        let bytes = fs::read(&file).unwrap();
        for seed in 0..150 {
            let mut broken = bytes.clone();
            let at = noise(seed) % bytes.len();
            broken[at] ^= 1 << (noise(seed + 1000) % 8);
            let case = format!("{}: bit of byte {at} of {}", name(&file), bytes.len());
            match v.with(&file, &broken, WHOLE, &case) {
                Shown::Rows(rows) => {
                    assert!((ROWS..=ROWS + 3).contains(&rows), "{case}: {rows} rows")
                }
                other => refused(&other, name(&file), &case),
            }
        }
    }
}

#[test]
fn noise_in_place_of_a_file_is_an_error_that_names_it() {
    let v = victim(Codec::Null);
    for file in v.files() {
        let len = fs::metadata(&file).unwrap().len() as usize;
        for seed in 0..3 {
            let bytes: Vec<u8> = (0..len).map(|i| noise(i * 7 + seed) as u8).collect();
            let case = format!("{}: noise {seed}", name(&file));
            refused(&v.with(&file, &bytes, WHOLE, &case), name(&file), &case);
        }
    }
}

#[test]
fn a_missing_file_is_an_error_that_names_it_and_the_rest_goes_on() {
    let v = victim(Codec::Null);
    for file in v.files().into_iter().skip(1) {
        let right = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        let root = v.t.root();
        let case = format!("{} is missing", name(&file));
        refused(
            &guarded(&case, {
                let root = root.clone();
                move || show(&root, WHOLE)
            }),
            name(&file),
            &case,
        );
        if file != v.t.local(&v.first.path) {
            let shown = guarded(&case, move || show(&root, FIRST));
            assert!(
                matches!(shown, Shown::Rows(30)),
                "{case}: the first snapshot: {shown:?}"
            );
        }
        fs::write(&file, right).unwrap();
    }
}

#[test]
fn a_broken_data_file_leaves_the_other_parts_readable() {
    let v = victim(Codec::Null);
    let file = v.t.local(&v.second.path);
    fs::write(&file, b"PAR1 nothing at all \x05\0\0\0PAR1").unwrap();
    let opened = Opened::tree(&v.t.root());
    let parts = opened.list("current/parts").unwrap();
    assert_eq!(parts.len(), 2, "{parts:?}");
    let read: Vec<Result<usize, i32>> = parts
        .iter()
        .map(|part| {
            opened
                .table(&format!("current/parts/{part}"))
                .map(|t| t.rows.len())
        })
        .collect();
    assert_eq!(read, [Ok(27), Err(EIO)], "{}", opened.errors());
    assert_eq!(opened.read(WHOLE), Err(EIO));
    assert!(opened.errors().contains(name(&file)));
}
