//! Where the links of a table lead, and what its listings of links and views hold.

use std::collections::BTreeSet;

use crate::iceberg::metadata::{RefKind, SnapshotId};

use super::faults::{ErrorKind, TreeError};
use super::node::{TableNode, view_name};
use super::table::TableState;
use super::{Result, Tree, names, times};

/// A link's target, and the snapshot that it leads to in the end.
pub(super) struct Link {
    pub(super) target: String,
    pub(super) snapshot: Option<SnapshotId>,
}

impl Tree {
    /// The link at a place of a table; nothing where the place is no link.
    pub(super) fn link(&self, state: &TableState, place: &TableNode) -> Result<Option<Link>> {
        let (kind, name) = match place {
            TableNode::Current => {
                let target = format!("branches/{}", names::encode("main", ""));
                let snapshot = state.metadata.current_snapshot_id;
                return Ok(Some(Link { target, snapshot }));
            }
            TableNode::Branch(name) => (RefKind::Branch, name),
            TableNode::Tag(name) => (RefKind::Tag, name),
            TableNode::Time(name) => {
                let snapshot = state.at(name)?;
                let target = format!("../snapshots/{}", view_name(Some(snapshot), None));
                return Ok(Some(Link {
                    target,
                    snapshot: Some(snapshot),
                }));
            }
            _ => return Ok(None),
        };
        let snapshot = state
            .refs(kind)
            .get(&**name)
            .copied()
            .ok_or_else(TreeError::not_found)?;
        if let Some(id) = snapshot.filter(|id| !state.metadata.snapshots.contains_key(id)) {
            return Err(state.broken(&format!(
                "{name} names snapshot {}, which is not there",
                id.0
            )));
        }
        let target = format!("../snapshots/{}", state.ref_view(kind, snapshot));
        Ok(Some(Link { target, snapshot }))
    }
}

impl TableState {
    /// The snapshot that was current at the time a name in `at/` says (rule 7).
    fn at(&self, name: &str) -> Result<SnapshotId> {
        let time = times::parse(name).ok_or_else(TreeError::not_found)?;
        let log = &self.metadata.snapshot_log;
        let absent = |reason: String| {
            let path = &self.pointer.metadata;
            TreeError::new(ErrorKind::Absent, format!("{path}: {reason}"))
        };
        let id = times::snapshot_at(log, time).ok_or_else(|| {
            let first = log
                .iter()
                .map(|entry| entry.timestamp_ms)
                .min()
                .and_then(times::name);
            absent(match first {
                Some(first) => format!("the table's log of snapshots begins at {first}"),
                None => "the table has no log of snapshots".to_owned(),
            })
        })?;
        if !self.metadata.snapshots.contains_key(&id) {
            return Err(absent(format!(
                "snapshot {}, current at that time, has been expired",
                id.0
            )));
        }
        Ok(id)
    }

    /// The times of main's log that still lead to a snapshot.
    pub(super) fn listed_times(&self) -> BTreeSet<String> {
        let log = self.metadata.snapshot_log.iter();
        let kept = log.filter(|entry| self.metadata.snapshots.contains_key(&entry.snapshot_id));
        kept.filter_map(|entry| times::name(entry.timestamp_ms))
            .collect()
    }

    /// Every snapshot, and the views with another schema that branches lead to.
    pub(super) fn listed_views(&self) -> BTreeSet<String> {
        let snapshots = self
            .metadata
            .snapshots
            .keys()
            .map(|id| view_name(Some(*id), None));
        let branches = self.refs(RefKind::Branch).into_values();
        let known =
            branches.filter(|id| id.is_none_or(|id| self.metadata.snapshots.contains_key(&id)));
        snapshots
            .chain(known.map(|id| self.ref_view(RefKind::Branch, id)))
            .collect()
    }
}
