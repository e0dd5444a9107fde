//! The chain of pairwise joins that the benchmarks compare with.

use crate::arrow_stream::{import_stream, read_all, ArrowStream};
use crate::errors::guarded;
use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use crown_kernel::chunk::Chunk;
use crown_kernel::error::{KernelError, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// Joins of integer atoms by materialised views: the plan that Crown's replaces.
#[pyclass(module = "crown._kernel")]
pub struct PairwiseBaseline {
    inner: crown_kernel::baseline::PairwiseBaseline,
    columns: Vec<String>,
}

#[pymethods]
impl PairwiseBaseline {
    #[new]
    fn new(atoms: Vec<Vec<String>>) -> Self {
        let inner = crown_kernel::baseline::PairwiseBaseline::new(&atoms);
        let columns = inner.variables().to_vec();
        PairwiseBaseline { inner, columns }
    }

    /// Applies changes row by row, each to all of `atoms` in turn. The changes are int64 columns in
    /// the atoms' order, then the weight. Returns the changes of the result, with a column
    /// `weight`.
    fn apply(&mut self, py: Python<'_>, atoms: Vec<usize>, changes: &Bound<'_, PyAny>) -> PyResult<ArrowStream> {
        let stream = import_stream(changes)?;
        let mut out = Chunk::new(self.columns.len());
        guarded(py, || {
            for batch in read_all(stream)? {
                let integers = integer_columns(&batch)?;
                let Some((weights, values)) = integers.split_last() else { continue };
                let mut words = vec![0; values.len()];
                for row in 0..batch.num_rows() {
                    words.iter_mut().zip(values).for_each(|(word, column)| *word = column.value(row) as u64);
                    for atom in &atoms {
                        self.inner.apply(*atom, &words, weights.value(row), Some(&mut out));
                    }
                }
            }
            Ok(())
        })?;
        self.stream(out)
    }

    /// (rows of state, bytes of state)
    fn state(&self) -> (usize, usize) {
        (self.inner.state_rows(), self.inner.bytes())
    }
}

impl PairwiseBaseline {
    fn stream(&self, out: Chunk) -> PyResult<ArrowStream> {
        let names = self.columns.iter().cloned().chain(["weight".to_string()]);
        let schema =
            Arc::new(Schema::new(names.map(|name| Field::new(name, DataType::Int64, false)).collect::<Vec<_>>()));
        let signed =
            out.columns.into_iter().map(|column| column.into_iter().map(|word| word as i64).collect::<Vec<_>>());
        let arrays = signed.chain([out.weights]).map(|values| Arc::new(Int64Array::from(values)) as ArrayRef).collect();
        let batch =
            RecordBatch::try_new(schema.clone(), arrays).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(ArrowStream::from_batches(schema, vec![batch]))
    }
}

fn integer_columns(batch: &RecordBatch) -> Result<Vec<&Int64Array>> {
    batch
        .columns()
        .iter()
        .map(|column| column.as_any().downcast_ref::<arrow::array::PrimitiveArray<Int64Type>>())
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| KernelError::invalid("CROWN-CHANGE-TYPE", "the baseline only supports int64 columns"))
}
