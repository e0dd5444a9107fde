//! `crown._kernel.value_order`: the order in which deltas are numbered.

use crate::arrow_stream::{import_stream, read_all, ArrowStream};
use crate::errors::guarded;
use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::concat_batches;
use crown_kernel::arrow_order::by_value;
use crown_kernel::error::KernelError;
use pyo3::prelude::*;
use std::sync::Arc;

/// The places of the rows in the order of their values, as a stream of one column.
#[pyfunction]
pub fn value_order(py: Python<'_>, rows: Bound<'_, PyAny>) -> PyResult<ArrowStream> {
    let stream = import_stream(&rows)?;
    let failed = |error: arrow::error::ArrowError| KernelError::state("CROWN-INTERNAL", error.to_string());
    let order = guarded(py, || {
        let batches = read_all(stream)?;
        let places = match batches.first() {
            Some(first) => by_value(&concat_batches(first.schema_ref(), &batches).map_err(failed)?)?,
            None => UInt32Array::from(Vec::<u32>::new()),
        };
        RecordBatch::try_from_iter([("place", Arc::new(places) as _)]).map_err(failed)
    })?;
    Ok(ArrowStream::from_batches(order.schema(), vec![order]))
}
