//! How chunks are read: from the cache in memory or on disk, from what their reader holds, or made for that, all of
//! them or as far as is asked for.

use std::sync::Arc;

use super::GroupRows;
use crate::cache::CacheKey;
use crate::cache::disk::{DiskKey, Payload};
use crate::parquet::growing::{GrowingChunk, Grown};
use crate::parquet::held::{Held, HeldChunks};
use crate::parquet::kept::KeptChunk;
use crate::parquet::levels::LeafPlan;
use crate::parquet::part::PartLeaf;
use crate::parquet::target::TargetLeaf;
use crate::parquet::{ParquetError, View};

/// A chunk grows in the cache where half of it is no more than this share of the memory.
const GROWING: usize = 8;

impl GroupRows<'_> {
    /// The whole chunk of a leaf, made or from the cache.
    pub fn made(
        &self,
        view: &View,
        leaf: usize,
        target: &TargetLeaf,
    ) -> Result<Arc<KeptChunk>, ParquetError> {
        let Some(part_leaf) = self.part.leaves.get(leaf) else {
            return Err(self.part.corrupt("a leaf without a plan".to_owned()));
        };
        let key = self.cache_key(part_leaf, target)?;
        let make = || {
            let chunk = self.kept_or_made(view, leaf, target, &key)?;
            let weight = chunk.weight();
            Ok((chunk, weight))
        };
        let spill = Arc::clone(view.storage.spill());
        let spill = move |chunk: &KeptChunk| chunk.spilled(&spill);
        view.cache
            .get_or_spill(key.clone(), self.part.tag, make, spill)
    }

    /// Whether the chunk of a leaf is made as far as it is read, unless it is in the cache, under the key that is given.
    /// Those of stores are not: one request for all of it takes no longer than one for some of it.
    pub fn grows(
        &self,
        view: &View,
        leaf: usize,
        target: &TargetLeaf,
    ) -> Result<Option<CacheKey>, ParquetError> {
        let part_leaf = self.part.leaves.get(leaf);
        let stored = part_leaf.filter(|leaf| matches!(leaf.plan, LeafPlan::Stored { .. }));
        let on_disk = view.cache.disk().is_some() && self.part.is_lasting();
        match stored {
            Some(part_leaf) if !on_disk && !self.part.opened.file.is_remote() => {
                let key = self.cache_key(part_leaf, target)?;
                Ok((!view.cache.has(&key)).then_some(key))
            }
            _ => Ok(None),
        }
    }

    /// Copies from the chunk of a leaf as far as it has to be made for that: see [`GroupRows::read_made`]. `bound`: the
    /// bytes of its slot.
    fn read_growing(
        &self,
        view: &View,
        (leaf, target): (usize, &TargetLeaf),
        bound: u64,
        inside: u64,
        out: &mut [u8],
    ) -> Result<Grown, ParquetError> {
        let limit = usize::try_from(bound / 2).unwrap_or(usize::MAX);
        let end = inside.saturating_add(out.len() as u64);
        if end > bound / 2 || limit > view.cache.budget() / GROWING {
            return Ok(Grown::Not);
        }
        let Some(whole) = self.grows(view, leaf, target)? else {
            return Ok(Grown::Not);
        };
        let key = growing_key(&whole);
        let growing = if inside == 0 {
            let make = || Ok::<_, ParquetError>((GrowingChunk::default(), limit));
            view.cache.get_or_make(key.clone(), make)?
        } else {
            // Whoever comes to the middle of a chunk first, or once its beginning has been dropped, waits for all of it.
            let Some(growing) = view.cache.get::<GrowingChunk>(&key) else {
                return Ok(Grown::Not);
            };
            growing
        };
        if view.cache.has(&whole) {
            // Whoever makes the whole chunk takes what has been begun, and drops it; this one came too late for that.
            if !growing.has_begun() {
                view.cache.forget(&key);
            }
            return Ok(Grown::Not);
        }
        growing.read_at(inside, out, limit, |chunk, until| {
            self.go_on(view, leaf, target, chunk, until)
        })
    }

    /// Copies from the chunk of a leaf for who holds the chunks of the row group: it is not put into the cache. `segment`
    /// is that of the leaf, of so many bytes. It does not where the chunk is in the cache, or there is no room to hold it.
    fn read_held(
        &self,
        view: &View,
        (leaf, target): (usize, &TargetLeaf),
        (held, segment, bound): (&HeldChunks, usize, u64),
        inside: u64,
        out: &mut [u8],
    ) -> Result<Grown, ParquetError> {
        let Some(part_leaf) = self.part.leaves.get(leaf) else {
            return Err(self.part.corrupt("a leaf without a plan".to_owned()));
        };
        let key = self.cache_key(part_leaf, target)?;
        if view.cache.has(&key) {
            return Ok(Grown::Not);
        }
        let grows = self.grows(view, leaf, target)?.is_some();
        let held = held.get_or_make(segment, bound, &view.cache, || {
            Ok(if grows {
                Held::Growing(Arc::default())
            } else {
                Held::Whole(Arc::new(self.kept_or_made(view, leaf, target, &key)?))
            })
        })?;
        match held {
            None => Ok(Grown::Not),
            Some(Held::Growing(chunk)) => chunk.read_at(inside, out, usize::MAX, |chunk, until| {
                self.go_on(view, leaf, target, chunk, until)
            }),
            Some(Held::Whole(chunk)) => {
                let read = chunk.read_at(inside, out);
                let read = read.map_err(|error| self.lost(error))?;
                Ok(Grown::Read(read, Some(chunk.len())))
            }
        }
    }

    /// The whole chunk of a leaf, from the cache on disk or made, from where it has grown to.
    fn kept_or_made(
        &self,
        view: &View,
        leaf: usize,
        target: &TargetLeaf,
        key: &CacheKey,
    ) -> Result<KeptChunk, ParquetError> {
        let is_dear = |part_leaf: &&PartLeaf| is_dear(&part_leaf.plan);
        let dear = self.part.leaves.get(leaf).filter(is_dear);
        let lasts = dear.is_some() && self.part.is_lasting();
        let kept = view.cache.disk().filter(|_| lasts).map(|disk| {
            let (kind, id, tag) = (key.kind, key.id.clone(), self.part.tag);
            (disk, DiskKey { kind, id, tag })
        });
        if let Some((disk, key)) = &kept
            && let Some(chunk) = disk.get(key).and_then(KeptChunk::from_stored)
        {
            return Ok(chunk);
        }
        let growing = growing_key(key);
        let begun = view.cache.get::<GrowingChunk>(&growing);
        let begun = begun.and_then(|chunk| chunk.take()).unwrap_or_default();
        let made = self.make(view, leaf, target, begun);
        view.cache.forget(&growing);
        let chunk = KeptChunk::from(made?);
        if let Some((disk, key)) = kept
            && let Some(parts) = chunk.stored()
        {
            disk.put(&key, Payload::Parts(parts));
        }
        Ok(chunk)
    }

    /// Copies from the chunk of a leaf, from `inside` on: how much that was, and the chunk's length, which is known at the
    /// latest when less was there than was asked for. `slot`: the leaf's segment, with its bytes; `held`: what the reader
    /// holds.
    pub fn read_made(
        &self,
        view: &View,
        (leaf, target): (usize, &TargetLeaf),
        (segment, bound): (usize, u64),
        held: Option<&HeldChunks>,
        inside: u64,
        out: &mut [u8],
    ) -> Result<(usize, Option<u64>), ParquetError> {
        let grown = match held {
            Some(held) => {
                self.read_held(view, (leaf, target), (held, segment, bound), inside, out)?
            }
            None => self.read_growing(view, (leaf, target), bound, inside, out)?,
        };
        if let Grown::Read(read, len) = grown {
            return Ok((read, len));
        }
        let chunk = self.made(view, leaf, target)?;
        let read = chunk.read_at(inside, out).or_else(|error| {
            // What the spill file has lost is made again.
            tracing::debug!(%error, "a chunk in the spill file is lost");
            if let Some(part_leaf) = self.part.leaves.get(leaf) {
                view.cache.forget(&self.cache_key(part_leaf, target)?);
            }
            let chunk = self.made(view, leaf, target)?;
            chunk.read_at(inside, out).map_err(|error| self.lost(error))
        });
        Ok((read?, Some(chunk.len())))
    }
}

/// Where in the cache a chunk is while it grows, by where it will be.
fn growing_key(whole: &CacheKey) -> CacheKey {
    CacheKey {
        kind: "growing",
        id: whole.id.clone(),
    }
}

/// Whether a chunk takes longer to make than to read from the cache on disk: stored pages are read for it.
fn is_dear(plan: &LeafPlan) -> bool {
    match plan {
        LeafPlan::Stored { .. } => true,
        LeafPlan::Missing(missing) => missing.guide.is_some(),
        LeafPlan::RowId { stored, .. } | LeafPlan::LastUpdated { stored, .. } => stored.is_some(),
        LeafPlan::Position => false,
    }
}
