//! `Engine` for Python.

use crate::arrow_stream::{import_stream, read_all, ArrowStream};
use crate::errors::{guarded, raise};
use crate::import::StreamReader;
use crate::iterate::RowIterator;
use crate::shared::Shared;
use crate::stream::stream_batch;
use crate::values::{misfit, to_row};
use arrow::array::RecordBatch;
use crown_kernel::arrow_in::Changes;
use crown_kernel::cells::{Cells, SpreadPlans};
use crown_kernel::engine::{Engine as Kernel, Input, OnInvalid};
use crown_kernel::error::{KernelError, Result};
use crown_kernel::store::interner::Interner;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use std::collections::HashMap;

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
    #[pyo3(signature = (plan, *, deltas=true))]
    fn new(py: Python<'_>, plan: &str, deltas: bool) -> PyResult<Engine> {
        let cells = guarded(py, || Ok(Cells::one(Kernel::new(Kernel::parse_plan(plan)?, deltas)?)))?;
        Ok(Engine { shared: Shared::new(cells) })
    }

    #[staticmethod]
    #[pyo3(signature = (plan, cells, *, front=None, merge=None, deltas=true, parts=None))]
    fn spread(
        py: Python<'_>,
        plan: &str,
        cells: usize,
        front: Option<&str>,
        merge: Option<&str>,
        deltas: bool,
        parts: Option<HashMap<String, Vec<Bound<'_, PyBytes>>>>,
    ) -> PyResult<Engine> {
        let parts = parts.as_ref().map(|parts| {
            let chunks =
                |chunks: &Vec<Bound<'_, PyBytes>>| chunks.iter().map(|chunk| chunk.as_bytes().to_vec()).collect();
            parts.iter().map(|(name, part)| (name.clone(), chunks(part))).collect::<HashMap<String, Vec<Vec<u8>>>>()
        });
        let cells = guarded(py, || {
            let parse = |plan: Option<&str>| plan.map(Kernel::parse_plan).transpose();
            let (front, merge) = (parse(front)?, parse(merge)?);
            let plans = SpreadPlans { cell: Kernel::parse_plan(plan)?, cells, front, merge, deltas };
            let Some(parts) = &parts else { return Cells::many(plans, None) };
            let part = |name: &str| {
                let chunks = parts.get(name).map(|chunks| chunks.iter().map(Vec::as_slice).collect::<Vec<&[u8]>>());
                chunks.ok_or_else(|| {
                    KernelError::state("CROWN-STATE-CORRUPT", format!("the saved view has no part '{name}'"))
                })
            };
            Cells::many(plans, Some(&part))
        })?;
        Ok(Engine { shared: Shared::new(cells) })
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
        let inputs = guarded(py, move || read_inputs(imported))?;
        self.delta(py, per_update, move |cells, batches| cells.apply(inputs, per_update, policy, batches))
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
        let (changes, values) = self.changes(py, &table, &rows, if delete { -1 } else { 1 })?;
        self.delta(py, false, move |cells, batches| {
            cells.apply(vec![Input::Words { table, changes, values }], false, policy, batches)
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
        Ok(ArrowStream::running(reader))
    }

    fn advance(&self, py: Python<'_>, table: &str, watermark: i64) -> PyResult<ArrowStream> {
        self.delta(py, false, |cells, batches| cells.advance(table, watermark, batches))
    }

    #[pyo3(signature = (*, chunk_rows=65536, multiplicity=false))]
    fn rows(&self, py: Python<'_>, chunk_rows: usize, multiplicity: bool) -> PyResult<ArrowStream> {
        let (schema, batches) = self.with(py, |cells| cells.rows(chunk_rows.max(1), multiplicity))?;
        Ok(ArrowStream::from_batches(schema, batches))
    }

    fn iterate(&self, py: Python<'_>) -> PyResult<RowIterator> {
        RowIterator::new(py, self.shared.clone())
    }

    fn multiplicity(&self, py: Python<'_>, row: Bound<'_, PyTuple>) -> PyResult<i64> {
        let types = self.shared.columns();
        if row.len() != types.len() {
            return Ok(0);
        }
        let (mut values, mut words) = (Interner::default(), Vec::new());
        let nulls = match to_row(&row, types.iter().copied(), &mut values, &mut words) {
            Ok(nulls) => nulls,
            // A value that does not fit the column's type is in no row.
            Err((_, error)) if error.is_instance_of::<PyException>(py) => return Ok(0),
            Err((_, error)) => return Err(error),
        };
        self.with(py, move |cells| cells.multiplicity(&words, nulls, &values))
    }

    fn count(&self, py: Python<'_>) -> PyResult<i128> {
        self.with(py, Cells::count)
    }

    fn sample(&self, py: Python<'_>, rows: usize, seed: u64) -> PyResult<ArrowStream> {
        let (schema, batch) = self.with(py, |cells| cells.sample(rows, seed))?;
        Ok(ArrowStream::from_batches(schema, vec![batch]))
    }

    fn save<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let parts = self.with(py, |cells| cells.save())?;
        let chunks = parts.iter().flat_map(|(_, chunks)| chunks);
        PyList::new(py, chunks.map(|chunk| PyBytes::new(py, chunk)).collect::<Vec<_>>())
    }

    fn save_parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let saved = PyDict::new(py);
        for (name, chunks) in self.with(py, |cells| cells.save())? {
            saved.set_item(name, PyList::new(py, chunks.iter().map(|chunk| PyBytes::new(py, chunk)))?)?;
        }
        Ok(saved)
    }

    #[staticmethod]
    #[pyo3(signature = (plan, chunks, *, deltas=true))]
    fn load(py: Python<'_>, plan: &str, chunks: Vec<Bound<'_, PyBytes>>, deltas: bool) -> PyResult<Engine> {
        let chunks: Vec<&[u8]> = chunks.iter().map(|chunk| chunk.as_bytes()).collect();
        let cells = guarded(py, || Ok(Cells::one(Kernel::load(Kernel::parse_plan(plan)?, &chunks, deltas)?)))?;
        Ok(Engine { shared: Shared::new(cells) })
    }

    #[pyo3(signature = (*, keep=false))]
    fn rejected(&self, py: Python<'_>, keep: bool) -> PyResult<ArrowStream> {
        let batch = self.with(py, |cells| if keep { cells.list_rejected() } else { cells.take_rejected() })?;
        Ok(ArrowStream::from_batches(batch.schema(), vec![batch]))
    }

    #[pyo3(signature = (offset, limit))]
    fn page(&self, py: Python<'_>, offset: usize, limit: usize) -> PyResult<ArrowStream> {
        let batch = self.with(py, |cells| cells.page(offset, limit))?;
        Ok(ArrowStream::from_batches(batch.schema(), vec![batch]))
    }

    fn hot_keys<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Bound<'py, PyAny>> {
        let text = self.with(py, |cells| Ok(cells.hot_keys(limit).to_string()))?;
        py.import("json")?.call_method1("loads", (text,))
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = self.with(py, |cells| Ok(cells.stats().to_string()))?;
        py.import("json")?.call_method1("loads", (text,))
    }
}

impl Engine {
    /// Runs kernel code that changes nothing, without the GIL.
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Cells) -> Result<T> + Send) -> PyResult<T> {
        guarded(py, || work(&mut self.shared.lock()?.cells))
    }

    fn delta(
        &self,
        py: Python<'_>,
        per_update: bool,
        work: impl FnOnce(&mut Cells, &mut Vec<RecordBatch>) -> Result<()> + Send,
    ) -> PyResult<ArrowStream> {
        let (schema, batches) = guarded(py, || {
            let mut held = self.shared.lock()?;
            let mut batches = Vec::new();
            held.change(|cells| work(cells, &mut batches))?;
            Ok((held.cells.delta_schema(per_update), batches))
        })?;
        Ok(ArrowStream::from_batches(schema, batches))
    }

    /// Tuples as changes of one sign, with strings of their own: nothing of the view is touched.
    fn changes(
        &self,
        py: Python<'_>,
        table: &str,
        rows: &[Bound<'_, PyTuple>],
        weight: i64,
    ) -> PyResult<(Changes, Box<Interner>)> {
        let Some(columns) = self.shared.table_columns(table) else {
            let message = format!("the view does not read a table '{table}'");
            return Err(raise(py, &KernelError::invalid("CROWN-CHANGE-TABLE", message)));
        };
        let mut values = Interner::default();
        let mut changes = Changes::new(columns.len());
        let mut words = Vec::with_capacity(columns.len());
        for (index, row) in rows.iter().enumerate() {
            if row.len() != columns.len() {
                let message =
                    format!("table '{table}', row {index}: {} values for {} columns", row.len(), columns.len());
                return Err(raise(py, &KernelError::invalid("CROWN-CHANGE-COLUMN", message)));
            }
            let types = columns.iter().map(|column| column.data_type);
            let nulls = to_row(row, types, &mut values, &mut words)
                .map_err(|(position, error)| misfit(py, table, &columns[position].name, index, error))?;
            changes.push(columns, &words, nulls, weight);
        }
        Ok((changes, Box::new(values)))
    }
}
