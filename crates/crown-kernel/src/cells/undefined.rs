//! A view has a value once every cell has one.
//!
//! Until then no part of it is shown, as in one engine (see `engine::undefined`): if the outputs
//! are merged, the merge withholds them; if they are disjoint, the deltas are held here. The batch
//! that gives the last cell its value shows the whole result. Until then a cell may also lose its
//! value again, as the one engine would still have none.

use super::apply::merged_table;
use super::{Cells, Spread};
use crate::engine::Engine;
use crate::error::Result;
use arrow::array::RecordBatch;

/// For each view of the cells, whether it has no value.
pub(super) fn undefined(cells: &[Engine]) -> Vec<bool> {
    let views = 0..cells[0].view_names().count();
    views.map(|view| cells.iter().any(|cell| cell.check_defined(view).is_err())).collect()
}

/// Lets rows on which a stage fails wait in every cell, if rows wait for that stage in one of them.
pub(super) fn share_tolerance(cells: &mut [Engine]) {
    let mut stages: Vec<usize> = cells.iter().flat_map(Engine::waiting_stages).collect();
    stages.sort_unstable();
    stages.dedup();
    cells.iter_mut().for_each(|cell| cell.tolerate(&stages));
}

/// What a batch shows of a view whose cells have disjoint outputs, given their deltas and the views
/// that were undefined before it.
pub(super) fn shown(
    cells: &mut [Engine],
    view: usize,
    before: &[bool],
    deltas: Vec<RecordBatch>,
) -> Result<Vec<RecordBatch>> {
    if cells.iter().any(|cell| cell.check_defined(view).is_err()) {
        return Ok(Vec::new());
    }
    if before[view] {
        return cells.iter_mut().map(|cell| cell.whole_delta(view)).collect();
    }
    Ok(deltas)
}

impl Cells {
    /// Lets the merge show nothing of a view that has no value in a cell.
    pub(super) fn withhold(&mut self) {
        if let Some(spread) = self.spread.as_deref_mut() {
            spread.withhold(&self.engines);
        }
    }
}

impl Spread {
    /// As `Cells::withhold`.
    pub(super) fn withhold(&mut self, cells: &[Engine]) {
        let Some(merge) = &mut self.merge else { return };
        let views = cells[0].view_names().enumerate();
        let undefined = views.filter_map(|(view, name)| {
            let error = cells.iter().find_map(|cell| cell.check_defined(view).err())?;
            Some((merged_table(name), error))
        });
        merge.withhold(&undefined.collect::<Vec<_>>());
    }
}
