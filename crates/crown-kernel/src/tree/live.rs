//! The live views: which rows are in some result (paper, section 4.2).
//!
//! By Lemma 4.6 a row of a connex node's semi-join view is live exactly if a live row of the parent has its key (every root row is).
//! So liveness is not stored in the row: an entry keeps its live parent rows first and their number, and its children are all live or
//! all not. Marking and clearing go top-down and touch only rows that appear in the delta being made.

use super::shape::LINK;
use super::Tree;

impl Tree {
    /// Whether the rows below this entry are live.
    #[inline(always)]
    pub(super) fn has_live_parent(&self, node: usize, row: u32) -> bool {
        let entry = self.rows[node].link(row, LINK);
        self.edges[node].entries[entry as usize].live > 0
    }

    /// Makes a row live that was not, and all below it that become live by it.
    pub(super) fn mark_live(&mut self, node: usize, row: u32) {
        for index in 0..self.shape.nodes[node].connex_children.len() {
            let child = self.shape.nodes[node].connex_children[index];
            let link = self.shape.nodes[child].link_in_parent;
            let entry = self.rows[node].link(row, link) as usize;
            let border = self.edges[child].entries[entry].live;
            self.swap_parents(node, child, entry, self.rows[node].link(row, link + 1), border);
            self.edges[child].entries[entry].live = border + 1;
            if border == 0 && !self.shape.nodes[child].connex_children.is_empty() {
                for position in 0..self.edges[child].entries[entry].children.len {
                    let below = self.children[child].get(&self.edges[child].entries[entry].children, position);
                    self.mark_live(child, below);
                }
            }
        }
    }

    /// Ends the life of a live row, and of all below it that no other live row supports.
    pub(super) fn kill(&mut self, node: usize, row: u32) {
        for index in 0..self.shape.nodes[node].connex_children.len() {
            let child = self.shape.nodes[node].connex_children[index];
            let link = self.shape.nodes[child].link_in_parent;
            let entry = self.rows[node].link(row, link) as usize;
            let border = self.edges[child].entries[entry].live - 1;
            self.swap_parents(node, child, entry, self.rows[node].link(row, link + 1), border);
            self.edges[child].entries[entry].live = border;
            if border == 0 && !self.shape.nodes[child].connex_children.is_empty() {
                for position in 0..self.edges[child].entries[entry].children.len {
                    let below = self.children[child].get(&self.edges[child].entries[entry].children, position);
                    self.kill(child, below);
                }
            }
        }
    }

    #[inline(always)]
    fn swap_parents(&mut self, node: usize, child: usize, entry: usize, left: u32, right: u32) {
        if left == right {
            return;
        }
        let place = self.shape.nodes[child].link_in_parent + 1;
        let list = &self.edges[child].entries[entry].parents;
        let (first, second) = (self.parents.get(list, left), self.parents.get(list, right));
        self.parents.swap(list, left, right);
        self.rows[node].set_link(first, place, right);
        self.rows[node].set_link(second, place, left);
    }
}
