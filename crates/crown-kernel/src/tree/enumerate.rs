//! Results by column: the walk of a program, a block of the innermost list at a time.
//!
//! The rows of the innermost list are gathered column by column; the columns of every outer step
//! are filled only when that step advances, with one value for all the rows since it last advanced.
//! So a result costs a few sequential writes, however many columns it has. A walk can pause after
//! any number of rows and resume later: deltas and full enumeration use the same walk.

use super::id::RowId;
use super::lists::List;
use super::program::{Program, Step};
use super::ranged::Fetched;
use super::ring::Value;
use super::Tree;
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{overflow, Result};
use crate::mask::Bits;
use crate::plan::Mode;
use crate::store::interner::Interner;
use crate::store::net::too_many_copies;

/// What to emit for the results of the first step's rows.
pub(super) struct Emission<'a> {
    /// +1 or -1.
    pub sign: i64,
    /// Annotations to take for the rows of the first step instead of their own, one block of
    /// components each.
    pub values: Option<&'a [Value]>,
    /// Mode ring: the first step's rows come in pairs, the same row with its old and its new
    /// annotation; results that are equal with both are left out.
    pub pairs: bool,
    /// All annotations are 1 (or there are none): every weight is `sign`.
    pub plain: bool,
    /// Mode bag, where `values` are differences: the annotations that they lead to.
    pub totals: Option<&'a [Value]>,
}

/// Refuses a result whose multiplicity, not only its change `difference`, is beyond an int64.
fn check_copies(difference: Value, emission: &Emission, item: usize) -> Result<()> {
    const SMALL: u128 = 1 << 31;
    let (Some(values), Some(totals)) = (emission.values, emission.totals) else { return Ok(()) };
    if difference.unsigned_abs() < SMALL && totals[item].unsigned_abs() < SMALL || values[item] == 0 {
        return Ok(());
    }
    // The other factors, which are the same before and after.
    let others = difference / values[item];
    match others.checked_mul(totals[item]).and_then(|copies| i64::try_from(copies).ok()) {
        Some(_) => Ok(()),
        None => Err(too_many_copies()),
    }
}

/// How many rows ahead of an outer step memory is prefetched.
pub(super) const AHEAD: u32 = 4;

#[derive(Clone, Copy)]
pub(super) struct OpenList {
    pub list: List,
    /// How many rows of the list count: the live ones, on the way up.
    pub limit: u32,
    pub index: u32,
    pub row: RowId,
    /// Up to which row of the output the step's columns are written, while they are.
    pub filled: usize,
}

impl OpenList {
    /// Before its list is opened.
    const UNSET: OpenList =
        OpenList { list: List { start: 0, len: 0, class: 0 }, limit: 0, index: 0, row: RowId::FIRST, filled: 0 };
}

/// The state of a walk.
#[derive(Default)]
pub(super) struct Walk {
    pub(super) open_lists: Vec<OpenList>,
    started: bool,
    /// Rows that the last `expand` wrote.
    pub(super) expanded: usize,
    /// Sum of the weights of all rows emitted (in mode ring: of their signs).
    pub emitted: i128,
    /// Places opened, for the tests of constant delay.
    #[cfg(test)]
    pub operations: u64,
    /// Results before residual conditions, likewise.
    #[cfg(test)]
    pub candidates: u64,
    /// Of each step with a range the rows at hand.
    pub(super) fetched: Vec<Fetched>,
    block: Vec<RowId>,
    values: Vec<Value>,
    prefix: Vec<Value>,
    keep: Vec<bool>,
    words: Vec<Word>,
}

impl Walk {
    /// Makes the walk begin anew, keeping its buffers.
    pub fn restart(&mut self) {
        self.started = false;
        self.emitted = 0;
    }

    /// Rows visited so far.
    #[cfg(test)]
    pub fn visits(&self) -> u64 {
        self.operations + self.candidates
    }

    /// Appends up to `budget` results for the rows of `first`; true when there are no more. On an
    /// error the chunk is as before.
    #[allow(clippy::too_many_arguments)]
    pub fn run(
        &mut self,
        tree: &Tree,
        program: &Program,
        first: &[RowId],
        emission: &Emission,
        interner: &mut Interner,
        out: &mut Chunk,
        budget: usize,
    ) -> Result<bool> {
        let start = out.len();
        let result = self.append(tree, program, first, emission, interner, out, budget);
        if result.is_err() {
            out.columns.iter_mut().for_each(|column| column.truncate(start));
            out.nulls.truncate(start);
            out.weights.truncate(start);
            self.keep.clear();
        }
        result
    }

    #[allow(clippy::too_many_arguments)]
    fn append(
        &mut self,
        tree: &Tree,
        program: &Program,
        first: &[RowId],
        emission: &Emission,
        interner: &mut Interner,
        out: &mut Chunk,
        budget: usize,
    ) -> Result<bool> {
        if first.is_empty() {
            return Ok(true);
        }
        let last = program.steps.len() - 1;
        if !self.started {
            self.started = true;
            self.open_lists.clear();
            self.open_lists.resize(last + 1, OpenList::UNSET);
            let list = List::default();
            self.open_lists[0] = OpenList { list, limit: first.len() as u32, index: 0, row: first[0], filled: 0 };
            for row in first.iter().take(AHEAD as usize) {
                tree.rows[program.steps[0].node].prefetch(*row);
            }
            if program.ranged {
                if !self.begin_ranged(tree, program, first) {
                    return Ok(true);
                }
            } else {
                self.open(tree, program, 1);
            }
        } else if self.open_lists[0].index as usize >= first.len() {
            return Ok(true);
        }
        let start = out.len();
        let finished = if emission.plain && !program.nullable && !program.ranged {
            let finished = self.expand(tree, program, first, out, budget);
            out.weights.resize(start + self.expanded, emission.sign);
            finished
        } else {
            self.annotate(tree, program, first, emission, interner, out, budget)?
        };
        let total = out.weights.len();
        if !out.nulls.is_empty() {
            out.nulls.resize(total, 0);
        }
        #[cfg(test)]
        {
            self.candidates += (total - start) as u64;
        }
        self.leave_out(tree, emission, interner, start, out)?;
        let weights = &out.weights[start..];
        self.emitted += if emission.plain {
            i128::from(emission.sign) * weights.len() as i128
        } else {
            weights.iter().map(|weight| i128::from(*weight)).sum()
        };
        Ok(finished)
    }

    /// As `expand`, with NULL masks, weights and ring components where there are some.
    #[allow(clippy::too_many_arguments)]
    fn annotate(
        &mut self,
        tree: &Tree,
        program: &Program,
        first: &[RowId],
        emission: &Emission,
        interner: &mut Interner,
        out: &mut Chunk,
        budget: usize,
    ) -> Result<bool> {
        let end = out.len() + budget;
        let mut total = out.len();
        let last = program.steps.len() - 1;
        let step = &program.steps[last];
        let finished = loop {
            let open_list = self.open_lists[last];
            let available = (open_list.limit - open_list.index) as usize;
            let count = available.min(end - total);
            let range = open_list.index..open_list.index + count as u32;
            let mut block = std::mem::take(&mut self.block);
            block.clear();
            block.extend(range.map(|position| self.row_at(tree, program, first, last, position)));
            let rows = &tree.rows[step.node];
            for (column, position) in &step.columns {
                out.columns[*column].extend(block.iter().map(|row| rows.word(*row, *position)));
            }
            if program.nullable {
                self.push_nulls(tree, program, &block, total, out);
            }
            if emission.plain {
                out.weights.resize(total + count, emission.sign);
            } else {
                self.push_annotations(tree, program, &block, open_list.index as usize, emission, interner, out)?;
            }
            self.block = block;
            total += count;
            if count < available {
                self.open_lists[last].index += count as u32;
                break false;
            }
            let fill = |step: &Step, open_list: &mut OpenList| fill(tree, step, open_list, total, out);
            let more = if program.ranged {
                self.advance_ranged(tree, program, first, fill)
            } else {
                self.advance(tree, program, first, fill)
            };
            if !more {
                break true;
            }
            if total == end {
                break false;
            }
        };
        if !finished {
            for (step, open_list) in program.steps.iter().zip(&self.open_lists[..last]) {
                fill(tree, step, open_list, total, out);
            }
        }
        Ok(finished)
    }

    /// Opens the lists of the steps from `from` on.
    #[inline(always)]
    fn open(&mut self, tree: &Tree, program: &Program, from: usize) {
        for index in from..program.steps.len() {
            let step = &program.steps[index];
            let source = self.open_lists[step.source].row;
            let entry = tree.rows[program.steps[step.source].node].entry(source, step.link);
            let state = tree.edges[step.edge].entry(entry);
            let (list, limit) =
                if step.up { (state.parents, state.live) } else { (state.children, state.children.len) };
            let open_list = &mut self.open_lists[index];
            (open_list.list, open_list.limit, open_list.index) = (list, limit, 0);
            // The rows of the innermost step are not visited one by one.
            if index + 1 < program.steps.len() {
                open_list.row = step.row(tree, &list, 0);
                for position in 1..limit.min(AHEAD) {
                    tree.rows[step.node].prefetch(step.row(tree, &list, position));
                }
            }
            #[cfg(test)]
            {
                self.operations += 1;
            }
        }
    }

    /// Asks the memory for what the next step will read when this one moves on: the row `AHEAD`
    /// places later, the entry half as far, the list next.
    #[inline(always)]
    fn look_ahead(&self, tree: &Tree, program: &Program, index: usize, first: &[RowId]) {
        let step = &program.steps[index];
        let Some(next) = step.feeds.map(|next| &program.steps[next]) else { return };
        let open_list = &self.open_lists[index];
        let row = |position: u32| match index {
            0 => first[position as usize],
            _ => step.row(tree, &open_list.list, position),
        };
        if open_list.index + AHEAD < open_list.limit {
            tree.rows[step.node].prefetch(row(open_list.index + AHEAD));
        }
        if open_list.index + AHEAD / 2 < open_list.limit {
            let entry = tree.rows[step.node].entry(row(open_list.index + AHEAD / 2), next.link);
            tree.edges[next.edge].prefetch(entry);
        }
        if open_list.index + 1 < open_list.limit {
            let entry = tree.rows[step.node].entry(row(open_list.index + 1), next.link);
            let state = tree.edges[next.edge].entry(entry);
            if next.up {
                tree.parents.prefetch(&state.parents, 0);
            } else {
                tree.children[next.node].prefetch(&state.children, 0);
            }
        }
    }

    /// Moves the innermost outer step on that has more rows; false when none has. Steps are filled
    /// before they move.
    #[inline(always)]
    pub(super) fn advance(
        &mut self,
        tree: &Tree,
        program: &Program,
        first: &[RowId],
        mut fill: impl FnMut(&Step, &mut OpenList),
    ) -> bool {
        let mut index = program.steps.len() - 1;
        loop {
            if index == 0 {
                self.open_lists[0].index = first.len() as u32;
                return false;
            }
            index -= 1;
            fill(&program.steps[index], &mut self.open_lists[index]);
            if self.step(tree, program, first, index) {
                return true;
            }
        }
    }

    /// Takes the next row of a step, and opens those after it; false when there is none.
    #[inline(always)]
    fn step(&mut self, tree: &Tree, program: &Program, first: &[RowId], index: usize) -> bool {
        let open_list = &mut self.open_lists[index];
        open_list.index += 1;
        #[cfg(test)]
        {
            self.operations += 1;
        }
        if open_list.index == open_list.limit {
            return false;
        }
        let position = open_list.index as usize;
        open_list.row =
            if index == 0 { first[position] } else { program.steps[index].row(tree, &open_list.list, position as u32) };
        self.look_ahead(tree, program, index, first);
        self.open(tree, program, index + 1);
        true
    }

    /// The NULL masks of a block, `total` rows being there before it.
    #[cold]
    fn push_nulls(&mut self, tree: &Tree, program: &Program, block: &[RowId], total: usize, out: &mut Chunk) {
        let (innermost, outer) = program.steps.split_last().expect("a program has steps");
        let prefix = outer
            .iter()
            .zip(&self.open_lists)
            .fold(0, |mask: Nulls, (step, open_list)| mask.union(step.nulls(tree, open_list.row)));
        for (offset, row) in block.iter().enumerate() {
            let mask = prefix.union(innermost.nulls(tree, *row));
            if mask != 0 {
                out.nulls.resize(total + offset, 0);
                out.nulls.push(mask);
            }
        }
    }

    /// The weights of a block, and in mode ring its component columns.
    #[allow(clippy::too_many_arguments)]
    fn push_annotations(
        &mut self,
        tree: &Tree,
        program: &Program,
        block: &[RowId],
        offset: usize,
        emission: &Emission,
        interner: &mut Interner,
        out: &mut Chunk,
    ) -> Result<()> {
        let components = &tree.shape.components;
        let width = components.len();
        let (innermost, outer) = program.steps.split_last().expect("a program has steps");
        let mut prefix = std::mem::take(&mut self.prefix);
        prefix.clear();
        prefix.extend(components.iter().map(|component| component.of_count(1)));
        let mut overflowed = false;
        for (index, step) in outer.iter().enumerate() {
            let open_list = self.open_lists[index];
            let given = emission.values.filter(|_| index == 0);
            overflowed |= self.multiply(tree, step, open_list.row, open_list.index as usize, given, &mut prefix);
        }
        let mut product = std::mem::take(&mut self.values);
        for (position, row) in block.iter().enumerate() {
            product.clear();
            product.extend_from_slice(&prefix);
            let index = offset + position;
            let given = emission.values.filter(|_| outer.is_empty());
            overflowed |= self.multiply(tree, innermost, *row, index, given, &mut product);
            let item = if outer.is_empty() { index } else { self.open_lists[0].index as usize };
            if tree.shape.mode == Mode::Bag {
                let weight = i64::try_from(product[0]).map_err(|_| too_many_copies())?;
                check_copies(product[0], emission, item)?;
                out.weights.push(emission.sign * weight);
                continue;
            }
            out.weights.push(if emission.pairs { 2 * (item as i64 & 1) - 1 } else { emission.sign });
            for (index, value) in product.iter().enumerate() {
                let word = components[index].word(*value, interner)?;
                out.columns[tree.shape.outputs + index].push(word);
            }
            if let Some(values) = emission.values.filter(|_| emission.pairs) {
                // The partner's value is this one's with the other annotation of the first row.
                product.clear();
                let other = item ^ 1;
                product.extend_from_slice(&values[other * width..(other + 1) * width]);
                for (index, step) in outer.iter().enumerate().skip(1) {
                    overflowed |= self.multiply(tree, step, self.open_lists[index].row, 0, None, &mut product);
                }
                if !outer.is_empty() {
                    overflowed |= self.multiply(tree, innermost, *row, 0, None, &mut product);
                }
                let mut equal = true;
                for (index, value) in product.iter().enumerate() {
                    let column = &out.columns[tree.shape.outputs + index];
                    equal &= components[index].word(*value, interner)? == column[column.len() - 1];
                }
                self.keep.push(!equal);
            }
        }
        (self.prefix, self.values) = (prefix, product);
        if overflowed {
            return Err(overflow());
        }
        Ok(())
    }

    fn multiply(
        &self,
        tree: &Tree,
        step: &Step,
        row: RowId,
        index: usize,
        given: Option<&[Value]>,
        product: &mut Vec<Value>,
    ) -> bool {
        if given.is_none() && tree.is_unit(step.node) {
            return false;
        }
        let width = product.len();
        let mut overflowed = false;
        match given {
            Some(values) => product.extend_from_slice(&values[index * width..(index + 1) * width]),
            None => overflowed |= tree.weight(step.node, row, tree.rows[step.node].multiplicity(row), None, product),
        }
        for (index, component) in tree.shape.components.iter().enumerate() {
            let (value, over) = component.multiply(product[index], product[width + index]);
            product[index] = value;
            overflowed |= over;
        }
        product.truncate(width);
        overflowed
    }

    /// Removes the rows from `start` on that changed nothing or that a residual condition rejects.
    fn leave_out(
        &mut self,
        tree: &Tree,
        emission: &Emission,
        interner: &Interner,
        start: usize,
        out: &mut Chunk,
    ) -> Result<()> {
        let residual = &tree.shape.residual;
        if residual.is_empty() && !emission.pairs {
            return Ok(());
        }
        if !emission.pairs {
            self.keep.clear();
            self.keep.resize(out.len() - start, true);
        }
        for condition in residual {
            for (offset, keep) in self.keep.iter_mut().enumerate().filter(|(_, keep)| **keep) {
                self.words.clear();
                self.words.extend(out.columns[..tree.shape.outputs].iter().map(|column| column[start + offset]));
                *keep = condition.is_true(&self.words, out.nulls_at(start + offset), interner)?;
            }
        }
        if self.keep.iter().any(|keep| !keep) {
            for column in &mut out.columns {
                retain(column, start, &self.keep);
            }
            retain(&mut out.weights, start, &self.keep);
            if !out.nulls.is_empty() {
                retain(&mut out.nulls, start, &self.keep);
            }
        }
        self.keep.clear();
        Ok(())
    }
}

impl Step {
    /// The row at a position of the step's list.
    #[inline(always)]
    pub(super) fn row(&self, tree: &Tree, list: &List, position: u32) -> RowId {
        if self.up {
            tree.parents.get(list, position)
        } else {
            tree.children[self.node].get(list, position)
        }
    }

    /// The NULL bits of the output columns that a row determines.
    #[inline]
    pub(super) fn nulls(&self, tree: &Tree, row: RowId) -> Nulls {
        if !self.nullable {
            return 0;
        }
        let mask = *tree.rows[self.node].words(row).last().expect("a nullable node has a mask");
        mask.gather(self.columns.iter().map(|(column, position)| (*position, *column)))
    }
}

/// Fills the columns of an outer step with its row's values up to `total` rows.
fn fill(tree: &Tree, step: &Step, open_list: &OpenList, total: usize, out: &mut Chunk) {
    for (column, position) in &step.columns {
        out.columns[*column].resize(total, tree.rows[step.node].word(open_list.row, *position));
    }
}

fn retain<T: Copy>(items: &mut Vec<T>, start: usize, keep: &[bool]) {
    let mut target = start;
    for (offset, keep) in keep.iter().enumerate() {
        if *keep {
            items[target] = items[start + offset];
            target += 1;
        }
    }
    items.truncate(target);
}
