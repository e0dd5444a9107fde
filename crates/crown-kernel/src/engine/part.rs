//! An engine as a part of a view over several cells.
//!
//! The part in front resolves the changes of tables with primary keys and windows, with a separate
//! tree for each table, and finds invalid changes. A cell applies one batch, which it can undo
//! (`Engine::apply`, `Engine::undo`), or many small ones, the steps of one call, which it can undo
//! together.

use super::batch::{Batch, Mark};
use super::{Applied, Emit, Engine, Input, OnInvalid, Unshown};
use crate::arrow_out::Output;
use crate::binding::Binder;
use crate::chunk::Chunk;
use crate::error::{KernelError, Result};
use crate::plan::{self, Plan};
use arrow::array::RecordBatch;

/// What the changes of one table, or one table of changes, do to its rows.
pub(crate) struct TableChanges {
    pub table: String,
    pub rows: RecordBatch,
    /// For each row, the incoming change that caused it; empty for the net change of a whole batch.
    pub causes: Vec<u64>,
}

/// What the steps of a call did so far.
pub(crate) struct Steps {
    batches: Vec<Batch>,
    before: Unshown,
    mark: Mark,
}

impl Engine {
    /// Makes this engine, which is in front of the cells of `plan`, reject the rows that an atom of
    /// the cells can't bind.
    pub(crate) fn check_for(&mut self, plan: &Plan) -> Result<()> {
        for stage in &plan.stages {
            let (plan::Stage::Tree(plan::TreeStage { atoms, .. }) | plan::Stage::Bag(plan::BagStage { atoms, .. })) =
                stage
            else {
                continue;
            };
            for atom in atoms {
                let Some(source) = self.source_position(&atom.source) else { continue };
                let columns: Vec<_> =
                    self.sources[source].columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
                for reader in &mut self.readers[source] {
                    reader.binder.check_for(Binder::new(atom, &columns)?);
                }
            }
        }
        Ok(())
    }

    /// The net change of each table, for a plan that has one tree for each. Can be undone.
    pub(crate) fn apply_tables(&mut self, inputs: Vec<Input>, on_invalid: OnInvalid) -> Result<Vec<TableChanges>> {
        self.settle();
        let mark = self.mark();
        let result = self.resolve(inputs, on_invalid).and_then(|mut batches| {
            self.net_batches(&mut batches, on_invalid)?;
            self.run_tables()
        });
        self.finish(result, mark, false)
    }

    /// As `apply_tables`, for the rows that leave a time window.
    pub(crate) fn advance_tables(&mut self, table: &str, watermark: i64) -> Result<Vec<TableChanges>> {
        self.settle();
        let mark = self.mark();
        let result = self.leaving(table, watermark).and_then(|batch| {
            self.net_batches(&mut [batch], OnInvalid::Raise)?;
            self.run_tables()
        });
        self.finish(result, mark, false)
    }

    /// What each change of each input does, for changes that will be applied one at a time. Can be
    /// undone.
    pub(crate) fn apply_table_updates(
        &mut self,
        inputs: Vec<Input>,
        on_invalid: OnInvalid,
    ) -> Result<Vec<TableChanges>> {
        self.settle();
        let mark = self.mark();
        let result = self.resolve(inputs, on_invalid).and_then(|mut batches| {
            self.check_updates(&mut batches, on_invalid)?;
            let events = batches.iter().map(|batch| self.table_events(batch)).collect::<Result<Vec<_>>>()?;
            self.net_batches(&mut batches, on_invalid)?;
            self.run_tables()?;
            Ok(events)
        });
        self.finish(result, mark, false)
    }

    fn run_tables(&mut self) -> Result<Vec<TableChanges>> {
        let outputs = self.run_stages()?;
        let mut changes = Vec::new();
        for (position, rows) in outputs.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
            let source = (0..self.sources.len()).find(|source| self.readers[*source][0].stage == position);
            let source = source.ok_or_else(|| KernelError::plan("CROWN-PLAN-MALFORMED", "a tree without a table"))?;
            changes.push(self.table_changes(source, rows, Vec::new())?);
        }
        self.applied = Some(Applied { outputs: Vec::new(), before: Unshown::default(), mark: None });
        Ok(changes)
    }

    fn table_events(&self, batch: &Batch) -> Result<TableChanges> {
        let mut rows = Chunk::new(batch.events.rows.columns.len());
        let (mut causes, mut words) = (Vec::new(), Vec::new());
        for event in (0..batch.events.rows.len()).filter(|event| batch.events.rows.weights[*event] != 0) {
            let nulls = batch.events.rows.read(event, &mut words);
            rows.push(&words, nulls, batch.events.rows.weights[event]);
            causes.push(batch.events.cause(event) as u64);
        }
        self.table_changes(batch.source, rows, causes)
    }

    fn table_changes(&self, source: usize, mut rows: Chunk, causes: Vec<u64>) -> Result<TableChanges> {
        let source = &self.sources[source];
        let columns = source.columns.iter().map(|column| (column.name.as_str(), column.data_type, true));
        let output = Output::new(columns, true, true, false, self.pool.clone());
        let rows = output.batch(&mut rows, Vec::new(), &self.interner)?;
        Ok(TableChanges { table: source.name.clone(), rows, causes })
    }

    /// Begins a call of several steps.
    pub(crate) fn steps(&mut self) -> Steps {
        self.settle();
        Steps { batches: Vec::new(), before: self.unshown(), mark: self.mark() }
    }

    /// One of several batches of tables without state. On an error this one is not applied; the
    /// others still are.
    pub(crate) fn step(&mut self, inputs: Vec<Input>, steps: &mut Steps, emit: &mut dyn Emit) -> Result<()> {
        // (Nothing is swept before the end: the steps so far may refer to values of deleted rows.)
        let result = self.resolve(inputs, OnInvalid::Raise).and_then(|mut batches| {
            self.apply_net(&mut batches, OnInvalid::Raise, emit)?;
            Ok(batches)
        });
        self.clear_nets();
        self.applied = None;
        steps.batches.append(&mut result?);
        Ok(())
    }

    /// Ends a call of several steps: all of them are final, or none was.
    pub(crate) fn end_steps(&mut self, steps: Steps, keep: bool) -> Result<()> {
        if keep {
            self.counters.batches += 1;
        } else {
            self.take_back_updates(&steps.batches, steps.before)?;
            self.abandon(steps.mark);
        }
        self.settled = false;
        self.settle();
        Ok(())
    }
}
