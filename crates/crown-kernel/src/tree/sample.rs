//! Result rows at random, without enumerating.

use super::Tree;
use crate::chunk::Chunk;
use crate::error::Result;
use crate::interner::Interner;

/// Weights of the rows of a tree by the number of results they are in.
pub struct Sampler {}

impl Sampler {
    /// Appends one result row (weight 1) drawn with probability proportional to its multiplicity, independent of earlier draws;
    /// false when the result is empty. `random(n)` gives a number below n.
    pub fn draw(
        &self,
        _tree: &Tree,
        _interner: &mut Interner,
        _random: &mut impl FnMut(u64) -> u64,
        _out: &mut Chunk,
    ) -> Result<bool> {
        unimplemented!()
    }
}
