//! Pages in the order of a query's ORDER BY.
//!
//! The first page sorts the rows. After a second page, more are likely to follow, so the sorted
//! rows are stored and follow the changes of the view. They are dropped when more rows have changed
//! than the view has without a page being read.

use super::read::read_stage;
use super::Engine;
use crate::chunk::Chunk;
use crate::error::{KernelError, Result};
use crate::plan;
use crate::stages::Sorted;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

/// The rows of a stage in some order.
pub(super) struct Ordered {
    stage: usize,
    /// The requested order.
    order: String,
    sorted: Sorted,
}

impl Ordered {
    pub fn bytes(&self) -> usize {
        self.sorted.bytes()
    }
}

impl Engine {
    /// `limit` rows from position `offset` on, in an order: the JSON of what a plan has as `order`,
    /// over columns of these names.
    pub fn ordered_page(
        &mut self,
        view: usize,
        order: &str,
        names: &[String],
        offset: u64,
        limit: u64,
    ) -> Result<(SchemaRef, RecordBatch)> {
        self.check_defined(view)?;
        let stage = self.views[view].stage;
        let output = self.output(view, false, false, false);
        let mut rows = Chunk::new(self.views[view].columns.len());
        match self.ordered.iter_mut().find(|known| known.stage == stage && known.order == order) {
            Some(known) => known.sorted.read(offset, limit, &mut rows),
            None => {
                let mut sorted = self.sort(stage, order, names)?;
                sorted.read(offset, limit, &mut rows);
                let asked = (stage, order.to_string());
                if self.order_asked.as_ref() == Some(&asked) {
                    self.ordered.push(Ordered { stage, order: asked.1, sorted });
                } else {
                    sorted.release(&mut self.interner);
                    self.order_asked = Some(asked);
                }
            }
        }
        let batch = output.batch(&mut rows, Vec::new(), &self.interner)?;
        self.interner.sweep();
        Ok((output.schema(), batch))
    }

    fn sort(&mut self, stage: usize, order: &str, names: &[String]) -> Result<Sorted> {
        let malformed = |message: String| KernelError::plan("CROWN-PLAN-MALFORMED", message);
        let order: Vec<plan::OrderBy> =
            serde_json::from_str(order).map_err(|error| malformed(format!("the order is malformed: {error}")))?;
        let types = &self.stages[stage].columns;
        if names.len() != types.len() {
            return Err(malformed(format!("{} names for {} columns", names.len(), types.len())));
        }
        let columns: Vec<_> = names.iter().cloned().zip(types.iter().map(|column| column.1)).collect();
        let mut rows = Chunk::new(columns.len());
        read_stage(&self.stages, stage, &mut rows, &mut self.interner)?;
        Sorted::new(&order, &columns, &rows, &mut self.interner)
    }

    /// Lets the orders follow the last batch, if its changes are at hand.
    pub(super) fn follow(&mut self, per_update: bool) {
        if self.ordered.is_empty() {
            return;
        }
        let Engine { ordered, applied, interner, .. } = self;
        let outputs = applied.as_ref().map_or(&[][..], |applied| &applied.outputs);
        let known = self.deltas && !per_update;
        ordered.retain_mut(|order| {
            let follows = outputs.get(order.stage).is_some_and(|rows| known && order.sorted.apply(rows, interner));
            if !follows {
                order.sorted.release(interner);
            }
            follows
        });
    }

    /// Gives up all orders.
    pub(super) fn forget_orders(&mut self) {
        self.order_asked = None;
        for mut order in std::mem::take(&mut self.ordered) {
            order.sorted.release(&mut self.interner);
        }
    }
}
