//! `Engine` for Python.

use crate::arrow_stream::{import_stream, read_all, ArrowStream};
use crate::errors::{guarded, raise};
use crate::import::StreamReader;
use crate::iterate::RowIterator;
use crate::stream::{stream_batch, Shared};
use crate::values::to_word;
use arrow::array::RecordBatch;
use crown_kernel::arrow_in::Changes;
use crown_kernel::engine::{Engine as Kernel, Input, OnInvalid};
use crown_kernel::error::{KernelError, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

#[pyclass(module = "crown._kernel", frozen)]
pub struct Engine {
    shared: Shared,
}

type Imported = Vec<(String, StreamReader)>;

fn import(changes: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Imported> {
    changes.into_iter().map(|(table, data)| Ok((table, import_stream(&data)?))).collect()
}

/// Reads the streams to their ends; without the GIL, which a producer written in Python takes itself.
fn read_inputs(imported: Imported) -> Result<Vec<Input>> {
    let read = |(table, stream)| Ok(Input::Arrow { table, batches: read_all(stream)? });
    imported.into_iter().map(read).collect()
}

fn on_invalid(word: &str) -> PyResult<OnInvalid> {
    match word {
        "raise" => Ok(OnInvalid::Raise),
        "quarantine" => Ok(OnInvalid::Quarantine),
        _ => Err(PyValueError::new_err(format!("on_invalid must be 'raise' or 'quarantine', not '{word}'"))),
    }
}

#[pymethods]
impl Engine {
    #[new]
    #[pyo3(signature = (plan, *, deltas=true, undoable=false))]
    fn new(py: Python<'_>, plan: &str, deltas: bool, undoable: bool) -> PyResult<Engine> {
        let kernel = guarded(py, || {
            let mut kernel = Kernel::new(Kernel::parse_plan(plan)?, deltas)?;
            kernel.set_undoable(undoable);
            Ok(kernel)
        })?;
        Ok(Engine { shared: Shared::new(kernel) })
    }

    #[pyo3(signature = (changes, *, per_update=false, on_invalid="raise"))]
    fn apply(
        &self,
        py: Python<'_>,
        changes: Vec<(String, Bound<'_, PyAny>)>,
        per_update: bool,
        on_invalid: &str,
    ) -> PyResult<ArrowStream> {
        let (imported, policy) = (import(changes)?, self::on_invalid(on_invalid)?);
        self.delta(py, per_update, move |kernel, batches| {
            kernel.apply(read_inputs(imported)?, per_update, policy, batches)
        })
    }

    #[pyo3(signature = (table, rows, *, delete=false, on_invalid="raise"))]
    fn apply_rows(
        &self,
        py: Python<'_>,
        table: String,
        rows: Vec<Bound<'_, PyTuple>>,
        delete: bool,
        on_invalid: &str,
    ) -> PyResult<ArrowStream> {
        let policy = self::on_invalid(on_invalid)?;
        let changes = self.changes(py, &table, &rows, if delete { -1 } else { 1 })?;
        self.delta(py, false, move |kernel, batches| {
            kernel.apply(vec![Input::Words { table, changes }], false, policy, batches)
        })
    }

    #[pyo3(signature = (changes, *, per_update=false, on_invalid="raise"))]
    fn stream(
        &self,
        py: Python<'_>,
        changes: Vec<(String, Bound<'_, PyAny>)>,
        per_update: bool,
        on_invalid: &str,
    ) -> PyResult<ArrowStream> {
        let (imported, policy) = (import(changes)?, self::on_invalid(on_invalid)?);
        let shared = self.shared.clone();
        let reader = guarded(py, move || {
            let inputs = read_inputs(imported)?;
            stream_batch(shared, inputs, per_update, policy)
        })?;
        Ok(ArrowStream::new(Box::new(reader)))
    }

    fn advance(&self, py: Python<'_>, table: &str, watermark: i64) -> PyResult<ArrowStream> {
        self.delta(py, false, |kernel, batches| kernel.advance(table, watermark, batches))
    }

    fn undo(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Kernel::undo)
    }

    #[pyo3(signature = (*, chunk_rows=65536, multiplicity=false))]
    fn rows(&self, py: Python<'_>, chunk_rows: usize, multiplicity: bool) -> PyResult<ArrowStream> {
        let (schema, batches) = self.with(py, |kernel| kernel.rows(chunk_rows.max(1), multiplicity))?;
        Ok(ArrowStream::from_batches(schema, batches))
    }

    fn iterate(&self, py: Python<'_>) -> PyResult<RowIterator> {
        RowIterator::new(py, self.shared.clone())
    }

    fn multiplicity(&self, py: Python<'_>, row: Bound<'_, PyTuple>) -> PyResult<i64> {
        let mut kernel = self.shared.lock().map_err(|error| raise(py, &error))?;
        let types: Vec<_> = kernel.columns().into_iter().map(|column| column.1).collect();
        if row.len() != types.len() {
            return Ok(0);
        }
        let (mut words, mut nulls) = (Vec::new(), 0);
        for (position, (value, data_type)) in row.iter().zip(types).enumerate() {
            // A value that does not fit the column's type is in no row.
            let Ok(word) = to_word(&value, data_type, kernel.interner_mut()) else { return Ok(0) };
            nulls |= u64::from(word.is_none()) << position;
            words.push(word.unwrap_or(0));
        }
        drop(kernel);
        self.with(py, move |kernel| kernel.multiplicity(&words, nulls))
    }

    fn count(&self, py: Python<'_>) -> PyResult<i128> {
        self.with(py, Kernel::count)
    }

    fn sample(&self, py: Python<'_>, rows: usize, seed: u64) -> PyResult<ArrowStream> {
        let (schema, batch) = self.with(py, |kernel| kernel.sample(rows, seed))?;
        Ok(ArrowStream::from_batches(schema, vec![batch]))
    }

    fn save<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let chunks = self.with(py, |kernel| kernel.save())?;
        PyList::new(py, chunks.iter().map(|chunk| PyBytes::new(py, chunk)))
    }

    #[staticmethod]
    #[pyo3(signature = (plan, chunks, *, deltas=true, undoable=false))]
    fn load(
        py: Python<'_>,
        plan: &str,
        chunks: Vec<Bound<'_, PyBytes>>,
        deltas: bool,
        undoable: bool,
    ) -> PyResult<Engine> {
        let chunks: Vec<&[u8]> = chunks.iter().map(|chunk| chunk.as_bytes()).collect();
        let kernel = guarded(py, || {
            let mut kernel = Kernel::load(Kernel::parse_plan(plan)?, &chunks, deltas)?;
            kernel.set_undoable(undoable);
            Ok(kernel)
        })?;
        Ok(Engine { shared: Shared::new(kernel) })
    }

    fn rejected(&self, py: Python<'_>) -> PyResult<ArrowStream> {
        let batch = self.with(py, |kernel| kernel.take_rejected())?;
        Ok(ArrowStream::from_batches(batch.schema(), vec![batch]))
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = self.with(py, |kernel| Ok(kernel.stats().to_string()))?;
        py.import("json")?.call_method1("loads", (text,))
    }
}

impl Engine {
    /// Runs kernel code without the GIL, on the engine that this object shares with at most one stream.
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Kernel) -> Result<T> + Send) -> PyResult<T> {
        let shared = self.shared.clone();
        guarded(py, move || work(&mut *shared.lock()?))
    }

    fn delta(
        &self,
        py: Python<'_>,
        per_update: bool,
        work: impl FnOnce(&mut Kernel, &mut Vec<RecordBatch>) -> Result<()> + Send,
    ) -> PyResult<ArrowStream> {
        let (schema, batches) = self.with(py, move |kernel| {
            let mut batches = Vec::new();
            work(kernel, &mut batches)?;
            Ok((kernel.delta_schema(per_update), batches))
        })?;
        Ok(ArrowStream::from_batches(schema, batches))
    }

    /// Tuples as changes of one sign.
    fn changes(&self, py: Python<'_>, table: &str, rows: &[Bound<'_, PyTuple>], weight: i64) -> PyResult<Changes> {
        let mut kernel = self.shared.lock().map_err(|error| raise(py, &error))?;
        let Some(columns) = kernel.table_columns(table).map(<[_]>::to_vec) else {
            let message = format!("the view does not read a table '{table}'");
            return Err(raise(py, &KernelError::invalid("CROWN-CHANGE-TABLE", message)));
        };
        kernel.settle();
        let interner = kernel.interner_mut();
        let mut changes = Changes::new(columns.len());
        let mut words = Vec::with_capacity(columns.len());
        for (index, row) in rows.iter().enumerate() {
            if row.len() != columns.len() {
                let message =
                    format!("table '{table}', row {index}: {} values for {} columns", row.len(), columns.len());
                return Err(raise(py, &KernelError::invalid("CROWN-CHANGE-COLUMN", message)));
            }
            let mut nulls = 0;
            words.clear();
            for (position, (value, column)) in row.iter_borrowed().zip(&columns).enumerate() {
                let word = to_word(&value, column.data_type, interner).map_err(|error| {
                    let message =
                        format!("table '{table}', column '{}', row {index}: {}", column.name, error.value(py));
                    raise(py, &KernelError::invalid("CROWN-CHANGE-TYPE", message))
                })?;
                nulls |= u64::from(word.is_none()) << position;
                words.push(word.unwrap_or(0));
            }
            changes.push(&columns, &words, nulls, weight);
        }
        Ok(changes)
    }
}
