//! Full enumeration that can stop and go on.

use super::Tree;
use crate::chunk::Chunk;
use crate::error::Result;
use crate::interner::Interner;

/// A place in the full enumeration of a tree.
pub struct Cursor {}

impl Cursor {
    /// Appends up to `max_rows` further rows (weight 1, in mode bag the multiplicity). False when the enumeration is at its end.
    pub fn fill(&mut self, _tree: &Tree, _interner: &mut Interner, _out: &mut Chunk, _max_rows: usize) -> Result<bool> {
        unimplemented!()
    }
}
