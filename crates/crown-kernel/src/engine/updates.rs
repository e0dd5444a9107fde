//! One change at a time: the paper's stream, a delta for every update.
//!
//! A plan that is one tree (and perhaps a reordering of its columns) is driven directly: no
//! netting, no allocation, the rows go from the tree into the blocks of the output. All other plans
//! take each change as a batch.

use super::batch::{absent_fault, AtomRows, Batch, OnInvalid};
use super::emit::{ArrowSink, Discard, Emit};
use super::{Direct, Engine, Unshown};
use crate::arrow_in::Fault;
use crate::arrow_out::Output;
use crate::chunk::Chunk;
use crate::error::{KernelError, Result};
use crate::store::net::net_in_place;
use crate::tree::Sink;

impl Engine {
    pub(super) fn apply_updates(
        &mut self,
        batches: &mut [Batch],
        on_invalid: OnInvalid,
        emit: &mut dyn Emit,
    ) -> Result<()> {
        if emit.is_stream() {
            // Rows that were already read can't be recalled, so no change may turn out invalid
            // midway.
            self.check_updates(batches, on_invalid)?;
        }
        if self.views.len() != 1 {
            let message = "a delta for every update is shown of one view only";
            return Err(KernelError::invalid("CROWN-ARGUMENT", message));
        }
        emit.validated()?;
        let output = self.output(0, true, self.views[0].bag, true);
        let before = self.unshown();
        for position in 0..batches.len() {
            if let Err(error) = self.apply_table(&mut batches[position], on_invalid, &output, emit) {
                self.take_back_updates(&batches[..=position], before)?;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Applies the events of one table, by one of the two ways: their rows have different columns.
    fn apply_table(
        &mut self,
        batch: &mut Batch,
        on_invalid: OnInvalid,
        output: &Output,
        emit: &mut dyn Emit,
    ) -> Result<()> {
        let plain = !self.sources[batch.source].has_state() && self.views[0].initial.is_none();
        let direct = self.direct.clone().filter(|_| plain);
        let (width, interned, projection) = match &direct {
            Some(direct) => {
                let stage = &self.stages[direct.tree];
                (stage.columns.len(), stage.interned(), direct.projection.as_deref())
            }
            None => (self.views[0].columns.len(), true, None),
        };
        let mut sink = ArrowSink::new(width, interned, projection, true, output, emit);
        self.apply_events(batch, on_invalid, direct.as_ref(), &mut sink)?;
        sink.finish(&self.interner).map(|_| ())
    }

    /// On an error the events from the failing one on have weight 0.
    fn apply_events(
        &mut self,
        batch: &mut Batch,
        on_invalid: OnInvalid,
        direct: Option<&Direct>,
        sink: &mut ArrowSink,
    ) -> Result<()> {
        let mut bound = AtomRows::default();
        let mut scratch = Chunk::default();
        let mut event = 0;
        while event < batch.events.rows.len() {
            let cause = batch.events.cause(event);
            let mut end = event + 1;
            while end < batch.events.rows.len() && batch.events.cause(end) == cause {
                end += 1;
            }
            sink.begin(batch.base + cause as u64);
            let done = match direct {
                Some(direct) if direct.monotone || self.stages[direct.tree].is_net() => {
                    self.apply_event(batch, event, &mut bound, sink)
                }
                Some(_) => self.apply_event_netted(batch, event, &mut bound, &mut scratch, sink),
                None => self.apply_change(batch, event..end, &mut bound, sink),
            };
            let done = done.and_then(|fault| match fault {
                None => Ok(()),
                Some(fault) => {
                    batch.events.rows.weights[event..end].fill(0);
                    self.reject(batch.source, batch.base, &batch.events.rows, &[fault], on_invalid)
                }
            });
            if let Err(error) = done {
                batch.events.rows.weights[event..].fill(0);
                return Err(error);
            }
            sink.settle(&self.interner)?;
            event = end;
        }
        Ok(())
    }

    /// As `apply_event`, for trees whose steps may undo each other's rows (a sum that changes with
    /// each atom of a self-join).
    fn apply_event_netted(
        &mut self,
        batch: &Batch,
        event: usize,
        bound: &mut AtomRows,
        scratch: &mut Chunk,
        sink: &mut ArrowSink,
    ) -> Result<Option<Fault>> {
        scratch.columns.resize(sink.width(), Vec::new());
        scratch.clear();
        let done = self.apply_event(batch, event, bound, scratch)?;
        net_in_place(scratch)?;
        sink.push_chunk(scratch, &self.interner)?;
        Ok(done)
    }

    fn apply_event(
        &mut self,
        batch: &Batch,
        event: usize,
        bound: &mut AtomRows,
        sink: &mut impl Sink,
    ) -> Result<Option<Fault>> {
        let weight = batch.events.rows.weights[event];
        if weight == 0 {
            return Ok(None);
        }
        let readers = &self.readers[batch.source];
        if let Err(error) = bound.bind(readers, &batch.events, event, &mut self.interner) {
            return Ok(Some(Fault { row: event, code: error.code, reason: error.message }));
        }
        if weight < 0 {
            let stages = &self.stages;
            let absent = bound.witnesses(readers).any(|(reader, row, nulls)| {
                stages[reader.stage].atom_multiplicity(reader.atom, row, nulls) < weight.unsigned_abs()
            });
            if absent {
                return Ok(Some(absent_fault(event)));
            }
        }
        for (done, (reader, row, nulls)) in bound.taken(readers).enumerate() {
            let stage = &mut self.stages[reader.stage];
            if let Err(error) = stage.apply_atom(reader.atom, row, nulls, weight, &mut self.interner, sink) {
                let mut discard = Discard::new(stage.columns.len());
                for (reader, row, nulls) in bound.taken(readers).take(done) {
                    let stage = &mut self.stages[reader.stage];
                    stage.apply_atom(reader.atom, row, nulls, -weight, &mut self.interner, &mut discard)?;
                }
                return Err(error);
            }
        }
        Ok(None)
    }

    /// All events of one change, as a separate batch.
    fn apply_change(
        &mut self,
        batch: &Batch,
        events: std::ops::Range<usize>,
        bound: &mut AtomRows,
        sink: &mut ArrowSink,
    ) -> Result<Option<Fault>> {
        let mut faults = Vec::new();
        self.net_events(batch.source, &batch.events, events, 1, bound, &mut faults);
        if let Some(fault) = faults.pop() {
            self.clear_nets();
            return Ok(Some(fault));
        }
        let rows = self.run_shown();
        self.clear_nets();
        let (outputs, shown) = rows?;
        if self.deltas {
            let rows = shown[0].as_ref().unwrap_or(&outputs[self.views[0].stage]);
            sink.push_chunk(rows, &self.interner)?;
        }
        Ok(None)
    }

    /// Takes back all events of weight other than 0: their inverse is one batch. `before` was not
    /// shown before them.
    pub(super) fn take_back_updates(&mut self, batches: &[Batch], before: Unshown) -> Result<()> {
        let mut bound = AtomRows::default();
        let mut faults = Vec::new();
        for batch in batches {
            let all = 0..batch.events.rows.len();
            self.net_events(batch.source, &batch.events, all, -1, &mut bound, &mut faults);
        }
        if let Some(fault) = faults.pop() {
            let message = format!("a failed batch could not be rolled back: {}", fault.reason);
            return Err(KernelError::state("CROWN-STATE-BROKEN", message));
        }
        self.set_bounded(false);
        let done = self.run_back(&before);
        self.set_bounded(true);
        done?;
        self.clear_nets();
        self.set_unshown(before);
        Ok(())
    }
}
