//! What a tree holds and what its updates cost.

use super::id::EntryId;
use super::shape::LINK;
use super::Tree;
use crate::arrow_out::value_json;
use crate::mask::Bits;
use crate::store::interner::Interner;
use serde_json::Value;

/// Rows that `hot_keys` looks at in each node.
const SAMPLED: usize = 4096;

/// What a node has done so far. Counting by node costs no more than counting for the whole tree.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NodeWork {
    /// Changes of the node's atom.
    pub updates: u64,
    /// Rows that entered or left the semi-join view, each a change of a counter of the edge to the
    /// parent.
    pub moves: u64,
    /// Rows whose count of missing children changed.
    pub touched: u64,
}

/// The size of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeStats {
    /// The name of the node in the plan.
    pub name: String,
    /// Rows of the node.
    pub rows: usize,
    /// Rows in the semi-join view.
    pub semi_join_rows: usize,
    /// Distinct keys towards the parent.
    pub keys: usize,
    /// Bytes of the rows, keys, lists, ordered indexes and counts of results; the lists of parent
    /// rows are counted for the whole tree.
    pub bytes: usize,
    /// Changes of the node's atom so far.
    pub updates: u64,
    /// Rows that entered or left the semi-join view so far: what went up the edge to the parent.
    pub moves: u64,
    /// Counters of the node that changed so far.
    pub counter_changes: u64,
}

/// A key that many rows of a node, or of its parent, share.
#[derive(Clone, Debug, PartialEq)]
pub struct HotKey {
    /// The name of the node in the plan.
    pub node: String,
    /// The variables of the key, with their values.
    pub key: Vec<(String, Value)>,
    /// Rows of the node with the key.
    pub rows: usize,
    /// Rows of the parent with the key: how many a change of the key may change.
    pub parents: usize,
}

/// The size of a tree and the work it has done.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeStats {
    /// The nodes, in the order of the plan.
    pub nodes: Vec<NodeStats>,
    /// Atom changes so far.
    pub updates: u64,
    /// Counters that changed so far; the average per update is the work ratio.
    pub counter_changes: u64,
    /// Rows of all atoms now.
    pub live_rows: usize,
    /// Bytes held by the tree.
    pub bytes: usize,
}

impl Tree {
    /// Measures the tree.
    pub fn stats(&self) -> TreeStats {
        let nodes: Vec<NodeStats> = (0..self.rows.len())
            .map(|node| NodeStats {
                name: self.shape.nodes[node].name.clone(),
                rows: self.rows[node].len - self.rows[node].phantoms,
                semi_join_rows: self.rows[node].in_semi_join - self.rows[node].phantoms,
                keys: self.edges[node].len(),
                bytes: self.ids[node].bytes()
                    + self.rows[node].bytes()
                    + self.edges[node].bytes()
                    + self.children[node].bytes()
                    + self.orders.bytes(node)
                    + self.counts.as_ref().map_or(0, |counts| counts.bytes(node)),
                updates: self.work[node].updates,
                moves: self.work[node].moves,
                counter_changes: self.work[node].moves + self.work[node].touched,
            })
            .collect();
        let bytes = nodes.iter().map(|node| node.bytes).sum::<usize>() + self.parents.bytes();
        TreeStats {
            nodes,
            updates: self.updates,
            counter_changes: self.work.iter().map(|work| work.moves + work.touched).sum(),
            live_rows: self.shape.atom_nodes.iter().map(|node| self.rows[*node].len - self.rows[*node].phantoms).sum(),
            bytes,
        }
    }

    /// Up to `limit` keys of each node below the root that the most rows, of it or of its parent,
    /// share.
    ///
    /// Takes time independent of the state: it looks at a bounded number of rows, spread evenly. A
    /// key with a large part of the rows is among them, and its counts are exact.
    pub fn hot_keys(&self, limit: usize, interner: &Interner) -> Vec<HotKey> {
        (0..self.rows.len()).flat_map(|node| self.hot_keys_of(node, limit, interner)).collect()
    }

    fn hot_keys_of(&self, node: usize, limit: usize, interner: &Interner) -> Vec<HotKey> {
        let shape = &self.shape.nodes[node];
        let Some(parent) = shape.parent.filter(|_| !shape.key.child_columns.is_empty()) else { return Vec::new() };
        let mut entries = self.sampled_entries(node, LINK);
        entries.extend(self.sampled_entries(parent, shape.link_in_parent));
        entries.sort_unstable();
        entries.dedup();
        let weight = |entry: &EntryId| {
            let state = self.edges[node].entry(*entry);
            std::cmp::Reverse(state.references.max(state.parents.len))
        };
        entries.sort_by_key(weight);
        entries.truncate(limit);
        entries.into_iter().map(|entry| self.hot_key(node, entry, interner)).collect()
    }

    /// The entries that a link of some rows of a node leads to.
    fn sampled_entries(&self, node: usize, link: usize) -> Vec<EntryId> {
        let twins = &self.shape.nodes[node].twins;
        let rows = self.ids[twins.first].sampled(twins.bit, SAMPLED);
        rows.map(|row| self.rows[node].entry(row, link)).collect()
    }

    fn hot_key(&self, node: usize, entry: EntryId, interner: &Interner) -> HotKey {
        let (shape, edge) = (&self.shape.nodes[node], &self.edges[node]);
        let words = edge.key(entry);
        let nulls = if shape.key.nullable { words[words.len() - 1] } else { 0 };
        let value = |(place, column): (usize, &usize)| {
            let value = value_json(words[place], nulls.has(place), shape.types[*column], interner);
            (shape.variables[*column].clone(), value)
        };
        HotKey {
            node: shape.name.clone(),
            key: shape.key.child_columns.iter().enumerate().map(value).collect(),
            rows: edge.entry(entry).references as usize,
            parents: edge.entry(entry).parents.len as usize,
        }
    }
}
