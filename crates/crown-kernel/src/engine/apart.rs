//! New stages that are built beside the running ones, on another thread and without the engine's
//! lock.
//!
//! The law it rests on: a stage that reads only tables, and stages of that kind, depends on nothing
//! that runs. So it can be built from a copy of the tables' rows in a separate engine, and then
//! be given the batches that were applied meanwhile; they are logged after keys, windows and faults
//! were resolved. The values of both engines have the same words (`Interner::twin`), therefore
//! `replan` can take the stages over as they are.

use super::batch::{Batch, OnInvalid};
use super::build::{assemble, gives_deltas, Assembly};
use super::replan::{TableRows, Watch};
use super::Engine;
use crate::error::Result;
use crate::plan::{self, Plan};
use std::sync::{Arc, Mutex, PoisonError};

/// Batches in the order in which they were applied.
pub(super) type Log = Mutex<Vec<Batch>>;

/// Rounds in which logged batches are applied before `replan` applies the rest: writers may be as
/// fast.
const ROUNDS: usize = 8;
/// So few changes are left to `replan`.
const FEW: usize = 1000;

/// Stages that are built apart from the engine that will run them.
pub struct Apart {
    engine: Engine,
    /// Whether each stage must produce deltas.
    wants: Vec<bool>,
    rows: Vec<TableRows>,
    log: Arc<Log>,
    /// Rows read so far.
    read: u64,
}

impl Engine {
    /// Begins to build the stages of `plan` that are not running and depend on tables alone. `None`
    /// if `replan` must do that: there are no rows to read, or a table is still unknown here or not
    /// stored as a whole.
    pub fn begin_apart(&mut self, plan: &Plan) -> Result<Option<Apart>> {
        let mut names: Vec<&str> = plan.tables.iter().map(|table| table.name.as_str()).collect();
        let (mut stages, mut wants) = (Vec::new(), Vec::new());
        for (position, data) in plan.stages.iter().enumerate() {
            let wanted = gives_deltas(plan, position, self.deltas);
            if !self.runs(data, wanted) && data.sources().iter().all(|source| names.contains(source)) {
                names.push(data.id());
                stages.push(data.clone());
                wants.push(wanted);
            }
        }
        let reads = |table: &&plan::Table| stages.iter().any(|stage| stage.sources().contains(&table.name.as_str()));
        let read: Vec<&plan::Table> = plan.tables.iter().filter(reads).collect();
        let columns = |table: &plan::Table| serde_json::to_string(&table.columns).ok();
        let known = |table: &&plan::Table| {
            self.plan.tables.iter().any(|own| own.name == table.name && columns(own) == columns(table))
        };
        if !read.iter().all(known) {
            return Ok(None);
        }
        let mut rows = Vec::new();
        for table in read {
            let Some(batches) = self.table_rows(&table.name)? else { return Ok(None) };
            rows.push(TableRows { table: table.name.clone(), batches });
        }
        if rows.iter().all(|rows| rows.batches.iter().all(|batch| batch.num_rows() == 0)) {
            return Ok(None);
        }
        // Keys, windows and profiles were already seen to.
        let plain = |table: &plan::Table| plan::Table {
            primary_key: Vec::new(),
            window: None,
            profile: "arbitrary".into(),
            ..table.clone()
        };
        let tables = self.plan.tables.iter().map(plain).collect();
        let none = Plan { tables, stages: Vec::new(), routing: None, results: Some(Vec::new()), ..plan.clone() };
        let mut engine = Engine::without_views(none, true)?;
        engine.plan.stages = stages;
        engine.interner = self.interner.twin();
        let log = Arc::new(Log::default());
        self.log = Arc::downgrade(&log);
        Ok(Some(Apart { engine, wants, rows, log, read: 0 }))
    }

    /// Logs applied batches for stages that are built apart.
    pub(super) fn note(&self, mut batches: Vec<Batch>) {
        if let Some(log) = self.log.upgrade() {
            log.lock().unwrap_or_else(PoisonError::into_inner).append(&mut batches);
        }
    }
}

impl Apart {
    /// Builds the stages, and brings them nearly up to date.
    pub fn build(&mut self, watch: &Watch) -> Result<()> {
        let Apart { engine, wants, rows, .. } = self;
        let (assembly, done) = assemble(&engine.plan, &engine.sources, &|position| wants[position], &mut |_, _| None);
        done?;
        let Assembly { readers, stages, nets, .. } = assembly;
        (engine.readers, engine.stages, engine.nets) = (readers, stages, nets);
        let rows = std::mem::take(rows);
        watch.expect(&rows);
        engine.build_stages(&vec![true; wants.len()], rows, watch)?;
        for _ in 0..ROUNDS {
            if self.catch_up(watch)? < FEW {
                break;
            }
        }
        self.read = watch.rows();
        Ok(())
    }

    /// Applies what was logged, and returns the number of changes.
    pub(crate) fn catch_up(&mut self, watch: &Watch) -> Result<usize> {
        let mut batches = std::mem::take(&mut *self.log.lock().unwrap_or_else(PoisonError::into_inner));
        let engine = &mut self.engine;
        engine.interner.learn();
        for Batch { source, events, .. } in &batches {
            engine.readers[*source].iter().for_each(|reader| reader.binder.prepare(&events.rows, &engine.interner));
        }
        engine.net_batches(&mut batches, OnInvalid::Raise)?;
        engine.run_stages()?;
        engine.clear_nets();
        watch.advance(0)?;
        Ok(batches.iter().map(|batch| batch.events.rows.len()).sum())
    }

    /// Lets a new report go on where `build` ended.
    pub(crate) fn resume(&self, watch: &Watch) {
        watch.resume(self.read);
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(super) fn into_engine(self) -> Engine {
        self.engine
    }
}
