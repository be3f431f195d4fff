//! What is kept of texts on disk, across mounts: rendered pieces, and the lengths of all pieces of a text that has been
//! sized, and so its size.
//!
//! A piece follows from the content of its row group, the format and what the user says of it, and the row it begins
//! with; where it ends, it says itself. Snapshots that share row groups so share their text. The lengths follow from all
//! row groups, in order.

use bytes::Bytes;

use super::index::Index;
use super::{Engine, Format, TextError};
use crate::cache::Tag;
use crate::cache::disk::{DiskKey, Payload};
use crate::cache::identity::Identity;
use crate::parquet::{GroupContent, ParquetFile};

/// What a text is made from.
#[derive(Debug)]
pub(super) struct Contents {
    groups: Vec<GroupContent>,
    /// The format and its options.
    form: String,
}

impl Contents {
    /// Of a text over a virtual file that has `groups` row groups. `None`: nothing is kept on disk.
    pub(super) fn of(
        engine: &Engine,
        format: Format,
        parquet: &ParquetFile,
        groups: usize,
    ) -> Result<Option<Contents>, TextError> {
        if engine.cache.disk().is_none() {
            return Ok(None);
        }
        let contents = parquet.group_contents()?;
        // Rather keep nothing than take one row group for another.
        let sound = contents.len() == groups && contents.iter().all(|group| group.lasting);
        Ok(sound.then(|| Contents {
            groups: contents,
            form: format!("{format:?} {:?}", engine.options.csv_null),
        }))
    }

    fn piece_key(&self, group: usize, first: u64) -> Option<DiskKey> {
        let group = self.groups.get(group)?;
        Some(DiskKey {
            kind: "text",
            id: format!("{} {} {first}", group.identity, self.form),
            tag: group.tag,
        })
    }

    fn index_key(&self) -> DiskKey {
        let mut identity = Identity::default();
        for group in &self.groups {
            identity.push(group.identity.as_bytes());
        }
        DiskKey {
            kind: "text-index",
            id: format!("{} {}", identity.finish(), self.form),
            tag: Tag::NONE,
        }
    }

    /// The piece of a row group that begins with a row, and the row after its last, which is not behind `end`.
    pub(super) fn piece(
        &self,
        engine: &Engine,
        group: usize,
        first: u64,
        end: u64,
    ) -> Option<(Bytes, u64)> {
        let mut entry = engine.cache.disk()?.get(&self.piece_key(group, first)?)?;
        let behind = u64::from_le_bytes(*entry.first_chunk()?);
        (first < behind && behind <= end).then(|| (entry.split_off(8), behind))
    }

    /// Keeps a piece, where there is time and room for it.
    pub(super) fn keep_piece(
        &self,
        engine: &Engine,
        group: usize,
        first: u64,
        piece: &Bytes,
        end: u64,
    ) {
        if let Some((disk, key)) = engine.cache.disk().zip(self.piece_key(group, first)) {
            let end = Bytes::copy_from_slice(&end.to_le_bytes());
            disk.put(&key, Payload::Parts(vec![end, piece.clone()]));
        }
    }

    /// Fills in the lengths of all pieces, where they are kept; whether they were.
    pub(super) fn restore(&self, engine: &Engine, index: &Index) -> bool {
        let Some(entry) = engine.cache.disk().and_then(|d| d.get(&self.index_key())) else {
            return false;
        };
        let numbers = entry.chunks_exact(8).map(|bytes| {
            let bytes = bytes.first_chunk().copied().unwrap_or_default();
            u64::from_le_bytes(bytes)
        });
        index.restore(numbers)
    }

    /// Keeps the lengths of all pieces.
    pub(super) fn keep(&self, engine: &Engine, index: &Index) {
        if let Some(disk) = engine.cache.disk() {
            let numbers = index.saved().into_iter().flat_map(u64::to_le_bytes);
            let entry = Bytes::from(numbers.collect::<Vec<u8>>());
            disk.put(&self.index_key(), Payload::Parts(vec![entry]));
        }
    }
}
