//! The live views: which rows are in some result (paper, section 4.2).
//!
//! By Lemma 4.6 a row of a connex node's semi-join view is live exactly if a live row of the parent
//! has its key (every root row is). So liveness is not stored in the row: an entry lists its live
//! parent rows first, with their number, and its children are either all live or all not. Marking
//! and clearing go top-down and touch only rows that appear in the current delta.

use super::id::{EntryId, RowId};
use super::lists::List;
use super::shape::{Below, LINK};
use super::Tree;

impl Tree {
    /// Whether the rows below this entry are live.
    #[inline(always)]
    pub(super) fn has_live_parent(&self, node: usize, row: RowId) -> bool {
        let entry = self.rows[node].entry(row, LINK);
        self.edges[node].entry(entry).live > 0
    }

    /// Makes a row live that was not, and all below it that become live by it.
    pub(super) fn mark_live(&mut self, node: usize, row: RowId) {
        for index in 0..self.shape.nodes[node].below.len() {
            let Below { child, link, connex, .. } = self.shape.nodes[node].below[index];
            if !connex {
                continue;
            }
            let entry = self.rows[node].entry(row, link);
            let state = self.edges[child].entry_mut(entry);
            let (border, parents) = (state.live, state.parents);
            state.live += 1;
            self.swap_parents(node, link, &parents, self.rows[node].position(row, link), border);
            if let Some(order) = self.orders.of_parents(child) {
                order.add(&self.rows[node], row, link);
            }
            if border == 0 && !self.shape.nodes[child].connex_children.is_empty() {
                self.each_child(child, entry, Tree::mark_live);
            }
        }
    }

    /// Ends the life of a live row, and of all below it that no other live row supports.
    pub(super) fn kill(&mut self, node: usize, row: RowId) {
        for index in 0..self.shape.nodes[node].below.len() {
            let Below { child, link, connex, .. } = self.shape.nodes[node].below[index];
            if !connex {
                continue;
            }
            let entry = self.rows[node].entry(row, link);
            let state = self.edges[child].entry_mut(entry);
            state.live -= 1;
            let (border, parents) = (state.live, state.parents);
            self.swap_parents(node, link, &parents, self.rows[node].position(row, link), border);
            if let Some(order) = self.orders.of_parents(child) {
                order.remove(&self.rows[node], row, link);
            }
            if border == 0 && !self.shape.nodes[child].connex_children.is_empty() {
                self.each_child(child, entry, Tree::kill);
            }
        }
    }

    fn each_child(&mut self, child: usize, entry: EntryId, act: fn(&mut Tree, usize, RowId)) {
        for position in 0..self.edges[child].entry(entry).children.len {
            let below = self.children[child].get(&self.edges[child].entry(entry).children, position);
            act(self, child, below);
        }
    }

    /// Exchanges two places of a list of parent rows, which know their places.
    #[inline(always)]
    fn swap_parents(&mut self, node: usize, link: usize, list: &List, left: u32, right: u32) {
        if left == right {
            return;
        }
        let (first, second) = (self.parents.get(list, left), self.parents.get(list, right));
        self.parents.swap(list, left, right);
        self.rows[node].set_position(first, link, right);
        self.rows[node].set_position(second, link, left);
    }
}
