//! Other stages and views over the same tables, without reading the tables' sources again.
//!
//! Stages that both plans have keep their state. New stages are built from the rows that are
//! stored: those of a source (primary keys, windows), or those of an atom that has all columns and
//! rows of its table. The engine is changed only after all of that has succeeded, so an error
//! leaves it as it was.

use super::apart::Apart;
use super::apply::negated;
use super::build::{assemble, direct, gives_deltas, Assembly};
use super::read::read_stage;
use super::results;
use super::stage::{RunningStage, State};
use super::{Direct, Engine, Reader, View, Waiting};
use crate::arrow_in::{read_batch, Changes};
use crate::arrow_out::Output;
use crate::bag::Bag;
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{KernelError, Kind, Result};
use crate::mask::Bits;
use crate::plan::{self, Plan};
use crate::source::Source;
use crate::store::interner::Interner;
use crate::store::net::{net_chunks, Net};
use crate::tree::AtomChange;
use arrow::array::RecordBatch;
use std::cell::Cell;

/// Rows of a table, for stages that are built from them.
pub struct TableRows {
    /// The table.
    pub table: String,
    /// Its rows, with `_multiplicity`, and perhaps with masks of the atoms that want them.
    pub batches: Vec<RecordBatch>,
}

/// Reports the progress of building new stages.
pub struct Watch<'a> {
    /// Called with the number of rows read so far and the number known in total; an error aborts
    /// the build.
    tell: &'a dyn Fn(u64, u64) -> Result<()>,
    done: Cell<u64>,
    total: Cell<u64>,
}

impl<'a> Watch<'a> {
    /// Tells `tell` from time to time.
    pub fn new(tell: &'a dyn Fn(u64, u64) -> Result<()>) -> Watch<'a> {
        Watch { tell, done: Cell::new(0), total: Cell::new(0) }
    }

    /// Counts rows that were read before.
    pub(super) fn resume(&self, rows: u64) {
        self.done.set(self.done.get() + rows);
        self.total.set(self.total.get() + rows);
    }

    /// Expects these rows, too.
    pub fn expect(&self, rows: &[TableRows]) {
        let count: usize = rows.iter().flat_map(|rows| &rows.batches).map(RecordBatch::num_rows).sum();
        self.total.set(self.total.get() + count as u64);
    }

    pub(super) fn rows(&self) -> u64 {
        self.done.get()
    }

    pub(super) fn advance(&self, rows: usize) -> Result<()> {
        self.done.set(self.done.get() + rows as u64);
        (self.tell)(self.done.get(), self.total.get())
    }
}

/// Rows that may stay undefined when a new stage can't evaluate them: that of a global aggregate
/// over nothing.
const FEW: usize = 16;
const BLOCK: usize = 65536;

/// All that a plan determines.
struct Parts {
    plan: Plan,
    sources: Vec<Option<Source>>,
    readers: Vec<Vec<Reader>>,
    stages: Vec<Option<RunningStage>>,
    nets: Vec<Vec<Net>>,
    views: Vec<View>,
    undefined: Vec<Waiting>,
    direct: Option<Direct>,
}

impl Parts {
    /// Adds the stages of an engine over the same tables; returns what counts their values.
    fn append(&mut self, engine: Engine) -> Interner {
        let own = self.stages.len();
        let Engine { plan, stages, undefined, interner, .. } = engine;
        self.plan.stages.extend(plan.stages);
        self.stages.extend(stages.into_iter().map(Some));
        self.undefined.extend(undefined.into_iter().map(|mut waiting| {
            waiting.stage += own;
            waiting
        }));
        interner
    }

    /// Drops the stages from this position on.
    fn truncate(&mut self, count: usize) {
        self.plan.stages.truncate(count);
        self.stages.truncate(count);
        self.undefined.retain(|waiting| waiting.stage < count);
    }
}

impl Engine {
    /// The tables whose rows `replan` needs: those that a stage reads which is not running, here or
    /// apart.
    pub fn wanted_tables(&self, plan: &Plan, apart: Option<&Apart>) -> Vec<String> {
        let is_new = |position: &usize| {
            let wants = gives_deltas(plan, *position, self.deltas);
            let runs = |engine: &Engine| engine.runs(&plan.stages[*position], wants);
            !runs(self) && !apart.is_some_and(|apart| runs(apart.engine()))
        };
        let read: Vec<&str> =
            (0..plan.stages.len()).filter(is_new).flat_map(|position| plan.stages[position].sources()).collect();
        let tables = plan.tables.iter().map(|table| table.name.clone());
        tables.filter(|table| read.contains(&table.as_str())).collect()
    }

    /// Whether a stage is running, with or without deltas as requested.
    pub(super) fn runs(&self, data: &plan::Stage, wants: bool) -> bool {
        self.stages.iter().zip(&self.plan.stages).any(|(stage, old)| same(old, data) && stage.deltas == wants)
    }

    /// All rows of a table, or `None` if they are not all stored.
    pub fn table_rows(&self, table: &str) -> Result<Option<Vec<RecordBatch>>> {
        let Some(position) = self.source_position(table) else { return Ok(None) };
        let source = &self.sources[position];
        let width = source.columns.len();
        let mut writer = RowWriter::new(source, self);
        if source.has_state() {
            for (row, count) in source.stored_rows() {
                writer.push(&row[..width], row[width], count.into())?;
            }
            return writer.finish().map(Some);
        }
        let nullable = |column: usize| source.columns[column].nullable;
        let keeper =
            self.readers[position].iter().find_map(|reader| Some((reader, reader.binder.keeps(width, nullable)?)));
        let Some((reader, plain)) = keeper else { return Ok(None) };
        let place = |column: usize| plain.iter().position(|other| *other == column).unwrap_or(0);
        let places: Vec<usize> = (0..width).map(place).collect();
        let mut row = Vec::with_capacity(width);
        self.stages[reader.stage].each_atom_row(reader.atom, |words, nulls, count| {
            row.clear();
            row.extend(places.iter().map(|place| words[*place]));
            let nulls = nulls.gather(places.iter().enumerate().map(|(column, place)| (*place, column)));
            writer.push(&row, nulls, i64::try_from(count).unwrap_or(i64::MAX))
        })?;
        writer.finish().map(Some)
    }

    /// Runs `plan` from now on, which has more stages than this one, or fewer. `rows` are those of
    /// the `wanted_tables`. `fresh`: no table had a row so far, so the first delta of a new view
    /// shows the rows that it has over empty tables. Stages that run `apart` are taken over.
    pub fn replan(
        &mut self,
        plan: Plan,
        rows: Vec<TableRows>,
        fresh: bool,
        watch: &Watch,
        apart: Option<Apart>,
    ) -> Result<()> {
        self.settle();
        self.forget_orders();
        let sources = plan.tables.iter().map(Source::new).collect::<Result<Vec<Source>>>()?;
        let known = |data: &plan::Stage| self.plan.stages.iter().any(|old| same(old, data));
        if plan.stages.iter().all(known) {
            self.release_dropped(&plan)?;
        }
        let mut before = self.take_parts();
        let own = before.stages.len();
        let twin = apart.map(|apart| {
            self.interner.learn();
            before.append(apart.into_engine())
        });
        let done = self.build(plan, sources, &mut before, rows, fresh, watch);
        self.clear_nets();
        self.around.clear();
        if done.is_err() {
            before.truncate(own);
            self.put_back(before);
        } else {
            if let Some(twin) = twin {
                self.interner.join(twin);
            }
            // Of tables that nobody reads any more.
            before.sources.iter().flatten().for_each(|source| source.release(&mut self.interner));
        }
        self.last_delta = 0;
        self.interner.sweep();
        done
    }

    fn take_parts(&mut self) -> Parts {
        let stages = std::mem::take(&mut self.stages);
        let sources = std::mem::take(&mut self.sources);
        Parts {
            plan: self.plan.clone(),
            sources: sources.into_iter().map(Some).collect(),
            readers: std::mem::take(&mut self.readers),
            stages: stages.into_iter().map(Some).collect(),
            nets: std::mem::take(&mut self.nets),
            views: std::mem::take(&mut self.views),
            undefined: std::mem::take(&mut self.undefined),
            direct: self.direct.take(),
        }
    }

    /// Gives everything that was taken over back, as it was.
    fn put_back(&mut self, mut before: Parts) {
        for source in std::mem::take(&mut self.sources) {
            let own = |table: &&plan::Table| table.name == source.name;
            let position = before.plan.tables.iter().position(|table| own(&table));
            if let Some(place) = position.and_then(|position| before.sources.get_mut(position)) {
                place.get_or_insert(source);
            }
        }
        let Parts { plan, sources, readers, stages, nets, views, undefined, direct } = before;
        self.sources = sources.into_iter().flatten().collect();
        self.stages = stages.into_iter().flatten().collect();
        (self.plan, self.readers, self.nets) = (plan, readers, nets);
        (self.views, self.undefined, self.direct) = (views, undefined, direct);
    }

    fn build(
        &mut self,
        plan: Plan,
        sources: Vec<Source>,
        before: &mut Parts,
        rows: Vec<TableRows>,
        fresh: bool,
        watch: &Watch,
    ) -> Result<()> {
        for source in sources {
            let old = before.plan.tables.iter().position(|table| table.name == source.name);
            let old = old.and_then(|position| before.sources[position].take());
            self.sources.push(taken_source(old, source, &mut before.sources, &before.plan)?);
        }
        let Parts { plan: old_plan, stages: old_stages, .. } = before;
        let mut take_over = |data: &plan::Stage, wants: bool| {
            let running = |position: &usize| old_stages[*position].as_ref().is_some_and(|stage| stage.deltas == wants);
            let mut known = (0..old_plan.stages.len()).filter(|position| same(&old_plan.stages[*position], data));
            let position = known.find(running)?;
            old_stages[position].take().map(|stage| (position, stage))
        };
        let wants = |position| gives_deltas(&plan, position, self.deltas);
        let (assembly, done) = assemble(&plan, &self.sources, &wants, &mut take_over);
        let Assembly { readers, stages, nets, mut origins } = assembly;
        (self.readers, self.stages, self.nets) = (readers, stages, nets);
        let done = done.and_then(|()| {
            self.plan = plan;
            self.direct = direct(&self.plan);
            let moved = |waiting: &Waiting| {
                let now = |origin: &Option<super::build::Origin>| {
                    origin.as_ref().is_some_and(|origin| origin.position == waiting.stage)
                };
                let mut waiting = waiting.clone();
                waiting.stage = origins.iter().position(now)?;
                Some(waiting)
            };
            self.undefined = before.undefined.iter().filter_map(moved).collect();
            let new: Vec<bool> = origins.iter().map(Option::is_none).collect();
            self.build_stages(&new, rows, watch)?;
            self.show_views(&before.views, fresh)
        });
        if done.is_err() {
            // (Stages beyond those that were assembled are still in their old place.)
            for (mut stage, origin) in std::mem::take(&mut self.stages).into_iter().zip(&mut origins) {
                if let Some(origin) = origin.take() {
                    (stage.inputs, stage.feeds) = (origin.inputs, origin.feeds);
                    before.stages[origin.position] = Some(stage);
                } else {
                    // (A discarded stage holds values, too.)
                    stage.release(&mut self.interner);
                }
            }
        }
        done
    }

    fn show_views(&mut self, before: &[View], fresh: bool) -> Result<()> {
        self.views = results::views(&self.plan, &self.stages)?;
        for number in 0..self.views.len() {
            let stage = self.views[number].stage;
            if let Some(old) = before.iter().find(|old| old.name == self.views[number].name) {
                (self.views[number].initial, self.views[number].unshown) = (old.initial.clone(), old.unshown);
                continue;
            }
            let width = self.stages[stage].columns.len();
            let mut rows = Chunk::new(width);
            if self.is_undefined(number) {
                (self.views[number].initial, self.views[number].unshown) = (Some(rows), true);
            } else if fresh {
                read_stage(&self.stages, stage, &mut rows, &mut self.interner)?;
                let rows = net_chunks(&[rows], width)?;
                self.views[number].initial = (!rows.is_empty()).then_some(rows);
                self.retain_initial_of(number);
            }
        }
        Ok(())
    }

    /// Brings the new stages up to date, in the plan's order.
    pub(super) fn build_stages(&mut self, new: &[bool], rows: Vec<TableRows>, watch: &Watch) -> Result<()> {
        for rows in rows {
            self.load_table(new, rows, watch)?;
        }
        let mut outputs: Vec<Chunk> = Vec::with_capacity(self.stages.len());
        for position in 0..self.stages.len() {
            let width = self.stages[position].columns.len();
            let wanted =
                (position..new.len()).any(|later| new[later] && self.stages[later].read_stages().contains(&position));
            watch.advance(0)?;
            let output = match (new[position], wanted) {
                (true, _) => self.build_stage(position, &outputs)?,
                (false, true) => self.all_rows(position)?,
                (false, false) => Chunk::new(width),
            };
            outputs.push(output);
        }
        self.clear_nets();
        self.hold_undefined();
        Ok(())
    }

    fn build_stage(&mut self, position: usize, outputs: &[Chunk]) -> Result<Chunk> {
        let few = self.stages[position].read_stages().iter().map(|input| outputs[*input].len()).sum::<usize>() <= FEW;
        let evaluates_later = |error: &KernelError| error.kind == Kind::InvalidChange && few;
        if self.stages[position].has_atoms() {
            match self.load_feeds(position, outputs) {
                Err(error) if evaluates_later(&error) && self.can_be_undefined(position) => {
                    self.stages[position].loaded(&mut self.interner)?;
                    self.set_undefined(position, outputs);
                    self.run_around_undefined(position, &empty(outputs))?;
                }
                done => done?,
            }
            return self.read_tree(position);
        }
        match self.run_stage(position, outputs) {
            Err(error) if evaluates_later(&error) && self.can_be_undefined(position) => {
                self.set_undefined(position, outputs);
                self.run_around_undefined(position, &empty(outputs))
            }
            Err(error) => Err(error),
            Ok(mut rows) => {
                self.stages[position].take_constants(&mut self.interner, &mut rows)?;
                Ok(rows)
            }
        }
    }

    /// Gives the rows of a table to the new atoms that read it.
    fn load_table(&mut self, new: &[bool], rows: TableRows, watch: &Watch) -> Result<()> {
        let TableRows { table, batches } = rows;
        let Some(position) = self.source_position(&table) else { return Ok(()) };
        for batch in &batches {
            for start in (0..batch.num_rows()).step_by(BLOCK) {
                let block = batch.slice(start, BLOCK.min(batch.num_rows() - start));
                let Engine { sources, readers, stages, interner, .. } = self;
                let source = &sources[position];
                let mut changes = Changes::new(source.columns.len());
                read_batch(&source.name, &source.columns, &[], &block, interner, &mut changes)?;
                for reader in readers[position].iter().filter(|reader| new[reader.stage]) {
                    let bound = bind_rows(reader, &changes, interner)?;
                    let width = reader.binder.width();
                    let change = |(index, (nulls, weight)): (usize, &(Nulls, i64))| AtomChange {
                        atom: reader.atom,
                        words: &bound.0[index * width..][..width],
                        nulls: *nulls,
                        weight: *weight,
                    };
                    stages[reader.stage].load_atoms(bound.1.iter().enumerate().map(change), interner)?;
                }
                watch.advance(block.num_rows())?;
            }
        }
        Ok(())
    }

    /// All rows of a stage. A bag does not store them, so they are joined again.
    fn all_rows(&mut self, position: usize) -> Result<Chunk> {
        let width = self.stages[position].columns.len();
        let mut rows = Chunk::new(width);
        let plan::Stage::Bag(data) = &self.plan.stages[position] else {
            read_stage(&self.stages, position, &mut rows, &mut self.interner)?;
            return net_chunks(&[rows], width);
        };
        let mut bag = Bag::new(data)?;
        let stage = &self.stages[position];
        let mut discarded = Chunk::new(width);
        for sign in [1, -1] {
            // (A second time with the other sign, which releases the values that the bag holds.)
            let output = if sign == 1 { &mut rows } else { &mut discarded };
            for atom in 0..data.atoms.len() {
                stage.each_atom_row(atom, |words, nulls, count| {
                    bag.apply(
                        atom,
                        words,
                        nulls,
                        sign * i64::try_from(count).unwrap_or(i64::MAX),
                        &mut self.interner,
                        output,
                    )
                })?;
            }
        }
        net_chunks(&[rows], width)
    }

    /// Releases the values that stages hold which the plan does not have: their own inputs are
    /// still whole.
    fn release_dropped(&mut self, plan: &Plan) -> Result<()> {
        for position in (0..self.stages.len()).rev() {
            let stage = &self.stages[position];
            let stays = plan.stages.iter().any(|data| same(data, &self.plan.stages[position]));
            if stays || stage.inputs.is_empty() || matches!(stage.state, State::Map(_) | State::SetOperation(_)) {
                continue;
            }
            let holds = |position: usize| self.stages[position].interned();
            if stage.has_atoms() || !(holds(position) || stage.inputs.iter().any(|input| holds(*input))) {
                continue;
            }
            let inputs = stage.inputs.clone();
            let rows = inputs
                .iter()
                .map(|input| self.all_rows(*input).map(|rows| negated(&rows)))
                .collect::<Result<Vec<_>>>()?;
            let (earlier, later) = self.stages.split_at_mut(position);
            let mut discarded = Chunk::new(later[0].columns.len());
            later[0].set_bounded(false);
            later[0].apply_inputs(earlier, &rows.iter().collect::<Vec<_>>(), &mut self.interner, &mut discarded)?;
        }
        for position in 0..self.stages.len() {
            let stays = plan.stages.iter().any(|data| same(data, &self.plan.stages[position]));
            if let (false, State::Tree { tree, .. }) = (stays, &self.stages[position].state) {
                tree.release(&mut self.interner);
            }
            if let (false, plan::Stage::Bag(data)) = (stays, &self.plan.stages[position]) {
                for atom in 0..data.atoms.len() {
                    let mut all = Vec::new();
                    self.stages[position].each_atom_row(atom, |words, nulls, count| {
                        all.push((words.to_vec(), nulls, i64::try_from(count).unwrap_or(i64::MAX)));
                        Ok(())
                    })?;
                    let mut discarded = Chunk::new(self.stages[position].columns.len());
                    for (words, nulls, count) in all {
                        let stage = &mut self.stages[position];
                        stage.apply_atom(atom, &words, nulls, -count, &mut self.interner, &mut discarded)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The previous source of a table, if it is the same; otherwise the new one, for which no row may
/// be lost.
fn taken_source(old: Option<Source>, new: Source, kept: &mut [Option<Source>], plan: &Plan) -> Result<Source> {
    let Some(old) = old else { return Ok(new) };
    let columns = |source: &Source| -> Vec<_> {
        source.columns.iter().map(|column| (column.name.clone(), column.data_type, column.nullable)).collect()
    };
    if columns(&old) == columns(&new) && old.key == new.key {
        return Ok(old);
    }
    if old.stored_count() == 0 {
        return Ok(new);
    }
    let message = format!("the rows of table '{}' were stored without some of its columns", old.name);
    if let Some(position) = plan.tables.iter().position(|table| table.name == old.name) {
        kept[position] = Some(old);
    }
    Err(KernelError::plan("CROWN-ROWS-NOT-KEPT", message))
}

fn same(left: &plan::Stage, right: &plan::Stage) -> bool {
    left.id() == right.id() && serde_json::to_string(left).ok() == serde_json::to_string(right).ok()
}

fn empty(outputs: &[Chunk]) -> Vec<Chunk> {
    outputs.iter().map(|rows| Chunk::new(rows.columns.len())).collect()
}

/// Words side by side, NULL masks and weights.
type BoundRows = (Vec<Word>, Vec<(Nulls, i64)>);

/// The rows that an atom makes of rows of its table.
fn bind_rows(reader: &Reader, changes: &Changes, interner: &mut Interner) -> Result<BoundRows> {
    let (mut words, mut row, mut all, mut bits) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for index in 0..changes.len() {
        if changes.atoms_at(index) & reader.route == 0 {
            continue;
        }
        let nulls = changes.rows.read(index, &mut words);
        if let Some(nulls) = reader.binder.bind(&words, nulls, &mut row, interner)? {
            all.extend_from_slice(&row);
            bits.push((nulls, changes.rows.weights[index]));
        }
    }
    Ok((all, bits))
}

/// Rows of a table on their way into record batches.
struct RowWriter<'a> {
    rows: Chunk,
    batches: Vec<RecordBatch>,
    output: Output,
    engine: &'a Engine,
}

impl<'a> RowWriter<'a> {
    fn new(source: &Source, engine: &'a Engine) -> RowWriter<'a> {
        let columns = source.columns.iter().map(|column| (column.name.as_str(), column.data_type, true));
        let output = Output::new(columns, false, true, false, engine.pool.clone());
        RowWriter { rows: Chunk::new(source.columns.len()), batches: Vec::new(), output, engine }
    }

    fn push(&mut self, words: &[Word], nulls: Nulls, count: i64) -> Result<()> {
        self.rows.push(words, nulls, count);
        if self.rows.len() == BLOCK {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let width = self.rows.columns.len();
        let mut rows = std::mem::replace(&mut self.rows, Chunk::new(width));
        self.batches.push(self.output.batch(&mut rows, Vec::new(), &self.engine.interner)?);
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<RecordBatch>> {
        self.flush()?;
        Ok(self.batches)
    }
}
