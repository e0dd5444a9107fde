//! The order in which deltas are numbered: the same for every engine that returns the same deltas.

use crate::arrow_in::CHANGE_TYPE;
use crate::error::{KernelError, Result};
use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{lexsort_to_indices, SortColumn, SortOptions};
use arrow::datatypes::{DataType, Field};
use std::sync::Arc;

/// The places of the rows, sorted by their values, NULLs last. The kinds of changes may be words,
/// or the numbers of "insert" and "delete".
pub fn by_value(rows: &RecordBatch) -> Result<UInt32Array> {
    let by = |(field, values): (&Arc<Field>, &ArrayRef)| {
        // "delete" comes before "insert", whose number is the smaller one.
        let descending = field.name() == CHANGE_TYPE && *field.data_type() == DataType::Int8;
        SortColumn { values: values.clone(), options: Some(SortOptions { descending, nulls_first: false }) }
    };
    let by: Vec<SortColumn> = rows.schema().fields().iter().zip(rows.columns()).map(by).collect();
    lexsort_to_indices(&by, None).map_err(|error| KernelError::state("CROWN-INTERNAL", error.to_string()))
}
