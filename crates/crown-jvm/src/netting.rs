//! Rows that are inserted and deleted within one task's share of a batch cancel out before they are
//! sent.
//!
//! The rows of a batch have no order, and insertions are applied before deletions. So a row that is
//! both inserted and deleted changes nothing, wherever the two are in the batch.

use crate::errors::arrow;
use arrow::array::{BooleanArray, RecordBatch, UInt32Array};
use arrow::compute::{concat, concat_batches, take_record_batch};
use crown_kernel::arrow_in::{read_batch, Changes, InputColumn};
use crown_kernel::error::Result;
use crown_kernel::store::interner::Interner;
use crown_kernel::store::net::Net;

/// How much of a task's input is held and netted at a time, and the share of it that must cancel
/// for the task to go on.
const HELD_BYTES: usize = 32 << 20;
const WORTHWHILE: f64 = 0.1;

pub struct Netting {
    table: String,
    columns: Vec<InputColumn>,
    held: Vec<(RecordBatch, BooleanArray)>,
    bytes: usize,
    gave_up: bool,
}

impl Netting {
    pub fn new(table: &str, columns: Vec<InputColumn>) -> Netting {
        Netting { table: table.to_string(), columns, held: Vec::new(), bytes: 0, gave_up: false }
    }

    /// Holds a batch, or returns what is left of all that were held.
    pub fn add(&mut self, batch: RecordBatch, deleted: BooleanArray) -> Result<Option<(RecordBatch, BooleanArray)>> {
        if self.gave_up {
            return Ok(Some((batch, deleted)));
        }
        self.bytes += crate::blob::bytes_of(&batch);
        self.held.push((batch, deleted));
        if self.bytes < HELD_BYTES {
            Ok(None)
        } else {
            self.take()
        }
    }

    pub fn take(&mut self) -> Result<Option<(RecordBatch, BooleanArray)>> {
        self.bytes = 0;
        let (batches, deleted): (Vec<_>, Vec<_>) = std::mem::take(&mut self.held).into_iter().unzip();
        let Some(first) = batches.first() else { return Ok(None) };
        let rows = concat_batches(first.schema_ref(), &batches).map_err(arrow)?;
        let deleted = concat(&deleted.iter().map(|part| part as &dyn arrow::array::Array).collect::<Vec<_>>());
        let deleted = arrow::array::AsArray::as_boolean(&deleted.map_err(arrow)?).clone();
        let before = rows.num_rows();
        let left = self.cancelled(rows, deleted)?;
        self.gave_up = left.0.num_rows() as f64 > (1.0 - WORTHWHILE) * before as f64;
        Ok(Some(left))
    }

    /// As many copies of each row as are inserted more often than deleted, or deleted more often
    /// than inserted.
    fn cancelled(&self, rows: RecordBatch, deleted: BooleanArray) -> Result<(RecordBatch, BooleanArray)> {
        if deleted.true_count() == 0 || deleted.true_count() == rows.num_rows() {
            return Ok((rows, deleted));
        }
        let mut changes = Changes::new(self.columns.len());
        read_batch(&self.table, &self.columns, &[], &rows, &mut Interner::default(), &mut changes)?;
        if !changes.faults.is_empty() {
            // A cell must see and refuse them.
            return Ok((rows, deleted));
        }
        let mut net = Net::new(self.columns.len());
        let mut first: Vec<u32> = Vec::new();
        let mut words = Vec::new();
        for row in 0..changes.len() {
            let nulls = changes.rows.read(row, &mut words);
            net.add(&words, nulls, if deleted.value(row) { -1 } else { 1 });
            if net.len() > first.len() {
                first.push(row as u32);
            }
        }
        let sums = || net.all_rows().zip(&first).map(|((_, _, weight, _), row)| (weight, *row));
        let copies = |(weight, row): (i64, u32)| std::iter::repeat_n((row, weight < 0), weight.unsigned_abs() as usize);
        let (places, signs): (Vec<u32>, Vec<bool>) = sums().flat_map(copies).unzip();
        Ok((take_record_batch(&rows, &UInt32Array::from(places)).map_err(arrow)?, signs.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::Int64Type;
    use crown_kernel::types::DataType;
    use std::sync::Arc;

    fn batch(values: &[Option<i64>]) -> RecordBatch {
        RecordBatch::try_from_iter([("a", Arc::new(Int64Array::from(values.to_vec())) as _)]).unwrap()
    }

    #[test]
    fn rows_that_come_and_go_cancel_across_batches() {
        let column = InputColumn { name: "a".into(), data_type: DataType::Int64, nullable: true };
        let mut netting = Netting::new("t", vec![column]);
        netting.add(batch(&[Some(1), Some(2), None, Some(2)]), vec![false, false, true, false].into()).unwrap();
        netting.add(batch(&[Some(1), None, Some(3), Some(3)]), vec![true, true, true, true].into()).unwrap();
        let (rows, deleted) = netting.take().unwrap().unwrap();
        let values: Vec<Option<i64>> = rows.column(0).as_primitive::<Int64Type>().iter().collect();
        assert_eq!(values, [Some(2), Some(2), None, None, Some(3), Some(3)]);
        assert_eq!(deleted, BooleanArray::from(vec![false, false, true, true, true, true]));
    }

    #[test]
    fn a_null_that_a_cell_must_refuse_is_left_alone() {
        let column = InputColumn { name: "a".into(), data_type: DataType::Int64, nullable: false };
        let mut netting = Netting::new("t", vec![column]);
        netting.add(batch(&[None, None]), vec![false, true].into()).unwrap();
        assert_eq!(netting.take().unwrap().unwrap().0.num_rows(), 2);
    }
}
