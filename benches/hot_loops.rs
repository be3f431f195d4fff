//! The hot loops, each on an input of its own: `cargo bench [-- WORD]` prints nanoseconds per unit of work, the median of
//! some rounds with the least and the most, for those whose names hold the word. A busy machine makes the most, and then
//! the median, worth little.
//!
//! A virtual file is read through the tree with a cache that keeps nothing, as the first reader does it; what a chunk costs
//! is then the page transcoding, with the deletes and the footer that it needs. The tables are those of the tests' builder.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../tests/builder/mod.rs"]
mod builder;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, ListBuilder,
    PrimitiveBuilder, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Int64Type};
use bergfs::iceberg::deletion_vector;
use bergfs::iceberg::manifest::{Statistics, parse_manifest, parse_manifest_list};
use bergfs::iceberg::metadata::TableMetadata;
use builder::deletes::{bitmaps, vector_blob};
use builder::open::{Opened, Options};
use builder::schema::{arrow_schema, fields};
use builder::{Commit, Data, Entry, TableBuilder};
use parquet::basic::Encoding;
use serde_json::json;

const ROWS: usize = 200_000;
const ROUNDS: usize = 5;

/// Measures what is asked for by the command line.
struct Bench {
    word: Option<String>,
}

impl Bench {
    fn wants(&self, name: &str) -> bool {
        self.word
            .as_ref()
            .is_none_or(|word| name.contains(word.as_str()))
    }

    /// Prints nanoseconds per unit, of which each round does `units`.
    fn run<T>(&self, name: &str, units: usize, mut round: impl FnMut() -> T) {
        if !self.wants(name) {
            return;
        }
        black_box(round());
        let mut times: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let started = Instant::now();
                black_box(round());
                started.elapsed().as_secs_f64()
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let each = |time: f64| time * 1e9 / units as f64;
        println!(
            "{name:<44} {:>10.2} ns   ({:.2} to {:.2})",
            each(times[ROUNDS / 2]),
            each(times[0]),
            each(times[ROUNDS - 1])
        );
    }
}

/// Numbers that look random and are the same each time.
fn scattered(i: usize) -> i64 {
    (i as i64).wrapping_mul(0x2545_F491_4F6C_DD1D) >> 20
}

fn column(ty: &str) -> ArrayRef {
    let every = 0..ROWS;
    match ty {
        "long" => Arc::new(Int64Array::from_iter_values(every.map(scattered))),
        "double" => Arc::new(Float64Array::from_iter_values(
            every.map(|i| scattered(i) as f64 / 100.0),
        )),
        "boolean" => Arc::new(BooleanArray::from_iter(
            every.map(|i| Some(scattered(i) % 3 == 0)),
        )),
        "date" => Arc::new(Date32Array::from_iter_values(
            every.map(|i| (scattered(i) % 20_000) as i32),
        )),
        "timestamp" => Arc::new(TimestampMicrosecondArray::from_iter_values(
            every.map(scattered),
        )),
        "decimal(15,2)" => {
            let values = every.map(|i| i128::from(scattered(i) % 10_000_000));
            let array = Decimal128Array::from_iter_values(values);
            Arc::new(array.with_precision_and_scale(15, 2).unwrap())
        }
        "string" => {
            let texts = every.map(|i| format!("a text with the number {}", scattered(i) % 5000));
            Arc::new(StringArray::from_iter_values(texts))
        }
        "list<2 long>" => {
            let DataType::List(element) = fields("1 x: list<2 long>")[0].ty.arrow() else {
                panic!("a list is a list");
            };
            let mut list =
                ListBuilder::new(PrimitiveBuilder::<Int64Type>::new()).with_field(element);
            for i in every {
                for value in 0..scattered(i).rem_euclid(4) {
                    list.values().append_value(value);
                }
                list.append(i % 10 != 0);
            }
            Arc::new(list.finish())
        }
        other => panic!("no column of type {other}"),
    }
}

/// A table of one column in one row group, encoded so.
fn one_column(ty: &str, encoding: Option<Encoding>) -> (TableBuilder, Entry) {
    let schema = format!("1 x: {ty}");
    let mut table = TableBuilder::new(3, &schema);
    let batch = RecordBatch::try_new(arrow_schema(&fields(&schema)), vec![column(ty)]).unwrap();
    let data = Data::batch(batch).schema(&schema);
    let data = data
        .row_groups_of(ROWS)
        .writer(move |properties| match encoding {
            Some(encoding) => properties
                .set_dictionary_enabled(false)
                .set_encoding(encoding),
            None => properties,
        });
    let entry = table.write(data);
    table.commit(Commit::of([entry.clone()]));
    (table, entry)
}

/// As the first reader finds it: a cache that keeps nothing.
fn opened(table: &TableBuilder) -> Opened {
    let options = Options {
        cache: 0,
        ..Options::default()
    };
    Opened::tree_with(&table.root(), &options)
}

fn transcoding(bench: &Bench) {
    let encodings = [
        ("dictionary", "string", None),
        ("plain", "long", Some(Encoding::PLAIN)),
        ("plain", "string", Some(Encoding::PLAIN)),
        ("delta", "long", Some(Encoding::DELTA_BINARY_PACKED)),
        ("delta", "string", Some(Encoding::DELTA_BYTE_ARRAY)),
        ("levels", "list<2 long>", None),
    ];
    for (name, ty, encoding) in encodings {
        for (share, every) in [("99 %", 100), ("50 %", 2), ("10 %", 0)] {
            let name = format!("transcode {name}, {ty}, {share} kept, a row");
            if !bench.wants(&name) {
                continue;
            }
            let (mut table, entry) = one_column(ty, encoding);
            let deleted: Vec<u64> = match every {
                0 => (0..ROWS as u64).filter(|i| i % 10 != 0).collect(),
                every => (0..ROWS as u64).filter(|i| i % every == 0).collect(),
            };
            let vector = table.vector(&entry, &deleted);
            table.commit(Commit::of([vector]));
            table.save();
            bench.run(&name, ROWS, || {
                opened(&table).read("current/t.parquet").unwrap()
            });
        }
    }
}

fn position_bitmaps(bench: &Bench) {
    for (name, positions) in [
        (
            "scattered",
            (0..ROWS as u64).map(|i| i * 37).collect::<Vec<_>>(),
        ),
        (
            "runs",
            (0..ROWS as u64)
                .map(|i| i / 100 * 10_000 + i % 100)
                .collect(),
        ),
    ] {
        let blob = vector_blob(&bitmaps(positions.iter().copied()));
        bench.run(
            &format!("deletion vector, {name}, a position"),
            ROWS,
            || deletion_vector::parse(&blob, ROWS as u64).unwrap(),
        );
    }
}

fn equality_deletes(bench: &Bench) {
    for keys in [1_000, 100_000] {
        let name = format!("equality deletes, {keys} keys, a row");
        if !bench.wants(&name) {
            continue;
        }
        let (mut table, _) = one_column("long", None);
        let rows = (0..keys).map(|i| json!([scattered(i * 2)])).collect();
        let deletes = table.equality_deletes(&[1], "1 x: long", rows);
        table.commit(Commit::of([deletes]));
        table.save();
        // Its footer says how many rows are left, and is made for the read of its end.
        bench.run(&name, ROWS, || {
            let opened = opened(&table);
            let size = opened.size("current/t.parquet").unwrap();
            opened.read_range("current/t.parquet", size - 8, 8).unwrap()
        });
    }
}

fn csv(bench: &Bench) {
    for ty in [
        "long",
        "double",
        "boolean",
        "date",
        "timestamp",
        "decimal(15,2)",
        "string",
    ] {
        let name = format!("CSV, {ty}, a row");
        if !bench.wants(&name) {
            continue;
        }
        let (mut table, _) = one_column(ty, None);
        table.save();
        bench.run(&name, ROWS, || {
            opened(&table).read("current/t.csv").unwrap()
        });
    }
}

fn manifests(bench: &Bench) {
    let mut table = TableBuilder::new(2, "1 x: long, 2 y: string");
    let blank = table.data(json!([[1, "a"]]));
    let entries = (0..20_000).map(|i| {
        blank.with(|e| {
            e.path = format!(
                "{}/data/day=2025-01-01/00000-{i}-of-a-task.parquet",
                table.location
            );
            e.lower_bounds = (1..11).map(|id| (id, vec![1; 8])).collect();
            e.upper_bounds = (1..11).map(|id| (id, vec![2; 8])).collect();
            e.null_counts = (1..11).map(|id| (id, 0)).collect();
        })
    });
    let entries: Vec<Entry> = entries.collect();
    let count = entries.len();
    table.commit(Commit::of(entries));
    let metadata = std::fs::read(table.save()).unwrap();
    let metadata = TableMetadata::parse(&metadata).unwrap();
    let snapshot = &table.snapshots[0];
    let list = snapshot.json["manifest-list"].as_str().unwrap();
    let listed = parse_manifest_list(&std::fs::read(table.local(list)).unwrap()).unwrap();
    let bytes = std::fs::read(table.local(&listed[0].path)).unwrap();
    for (name, statistics) in [
        ("all bounds", Statistics::All),
        ("no bounds", Statistics::Of(vec![])),
    ] {
        bench.run(&format!("manifest, {name}, an entry"), count, || {
            parse_manifest(&bytes, &listed[0], &metadata, &statistics).unwrap()
        });
    }
}

fn main() {
    // `cargo bench` adds an option of its own.
    let word = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let bench = Bench { word };
    transcoding(&bench);
    position_bitmaps(&bench);
    equality_deletes(&bench);
    csv(&bench);
    manifests(&bench);
}
