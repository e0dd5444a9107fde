//! Applies a batch to the stages: `batch` prepares and checks it, each stage runs once, and a
//! failed batch is undone.

use super::batch::{AtomRows, Batch, Input, Mark, OnInvalid};
use super::emit::{project, ArrowSink, Blocks, Emit, Projection};
use super::read::read_stage;
use super::{Applied, Direct, Engine, Unshown};
use crate::arrow_out::Output;
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{KernelError, Result};
use crate::store::net::{net_chunks, Net};
use arrow::array::RecordBatch;

impl Engine {
    /// Applies tables of changes in order and emits the net change of the view.
    ///
    /// An error leaves the engine exactly as it was. One after `Emit::validated` (arithmetic
    /// overflow in a tree whose rows leave as they are found) undoes what was applied, and what was
    /// emitted does not count.
    pub fn apply(
        &mut self,
        inputs: Vec<Input>,
        per_update: bool,
        on_invalid: OnInvalid,
        emit: &mut dyn Emit,
    ) -> Result<()> {
        self.settle();
        let mark = self.mark();
        let result = self.resolve(inputs, on_invalid).and_then(|mut batches| {
            if per_update {
                self.apply_updates(&mut batches, on_invalid, emit)?;
            } else {
                self.apply_net(&mut batches, on_invalid, emit)?;
            }
            self.note(batches);
            Ok(())
        });
        self.finish(result, mark, per_update)
    }

    /// Moves the clock of a table's time window forward and emits the net change of the view.
    pub fn advance(&mut self, table: &str, watermark: i64, emit: &mut dyn Emit) -> Result<()> {
        self.settle();
        let mark = self.mark();
        let result = self.leaving(table, watermark).and_then(|batch| {
            let mut batches = vec![batch];
            self.apply_net(&mut batches, OnInvalid::Raise, emit)?;
            self.note(batches);
            Ok(())
        });
        self.finish(result, mark, false)
    }

    /// The rows that leave a table's time window when its clock is moved.
    pub(super) fn leaving(&mut self, table: &str, watermark: i64) -> Result<Batch> {
        let source = self.source_position(table).ok_or_else(|| {
            KernelError::invalid("CROWN-CHANGE-TABLE", format!("the view does not read a table '{table}'"))
        })?;
        let events = self.sources[source].advance(watermark, &mut self.interner)?;
        Ok(Batch { source, events, base: 0 })
    }

    pub(super) fn finish<T>(&mut self, result: Result<T>, mark: Mark, per_update: bool) -> Result<T> {
        if result.is_err() {
            self.abandon(mark);
            return result;
        }
        if let Some(applied) = &mut self.applied {
            applied.mark = Some(mark);
        }
        self.follow(per_update);
        self.counters.batches += 1;
        self.settled = false;
        if !self.undoable || per_update {
            self.settle();
        }
        result
    }

    /// Makes the last batch final. Call it before interning values for the next batch, because it
    /// sweeps the interner.
    pub fn settle(&mut self) {
        if std::mem::replace(&mut self.settled, true) {
            return;
        }
        for source in &mut self.sources {
            source.commit(&mut self.interner);
        }
        self.clear_nets();
        self.applied = None;
        self.interner.sweep();
    }

    /// Takes the last batch back, unless it is final. Only when `set_undoable` was on, and once.
    pub fn undo(&mut self) -> Result<()> {
        let Some(Applied { outputs, before, mark: Some(mark) }) = self.applied.take() else { return Ok(()) };
        self.forget_orders();
        self.take_back(&outputs, self.stages.len())?;
        self.set_unshown(before);
        self.settled = true;
        self.abandon(mark);
        Ok(())
    }

    /// Nets, checks and runs the batches as one.
    pub(super) fn apply_net(
        &mut self,
        batches: &mut [Batch],
        on_invalid: OnInvalid,
        emit: &mut dyn Emit,
    ) -> Result<()> {
        self.net_batches(batches, on_invalid)?;
        self.run(emit)
    }

    pub(super) fn net_batches(&mut self, batches: &mut [Batch], on_invalid: OnInvalid) -> Result<()> {
        let mut bound = AtomRows::default();
        let mut faults = Vec::new();
        let mut tables = self.table_nets(batches);
        for Batch { source, events, base } in batches {
            match &mut tables[*source] {
                Some(table) if self.sources[*source].has_state() => table.add_resolved(events),
                Some(table) => self.net_table(*source, events, table, &mut faults),
                None => self.net_events(*source, events, 0..events.rows.len(), 1, &mut bound, &mut faults),
            }
            self.reject(*source, *base, &events.rows, &faults, on_invalid)?;
            for fault in faults.drain(..) {
                events.rows.weights[fault.row] = 0;
            }
        }
        for (source, table) in tables.iter().enumerate() {
            if let Some(table) = table {
                self.bind_table(source, table)?;
            }
        }
        self.nets.iter().flatten().try_for_each(Net::check)
    }

    /// Runs the stages on the nets and emits the view's change.
    fn run(&mut self, emit: &mut dyn Emit) -> Result<()> {
        let direct = |_: &&Direct| self.views[0].initial.is_none() && self.ordered.is_empty();
        if let Some(Direct { tree, projection, .. }) = self.direct.as_ref().filter(direct) {
            let (tree, projection) = (*tree, projection.clone());
            let output = self.delta_output(0).clone();
            emit.validated()?;
            self.run_direct(tree, projection.as_deref(), &output, emit)?;
            self.applied = Some(Applied { outputs: Vec::new(), before: Unshown::default(), mark: None });
            return Ok(());
        }
        let before = self.unshown();
        let (outputs, shown) = self.run_shown()?;
        if let Err(error) = self.show(&outputs, &shown, emit) {
            self.take_back(&outputs, self.stages.len())?;
            self.set_unshown(before);
            return Err(error);
        }
        self.applied = Some(Applied { outputs, before, mark: None });
        Ok(())
    }

    fn show(&self, outputs: &[Chunk], shown: &[Option<Chunk>], emit: &mut dyn Emit) -> Result<()> {
        emit.validated()?;
        for (number, (view, shown)) in self.views.iter().zip(shown).enumerate() {
            let rows = shown.as_ref().unwrap_or(&outputs[view.stage]);
            if rows.is_empty() || !self.deltas || self.quiet {
                continue;
            }
            emit.view(number);
            let output = self.delta_output(number);
            let mut sink = ArrowSink::new(rows.columns.len(), true, None, false, output, emit);
            sink.push_chunk(rows, &self.interner)?;
            sink.finish(&self.interner)?;
        }
        Ok(())
    }

    /// The one tree of the plan: its blocks of rows leave as they are, when they are known to be
    /// net. On an error the tree is as before.
    fn run_direct(
        &mut self,
        tree: usize,
        projection: Option<&Projection>,
        output: &Output,
        emit: &mut dyn Emit,
    ) -> Result<()> {
        if self.quiet {
            return self.stages[tree].apply_exactly(&self.nets[tree], &mut self.interner, &mut Chunk::default());
        }
        let (width, interned) = (self.stages[tree].columns.len(), self.stages[tree].interned());
        if self.stages[tree].is_net() && (!self.stages[tree].may_lose_net() || self.adds_single_copies(tree)) {
            let mut sink = ArrowSink::new(width, interned, projection, false, output, emit).expect(self.last_delta);
            self.stages[tree].apply_atoms(&self.nets[tree], &mut self.interner, &mut sink)?;
            match sink.finish(&self.interner) {
                Ok(rows) => self.last_delta = rows,
                Err(error) => return self.take_back(&[], self.stages.len()).and(Err(error)),
            }
            self.pool.trim(width, self.last_delta);
            return Ok(());
        }
        let mut sink = Blocks::new(width, output);
        let done = self.stages[tree].apply_atoms(&self.nets[tree], &mut self.interner, &mut sink);
        let mut blocks = sink.finish();
        if done.is_err() {
            blocks = vec![Chunk::new(width)];
            self.stages[tree].apply_exactly(&self.nets[tree], &mut self.interner, &mut blocks[0])?;
        }
        if !self.stages[tree].is_net() {
            match net_chunks(&blocks, width) {
                Ok(net) => blocks = vec![net],
                Err(error) => return self.take_back(&[], self.stages.len()).and(Err(error)),
            }
        }
        for mut block in blocks.into_iter().filter(|block| !block.is_empty()) {
            project(&mut block, projection);
            let shown = output.batch(&mut block, Vec::new(), &self.interner).and_then(|batch| emit.emit(batch));
            if let Err(error) = shown {
                return self.take_back(&[], self.stages.len()).and(Err(error));
            }
        }
        Ok(())
    }

    /// Whether no row of the batch gets a second copy in an atom.
    fn adds_single_copies(&self, tree: usize) -> bool {
        let stage = &self.stages[tree];
        self.nets[tree].iter().enumerate().all(|(atom, net)| {
            let single = |(row, nulls, weight, before): (&[Word], Nulls, i64, Option<u64>)| {
                let before = || before.unwrap_or_else(|| stage.atom_multiplicity(atom, row, nulls));
                weight <= 0 || (weight == 1 && before() == 0)
            };
            net.all_rows().all(single)
        })
    }

    pub(super) fn unshown(&self) -> Unshown {
        let views = self.views.iter().map(|view| (view.initial.clone(), view.unshown)).collect();
        Unshown { views, undefined: self.undefined.clone() }
    }

    pub(super) fn set_unshown(&mut self, before: Unshown) {
        self.undefined = before.undefined;
        for (view, (initial, unshown)) in self.views.iter_mut().zip(before.views) {
            (view.initial, view.unshown) = (initial, unshown);
        }
        for position in 0..self.stages.len() {
            self.stages[position].lenient = self.has_undefined(position);
        }
    }

    /// The net change of each stage, and that of each view where it is not that of its stage. On an
    /// error everything is as before.
    pub(super) fn run_shown(&mut self) -> Result<(Vec<Chunk>, Vec<Option<Chunk>>)> {
        let before = self.unshown();
        let outputs = self.run_stages()?;
        let shown = (0..self.views.len()).map(|view| self.with_initial(view, &outputs)).collect::<Result<_>>();
        match shown {
            Ok(shown) => Ok((outputs, shown)),
            Err(error) => {
                self.take_back(&outputs, self.stages.len())?;
                self.set_unshown(before);
                Err(error)
            }
        }
    }

    /// The view's change, which includes its initial rows if it is the first change. Empty while
    /// the view has no value. `None` if it equals the change of the stage.
    fn with_initial(&mut self, view: usize, outputs: &[Chunk]) -> Result<Option<Chunk>> {
        let undefined = self.is_undefined(view);
        let view = &mut self.views[view];
        let stage = view.stage;
        let rows = &outputs[stage];
        let width = rows.columns.len();
        if undefined {
            let was_shown = view.initial.is_none() && !view.unshown;
            (view.initial, view.unshown) = (Some(Chunk::new(width)), true);
            if !was_shown {
                return Ok(Some(Chunk::new(width)));
            }
            // All that was shown goes: what is there now without what this batch has added.
            let now = negated(&self.whole(stage, width)?);
            return net_chunks(&[rows.clone(), now], width).map(Some);
        }
        let initial = view.initial.take();
        if std::mem::take(&mut view.unshown) {
            return self.whole(stage, width).map(Some);
        }
        initial.map(|initial| net_chunks(&[initial, rows.clone()], width)).transpose()
    }

    /// The net rows of a stage.
    fn whole(&mut self, stage: usize, width: usize) -> Result<Chunk> {
        let mut all = Chunk::new(width);
        read_stage(&self.stages, stage, &mut all, &mut self.interner)?;
        net_chunks(&[all], width)
    }

    /// The whole result as a delta, for a view of which nothing was shown before.
    pub(crate) fn whole_delta(&mut self, view: usize) -> Result<RecordBatch> {
        let (stage, width, bag) = (self.views[view].stage, self.views[view].columns.len(), self.views[view].bag);
        let mut rows = if self.deltas { self.whole(stage, width)? } else { Chunk::new(width) };
        self.output(view, true, bag, false).batch(&mut rows, Vec::new(), &self.interner)
    }

    /// All stages in order, each on the net change of its sources; returns the net change of each.
    /// On an error all stages are as before.
    pub(super) fn run_stages(&mut self) -> Result<Vec<Chunk>> {
        self.around.clear();
        let undefined = self.undefined.clone();
        let mut outputs: Vec<Chunk> = Vec::with_capacity(self.stages.len());
        for position in 0..self.stages.len() {
            match self.run_stage(position, &outputs) {
                Ok(rows) => outputs.push(rows),
                Err(error) => {
                    self.take_back(&outputs, position)?;
                    if !(undefined.is_empty() && self.undefined.is_empty()) {
                        let before = Unshown { undefined, ..self.unshown() };
                        self.set_unshown(before);
                    }
                    return Err(error);
                }
            }
        }
        Ok(outputs)
    }

    pub(super) fn run_stage(&mut self, position: usize, outputs: &[Chunk]) -> Result<Chunk> {
        if self.tolerates(position) {
            return self.run_around_undefined(position, outputs);
        }
        self.run_plainly(position, outputs)
    }

    /// As `run_stage`, for a stage for which no row waits.
    pub(super) fn run_plainly(&mut self, position: usize, outputs: &[Chunk]) -> Result<Chunk> {
        self.bind_feeds(position, outputs)?;
        let inputs: Vec<&Chunk> = self.stages[position].inputs.iter().map(|input| &outputs[*input]).collect();
        self.run_on(position, &inputs)
    }

    pub(super) fn run_on(&mut self, position: usize, inputs: &[&Chunk]) -> Result<Chunk> {
        let (earlier, later) = self.stages.split_at_mut(position);
        later[0].run(earlier, &self.nets[position], inputs, &mut self.interner)
    }

    /// Nets what the atoms over earlier stages get.
    pub(super) fn bind_feeds(&mut self, position: usize, outputs: &[Chunk]) -> Result<()> {
        for number in 0..self.stages[position].feeds.len() {
            let input = self.stages[position].feeds[number].input;
            if self.has_undefined(position) {
                let left = self.around_undefined(position, number, &outputs[input]);
                self.bind_feed(position, number, &left)?;
            } else {
                self.bind_feed(position, number, &outputs[input])?;
            }
        }
        Ok(())
    }

    pub(super) fn bind_feed(&mut self, position: usize, number: usize, input: &Chunk) -> Result<()> {
        let feed = &self.stages[position].feeds[number];
        feed.bind(input, &mut self.nets[position][feed.atom], &mut self.interner)
    }

    /// Gives the first `count` stages the inverse of what they got in this batch.
    pub(super) fn take_back(&mut self, outputs: &[Chunk], count: usize) -> Result<()> {
        for position in 0..count {
            let (earlier, later) = self.stages.split_at_mut(position);
            let stage = &mut later[0];
            if stage.has_atoms() {
                stage.take_back_atoms(&mut self.nets[position], &mut self.interner)?;
            } else if !outputs.is_empty() {
                // (After a direct run there are none: what follows its tree has no state.)
                let given = |input: &usize| {
                    let around = self.around.iter().find(|(stage, _)| *stage == position);
                    negated(around.map_or(&outputs[*input], |(_, rows)| rows))
                };
                let inputs: Vec<Chunk> = stage.inputs.iter().map(given).collect();
                let inputs: Vec<&Chunk> = inputs.iter().collect();
                let mut discarded = Chunk::new(stage.columns.len());
                stage.set_bounded(false);
                let done = stage.apply_inputs(earlier, &inputs, &mut self.interner, &mut discarded);
                stage.set_bounded(true);
                done?;
            }
        }
        Ok(())
    }

    /// Passes the rows that the stages have before any change through all of them, and to the
    /// views.
    pub(super) fn start(&mut self) -> Result<()> {
        let mut outputs: Vec<Chunk> = Vec::with_capacity(self.stages.len());
        for position in 0..self.stages.len() {
            let mut rows = if self.can_be_undefined(position) {
                // One by one, so that those that fail stay where they are.
                let nothing: Vec<Chunk> = outputs.iter().map(|rows| Chunk::new(rows.columns.len())).collect();
                self.set_undefined(position, &outputs);
                self.run_around_undefined(position, &nothing)?
            } else {
                self.run_stage(position, &outputs)?
            };
            self.stages[position].take_constants(&mut self.interner, &mut rows)?;
            if let Some(row) = self.stages[position].initial_row(&mut self.interner) {
                rows.push(&row, 0, 1);
            }
            outputs.push(rows);
        }
        self.clear_nets();
        self.around.clear();
        self.hold_undefined();
        for view in &mut self.views {
            view.initial = Some(&outputs[view.stage]).filter(|rows| !rows.is_empty()).cloned();
        }
        (0..self.views.len()).for_each(|view| self.retain_initial_of(view));
        Ok(())
    }
}

pub(super) fn negated(rows: &Chunk) -> Chunk {
    let mut rows = rows.clone();
    rows.weights.iter_mut().for_each(|weight| *weight = -*weight);
    rows
}
