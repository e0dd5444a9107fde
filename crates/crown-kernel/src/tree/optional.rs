//! Optional edges, for outer joins: a key without a row shows a phantom.
//!
//! An optional child never removes a row of its parent. While an entry of its edge has parent rows
//! and no child row, it holds one **phantom**: a row of the child that has the key, multiplicity 1,
//! and NULL everywhere else. A phantom is a row like any other, with its links and its place in the
//! list, so walks, counts, samples and annotations need not know about it. Only a bit of the NULL
//! mask tells it apart, because the atom may contain a real row of NULLs too.
//!
//! The phantom is removed after the first matching row is inserted, and added before the last one
//! is deleted. So an entry with parent rows is never empty, no counter above the edge changes, and
//! nothing propagates. A phantom that is added with its first parent row, or removed with its last,
//! is in no delta, because no row next to it is live at that time. There are no more phantoms than
//! parent rows.

use super::id::{EntryId, RowHint, RowId};
use super::prefetch::Hints;
use super::propagate::Scratch;
use super::shape::{Below, LINK};
use super::{Sink, Tree};
use crate::chunk::{Nulls, Word};
use crate::error::overflow;
use crate::mask::{self, Bits, MARK};
use crate::store::hash::hash_words;
use crate::store::interner::Interner;

/// The bit of a phantom's NULL mask that no row of an atom has: a node has fewer variables.
pub(super) const PHANTOM: Nulls = MARK;

impl Tree {
    /// As `climb` for a node on an optional edge.
    #[cold]
    pub(super) fn climb_optional(
        &mut self,
        node: usize,
        scratch: &mut Scratch,
        interner: &mut Interner,
        sink: &mut impl Sink,
    ) {
        let mut phantoms = std::mem::take(&mut scratch.phantoms);
        phantoms.clear();
        if scratch.change.entering {
            for row in &scratch.change.moved {
                let entry = self.rows[node].entry(*row, LINK);
                if let Some(phantom) = self.edges[node].phantom(entry) {
                    self.edges[node].set_phantom(entry, None);
                    phantoms.push(phantom);
                }
            }
            self.climb_as_is(node, scratch, interner, sink);
            if !phantoms.is_empty() {
                self.move_phantoms(node, &phantoms, false, scratch, interner, sink);
                for phantom in &phantoms {
                    self.remove_phantom(node, *phantom);
                }
            }
        } else {
            for entry in self.emptied_entries(node, &scratch.change.moved) {
                phantoms.push(self.create_phantom(node, entry, scratch));
            }
            if !phantoms.is_empty() {
                let change = std::mem::take(&mut scratch.change);
                self.move_phantoms(node, &phantoms, true, scratch, interner, sink);
                scratch.change = change;
            }
            self.climb_as_is(node, scratch, interner, sink);
        }
        scratch.phantoms = phantoms;
    }

    /// The entries with parent rows that are left without a row when these go.
    fn emptied_entries(&self, node: usize, leaving: &[RowId]) -> Vec<EntryId> {
        let mut entries: Vec<EntryId> = leaving.iter().map(|row| self.rows[node].entry(*row, LINK)).collect();
        entries.sort_unstable();
        let is_emptied = |run: &[EntryId]| {
            let state = self.edges[node].entry(run[0]);
            state.parents.len > 0 && state.children.len as usize == run.len()
        };
        entries.chunk_by(|left, right| left == right).filter(|run| is_emptied(run)).map(|run| run[0]).collect()
    }

    /// Carries phantoms that come or go up the tree, as rows of the node.
    fn move_phantoms(
        &mut self,
        node: usize,
        phantoms: &[RowId],
        entering: bool,
        scratch: &mut Scratch,
        interner: &mut Interner,
        sink: &mut impl Sink,
    ) {
        scratch.change.clear();
        scratch.change.entering = entering;
        scratch.change.moved.extend_from_slice(phantoms);
        if !self.shape.components.is_empty() && !self.shape.nodes[node].connex {
            for phantom in phantoms {
                if self.weight(node, *phantom, 1, None, &mut scratch.change.amounts) {
                    self.failure.get_or_insert_with(overflow);
                }
            }
        }
        let rows = &mut self.rows[node];
        rows.in_semi_join =
            if entering { rows.in_semi_join + phantoms.len() } else { rows.in_semi_join - phantoms.len() };
        self.climb_as_is(node, scratch, interner, sink);
    }

    /// Gives the entries below a new row that have nothing to show a phantom each.
    #[cold]
    pub(super) fn show_phantoms(&mut self, node: usize, row: RowId, scratch: &mut Scratch) {
        for index in 0..self.shape.nodes[node].below.len() {
            let Below { child, link, optional, connex, annotated, .. } = self.shape.nodes[node].below[index];
            let entry = self.rows[node].entry(row, link);
            if !optional || self.edges[child].entry(entry).children.len > 0 {
                continue;
            }
            let phantom = self.create_phantom(child, entry, scratch);
            self.rows[child].in_semi_join += 1;
            if connex {
                self.add_to_list(child, phantom, entry);
                continue;
            }
            self.edges[child].entry_mut(entry).children.len = 1;
            if annotated {
                scratch.values.clear();
                let mut overflowed = self.weight(child, phantom, 1, None, &mut scratch.values);
                let sums = self.edges[child].values_mut(entry);
                for ((component, slot), value) in
                    self.shape.components.iter().zip(&self.shape.slots).zip(&scratch.values)
                {
                    overflowed |= component.replace(&mut sums[*slot..], 0, *value);
                }
                if overflowed {
                    self.failure.get_or_insert_with(overflow);
                }
            }
        }
    }

    /// Removes the phantoms below a row that is deleted, if it was their last parent row.
    #[cold]
    pub(super) fn hide_phantoms(&mut self, node: usize, row: RowId) {
        for index in 0..self.shape.nodes[node].below.len() {
            let Below { child, link, optional, connex, .. } = self.shape.nodes[node].below[index];
            let entry = self.rows[node].entry(row, link);
            if !optional || self.edges[child].entry(entry).parents.len > 0 {
                continue;
            }
            let Some(phantom) = self.edges[child].phantom(entry) else { continue };
            self.edges[child].set_phantom(entry, None);
            self.rows[child].in_semi_join -= 1;
            let state = self.edges[child].entry_mut(entry);
            if connex {
                self.children[child].truncate(&mut state.children, 0);
                self.touch(child, entry, 0);
            } else {
                state.children.len = 0;
                self.edges[child].values_mut(entry).fill(0);
            }
            self.remove_phantom(child, phantom);
        }
    }

    /// The phantom for the key of an entry, which is in no list yet.
    fn create_phantom(&mut self, node: usize, entry: EntryId, scratch: &mut Scratch) -> RowId {
        let mut words = std::mem::take(&mut scratch.words);
        let key = &self.shape.nodes[node].key;
        let from = self.edges[node].key(entry);
        let nulls = if key.nullable { from[from.len() - 1] } else { 0 };
        self.write_phantom(node, |position| from[position], nulls, &mut words);
        let hash = hash_words(words.iter().copied());
        let known = self.locate(node, hash, &words, RowHint::NONE);
        let phantom = self.add_row(node, hash, &words, known);
        scratch.words = words;
        let shape = &self.shape.nodes[node];
        if !shape.phantom_factors.is_empty() {
            self.rows[node].set_factors(phantom, &shape.phantom_factors);
        }
        self.rows[node].phantoms += 1;
        self.edges[node].set_phantom(entry, Some(phantom));
        self.attach(node, phantom, &Hints::NOTHING, scratch);
        phantom
    }

    fn remove_phantom(&mut self, node: usize, phantom: RowId) {
        self.rows[node].phantoms -= 1;
        self.detach(node, phantom);
    }

    /// The phantom that shows NULL where the words of `row` have it, if all but its key is NULL.
    /// Overwrites the words.
    pub(super) fn find_phantom(&self, node: usize, row: &mut [Word]) -> Option<RowId> {
        let shape = &self.shape.nodes[node];
        let mask = row[shape.width - 1];
        let own = (0..shape.variables.len()).filter(|column| !shape.key.child_columns.contains(column));
        if own.into_iter().any(|column| !mask.has(column)) {
            return None;
        }
        row[shape.width - 1] = mask | PHANTOM;
        self.find(node, row)
    }

    /// The words of a phantom, of which `key` are the key's by position in it, with a bit of
    /// `nulls` for each that is NULL.
    pub(super) fn write_phantom(&self, node: usize, key: impl Fn(usize) -> Word, nulls: Nulls, words: &mut Vec<Word>) {
        let shape = &self.shape.nodes[node];
        words.clear();
        words.resize(shape.width, 0);
        for (position, column) in shape.key.child_columns.iter().enumerate() {
            words[*column] = key(position);
        }
        let in_key = |column: usize| shape.key.child_columns.iter().position(|other| *other == column);
        let null = |column: &usize| in_key(*column).is_none_or(|position| nulls.has(position));
        words[shape.width - 1] = PHANTOM | mask::of((0..shape.variables.len()).filter(null));
    }
}
