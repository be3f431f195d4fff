//! Inode numbers: which node the kernel means, for as long as it remembers it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use crate::tree::Node;

/// The number of the root.
const ROOT: u64 = 1;

/// The nodes that the kernel knows. A number is a hash of where it was found, so a listing can tell it beforehand.
pub(super) struct Inodes(Mutex<Known>);

struct Known {
    by_number: HashMap<u64, Remembered>,
    by_node: HashMap<Node, u64>,
}

struct Remembered {
    node: Node,
    parent: u64,
    /// Look-ups that the kernel has not taken back.
    lookups: u64,
}

impl Inodes {
    pub(super) fn new(root: Node) -> Inodes {
        let remembered = Remembered {
            node: root.clone(),
            parent: ROOT,
            lookups: 1,
        };
        Inodes(Mutex::new(Known {
            by_number: HashMap::from([(ROOT, remembered)]),
            by_node: HashMap::from([(root, ROOT)]),
        }))
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn node(&self, ino: u64) -> Option<Node> {
        self.known()
            .by_number
            .get(&ino)
            .map(|remembered| remembered.node.clone())
    }

    pub(super) fn parent(&self, ino: u64) -> u64 {
        self.known()
            .by_number
            .get(&ino)
            .map_or(ROOT, |remembered| remembered.parent)
    }

    /// The number of a node that was looked up as `name` in `parent`; counts the look-up.
    pub(super) fn remember(&self, parent: u64, name: &str, node: Node) -> u64 {
        let known = &mut *self.known();
        if let Some(ino) = known.by_node.get(&node)
            && let Some(remembered) = known.by_number.get_mut(ino)
        {
            remembered.lookups += 1;
            return *ino;
        }
        let mut ino = number(parent, name);
        // Another node may have the number: its hash is the same, or it was found there before the table changed.
        while ino <= ROOT || known.by_number.contains_key(&ino) {
            ino = ino.wrapping_add(1);
        }
        known.by_node.insert(node.clone(), ino);
        known.by_number.insert(
            ino,
            Remembered {
                node,
                parent,
                lookups: 1,
            },
        );
        ino
    }

    /// The kernel takes look-ups back; at none the node is forgotten.
    pub(super) fn forget(&self, ino: u64, lookups: u64) {
        if ino == ROOT {
            return;
        }
        let known = &mut *self.known();
        if let Some(remembered) = known.by_number.get_mut(&ino) {
            remembered.lookups = remembered.lookups.saturating_sub(lookups);
            if remembered.lookups == 0
                && let Some(remembered) = known.by_number.remove(&ino)
            {
                known.by_node.remove(&remembered.node);
            }
        }
    }
}

/// The number that a name in a directory gets, unless another node has it.
pub(super) fn number(parent: u64, name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (parent, name).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::DaemonNode;

    #[test]
    fn a_node_keeps_its_number_until_every_lookup_is_taken_back() {
        let inodes = Inodes::new(Node::Daemon(DaemonNode::Directory));
        let node = Node::Daemon(DaemonNode::Stats);
        let ino = inodes.remember(ROOT, "stats", node.clone());
        assert_eq!(inodes.remember(ROOT, "stats", node.clone()), ino);
        inodes.forget(ino, 1);
        assert_eq!(inodes.node(ino), Some(node));
        inodes.forget(ino, 1);
        assert_eq!(inodes.node(ino), None);
    }

    #[test]
    fn two_nodes_at_one_place_have_two_numbers() {
        let inodes = Inodes::new(Node::Daemon(DaemonNode::Directory));
        let old = inodes.remember(ROOT, "x", Node::Daemon(DaemonNode::Stats));
        let new = inodes.remember(ROOT, "x", Node::Daemon(DaemonNode::Errors));
        assert_ne!(old, new);
    }
}
