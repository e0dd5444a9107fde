//! The full result as Python tuples, one at a time.

use crate::errors::{guarded, raise};
use crate::stream::Shared;
use crate::values::to_tuple;
use crown_kernel::chunk::Chunk;
use crown_kernel::engine::ResultCursor;
use crown_kernel::error::{KernelError, Result};
use crown_kernel::types::DataType;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Rows are fetched in blocks of this size, so the delay stays constant.
const BLOCK: usize = 256;

#[pyclass(module = "crown._kernel")]
pub struct RowIterator {
    shared: Shared,
    cursor: ResultCursor,
    version: u64,
    types: Vec<DataType>,
    block: Chunk,
    index: usize,
    /// How often the row at `index` was given.
    given: i64,
    more: bool,
}

impl RowIterator {
    pub fn new(py: Python<'_>, shared: Shared) -> PyResult<RowIterator> {
        let (cursor, version, types) = guarded(py, || {
            let kernel = shared.lock()?;
            let types: Vec<DataType> = kernel.columns().into_iter().map(|column| column.1).collect();
            Ok((kernel.cursor()?, kernel.version(), types))
        })?;
        let block = Chunk::new(types.len());
        Ok(RowIterator { shared, cursor, version, types, block, index: 0, given: 0, more: true })
    }

    fn fetch(&mut self) -> Result<()> {
        let mut kernel = self.shared.lock()?;
        if kernel.version() != self.version {
            return Err(KernelError::invalid("CROWN-ITERATION", "the view changed while it was iterated"));
        }
        self.block.clear();
        self.index = 0;
        self.more = kernel.fill(&mut self.cursor, &mut self.block, BLOCK)?;
        Ok(())
    }
}

#[pymethods]
impl RowIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        while self.index >= self.block.len() {
            if !self.more {
                return Ok(None);
            }
            guarded(py, || self.fetch())?;
        }
        let kernel = self.shared.lock().map_err(|error| raise(py, &error))?;
        let row = to_tuple(py, &self.block, self.index, &self.types, kernel.interner())?;
        self.given += 1;
        if self.given >= self.block.weights[self.index] {
            self.index += 1;
            self.given = 0;
        }
        Ok(Some(row))
    }
}
