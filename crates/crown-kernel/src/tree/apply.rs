//! The main loop: applies the changes of a batch one after the other, and propagates each through
//! the tree.
//!
//! A change first finds or creates its row. If the row enters or leaves the semi-join view of its
//! node, or its annotation changes, the change propagates upwards (`propagate`, then `delta` in the
//! connex part), which emits the delta. Rows that are no longer needed are removed last.

use super::compact;
use super::id::RowId;
use super::prefetch::{Coming, Hints, BLOCK};
use super::propagate::Scratch;
use super::{Sink, Tree};
use crate::chunk::{Nulls, Word};
use crate::error::{overflow, KernelError, Result};
use crate::mask::Bits;
use crate::store::interner::Interner;
use crate::store::net::too_many_copies;

/// One change of one atom, as `Tree::apply` takes it.
#[derive(Clone, Copy)]
pub struct AtomChange<'a> {
    /// The number of the atom.
    pub atom: usize,
    /// The row, in the order of the atom's distinct variables.
    pub words: &'a [Word],
    /// Which of them are NULL.
    pub nulls: Nulls,
    /// How many copies are inserted (positive) or deleted (negative).
    pub weight: i64,
}

impl Tree {
    /// Applies changes one after the other, as `apply` does. An error says which change failed;
    /// those before it were made.
    pub fn apply_all<'a>(
        &mut self,
        changes: impl Iterator<Item = AtomChange<'a>>,
        interner: &mut Interner,
        sink: &mut impl Sink,
    ) -> std::result::Result<(), (usize, KernelError)> {
        let mut changes = changes.fuse();
        let mut block = [Coming::NOTHING; BLOCK];
        let mut done = 0;
        loop {
            let mut size = 0;
            for (coming, change) in block.iter_mut().zip(&mut changes) {
                self.find_slots(change, coming);
                size += 1;
            }
            if size == 0 {
                return Ok(());
            }
            let block = &mut block[..size];
            if size > 1 {
                self.look_ahead(block);
            }
            for Coming { change, hash, hints, .. } in block {
                self.apply_hashed(change, *hash, hints, interner, sink).map_err(|error| (done, error))?;
                done += 1;
            }
        }
    }

    /// One change of one atom: `weight` (not 0) more copies of a row, or fewer, but never fewer
    /// than none: the caller has checked. Appends the delta of the result to the sink.
    ///
    /// The changes of a batch are applied one after the other; their deltas add up to the batch's.
    /// A self-join's change is applied to each of its atoms in turn. On an error (overflow, a
    /// failing residual, the sink's own) the tree is as before the call; rows may have reached the
    /// sink.
    #[inline]
    pub fn apply(
        &mut self,
        atom: usize,
        words: &[Word],
        nulls: Nulls,
        weight: i64,
        interner: &mut Interner,
        sink: &mut impl Sink,
    ) -> Result<()> {
        let hash = self.hash_row(self.shape.atom_nodes[atom], words, nulls);
        self.apply_hashed(&AtomChange { atom, words, nulls, weight }, hash, &Hints::NOTHING, interner, sink)
    }

    #[inline]
    pub(super) fn apply_hashed(
        &mut self,
        change: &AtomChange,
        hash: u64,
        hints: &Hints,
        interner: &mut Interner,
        sink: &mut impl Sink,
    ) -> Result<()> {
        let mut scratch = self.scratch.take().unwrap_or_default();
        let total = self.total;
        let result = self.change(change, hash, hints, &mut scratch, interner, sink);
        if let Some(error) = self.failure.take().filter(|_| !self.careless) {
            let quiet = std::mem::replace(&mut self.quiet, true);
            let undo = AtomChange { weight: -change.weight, ..*change };
            let undone = self.change(&undo, hash, &Hints::NOTHING, &mut scratch, interner, sink);
            debug_assert!(undone.is_ok());
            self.quiet = quiet;
            self.failure = None;
            self.total = total;
            self.scratch = Some(scratch);
            return Err(error);
        }
        self.scratch = Some(scratch);
        result
    }

    /// Makes the change. An error here leaves the tree untouched; an error in `failure` means that
    /// the change was made.
    #[inline]
    fn change(
        &mut self,
        change: &AtomChange,
        hash: u64,
        hints: &Hints,
        scratch: &mut Scratch,
        interner: &mut Interner,
        sink: &mut impl Sink,
    ) -> Result<()> {
        let AtomChange { atom, words, nulls, weight } = *change;
        let node = self.shape.atom_nodes[atom];
        let shape = &self.shape.nodes[node];
        if words.len() != shape.variables.len() || !nulls.within(shape.nullable) {
            return Err(KernelError::invalid("CROWN-CHANGE-VALUE", format!("a row does not match '{}'", shape.name)));
        }
        let known = if shape.nullable == 0 {
            self.locate(node, hash, words, hints.row)
        } else {
            scratch.row.clear();
            scratch.row.extend_from_slice(words);
            scratch.row.push(nulls);
            self.locate(node, hash, &scratch.row, hints.row)
        };
        let found = known.filter(|row| self.ids[shape.twins.first].holds(shape.twins.bit, *row));
        let old = found.map_or(0, |row| self.rows[node].multiplicity(row));
        let new = u64::try_from(i128::from(old) + i128::from(weight)).map_err(|_| {
            KernelError::invalid("CROWN-CHANGE-ABSENT", format!("a deleted row is not in '{}'", shape.name))
        })?;
        if new > i64::MAX as u64 {
            return Err(too_many_copies());
        }
        scratch.change.clear();
        self.updates += 1;
        self.work[node].updates += 1;
        match found {
            None => {
                let row = self.insert(change, node, hash, known, hints, scratch, interner)?;
                if self.rows[node].missing(row) == 0 {
                    self.enter_first(node, row, new, scratch);
                    self.climb(node, scratch, interner, sink);
                }
            }
            Some(row) if new == 0 => {
                if self.rows[node].missing(row) == 0 {
                    self.leave_first(node, row, old, scratch);
                    self.climb(node, scratch, interner, sink);
                }
                self.forget(node, row, interner);
            }
            Some(row) => {
                self.duplicated = true;
                if self.rows[node].missing(row) == 0 && !self.shape.components.is_empty() {
                    let pairs = &mut scratch.change.value_pairs;
                    let overflowed =
                        self.weight(node, row, old, None, pairs) | self.weight(node, row, new, None, pairs);
                    if overflowed {
                        self.failure.get_or_insert_with(overflow);
                    }
                    scratch.change.valued.push(row);
                    self.rows[node].set_multiplicity(row, new);
                    self.climb(node, scratch, interner, sink);
                } else {
                    self.rows[node].set_multiplicity(row, new);
                }
            }
        }
        while let Some((node, row)) = scratch.dead.pop() {
            self.detach(node, row);
        }
        if self.updates.is_multiple_of(compact::INTERVAL) {
            self.compact();
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    #[inline(always)]
    fn insert(
        &mut self,
        change: &AtomChange,
        node: usize,
        hash: u64,
        known: Option<RowId>,
        hints: &Hints,
        scratch: &mut Scratch,
        interner: &mut Interner,
    ) -> Result<RowId> {
        let AtomChange { words, nulls, weight, .. } = *change;
        let shape = &self.shape.nodes[node];
        scratch.values.clear();
        for (component, expression) in &shape.factors {
            let word = expression.evaluate(words, nulls, interner)?;
            let value = self.shape.components[*component].factor(word, expression.data_type(), interner)?;
            scratch.values.push(value);
        }
        let row = self.add_row(node, hash, if shape.nullable == 0 { words } else { &scratch.row }, known);
        let shape = &self.shape.nodes[node];
        if weight != 1 {
            self.duplicated = true;
            self.rows[node].set_multiplicity(row, weight as u64);
        }
        if !shape.factors.is_empty() {
            self.rows[node].set_factors(row, &scratch.values);
        }
        for column in shape.interned.iter().filter(|column| !nulls.has(**column)) {
            interner.retain(words[*column]);
        }
        self.attach(node, row, hints, scratch);
        Ok(row)
    }

    #[inline(always)]
    fn enter_first(&mut self, node: usize, row: RowId, multiplicity: u64, scratch: &mut Scratch) {
        self.rows[node].in_semi_join += 1;
        self.move_first(node, row, multiplicity, scratch);
        scratch.change.entering = true;
    }

    #[inline(always)]
    fn leave_first(&mut self, node: usize, row: RowId, multiplicity: u64, scratch: &mut Scratch) {
        self.rows[node].in_semi_join -= 1;
        self.move_first(node, row, multiplicity, scratch);
        scratch.change.entering = false;
    }

    #[inline(always)]
    fn move_first(&mut self, node: usize, row: RowId, multiplicity: u64, scratch: &mut Scratch) {
        scratch.change.moved.push(row);
        if !self.shape.components.is_empty()
            && !self.shape.nodes[node].connex
            && self.weight(node, row, multiplicity, None, &mut scratch.change.amounts)
        {
            self.failure.get_or_insert_with(overflow);
        }
    }

    /// Removes an atom row that has left every view.
    #[inline(always)]
    fn forget(&mut self, node: usize, row: RowId, interner: &mut Interner) {
        let shape = &self.shape.nodes[node];
        let words = self.rows[node].words(row);
        let nulls = if shape.nullable == 0 { 0 } else { words[words.len() - 1] };
        for column in shape.interned.iter().filter(|column| !nulls.has(**column)) {
            interner.release(words[*column]);
        }
        self.detach(node, row);
    }
}
