//! Changes of the connex part and the resulting delta (paper, section 4.2).
//!
//! A witness is a row that enters or leaves the semi-join view and is a root row or has a live
//! parent: the delta is the disjoint union of the results that contain a witness (Lemma 4.8). For
//! insertions the live view is the one *before* the update, and results are read from the new
//! lists. For deletions it is the one *after the rows above were killed*: two rows with one key
//! that leave together with their parent are both covered by the parent, and would count twice
//! under the view before the update, which the paper's text takes for both cases. So levels are
//! settled top-down, lists still show the rows that leave, and are cut last.

use super::enumerate::Emission;
use super::id::{EntryId, RowId};
use super::propagate::Scratch;
use super::shape::LINK;
use super::{Sink, Tree};
use crate::error::overflow;
use crate::plan::Mode;
use crate::store::interner::Interner;

/// Rows between two chances of the sink to flush.
const BLOCK: usize = 8192;

impl Tree {
    pub(super) fn change_connex(
        &mut self,
        node: usize,
        scratch: &mut Scratch,
        interner: &mut Interner,
        sink: &mut impl Sink,
    ) {
        if !scratch.change.valued.is_empty() {
            self.touch_rows(node, &scratch.change.valued);
            self.emit_valued(node, scratch, interner, sink);
        }
        match scratch.change.moved[..] {
            [] => return,
            [row] if self.is_alone(node, row, scratch.change.entering) => {
                return self.change_alone(node, row, scratch.change.entering, interner, sink);
            }
            _ => {}
        }
        let mut levels = std::mem::take(&mut scratch.levels);
        let height = if scratch.change.entering {
            let height = self.enter(node, &mut levels, scratch);
            if self.deltas {
                self.emit_insertions(node, &mut levels[..height], interner, sink);
            }
            height
        } else {
            let height = self.leave(node, &mut levels, scratch);
            if self.deltas {
                self.emit_deletions(node, &levels[..height], scratch, interner, sink);
            }
            self.cut(node, &levels[..height]);
            height
        };
        debug_assert!(height <= levels.len());
        scratch.levels = levels;
    }

    /// Whether no row above enters or leaves with this one: other rows have its key, or no row
    /// above needs it.
    #[inline]
    fn is_alone(&self, node: usize, row: RowId, entering: bool) -> bool {
        let shape = &self.shape.nodes[node];
        let state = self.edges[node].entry(self.rows[node].entry(row, LINK));
        let others = state.children.len - u32::from(!entering);
        others > 0 || shape.parent.is_none() || (state.parents.len == 0 && !shape.guard)
    }

    /// All of a change that is no more than one row, as most are: it is the only witness, if it is
    /// one.
    fn change_alone(&mut self, node: usize, row: RowId, entering: bool, interner: &mut Interner, sink: &mut impl Sink) {
        let entry = self.rows[node].entry(row, LINK);
        let witness = self.deltas && self.edges[node].entry(entry).live > 0;
        let inner = !self.shape.nodes[node].connex_children.is_empty();
        self.work[node].moves += 1;
        if entering {
            self.add_to_list(node, row, entry);
            if let Some(order) = self.orders.of_children(node) {
                order.add(&self.rows[node], row, LINK);
            }
            if witness {
                self.emit_moved(node, &[row], 1, interner, sink);
                if inner {
                    self.mark_live(node, row);
                }
            }
        } else {
            // The walk starts from the row and does not visit its list, so the list can be cut
            // afterwards.
            if witness {
                self.emit_moved(node, &[row], -1, interner, sink);
                if inner {
                    self.kill(node, row);
                }
            }
            let position = self.rows[node].position(row, LINK);
            let children = &mut self.edges[node].entry_mut(entry).children;
            if let Some(moved) = self.children[node].swap_remove(children, position) {
                self.rows[node].set_position(moved, LINK, position);
            }
            self.touch(node, entry, position);
            if let Some(order) = self.orders.of_children(node) {
                order.remove(&self.rows[node], row, LINK);
            }
        }
    }

    /// Appends a row to the list of its key.
    #[inline(always)]
    pub(super) fn add_to_list(&mut self, node: usize, row: RowId, entry: EntryId) {
        let (rows, children) = (&mut self.rows[node], &mut self.edges[node].entry_mut(entry).children);
        let position = children.len;
        rows.set_position(row, LINK, position);
        let words = self.shape.nodes[node].fresh.iter().map(|column| rows.word(row, *column));
        self.children[node].push(children, row, words);
        self.touch(node, entry, position);
    }

    /// Puts the moved rows into the semi-join views, from `node` up; `levels` get the rows of each
    /// node. Returns the number of levels.
    fn enter(&mut self, mut node: usize, levels: &mut Vec<Vec<RowId>>, scratch: &mut Scratch) -> usize {
        start_level(levels, 0).extend_from_slice(&scratch.change.moved);
        let mut height = 1;
        loop {
            let mut next = std::mem::take(start_level(levels, height));
            let shape = &self.shape.nodes[node];
            let (guard, parent) = (shape.guard, shape.parent);
            for row in &levels[height - 1] {
                let entry = self.rows[node].entry(*row, LINK);
                let first = self.edges[node].entry(entry).children.len == 0;
                self.add_to_list(node, *row, entry);
                let state = self.edges[node].entry(entry);
                let Some(parent) = parent.filter(|_| first) else { continue };
                if guard && state.parents.len == 0 {
                    let created = self.create_generalised(node, parent, entry, scratch);
                    if self.rows[parent].missing(created) == 0 {
                        next.push(created);
                    }
                    continue;
                }
                let parents = self.parents.rows(&state.parents);
                self.work[parent].touched += parents.len() as u64;
                let rows = &mut self.rows[parent];
                for above in parents {
                    let missing = rows.missing(*above) - 1;
                    rows.set_missing(*above, missing);
                    if missing == 0 {
                        next.push(*above);
                    }
                }
            }
            if let Some(order) = self.orders.of_children(node) {
                levels[height - 1].iter().for_each(|row| order.add(&self.rows[node], *row, LINK));
            }
            self.work[node].moves += levels[height - 1].len() as u64;
            let Some(parent) = parent.filter(|_| !next.is_empty()) else {
                levels[height] = next;
                return height;
            };
            self.rows[parent].in_semi_join += next.len();
            levels[height] = next;
            height += 1;
            node = parent;
        }
    }

    /// Marks the moved rows as departed, from `node` up, without cutting any list.
    fn leave(&mut self, mut node: usize, levels: &mut Vec<Vec<RowId>>, scratch: &mut Scratch) -> usize {
        start_level(levels, 0).extend_from_slice(&scratch.change.moved);
        let mut height = 1;
        loop {
            let mut next = std::mem::take(start_level(levels, height));
            let shape = &self.shape.nodes[node];
            let (guard, parent) = (shape.guard, shape.parent);
            for row in &levels[height - 1] {
                let rows = &mut self.rows[node];
                let entry = rows.entry(*row, LINK);
                let state = self.edges[node].entry_mut(entry);
                let (position, border) = (rows.position(*row, LINK), state.count() - 1);
                state.departed += 1;
                if position != border {
                    let lists = &mut self.children[node];
                    let other = lists.get(&state.children, border);
                    lists.swap(&state.children, position, border);
                    rows.set_position(other, LINK, position);
                    rows.set_position(*row, LINK, border);
                }
                self.touch(node, entry, position);
                let state = self.edges[node].entry(entry);
                let Some(parent) = parent.filter(|_| border == 0) else { continue };
                let parents = self.parents.rows(&state.parents);
                self.work[parent].touched += parents.len() as u64;
                let rows = &mut self.rows[parent];
                for above in parents {
                    let missing = rows.missing(*above) + 1;
                    rows.set_missing(*above, missing);
                    if missing == 1 {
                        next.push(*above);
                    }
                }
                if guard {
                    // The key was there, so the generalised parent has exactly one row with it.
                    let above = self.parents.get(&self.edges[node].entry(entry).parents, 0);
                    if self.lacks_guards(parent, above) {
                        scratch.dead.push((parent, above));
                    }
                }
            }
            self.work[node].moves += levels[height - 1].len() as u64;
            let Some(parent) = parent.filter(|_| !next.is_empty()) else {
                levels[height] = next;
                return height;
            };
            self.rows[parent].in_semi_join -= next.len();
            levels[height] = next;
            height += 1;
            node = parent;
        }
    }

    fn emit_insertions(
        &mut self,
        start: usize,
        levels: &mut [Vec<RowId>],
        interner: &mut Interner,
        sink: &mut impl Sink,
    ) {
        let mut node = start;
        for level in levels.iter_mut() {
            // Only witnesses matter from here on: the rows to enumerate, and to mark.
            level.retain(|row| self.has_live_parent(node, *row));
            self.emit_moved(node, level, 1, interner, sink);
            node = self.shape.nodes[node].parent.unwrap_or(node);
        }
        self.mark_levels(start, levels);
    }

    fn mark_levels(&mut self, node: usize, levels: &[Vec<RowId>]) {
        if let (Some(parent), [_, above @ ..]) = (self.shape.nodes[node].parent, levels) {
            if !above.is_empty() {
                self.mark_levels(parent, above);
            }
        }
        if !self.shape.nodes[node].connex_children.is_empty() {
            for row in &levels[0] {
                self.mark_live(node, *row);
            }
        }
    }

    fn emit_deletions(
        &mut self,
        node: usize,
        levels: &[Vec<RowId>],
        scratch: &mut Scratch,
        interner: &mut Interner,
        sink: &mut impl Sink,
    ) {
        let [level, above @ ..] = levels else { return };
        if let Some(parent) = self.shape.nodes[node].parent {
            self.emit_deletions(parent, above, scratch, interner, sink);
        }
        let mut witnesses = std::mem::take(&mut scratch.witnesses);
        witnesses.clear();
        witnesses.extend(level.iter().filter(|row| self.has_live_parent(node, **row)));
        self.emit_moved(node, &witnesses, -1, interner, sink);
        if !self.shape.nodes[node].connex_children.is_empty() {
            for row in &witnesses {
                self.kill(node, *row);
            }
        }
        scratch.witnesses = witnesses;
    }

    /// Emits the results that contain one of the witnesses, which have entered or left.
    fn emit_moved(
        &mut self,
        node: usize,
        witnesses: &[RowId],
        sign: i64,
        interner: &mut Interner,
        sink: &mut impl Sink,
    ) {
        if witnesses.is_empty() || self.failure.is_some() || self.quiet {
            return;
        }
        if self.shape.direct {
            return self.emit_moved_directly(node, witnesses, sign, interner, sink);
        }
        if !self.shape.always {
            let plain = match self.shape.mode {
                Mode::Set => true,
                Mode::Bag => self.is_plain(),
                Mode::Ring => false,
            };
            let emission = Emission { sign, values: None, pairs: false, plain, totals: None };
            return self.emit(node, witnesses, &emission, interner, sink);
        }
        // The one row of a global aggregate always exists: only its value changes.
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        for row in witnesses {
            let zero = vec![0; self.shape.components.len()];
            let mut own = Vec::new();
            let overflowed = self.weight(node, *row, self.rows[node].multiplicity(*row), None, &mut own);
            if overflowed {
                self.failure.get_or_insert_with(overflow);
            }
            let (old, new) = if sign > 0 { (zero, own) } else { (own, zero) };
            values.extend(old);
            values.extend(new);
            rows.extend([*row, *row]);
        }
        let emission = Emission { sign, values: Some(&values), pairs: true, plain: false, totals: None };
        self.emit(node, &rows, &emission, interner, sink);
    }

    /// Emits the live results of the rows that stay and have another annotation.
    fn emit_valued(&mut self, node: usize, scratch: &mut Scratch, interner: &mut Interner, sink: &mut impl Sink) {
        if !self.deltas || self.failure.is_some() || self.quiet {
            return;
        }
        if self.shape.direct {
            return self.emit_valued_directly(node, scratch, interner, sink);
        }
        let width = self.shape.components.len();
        let pairs = self.shape.mode == Mode::Ring;
        let (mut rows, mut values) = (std::mem::take(&mut scratch.witnesses), std::mem::take(&mut scratch.values));
        rows.clear();
        values.clear();
        let mut totals = Vec::new();
        for (row, pair) in scratch.change.valued.iter().zip(scratch.change.value_pairs.chunks_exact(2 * width)) {
            if !self.has_live_parent(node, *row) {
                continue;
            }
            if pairs {
                rows.extend([*row, *row]);
                values.extend_from_slice(pair);
            } else {
                rows.push(*row);
                values.push(pair[1].wrapping_sub(pair[0]));
                totals.push(pair[1]);
            }
        }
        let totals = (!pairs).then_some(&totals[..]);
        let emission = Emission { sign: 1, values: Some(&values), pairs, plain: false, totals };
        self.emit(node, &rows, &emission, interner, sink);
        (scratch.witnesses, scratch.values) = (rows, values);
    }

    fn emit(
        &mut self,
        node: usize,
        first: &[RowId],
        emission: &Emission,
        interner: &mut Interner,
        sink: &mut impl Sink,
    ) {
        let mut walk = self.walk.take().unwrap_or_default();
        walk.restart();
        let program = self.programs[node].as_ref().expect("connex nodes have programs");
        loop {
            let step = walk.run(self, program, first, emission, interner, sink.chunk(), BLOCK);
            match step.and_then(|finished| sink.flush_if_full().map(|()| finished)) {
                Ok(true) => break,
                Ok(false) => {}
                Err(error) => {
                    self.failure = Some(error);
                    break;
                }
            }
        }
        self.total += walk.emitted;
        self.walk = Some(walk);
    }

    /// Cuts the departed rows off the lists.
    fn cut(&mut self, mut node: usize, levels: &[Vec<RowId>]) {
        for level in levels {
            for row in level {
                let state = self.edges[node].entry_mut(self.rows[node].entry(*row, LINK));
                if state.departed > 0 {
                    let count = state.count();
                    self.children[node].truncate(&mut state.children, count);
                    state.departed = 0;
                }
            }
            if let Some(order) = self.orders.of_children(node) {
                level.iter().for_each(|row| order.remove(&self.rows[node], *row, LINK));
            }
            node = self.shape.nodes[node].parent.unwrap_or(node);
        }
    }
}

fn start_level(levels: &mut Vec<Vec<RowId>>, height: usize) -> &mut Vec<RowId> {
    if levels.len() <= height {
        levels.push(Vec::new());
    }
    levels[height].clear();
    &mut levels[height]
}
