//! Change propagation without joins (paper, section 3.2), below the connex part of the tree.
//!
//! An update propagates along one path, from its node to the root. At every node all changes have
//! one direction: rows enter the semi-join view, or rows leave it; an anti edge reverses the
//! direction. In addition, in the modes bag and ring, the annotations of rows that stay may change.
//! A node that is not connex is never enumerated, so its changes are made immediately; the connex
//! part is in `delta`.

use super::edges::Edge;
use super::id::{EntryId, RowId};
use super::lists::List;
use super::prefetch::Hints;
use super::ring::Value;
use super::shape::LINK;
use super::{Sink, Tree};
use crate::error::overflow;
use crate::mask::Bits;
use crate::store::hash::hash_words;
use crate::store::interner::Interner;

/// Rows of one node that an update changes.
#[derive(Default)]
pub(super) struct Change {
    /// Whether `moved` enter the semi-join view or leave it.
    pub entering: bool,
    pub moved: Vec<RowId>,
    /// Annotations of `moved`, one block of components each: the new ones if they enter, the old
    /// ones if they leave. Not kept at connex nodes, where enumeration finds them.
    pub amounts: Vec<Value>,
    /// Rows that are in the semi-join view before and after, with another annotation.
    pub valued: Vec<RowId>,
    /// Old and new annotation of each of `valued`.
    pub value_pairs: Vec<Value>,
}

impl Change {
    pub fn clear(&mut self) {
        self.entering = true;
        self.moved.clear();
        self.amounts.clear();
        self.valued.clear();
        self.value_pairs.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.moved.is_empty() && self.valued.is_empty()
    }

    fn is_one_row(&self) -> bool {
        self.moved.len() == 1 && self.valued.is_empty()
    }
}

/// An entry that the current update changes, as it was before.
struct Touched {
    entry: EntryId,
    count: u32,
}

/// Buffers of an update, kept between updates so that none allocates.
#[derive(Default)]
pub(super) struct Scratch {
    pub change: Change,
    next: Change,
    touched: Vec<Touched>,
    sums: Vec<Value>,
    /// Generalised rows without a guard left: node and row.
    pub dead: Vec<(usize, RowId)>,
    pub levels: Vec<Vec<RowId>>,
    pub witnesses: Vec<RowId>,
    pub values: Vec<Value>,
    pub key: Vec<u64>,
    pub words: Vec<u64>,
    /// The row being changed, with its NULL mask.
    pub row: Vec<u64>,
    /// Phantoms that come or go with the change.
    pub phantoms: Vec<RowId>,
}

impl Tree {
    /// Carries the change of `node` in `scratch.change` up to the root.
    #[inline]
    pub(super) fn climb(&mut self, node: usize, scratch: &mut Scratch, interner: &mut Interner, sink: &mut impl Sink) {
        if self.shape.nodes[node].optional {
            self.climb_optional(node, scratch, interner, sink);
        } else {
            self.climb_as_is(node, scratch, interner, sink);
        }
    }

    /// As `climb`, but ignores phantoms of the node. Phantoms of nodes above stay: rows above an
    /// optional edge do not depend on rows below it, and below an optional edge there are only
    /// optional edges.
    pub(super) fn climb_as_is(
        &mut self,
        mut node: usize,
        scratch: &mut Scratch,
        interner: &mut Interner,
        sink: &mut impl Sink,
    ) {
        let mut postponed = None;
        while !self.shape.nodes[node].connex {
            if scratch.change.is_empty() {
                return;
            }
            let Some(parent) = self.shape.nodes[node].parent else { return };
            let simple = self.shape.one_exact_component || self.shape.components.is_empty();
            if simple && scratch.change.is_one_row() {
                self.change_one(node, parent, scratch);
            } else {
                self.change_entries(node, scratch);
                self.change_parents(node, parent, scratch);
            }
            std::mem::swap(&mut scratch.change, &mut scratch.next);
            if self.shape.nodes[parent].connex && !scratch.change.entering && self.shape.nodes[node].annotated {
                // The delta of rows that leave shows annotations as they were.
                self.swap_sums(node, scratch);
                postponed = Some(node);
            }
            node = parent;
        }
        self.change_connex(node, scratch, interner, sink);
        if let Some(node) = postponed {
            self.swap_sums(node, scratch);
        }
    }

    /// S-update: counts and sums of the entries of the changed rows. Fills `touched` with the
    /// entries as they were.
    fn change_entries(&mut self, node: usize, scratch: &mut Scratch) {
        let (rows, edge) = (&self.rows[node], &mut self.edges[node]);
        let components = if self.shape.nodes[node].annotated { &self.shape.components[..] } else { &[] };
        let (width, slots) = (components.len(), &self.shape.slots[..]);
        let Scratch { change, touched, sums, .. } = scratch;
        touched.clear();
        sums.clear();
        let mut overflowed = false;
        for (index, row) in change.moved.iter().enumerate() {
            let entry = rows.entry(*row, LINK);
            touch(edge, entry, touched, sums);
            let amount = &change.amounts[index * width..(index + 1) * width];
            let count = &mut edge.entry_mut(entry).children.len;
            if change.entering {
                *count += 1;
                for ((component, slot), amount) in components.iter().zip(slots).zip(amount) {
                    overflowed |= component.replace(&mut edge.values_mut(entry)[*slot..], 0, *amount);
                }
            } else {
                *count -= 1;
                if *count == 0 {
                    edge.values_mut(entry).fill(0);
                    continue;
                }
                for ((component, slot), amount) in components.iter().zip(slots).zip(amount) {
                    overflowed |= component.replace(&mut edge.values_mut(entry)[*slot..], *amount, 0);
                }
            }
        }
        if width > 0 {
            for (row, pair) in change.valued.iter().zip(change.value_pairs.chunks_exact(2 * width)) {
                let entry = rows.entry(*row, LINK);
                touch(edge, entry, touched, sums);
                for (index, component) in components.iter().enumerate() {
                    let sum = &mut edge.values_mut(entry)[slots[index]..];
                    overflowed |= component.replace(sum, pair[index], pair[width + index]);
                }
            }
        }
        self.work[node].moves += change.moved.len() as u64;
        if overflowed {
            self.failure.get_or_insert_with(overflow);
        }
    }

    /// P-update: the counters and annotations of the parent rows of the touched entries. Fills
    /// `scratch.next`.
    fn change_parents(&mut self, node: usize, parent: usize, scratch: &mut Scratch) {
        let mut next = std::mem::take(&mut scratch.next);
        let (touched, sums) = (std::mem::take(&mut scratch.touched), std::mem::take(&mut scratch.sums));
        next.clear();
        let width = if self.shape.nodes[node].annotated { self.shape.slot_count } else { 0 };
        // Without deltas, no other annotation in the connex part is read.
        let valued = width > 0 && (self.deltas || !self.shape.nodes[parent].connex);
        let mut overflowed = false;
        for (index, Touched { entry, count }) in touched.iter().enumerate() {
            let old_sums = &sums[index * width..(index + 1) * width];
            let state = *self.edges[node].entry(*entry);
            let (was, is) = (*count > 0, state.children.len > 0);
            if was == is {
                if valued && *old_sums != *self.edges[node].values(*entry) {
                    overflowed |= self.revalue(node, parent, &state.parents, old_sums, &mut next);
                }
                continue;
            }
            overflowed |= self.flip(node, parent, *entry, old_sums, &mut next, scratch);
        }
        (scratch.next, scratch.touched, scratch.sums) = (next, touched, sums);
        if overflowed {
            self.failure.get_or_insert_with(overflow);
        }
    }

    /// S-update and P-update at once for one row and at most one component, which is exact: so are
    /// most changes.
    fn change_one(&mut self, node: usize, parent: usize, scratch: &mut Scratch) {
        let Scratch { change, next, touched, sums, .. } = scratch;
        next.clear();
        let annotated = self.shape.nodes[node].annotated;
        let edge = &mut self.edges[node];
        let entry = self.rows[node].entry(change.moved[0], LINK);
        let state = edge.entry_mut(entry);
        let (count, parents) = (state.children.len, state.parents);
        let left = if change.entering { count + 1 } else { count - 1 };
        state.children.len = left;
        let (mut old, mut overflowed) = (0, false);
        if annotated {
            let sum = &mut edge.values_mut(entry)[0];
            old = *sum;
            (*sum, overflowed) = match change.entering {
                true => old.overflowing_add(change.amounts[0]),
                false if left == 0 => (0, false),
                false => old.overflowing_sub(change.amounts[0]),
            };
        }
        self.work[node].moves += 1;
        if (count > 0) != (left > 0) {
            touched.clear();
            sums.clear();
            touched.push(Touched { entry, count });
            let mut next = std::mem::take(next);
            let old = if annotated { &[old][..] } else { &[] };
            sums.extend_from_slice(old);
            overflowed |= self.flip(node, parent, entry, old, &mut next, scratch);
            scratch.next = next;
        } else if annotated && (self.deltas || !self.shape.nodes[parent].connex) {
            overflowed |= self.revalue(node, parent, &parents, &[old], next);
        }
        if overflowed {
            self.failure.get_or_insert_with(overflow);
        }
    }

    /// The parent rows with these keys whose annotation is another one now.
    #[inline(always)]
    fn revalue(&self, node: usize, parent: usize, parents: &List, old_sums: &[Value], next: &mut Change) -> bool {
        let mut overflowed = false;
        for row in self.parents.rows(parents) {
            if self.rows[parent].missing(*row) == 0 {
                next.valued.push(*row);
                overflowed |= self.weight_pair(parent, *row, node, old_sums, &mut next.value_pairs);
            }
        }
        overflowed
    }

    /// The parent rows of an entry whose key has come into the child's projection view, or has gone
    /// from it.
    fn flip(
        &mut self,
        node: usize,
        parent: usize,
        entry: EntryId,
        old_sums: &[Value],
        next: &mut Change,
        scratch: &mut Scratch,
    ) -> bool {
        let (anti, guard) = (self.shape.nodes[node].anti, self.shape.nodes[node].guard);
        let annotate = !self.shape.components.is_empty() && !self.shape.nodes[parent].connex;
        let state = *self.edges[node].entry(entry);
        let is = state.children.len > 0;
        let mut overflowed = false;
        next.entering = is != anti;
        let first = next.moved.len();
        if is && guard && state.parents.len == 0 {
            let row = self.create_generalised(node, parent, entry, scratch);
            if self.rows[parent].missing(row) == 0 {
                next.moved.push(row);
            }
        } else {
            self.work[parent].touched += u64::from(state.parents.len);
            let rows = &mut self.rows[parent];
            let flipping = if next.entering { 1 } else { 0 };
            for row in self.parents.rows(&state.parents) {
                let missing = rows.missing(*row);
                rows.set_missing(*row, if next.entering { missing - 1 } else { missing + 1 });
                if missing == flipping {
                    next.moved.push(*row);
                }
            }
        }
        if annotate {
            let before = (!old_sums.is_empty() && !next.entering).then_some((node, old_sums));
            for row in &next.moved[first..] {
                let multiplicity = self.rows[parent].multiplicity(*row);
                overflowed |= self.weight(parent, *row, multiplicity, before, &mut next.amounts);
            }
        }
        let rows = &mut self.rows[parent];
        if next.entering {
            rows.in_semi_join += next.moved.len() - first;
        } else {
            rows.in_semi_join -= next.moved.len() - first;
        }
        if guard && !is {
            // The key was there, so the generalised parent has exactly one row with it.
            let row = self.parents.get(&state.parents, 0);
            if self.lacks_guards(parent, row) {
                scratch.dead.push((parent, row));
            }
        }
        overflowed
    }

    fn swap_sums(&mut self, node: usize, scratch: &mut Scratch) {
        let width = self.shape.slot_count;
        for (touched, sums) in scratch.touched.iter().zip(scratch.sums.chunks_exact_mut(width.max(1))) {
            self.edges[node].values_mut(touched.entry).swap_with_slice(sums);
        }
    }

    /// The row of a generalised node for the key of `entry`, which its guard edge `guard` has just
    /// got.
    pub(super) fn create_generalised(
        &mut self,
        guard: usize,
        node: usize,
        entry: EntryId,
        scratch: &mut Scratch,
    ) -> RowId {
        let key = &self.shape.nodes[guard].key;
        let from = self.edges[guard].key(entry);
        let words = &mut scratch.words;
        words.clear();
        words.resize(self.shape.nodes[node].width, 0);
        for (word, column) in from.iter().zip(&key.parent_columns) {
            words[*column] = *word;
        }
        if key.nullable {
            let mask = from[from.len() - 1];
            let mask = mask.gather((0..).zip(key.parent_columns.iter().copied()));
            *words.last_mut().expect("a nullable node has a mask") = mask;
        }
        let words = std::mem::take(words);
        let row = self.add_row(node, hash_words(words.iter().copied()), &words, None);
        scratch.words = words;
        self.attach(node, row, &Hints::NOTHING, scratch);
        row
    }

    /// Links a new row to the entries of its keys and counts the children it misses.
    pub(super) fn attach(&mut self, node: usize, row: RowId, hints: &Hints, scratch: &mut Scratch) {
        let (shape, rows) = (&self.shape.nodes[node], &mut self.rows[node]);
        let mut missing = 0;
        let mut keyed = usize::from(shape.key_column.is_some());
        for below in &shape.below {
            let edge = &mut self.edges[below.child];
            let entry = match below.column {
                Some(column) => {
                    keyed += 1;
                    edge.find_or_insert_word(rows.word(row, column), hints.entry(keyed - 1))
                }
                None => {
                    let key = &self.shape.nodes[below.child].key;
                    key.read(&key.parent_columns, rows.words(row), &mut scratch.key);
                    edge.find_or_insert(hash_words(scratch.key.iter().copied()), &scratch.key)
                }
            };
            let state = edge.entry_mut(entry);
            rows.set_entry(row, below.link, entry);
            rows.set_position(row, below.link, state.parents.len);
            let present = if below.connex { state.count() > 0 } else { state.children.len > 0 };
            missing += below.missed[usize::from(present)];
            self.parents.push(&mut state.parents, row, std::iter::empty());
        }
        rows.set_missing(row, missing);
        let edge = &mut self.edges[node];
        let entry = match (shape.key_column, shape.parent) {
            (Some(column), _) => edge.find_or_insert_word(rows.word(row, column), hints.entry(0)),
            (None, Some(_)) => {
                shape.key.read(&shape.key.child_columns, rows.words(row), &mut scratch.key);
                edge.find_or_insert(hash_words(scratch.key.iter().copied()), &scratch.key)
            }
            (None, None) => EntryId::FIRST,
        };
        edge.entry_mut(entry).references += 1;
        rows.set_entry(row, LINK, entry);
        if shape.has_optional {
            self.show_phantoms(node, row, scratch);
        }
    }

    /// Takes a row out that is in no semi-join view and not live.
    pub(super) fn detach(&mut self, node: usize, row: RowId) {
        let rows = &mut self.rows[node];
        for below in &self.shape.nodes[node].below {
            let (entry, position) = (rows.entry(row, below.link), rows.position(row, below.link));
            let edge = &mut self.edges[below.child];
            if let Some(moved) = self.parents.swap_remove(&mut edge.entry_mut(entry).parents, position) {
                rows.set_position(moved, below.link, position);
            }
            edge.remove_if_unused(entry);
        }
        let entry = rows.entry(row, LINK);
        let edge = &mut self.edges[node];
        edge.entry_mut(entry).references -= 1;
        edge.remove_if_unused(entry);
        if self.shape.nodes[node].has_optional {
            self.hide_phantoms(node, row);
        }
        self.remove_row(node, row);
    }

    pub(super) fn lacks_guards(&self, node: usize, row: RowId) -> bool {
        self.shape.nodes[node].below.iter().filter(|below| below.guard).all(|below| {
            let state = self.edges[below.child].entry(self.rows[node].entry(row, below.link));
            0 == if below.connex { state.count() } else { state.children.len }
        })
    }
}

/// Records the current state of an entry, once per update.
#[inline(always)]
fn touch(edge: &mut Edge, entry: EntryId, touched: &mut Vec<Touched>, sums: &mut Vec<Value>) {
    let state = edge.entry_mut(entry);
    let known = touched.get(state.departed as usize).is_some_and(|touched| touched.entry == entry);
    if !known {
        state.departed = touched.len() as u32;
        touched.push(Touched { entry, count: state.children.len });
        sums.extend_from_slice(edge.values(entry));
    }
}
