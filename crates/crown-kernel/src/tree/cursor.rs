//! Full enumeration that can pause and resume (paper, Algorithm 4): the walk from the root's
//! semi-join view.

use super::enumerate::{Emission, Walk};
use super::Tree;
use crate::chunk::Chunk;
use crate::error::{KernelError, Result};
use crate::plan::Mode;
use crate::store::interner::Interner;

/// A place in the full enumeration of a tree.
pub struct Cursor {
    walk: Walk,
    updates: u64,
    /// The row of a global aggregate over empty input has not been returned yet.
    empty_row: bool,
}

impl Cursor {
    pub(super) fn new(tree: &Tree) -> Cursor {
        let empty_row = tree.shape.always && tree.rows[tree.shape.root].in_semi_join == 0;
        Cursor { walk: Walk::default(), updates: tree.updates, empty_row }
    }

    /// Appends up to `max_rows` further rows (weight 1, in mode bag the multiplicity). False when
    /// the enumeration is at its end. With `max_rows` 1 it is the constant-delay iterator of the
    /// paper.
    pub fn fill(&mut self, tree: &Tree, interner: &mut Interner, out: &mut Chunk, max_rows: usize) -> Result<bool> {
        if self.updates != tree.updates {
            return Err(KernelError::invalid("CROWN-ITERATION", "the view has changed since the iteration started"));
        }
        if std::mem::take(&mut self.empty_row) && max_rows > 0 {
            out.push(&tree.initial_row(interner).unwrap_or_default(), 0, 1);
            return Ok(false);
        }
        let root = tree.shape.root;
        let first = tree.children[root].rows(&tree.edges[root].entries[0].children);
        let program = tree.programs[root].as_ref().expect("the root is connex");
        let plain = tree.shape.mode == Mode::Set || (tree.shape.mode == Mode::Bag && tree.is_plain());
        let emission = Emission { sign: 1, values: None, pairs: false, plain, totals: None };
        let end = out.len() + max_rows;
        while out.len() < end {
            let budget = end - out.len();
            if self.walk.run(tree, program, first, &emission, interner, out, budget)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    #[cfg(test)]
    pub(super) fn operations(&self) -> u64 {
        self.walk.operations
    }

    #[cfg(test)]
    pub(super) fn visits(&self) -> u64 {
        self.walk.visits()
    }
}
