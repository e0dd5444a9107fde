//! A free-connex join tree under changes: join-free propagation, constant-delay full and delta enumeration.

mod cursor;
mod sample;
mod stats;

pub use cursor::Cursor;
pub use sample::Sampler;
pub use stats::{NodeStats, TreeStats};

use crate::chunk::{Chunk, Nulls, Word};
use crate::error::Result;
use crate::interner::Interner;
use crate::plan;

/// Where a tree puts its output rows.
pub trait Sink {
    /// The chunk to append to: `outputs`, then the ring's components, as columns.
    fn chunk(&mut self) -> &mut Chunk;

    /// Called between blocks of rows (a block has at most a few thousand); may take the rows out of the chunk.
    fn flush_if_full(&mut self) -> Result<()>;
}

/// Rows gathered in one chunk of any size.
impl Sink for Chunk {
    fn chunk(&mut self) -> &mut Chunk {
        self
    }

    fn flush_if_full(&mut self) -> Result<()> {
        Ok(())
    }
}

pub struct Tree {}

impl Tree {
    /// Builds the empty tree. `deltas = false` leaves out all that only deltas need; `apply` then emits nothing.
    ///
    /// A stage that is not of the right shape is refused with `CROWN-PLAN-TREE`.
    pub fn new(_stage: &plan::TreeStage, _deltas: bool) -> Result<Tree> {
        unimplemented!()
    }

    /// How often the atom row is there. `words` are in the order of the atom's distinct variables, here and below.
    pub fn atom_multiplicity(&self, _atom: usize, _words: &[Word], _nulls: Nulls) -> u64 {
        unimplemented!()
    }

    /// One change of one atom: `weight` (not 0) more copies of a row, or fewer, but never fewer than none: the
    /// caller has checked. Appends the delta of the result to the sink.
    ///
    /// The changes of a batch are applied one after the other; their deltas add up to the batch's. A self-join's change is
    /// applied to each of its atoms in turn. On an error (overflow, a failing residual, the sink's own) the tree is as before the
    /// call; rows may have reached the sink.
    pub fn apply(
        &mut self,
        _atom: usize,
        _words: &[Word],
        _nulls: Nulls,
        _weight: i64,
        _interner: &mut Interner,
        _sink: &mut impl Sink,
    ) -> Result<()> {
        unimplemented!()
    }

    /// The row that is in the result of an `always` stage before any change; `None` for other stages. The
    /// deltas are relative to it: the engine emits it once, at the start.
    pub fn initial_row(&self, _interner: &mut Interner) -> Option<Vec<Word>> {
        unimplemented!()
    }

    /// How often the result has the row (`words` of the stage's `outputs`, without ring components), in O(1): mode
    /// bag counts, set and ring give 0 or 1.
    pub fn multiplicity(&self, _words: &[Word], _nulls: Nulls, _interner: &mut Interner) -> Result<i64> {
        unimplemented!()
    }

    /// The number of result rows (a bag's with multiplicity). In O(1) when deltas are kept; else in time linear in the
    /// state, or `None` when a residual would have to look at every row.
    pub fn count(&self) -> Option<i128> {
        unimplemented!()
    }

    /// A full enumeration from the start. It is valid until the next `apply`.
    pub fn cursor(&self) -> Cursor {
        unimplemented!()
    }

    /// An index for drawing result rows at random, built in time linear in the state, valid until the next `apply`.
    pub fn sampler(&self) -> Sampler {
        unimplemented!()
    }

    /// The atom's rows, each with its multiplicity, in a fixed order. Applying them to an empty tree rebuilds the state.
    pub fn atom_rows(&self, _atom: usize) -> impl Iterator<Item = (&[Word], Nulls, u64)> {
        std::iter::empty()
    }

    /// Whether a net batch (per atom row), deletions first, gives deltas that are net by construction. May change
    /// from true to false when an atom row gets a multiplicity above 1 in mode bag: ask after the batch.
    pub fn is_net(&self) -> bool {
        unimplemented!()
    }

    pub fn stats(&self) -> TreeStats {
        unimplemented!()
    }
}
