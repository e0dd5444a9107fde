//! The views that a plan shows.
//!
//! A plan of one query shows the rows of its last stage. A plan with several results shows those of
//! the stages that they name; stages that several of them read are there once. All of them change
//! together: a batch is one point in time.

use super::stage::RunningStage;
use super::Engine;
use crate::arrow_out::Output;
use crate::chunk::Chunk;
use crate::error::{KernelError, Result};
use crate::mask::Bits;
use crate::plan::{self, Plan};
use crate::types::DataType;
use arrow::datatypes::SchemaRef;
use std::sync::OnceLock;

/// One view: the rows of a stage under the names that the user gave them.
pub(super) struct View {
    pub name: String,
    pub stage: usize,
    pub columns: Vec<plan::TableColumn>,
    pub bag: bool,
    /// The stages that its rows depend on.
    pub below: Vec<bool>,
    /// Rows that the view has before any change (global aggregates), until the first delta shows
    /// them.
    pub initial: Option<Chunk>,
    /// The first delta shows the whole result, because the batches before it showed nothing.
    pub unshown: bool,
    /// Why it has no value, where that is known elsewhere: in the cells whose outputs it merges.
    pub withheld: Option<KernelError>,
    /// How its deltas leave, once one has.
    delta: OnceLock<Output>,
}

/// The views of a plan, checked against its stages.
pub(super) fn views<'a>(plan: &'a Plan, stages: &[RunningStage]) -> Result<Vec<View>> {
    let malformed = |message: String| KernelError::plan("CROWN-PLAN-MALFORMED", message);
    let one = || (String::new(), stages.len() - 1, &plan.columns, plan.bag);
    let named = match &plan.results {
        None if stages.is_empty() => Vec::new(),
        None => vec![one()],
        Some(results) => {
            let result = |result: &'a plan::NamedResult| {
                Ok((result.name.clone(), super::build::find(stages, &result.stage)?, &result.columns, result.bag))
            };
            results.iter().map(result).collect::<Result<Vec<_>>>()?
        }
    };
    let mut views: Vec<View> = Vec::new();
    for (name, stage, columns, bag) in named {
        check_columns(columns, &plan.stages[stage], &stages[stage])?;
        if views.iter().any(|view| view.name == name) {
            return Err(malformed(format!("two views are called '{name}'")));
        }
        let below = below(stages, stage);
        let columns = columns.clone();
        let (initial, unshown, withheld, delta) = (None, false, None, OnceLock::new());
        views.push(View { name, stage, columns, bag, below, initial, unshown, withheld, delta });
    }
    Ok(views)
}

fn below(stages: &[RunningStage], stage: usize) -> Vec<bool> {
    let mut below = vec![false; stages.len()];
    below[stage] = true;
    for position in (0..=stage).rev().filter(|position| *position < stages.len()) {
        if below[position] {
            stages[position].read_stages().into_iter().for_each(|input| below[input] = true);
        }
    }
    below
}

fn check_columns(columns: &[plan::TableColumn], data: &plan::Stage, stage: &RunningStage) -> Result<()> {
    if matches!(data, plan::Stage::Bag(_)) {
        return Err(KernelError::plan("CROWN-PLAN-MALFORMED", "the last stage can't be a bag"));
    }
    if columns.len() != stage.columns.len() {
        let message = format!("the view has {} columns, its last stage has {}", columns.len(), stage.columns.len());
        return Err(KernelError::plan("CROWN-PLAN-MALFORMED", message));
    }
    for (column, (_, data_type)) in columns.iter().zip(&stage.columns) {
        if DataType::parse(&column.data_type)? != *data_type {
            let message = format!("column '{}' is {}, its stage has {data_type:?}", column.name, column.data_type);
            return Err(KernelError::plan("CROWN-PLAN-MALFORMED", message));
        }
    }
    Ok(())
}

impl Engine {
    /// The names of the views; a plan of one query has one without a name.
    pub fn view_names(&self) -> impl Iterator<Item = &str> {
        self.views.iter().map(|view| view.name.as_str())
    }

    /// The columns of what `apply` emits of a view.
    pub fn delta_schema(&self, view: usize, per_update: bool) -> SchemaRef {
        if per_update {
            return self.output(view, true, self.views[view].bag, true).schema();
        }
        self.delta_output(view).schema()
    }

    /// How the net deltas of a view leave.
    pub(super) fn delta_output(&self, view: usize) -> &Output {
        self.views[view].delta.get_or_init(|| self.output(view, true, self.views[view].bag, false))
    }

    /// Type and name of each column of a view.
    pub fn columns(&self, view: usize) -> Vec<(String, DataType)> {
        let View { stage, columns, .. } = &self.views[view];
        let types = self.stages[*stage].columns.iter().map(|column| column.1);
        columns.iter().map(|column| column.name.clone()).zip(types).collect()
    }

    pub(crate) fn output(&self, view: usize, change_type: bool, multiplicity: bool, update: bool) -> Output {
        let View { stage, columns, .. } = &self.views[view];
        let columns = columns.iter().zip(&self.stages[*stage].columns);
        let columns = columns.map(|(column, (_, data_type))| (column.name.as_str(), *data_type, column.nullable));
        Output::new(columns, change_type, multiplicity, update, self.pool.clone())
    }

    /// Keeps the values of a view's initial rows, which may be shown long after they were computed.
    pub(super) fn retain_initial_of(&mut self, view: usize) {
        let Engine { views, stages, interner, .. } = self;
        let Some(rows) = &views[view].initial else { return };
        let columns = stages[views[view].stage].columns.iter().enumerate();
        for (position, _) in columns.filter(|(_, column)| column.1.interned()) {
            for row in (0..rows.len()).filter(|row| !rows.nulls_at(*row).has(position)) {
                interner.retain(rows.columns[position][row]);
            }
        }
    }
}
