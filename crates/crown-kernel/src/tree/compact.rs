//! Memory is proportional to the live rows: slabs, tables and lists that are mostly free are
//! rebuilt.
//!
//! A rebuild costs time linear in the slab and happens only after three quarters of it were freed,
//! so it is amortised constant per deletion. It renames ids, so both sides of every link are
//! rewritten.

use super::id::RowId;
use super::shape::LINK;
use super::Tree;
use crate::store::hash::hash_words;

/// How many updates pass between two looks.
pub(super) const INTERVAL: u64 = 256;

impl Tree {
    #[cold]
    pub(super) fn compact(&mut self) {
        for node in 0..self.rows.len() {
            if self.ids[node].is_sparse() {
                self.compact_ids(node);
            }
            if self.edges[node].is_sparse() {
                self.compact_edge(node);
            }
        }
        if self.parents.is_sparse() {
            let mut fresh = self.parents.fresh();
            for edge in &mut self.edges {
                for entry in edge.ids() {
                    self.parents.relocate(&mut edge.entries[entry.index()].parents, &mut fresh);
                }
            }
            self.parents = fresh;
        }
        for (lists, edge) in self.children.iter_mut().zip(&mut self.edges) {
            if lists.is_sparse() {
                let mut fresh = lists.fresh();
                for entry in edge.ids() {
                    lists.relocate(&mut edge.entries[entry.index()].children, &mut fresh);
                }
                *lists = fresh;
            }
        }
    }

    /// The rows of a node and of its twins.
    fn compact_ids(&mut self, first: usize) {
        let rows = &self.rows[first];
        let (ids, count) = self.ids[first].compact(|row| hash_words(rows.words(row).iter().copied()));
        for node in first..self.rows.len() {
            if self.shape.nodes[node].twins.first == first {
                self.rows[node].rename(&ids, count);
                self.rename_rows(node, &ids);
            }
        }
    }

    /// Writes the new ids of a node's rows wherever they are linked to.
    fn rename_rows(&mut self, node: usize, ids: &[Option<RowId>]) {
        self.orders.of_children(node).into_iter().for_each(|order| order.rename_rows(ids));
        self.edges[node].rename_phantoms(ids);
        for child in &self.shape.nodes[node].children {
            self.orders.of_parents(*child).into_iter().for_each(|order| order.rename_rows(ids));
            for entry in self.edges[*child].ids() {
                self.parents.rename(&mut self.edges[*child].entries[entry.index()].parents, ids);
            }
        }
        if self.shape.nodes[node].connex {
            for entry in self.edges[node].ids() {
                self.children[node].rename(&mut self.edges[node].entries[entry.index()].children, ids);
            }
        }
    }

    fn compact_edge(&mut self, node: usize) {
        let shape = &self.shape.nodes[node];
        let Some(parent) = shape.parent else { return };
        let ids = self.edges[node].compact();
        self.counts = None; // it knows entries by their ids
        self.orders.of_children(node).into_iter().for_each(|order| order.rename_entries(&ids));
        self.orders.of_parents(node).into_iter().for_each(|order| order.rename_entries(&ids));
        for (side, link) in [(node, LINK), (parent, shape.link_in_parent)] {
            let rows: Vec<RowId> = self.row_ids(side).collect();
            for row in rows {
                let entry = self.rows[side].entry(row, link);
                self.rows[side].set_entry(row, link, ids[entry.index()].expect("a linked entry has a new id"));
            }
        }
    }
}
