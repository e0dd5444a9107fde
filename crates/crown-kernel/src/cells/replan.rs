//! Other views over the same tables: every part gets its new plan, with the rows that its new
//! stages need.

use super::apply::{broken, merged_table};
use super::{homes, Cells, Spread, SpreadPlans};
use crate::engine::{Apart, Engine, TableRows, Watch};
use crate::error::{KernelError, Result};
use crate::plan::Plan;
use crate::router::Router;
use arrow::array::RecordBatch;

/// What is needed to create a view while others run.
pub struct Replan<'a> {
    /// The tables that never had a row.
    pub empty: &'a [String],
    /// No table ever had one.
    pub fresh: bool,
}

impl Cells {
    /// Begins to build new stages of `plan` apart from the running ones, which go on; `None` if
    /// `replan` has to do everything. Several cells don't: their new stages need another router.
    pub fn begin_apart(&mut self, plan: &Plan) -> Result<Option<Apart>> {
        if self.spread.is_some() {
            return Ok(None);
        }
        self.engines[0].begin_apart(plan)
    }

    /// Runs other views from now on. An error leaves everything as it was.
    pub fn replan(&mut self, plans: SpreadPlans, how: &Replan, watch: &Watch, mut apart: Option<Apart>) -> Result<()> {
        if self.spread.is_none() {
            if let Some(apart) = &mut apart {
                apart.resume(watch);
                apart.catch_up(watch)?;
            }
            let engine = &mut self.engines[0];
            let rows = kept_rows(engine, &engine.wanted_tables(&plans.cell, apart.as_ref()), how)?;
            watch.expect(&rows);
            engine.replan(plans.cell, rows, how.fresh, watch, apart)?;
            *self = Cells::one(self.engines.remove(0));
            return Ok(());
        }
        let before = self.plans();
        let done = self.replan_parts(plans, how, watch);
        if done.is_err() {
            // Parts that already have the new plan discard it; they still have all their old
            // stages.
            let front_only = Replan { empty: how.empty, fresh: false };
            self.replan_parts(before, &front_only, &Watch::new(&|_, _| Ok(()))).map_err(broken)?;
        }
        done
    }

    /// All rows of a table, or `None` if they are not all stored.
    pub fn table_rows(&self, table: &str) -> Result<Option<Vec<RecordBatch>>> {
        match self.spread.as_deref() {
            None => self.engines[0].table_rows(table),
            Some(Spread { front: Some(front), .. }) => front.table_rows(table),
            Some(_) => Ok(None),
        }
    }

    /// The plans that run now.
    fn plans(&self) -> SpreadPlans {
        let plan = |engine: &Engine| engine.plan().clone();
        let spread = self.spread.as_deref();
        SpreadPlans {
            cell: plan(&self.engines[0]),
            cells: self.engines.len(),
            front: spread.and_then(|spread| spread.front.as_ref()).map(plan),
            merge: spread.and_then(|spread| spread.merge.as_ref()).map(plan),
            views: self.view_names(),
            deltas: true,
        }
    }

    fn replan_parts(&mut self, plans: SpreadPlans, how: &Replan, watch: &Watch) -> Result<()> {
        let SpreadPlans { cell, front: front_plan, merge: merge_plan, views, deltas, .. } = plans;
        let Some(spread) = self.spread.as_deref_mut() else { return Ok(()) };
        let Spread { front: Some(front), router, merge, started, .. } = spread else {
            return Err(KernelError::plan("CROWN-PLAN-MALFORMED", "these cells do not keep the rows of their tables"));
        };
        if let Some(plan) = front_plan {
            let rows = kept_rows(front, &front.wanted_tables(&plan, None), how)?;
            watch.expect(&rows);
            front.replan(plan, rows, how.fresh, watch, None)?;
            front.check_for(&cell)?;
        }
        let mut new_router = Router::new(&cell)?;
        let mut shares: Vec<Vec<TableRows>> = self.engines.iter().map(|_| Vec::new()).collect();
        for table in self.engines[0].wanted_tables(&cell, None) {
            for rows in kept_rows(front, std::slice::from_ref(&table), how)? {
                for (number, batches) in new_router.route(&rows.table, &rows.batches)? {
                    shares[number as usize].push(TableRows { table: rows.table.clone(), batches });
                }
            }
        }
        shares.iter().for_each(|rows| watch.expect(rows));
        for (engine, rows) in self.engines.iter_mut().zip(shares) {
            engine.replan(cell.clone(), rows, how.fresh, watch, None)?;
        }
        *router = new_router;
        *merge = match (merge.take(), merge_plan) {
            (_, None) => None,
            (Some(mut merge_engine), Some(plan)) => {
                let done = merge_rows(&merge_engine, &plan, &mut self.engines, front, how).and_then(|rows| {
                    watch.expect(&rows);
                    merge_engine.replan(plan, rows, how.fresh, watch, None)
                });
                *merge = Some(merge_engine);
                done?;
                merge.take()
            }
            (None, Some(plan)) => Some(new_merge(plan, deltas, &mut self.engines, front, how, watch)?),
        };
        if how.fresh {
            *started = false;
        }
        self.views = homes(&views, &self.engines[0], merge.as_ref())?;
        self.withhold();
        Ok(())
    }
}

fn new_merge(
    plan: Plan,
    deltas: bool,
    cells: &mut [Engine],
    front: &Engine,
    how: &Replan,
    watch: &Watch,
) -> Result<Engine> {
    // An engine without views, which then gets them as a running one does.
    let none = Plan { stages: Vec::new(), tables: Vec::new(), results: None, ..plan.clone() };
    let mut engine = Engine::without_views(none, deltas)?;
    engine.set_undoable(true);
    let rows = merge_rows(&engine, &plan, cells, front, how)?;
    watch.expect(&rows);
    engine.replan(plan, rows, how.fresh, watch, None)?;
    Ok(engine)
}

/// The rows that new stages of the merge read: of the cells' views, and of tables.
fn merge_rows(
    merge: &Engine,
    plan: &Plan,
    cells: &mut [Engine],
    front: &Engine,
    how: &Replan,
) -> Result<Vec<TableRows>> {
    let mut all = Vec::new();
    for table in merge.wanted_tables(plan, None) {
        let view = cells[0].view_names().position(|name| merged_table(name) == table);
        match view {
            None => all.extend(kept_rows(front, &[table], how)?),
            // Before the first batch the cells have shown nothing yet.
            Some(_) if how.fresh => {}
            Some(view) => {
                let mut batches = Vec::new();
                // (Those without a value show everything once they have one.)
                for cell in cells.iter_mut().filter(|cell| cell.check_defined(view).is_ok()) {
                    batches.append(&mut cell.rows(view, 65536, true)?.1);
                }
                all.push(TableRows { table, batches });
            }
        }
    }
    Ok(all)
}

fn kept_rows(keeper: &Engine, tables: &[String], how: &Replan) -> Result<Vec<TableRows>> {
    let mut all = Vec::new();
    for table in tables.iter().filter(|table| !how.empty.contains(table)) {
        let batches = keeper.table_rows(table)?.ok_or_else(|| {
            let message = format!("the rows of table '{table}' were not kept");
            KernelError::plan("CROWN-ROWS-NOT-KEPT", message)
        })?;
        all.push(TableRows { table: table.clone(), batches });
    }
    Ok(all)
}
