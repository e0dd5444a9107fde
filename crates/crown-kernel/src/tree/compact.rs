//! Memory follows the live rows: slabs, tables and lists that are mostly free are rebuilt.
//!
//! A rebuild costs time linear in the slab and happens only after three quarters of it were freed, so it is amortised
//! constant per deletion. It renames ids, so both sides of every link are rewritten.

use super::lists::Lists;
use super::Tree;

/// How many updates pass between two looks.
pub(super) const INTERVAL: u64 = 256;

impl Tree {
    #[cold]
    pub(super) fn compact(&mut self) {
        for node in 0..self.rows.len() {
            if self.rows[node].is_sparse() {
                self.compact_rows(node);
            }
            if self.edges[node].is_sparse() {
                self.compact_edge(node);
            }
        }
        if self.lists.is_sparse() {
            let mut lists = Lists::default();
            for (edge, shape) in self.edges.iter_mut().zip(&self.shape.nodes) {
                let entries: Vec<u32> = edge.iter().collect();
                for entry in entries {
                    let state = &mut edge.entries[entry as usize];
                    self.lists.relocate(&mut state.parents, &mut lists);
                    if shape.connex {
                        self.lists.relocate(&mut state.children, &mut lists);
                    }
                }
            }
            self.lists = lists;
        }
    }

    fn compact_rows(&mut self, node: usize) {
        let ids = self.rows[node].compact();
        for child in &self.shape.nodes[node].children {
            let entries: Vec<u32> = self.edges[*child].iter().collect();
            for entry in entries {
                let list = &mut self.edges[*child].entries[entry as usize].parents;
                self.lists.rename(list, &ids);
            }
        }
        if self.shape.nodes[node].connex {
            let entries: Vec<u32> = self.edges[node].iter().collect();
            for entry in entries {
                let list = &mut self.edges[node].entries[entry as usize].children;
                self.lists.rename(list, &ids);
            }
        }
    }

    fn compact_edge(&mut self, node: usize) {
        let shape = &self.shape.nodes[node];
        let Some(parent) = shape.parent else { return };
        let ids = self.edges[node].compact();
        for (side, link) in [(node, shape.parent_link), (parent, shape.link_in_parent)] {
            let rows: Vec<u32> = self.rows[side].iter().collect();
            for row in rows {
                let entry = self.rows[side].link_mut(row, link);
                *entry = ids[*entry as usize];
            }
        }
    }
}
