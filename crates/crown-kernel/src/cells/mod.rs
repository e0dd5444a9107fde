//! A view over one engine, or over one per HyperCube cell; both behave the same.
//!
//! With several cells, an engine in front handles the tables that need all their rows in one place
//! (primary keys, windows, quarantined changes), a router sends each change to the cells that need
//! it, and if the outputs of the cells are not disjoint, a last engine merges them. A batch is
//! final once every part has applied it; if one part rejects it, all others undo it.
//!
//! A plan may have several views; each is read from the cells or from the merge.
//!
//! - `apply`: a batch through all parts; `updates`: one change at a time; `read`: the results;
//!   `replan`: other views; `undefined`: views of which some cell has no value

mod apply;
mod read;
mod replan;
mod undefined;
mod updates;

pub use read::CellsCursor;
pub use replan::Replan;

use crate::arrow_in::InputColumn;
use crate::engine::Engine;
use crate::error::{KernelError, Result};
use crate::plan::Plan;
use crate::router::Router;
use crate::types::DataType;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use serde_json::{json, Value};

/// The table of the plan that merges the cells' outputs. A view of the cells that has a name adds
/// it after a colon.
pub const MERGED: &str = "cells";

/// A view over one engine, or over several that each hold a cell of it.
pub struct Cells {
    engines: Vec<Engine>,
    spread: Option<Box<Spread>>,
    views: Vec<(String, Home)>,
}

/// Where a view is read: its number among the views of the cells, or of the merge.
#[derive(Clone, Copy)]
enum Home {
    Cells(usize),
    Merge(usize),
}

/// The parts around several cells.
struct Spread {
    front: Option<Engine>,
    router: Router,
    merge: Option<Engine>,
    /// Every cell has taken part in a batch, so that its output shows the rows that it had from the
    /// start.
    started: bool,
    batches: u64,
    changes: u64,
}

/// The plans of a view over several cells.
pub struct SpreadPlans {
    /// The plan of each cell.
    pub cell: Plan,
    /// The number of cells.
    pub cells: usize,
    /// The plan that resolves keys and windows in front of the router, where there are any.
    pub front: Option<Plan>,
    /// The plan that merges the deltas of the cells, where they are not disjoint.
    pub merge: Option<Plan>,
    /// The names of the views; none where there is one without a name.
    pub views: Vec<String>,
    /// Whether the view shows its deltas.
    pub deltas: bool,
}

/// The saved parts of a view by name.
pub type Parts = Vec<(String, Vec<Vec<u8>>)>;

/// Returns the chunks of a saved part by its name.
pub type Saved<'a> = dyn Fn(&str) -> Result<Vec<&'a [u8]>> + 'a;

impl Cells {
    /// A view over one engine.
    pub fn one(engine: Engine) -> Cells {
        let views = engine.view_names().enumerate().map(|(number, name)| (name.into(), Home::Cells(number))).collect();
        Cells { engines: vec![engine], spread: None, views }
    }

    /// The number of a view by its name.
    pub fn view(&self, name: &str) -> Result<usize> {
        self.views
            .iter()
            .position(|(known, _)| known == name)
            .ok_or_else(|| KernelError::invalid("CROWN-VIEW-UNKNOWN", format!("there is no view '{name}' any more")))
    }

    /// The names of the views.
    pub fn view_names(&self) -> Vec<String> {
        self.views.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Empty, or as it was saved.
    pub fn many(plans: SpreadPlans, saved: Option<&Saved>) -> Result<Cells> {
        let SpreadPlans { cell, cells, front, merge, views, deltas } = plans;
        let open = |name: &str, plan: Plan, deltas: bool| {
            let mut engine = match saved {
                Some(saved) => Engine::load(plan, &saved(name)?, deltas)?,
                None => Engine::new(plan, deltas)?,
            };
            engine.set_undoable(true);
            Ok::<Engine, KernelError>(engine)
        };
        let router = Router::new(&cell)?;
        // Cells whose outputs are merged must give them, whether or not the view shows its deltas.
        let inner = deltas || merge.is_some();
        let engine = |number: usize| open(&cell_name(number), cell.clone(), inner);
        let engines = (0..cells).map(engine).collect::<Result<Vec<Engine>>>()?;
        let mut front = front.map(|plan| open("tables", plan, true)).transpose()?;
        if let Some(front) = &mut front {
            front.check_for(&cell)?;
        }
        let merge = merge.map(|plan| open("merge", plan, deltas)).transpose()?;
        let spread = Spread { front, router, merge, started: saved.is_some(), batches: 0, changes: 0 };
        let views = homes(&views, &engines[0], spread.merge.as_ref())?;
        let mut cells = Cells { engines, spread: Some(Box::new(spread)), views };
        cells.withhold();
        Ok(cells)
    }

    fn parts(&self) -> impl Iterator<Item = (String, &Engine)> {
        let front = self.spread.as_deref().and_then(|spread| spread.front.as_ref());
        let merge = self.spread.as_deref().and_then(|spread| spread.merge.as_ref());
        let engines = self.engines.iter().enumerate().map(|(number, engine)| (cell_name(number), engine));
        let named = |name: &str, engine| (name.to_string(), engine);
        front.map(|engine| named("tables", engine)).into_iter().chain(engines).chain(merge.map(|e| named("merge", e)))
    }

    fn parts_mut(&mut self) -> impl Iterator<Item = &mut Engine> {
        let (front, merge) = match self.spread.as_deref_mut() {
            Some(spread) => (spread.front.as_mut(), spread.merge.as_mut()),
            None => (None, None),
        };
        front.into_iter().chain(&mut self.engines).chain(merge)
    }

    /// The engines that together hold the result of a view, and its number there.
    fn ends(&mut self, view: usize) -> (&mut [Engine], usize) {
        match (self.views[view].1, self.spread.as_deref_mut()) {
            (Home::Merge(number), Some(Spread { merge: Some(merge), .. })) => (std::slice::from_mut(merge), number),
            (Home::Cells(number) | Home::Merge(number), _) => (&mut self.engines, number),
        }
    }

    /// Of the only view.
    fn known_count(&self) -> Option<i128> {
        match (&self.views[..], self.spread.as_deref()) {
            ([_], Some(Spread { merge: Some(merge), .. })) => merge.known_count(),
            ([_], _) => self.engines.iter().map(Engine::known_count).sum(),
            _ => None,
        }
    }

    fn end(&self, view: usize) -> (&Engine, usize) {
        match (self.views[view].1, self.spread.as_deref()) {
            (Home::Merge(number), Some(Spread { merge: Some(merge), .. })) => (merge, number),
            (Home::Cells(number) | Home::Merge(number), _) => (&self.engines[0], number),
        }
    }

    /// The schema of a view's deltas, with a column that numbers the updates if they are shown one
    /// by one.
    pub fn delta_schema(&self, view: usize, per_update: bool) -> SchemaRef {
        let (end, number) = self.end(view);
        end.delta_schema(number, per_update)
    }

    /// Name and type of each column of a view.
    pub fn columns(&self, view: usize) -> Vec<(String, DataType)> {
        let (end, number) = self.end(view);
        end.columns(number)
    }

    /// The tables that the views read, with their columns.
    pub fn tables(&self) -> Vec<(String, Vec<InputColumn>)> {
        let front = self.spread.as_deref().and_then(|spread| spread.front.as_ref());
        let mut tables: Vec<(String, Vec<InputColumn>)> = Vec::new();
        for engine in front.into_iter().chain(&self.engines[..1]) {
            for name in engine.table_names() {
                if !tables.iter().any(|(known, _)| known == name) {
                    tables.push((name.to_string(), engine.table_columns(name).unwrap_or(&[]).to_vec()));
                }
            }
        }
        tables
    }

    /// Quarantined changes since the last call: table, position, reason, row.
    pub fn take_rejected(&mut self) -> Result<RecordBatch> {
        match self.spread.as_deref_mut() {
            Some(Spread { front: Some(front), .. }) => front.take_rejected(),
            _ => self.engines[0].take_rejected(),
        }
    }

    /// The same, and leaves them where they are.
    pub fn list_rejected(&self) -> Result<RecordBatch> {
        match self.spread.as_deref() {
            Some(Spread { front: Some(front), .. }) => front.list_rejected(),
            _ => self.engines[0].list_rejected(),
        }
    }

    /// The keys that the most rows share, for each cell; see `Tree::hot_keys`.
    pub fn hot_keys(&self, limit: usize) -> Value {
        self.engines.iter().map(|engine| engine.hot_keys(limit)).collect()
    }

    /// The parts by name; one engine alone is "engine".
    pub fn save(&self) -> Result<Parts> {
        if self.spread.is_none() {
            return Ok(vec![("engine".into(), self.engines[0].save()?)]);
        }
        self.parts().map(|(name, engine)| Ok((name, engine.save()?))).collect()
    }

    /// As `Engine::stats`; for several cells the sums, and each part under `engines`.
    pub fn stats(&self) -> Value {
        let Some(spread) = &self.spread else { return self.engines[0].stats() };
        let parts: Vec<(String, Value)> = self.parts().map(|(name, engine)| (name, engine.stats())).collect();
        let sum = |key: &str| parts.iter().filter_map(|(_, part)| part[key].as_u64()).sum::<u64>();
        let (updates, counter_changes) = (sum("updates"), sum("counter_changes"));
        let is_cell = |name: &str| name.starts_with("cell-");
        let list = |key: &str, wanted: &dyn Fn(&str) -> bool| -> Vec<Value> {
            let lists = parts.iter().filter(|(name, _)| wanted(name)).filter_map(|(_, part)| part[key].as_array());
            lists.flatten().cloned().collect()
        };
        let mut tables = list("tables", &|name| name == "tables");
        let known: Vec<Value> = tables.iter().map(|table| table["name"].clone()).collect();
        tables.extend(list("tables", &|name| name == "cell-0").into_iter().filter(|t| !known.contains(&t["name"])));
        json!({
            "result_rows": self.known_count().and_then(|count| u64::try_from(count).ok()),
            "batches": spread.batches,
            "changes": spread.changes,
            "rejects": sum("rejects"),
            "updates": updates,
            "counter_changes": counter_changes,
            "counter_changes_per_update": if updates > 0 { counter_changes as f64 / updates as f64 } else { 0.0 },
            "bytes": sum("bytes"),
            "tables": tables,
            "stages": list("stages", &is_cell),
            "engines": parts.into_iter().collect::<serde_json::Map<String, Value>>(),
        })
    }
}

/// Where each view is to be read.
fn homes(names: &[String], cell: &Engine, merge: Option<&Engine>) -> Result<Vec<(String, Home)>> {
    if names.is_empty() && cell.plan().results.is_none() {
        let home = if merge.is_some() { Home::Merge(0) } else { Home::Cells(0) };
        return Ok(vec![(String::new(), home)]);
    }
    let find = |name: &String| {
        let merged = merge.and_then(|merge| merge.view_names().position(|known| known == name)).map(Home::Merge);
        let home = merged.or_else(|| cell.view_names().position(|known| known == name).map(Home::Cells));
        let home = home.ok_or_else(|| {
            KernelError::plan("CROWN-PLAN-MALFORMED", format!("no part of the plan has the view '{name}'"))
        })?;
        Ok((name.clone(), home))
    };
    names.iter().map(find).collect()
}

fn cell_name(number: usize) -> String {
    format!("cell-{number}")
}
