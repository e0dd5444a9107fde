//! `crown._kernel.Engine`: an engine, or several cells of one view, behind one lock.

use crate::arrow_stream::{import_stream, read_all, ArrowStream};
use crate::errors::{guarded, raise};
use crate::functions::{attached, functions, Functions};
use crate::import::StreamReader;
use crate::iterate::RowIterator;
use crate::shared::Shared;
use crate::stream::stream_batch;
use crate::values::{misfit, to_row};
use arrow::array::RecordBatch;
use crown_kernel::arrow_in::Changes;
use crown_kernel::arrow_out::deletes_first;
use crown_kernel::cells::{Cells, Replan, SpreadPlans};
use crown_kernel::engine::{Apart, Engine as Kernel, Input, OnInvalid, PerView, Watch};
use crown_kernel::error::{counted, KernelError, Result};
use crown_kernel::expression::host::with_functions;
use crown_kernel::mask::Bits;
use crown_kernel::store::interner::Interner;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

#[pyclass(module = "crown._kernel", frozen)]
pub struct Engine {
    shared: Shared,
}

/// New stages of an engine that were built while it went on, until `replan` takes them over.
#[pyclass(module = "crown._kernel", frozen)]
pub struct Prepared(Mutex<Option<Apart>>);

/// For each view its name, and how many rows its delta has.
type Deltas = Vec<(String, usize, ArrowStream)>;
type Imported = Vec<(String, StreamReader)>;

fn import(changes: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Imported> {
    changes.into_iter().map(|(table, data)| Ok((table, import_stream(&data)?))).collect()
}

/// Reads the streams to their ends; without the GIL, which a producer written in Python takes
/// itself.
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

fn plans(
    plan: &str,
    cells: usize,
    front: Option<&str>,
    merge: Option<&str>,
    views: Vec<String>,
    deltas: bool,
) -> Result<SpreadPlans> {
    let parse = |plan: Option<&str>| plan.map(Kernel::parse_plan).transpose();
    let (front, merge) = (parse(front)?, parse(merge)?);
    Ok(SpreadPlans { cell: Kernel::parse_plan(plan)?, cells, front, merge, views, deltas })
}

/// Runs kernel code that reports its progress to a Python function. What that raises is the result.
fn reporting<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Watch) -> Result<T> + Send,
) -> PyResult<T> {
    let raised: Mutex<Option<PyErr>> = Mutex::new(None);
    let tell = |done: u64, total: u64| {
        let Some(progress) = &progress else { return Ok(()) };
        attached(|py| progress.call1(py, (done, total))).map(|_| ()).map_err(|error| {
            *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            KernelError::state("CROWN-FUNCTION-FAILED", "the report of the progress raised an exception")
        })
    };
    let done = guarded(py, || work(&Watch::new(&tell)));
    let raised = raised.into_inner().unwrap_or_else(PoisonError::into_inner);
    raised.map_or(done, Err)
}

#[pymethods]
impl Engine {
    #[new]
    #[pyo3(signature = (plan, *, deltas=true, functions=None))]
    fn new(py: Python<'_>, plan: &str, deltas: bool, functions: Functions<'_>) -> PyResult<Engine> {
        let known = self::functions(&functions)?;
        let open = || Ok(Cells::one(Kernel::new(Kernel::parse_plan(plan)?, deltas)?));
        let cells = guarded(py, || with_functions(known, open))?;
        Ok(Engine { shared: Shared::new(cells) })
    }

    #[staticmethod]
    #[pyo3(signature = (plan, cells, *, front=None, merge=None, views=Vec::new(), deltas=true, parts=None, functions=None))]
    #[allow(clippy::too_many_arguments)] // they are those of one Python call
    fn spread(
        py: Python<'_>,
        plan: &str,
        cells: usize,
        front: Option<&str>,
        merge: Option<&str>,
        views: Vec<String>,
        deltas: bool,
        parts: Option<HashMap<String, Vec<Bound<'_, PyBytes>>>>,
        functions: Functions<'_>,
    ) -> PyResult<Engine> {
        let known = self::functions(&functions)?;
        let parts = parts.as_ref().map(|parts| {
            let chunks =
                |chunks: &Vec<Bound<'_, PyBytes>>| chunks.iter().map(|chunk| chunk.as_bytes().to_vec()).collect();
            parts.iter().map(|(name, part)| (name.clone(), chunks(part))).collect::<HashMap<String, Vec<Vec<u8>>>>()
        });
        let open = || {
            let plans = plans(plan, cells, front, merge, views, deltas)?;
            let Some(parts) = &parts else { return Cells::many(plans, None) };
            let part = |name: &str| {
                let chunks = parts.get(name).map(|chunks| chunks.iter().map(Vec::as_slice).collect::<Vec<&[u8]>>());
                chunks.ok_or_else(|| {
                    KernelError::state("CROWN-STATE-CORRUPT", format!("the saved view has no part '{name}'"))
                })
            };
            Cells::many(plans, Some(&part))
        };
        let cells = guarded(py, || with_functions(known, open))?;
        Ok(Engine { shared: Shared::new(cells) })
    }

    /// Builds what is new in a plan as far as possible, while the views go on; None if `replan` has
    /// to do everything. `progress` is as there.
    #[pyo3(signature = (plan, *, functions=None, progress=None))]
    fn prepare(
        &self,
        py: Python<'_>,
        plan: &str,
        functions: Functions<'_>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Option<Prepared>> {
        let known = self::functions(&functions)?;
        let build = |watch: &Watch| {
            let plan = Kernel::parse_plan(plan)?;
            let Some(mut apart) = self.shared.lock()?.cells.begin_apart(&plan)? else { return Ok(None) };
            apart.build(watch)?;
            Ok(Some(Prepared(Mutex::new(Some(apart)))))
        };
        reporting(py, progress, |watch| with_functions(known, || build(watch)))
    }

    /// Runs other views from now on. `progress` is called with the rows read so far and all that
    /// are to be read; if it raises, everything is as it was.
    #[pyo3(signature = (plan, *, cells=1, front=None, merge=None, views=Vec::new(), deltas=true, empty=Vec::new(), fresh=false, functions=None, progress=None, prepared=None))]
    #[allow(clippy::too_many_arguments)] // they are those of one Python call
    fn replan(
        &self,
        py: Python<'_>,
        plan: &str,
        cells: usize,
        front: Option<&str>,
        merge: Option<&str>,
        views: Vec<String>,
        deltas: bool,
        empty: Vec<String>,
        fresh: bool,
        functions: Functions<'_>,
        progress: Option<Py<PyAny>>,
        prepared: Option<&Prepared>,
    ) -> PyResult<()> {
        let known = self::functions(&functions)?;
        let apart = prepared.and_then(|prepared| prepared.0.lock().unwrap_or_else(PoisonError::into_inner).take());
        let go_on = |watch: &Watch| {
            let plans = plans(plan, cells, front, merge, views, deltas)?;
            let how = Replan { empty: &empty, fresh };
            self.shared.replan(|cells| cells.replan(plans, &how, watch, apart))
        };
        reporting(py, progress, |watch| with_functions(known, || go_on(watch)))
    }

    /// Applies changes and returns the delta of each view, by name.
    #[pyo3(signature = (changes, *, on_invalid="raise"))]
    fn apply_all(
        &self,
        py: Python<'_>,
        changes: Vec<(String, Bound<'_, PyAny>)>,
        on_invalid: &str,
    ) -> PyResult<Deltas> {
        let (imported, policy) = (import(changes)?, self::on_invalid(on_invalid)?);
        let inputs = guarded(py, move || read_inputs(imported))?;
        self.deltas(py, move |cells, deltas| cells.apply(inputs, false, policy, deltas))
    }

    /// As `apply_rows`, for each view.
    #[pyo3(signature = (table, rows, *, delete=false, on_invalid="raise"))]
    fn apply_rows_all(
        &self,
        py: Python<'_>,
        table: String,
        rows: Vec<Bound<'_, PyTuple>>,
        delete: bool,
        on_invalid: &str,
    ) -> PyResult<Deltas> {
        let policy = self::on_invalid(on_invalid)?;
        let (changes, values) = self.changes(py, &table, &rows, if delete { -1 } else { 1 })?;
        self.deltas(py, move |cells, deltas| {
            cells.apply(vec![Input::Words { table, changes, values }], false, policy, deltas)
        })
    }

    /// As `advance`, for each view.
    fn advance_all(&self, py: Python<'_>, table: &str, watermark: i64) -> PyResult<Deltas> {
        self.deltas(py, |cells, deltas| cells.advance(table, watermark, deltas))
    }

    /// All rows of a table with `_multiplicity`; None if they are not all stored.
    fn table_rows(&self, py: Python<'_>, table: &str) -> PyResult<Option<ArrowStream>> {
        let rows = self.with(py, |cells| cells.table_rows(table))?;
        Ok(rows.map(|batches| {
            let schema = batches[0].schema();
            ArrowStream::from_batches(schema, batches)
        }))
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

    #[pyo3(signature = (*, chunk_rows=65536, multiplicity=false, view=""))]
    fn rows(&self, py: Python<'_>, chunk_rows: usize, multiplicity: bool, view: &str) -> PyResult<ArrowStream> {
        let (schema, batches) =
            self.with(py, |cells| cells.rows(cells.view(view)?, chunk_rows.max(1), multiplicity))?;
        Ok(ArrowStream::from_batches(schema, batches))
    }

    #[pyo3(signature = (*, view=""))]
    fn iterate(&self, py: Python<'_>, view: &str) -> PyResult<RowIterator> {
        RowIterator::new(py, self.shared.clone(), view)
    }

    #[pyo3(signature = (row, *, view=""))]
    fn multiplicity(&self, py: Python<'_>, row: Bound<'_, PyTuple>, view: &str) -> PyResult<i64> {
        loop {
            let signature = self.shared.signature();
            let types = signature.columns(view).unwrap_or(&[]);
            let (mut values, mut words) = (Interner::default(), Vec::new());
            let nulls = match to_row(&row, types.iter().copied(), &mut values, &mut words) {
                _ if row.len() != types.len() => None,
                Ok(nulls) => Some(nulls),
                // A value that does not fit the column's type is in no row.
                Err((_, error)) if error.is_instance_of::<PyException>(py) => None,
                Err((_, error)) => return Err(error),
            };
            let found = guarded(py, || {
                let mut held = self.shared.lock()?;
                if !self.shared.is_current(&signature) {
                    return Ok(None);
                }
                let view = held.cells.view(view)?;
                let Some(nulls) = nulls else { return Ok(Some(0)) };
                held.cells.multiplicity(view, &words, nulls, &values).map(Some)
            })?;
            if let Some(found) = found {
                return Ok(found);
            }
        }
    }

    #[pyo3(signature = (columns, values, *, view=""))]
    fn lookup(
        &self,
        py: Python<'_>,
        columns: Vec<usize>,
        values: Bound<'_, PyTuple>,
        view: &str,
    ) -> PyResult<ArrowStream> {
        loop {
            let signature = self.shared.signature();
            let types = signature.columns(view).unwrap_or(&[]);
            let wanted = columns.iter().filter_map(|column| types.get(*column).copied());
            let (mut interner, mut words) = (Interner::default(), Vec::new());
            let nulls = to_row(&values, wanted, &mut interner, &mut words).map_err(|(position, error)| {
                let message = format!("the value of argument {} does not fit its column: {error}", position + 1);
                if error.is_instance_of::<PyException>(py) {
                    raise(py, &KernelError::invalid("CROWN-ARGUMENT", message))
                } else {
                    error
                }
            })?;
            let value = |(bit, word): (usize, &u64)| (!nulls.has(bit)).then_some(*word);
            let fixed: Vec<_> = columns.iter().copied().zip(words.iter().enumerate().map(value)).collect();
            let found = guarded(py, || {
                let mut held = self.shared.lock()?;
                if !self.shared.is_current(&signature) {
                    return Ok(None);
                }
                let view = held.cells.view(view)?;
                held.cells.lookup(view, &fixed, &interner).map(Some)
            })?;
            if let Some((schema, batches)) = found {
                return Ok(ArrowStream::from_batches(schema, batches));
            }
        }
    }

    #[pyo3(signature = (offset, limit, *, view=""))]
    fn page(&self, py: Python<'_>, offset: u64, limit: u64, view: &str) -> PyResult<ArrowStream> {
        let (schema, batches) = self.with(py, |cells| cells.page(cells.view(view)?, offset, limit))?;
        Ok(ArrowStream::from_batches(schema, batches))
    }

    #[pyo3(signature = (order, columns, offset, limit, *, view="", functions=None))]
    #[allow(clippy::too_many_arguments)] // they are those of one Python call
    fn ordered_page(
        &self,
        py: Python<'_>,
        order: &str,
        columns: Vec<String>,
        offset: u64,
        limit: u64,
        view: &str,
        functions: Functions<'_>,
    ) -> PyResult<Option<ArrowStream>> {
        let known = self::functions(&functions)?;
        let read = || {
            let mut held = self.shared.lock()?;
            let view = held.cells.view(view)?;
            held.cells.ordered_page(view, order, &columns, offset, limit)
        };
        let found = guarded(py, || with_functions(known, read))?;
        Ok(found.map(|(schema, batch)| ArrowStream::from_batches(schema, vec![batch])))
    }

    #[pyo3(signature = (*, view=""))]
    fn count(&self, py: Python<'_>, view: &str) -> PyResult<i128> {
        self.with(py, |cells| cells.count(cells.view(view)?))
    }

    #[pyo3(signature = (rows, seed, *, view=""))]
    fn sample(&self, py: Python<'_>, rows: usize, seed: u64, view: &str) -> PyResult<ArrowStream> {
        let (schema, batch) = self.with(py, |cells| cells.sample(cells.view(view)?, rows, seed))?;
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
    #[pyo3(signature = (plan, chunks, *, deltas=true, functions=None))]
    fn load(
        py: Python<'_>,
        plan: &str,
        chunks: Vec<Bound<'_, PyBytes>>,
        deltas: bool,
        functions: Functions<'_>,
    ) -> PyResult<Engine> {
        let known = self::functions(&functions)?;
        let chunks: Vec<&[u8]> = chunks.iter().map(|chunk| chunk.as_bytes()).collect();
        let open = || Ok(Cells::one(Kernel::load(Kernel::parse_plan(plan)?, &chunks, deltas)?));
        let cells = guarded(py, || with_functions(known, open))?;
        Ok(Engine { shared: Shared::new(cells) })
    }

    #[staticmethod]
    #[pyo3(signature = (plan, chunks, batches, *, deltas=true, on_invalid="raise"))]
    fn rebuild(
        py: Python<'_>,
        plan: &str,
        chunks: Vec<Bound<'_, PyBytes>>,
        batches: &Bound<'_, PyAny>,
        deltas: bool,
        on_invalid: &str,
    ) -> PyResult<Engine> {
        let policy = self::on_invalid(on_invalid)?;
        let chunks: Vec<&[u8]> = chunks.iter().map(|chunk| chunk.as_bytes()).collect();
        let mut engine = guarded(py, || {
            let plan = Kernel::parse_plan(plan)?;
            if chunks.is_empty() {
                return Kernel::new(plan, deltas);
            }
            Kernel::load(plan, &chunks, deltas)
        })?;
        for changes in batches.try_iter()? {
            let imported = import(changes?.extract()?)?;
            guarded(py, || engine.replay(read_inputs(imported)?, policy))?;
        }
        guarded(py, || engine.replayed())?;
        Ok(Engine { shared: Shared::new(Cells::one(engine)) })
    }

    #[pyo3(signature = (*, keep=false))]
    fn rejected(&self, py: Python<'_>, keep: bool) -> PyResult<ArrowStream> {
        let batch = self.with(py, |cells| if keep { cells.list_rejected() } else { cells.take_rejected() })?;
        Ok(ArrowStream::from_batches(batch.schema(), vec![batch]))
    }

    #[pyo3(signature = (offset, limit, *, view=""))]
    fn distinct_page(&self, py: Python<'_>, offset: usize, limit: usize, view: &str) -> PyResult<ArrowStream> {
        let batch = self.with(py, |cells| cells.distinct_page(cells.view(view)?, offset, limit))?;
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
            let batches = if per_update { batches } else { deletes_first(batches) };
            Ok((held.cells.delta_schema(0, per_update), batches))
        })?;
        Ok(ArrowStream::from_batches(schema, batches))
    }

    fn deltas(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Cells, &mut PerView) -> Result<()> + Send,
    ) -> PyResult<Deltas> {
        let deltas = guarded(py, || {
            let mut held = self.shared.lock()?;
            let mut deltas = PerView::default();
            held.change(|cells| work(cells, &mut deltas))?;
            let mut views = deltas.views.into_iter();
            let delta = |(view, name): (usize, String)| {
                (name, held.cells.delta_schema(view, false), deletes_first(views.next().unwrap_or_default()))
            };
            Ok(held.cells.view_names().into_iter().enumerate().map(delta).collect::<Vec<_>>())
        })?;
        let stream = |(name, schema, batches): (_, _, Vec<RecordBatch>)| {
            let rows = batches.iter().map(RecordBatch::num_rows).sum();
            (name, rows, ArrowStream::from_batches(schema, batches))
        };
        Ok(deltas.into_iter().map(stream).collect())
    }

    /// Tuples as changes of one sign, with strings of their own: nothing of the view is touched.
    fn changes(
        &self,
        py: Python<'_>,
        table: &str,
        rows: &[Bound<'_, PyTuple>],
        weight: i64,
    ) -> PyResult<(Changes, Box<Interner>)> {
        let signature = self.shared.signature();
        let Some(columns) = signature.table_columns(table) else {
            let message = format!("the view does not read a table '{table}'");
            return Err(raise(py, &KernelError::invalid("CROWN-CHANGE-TABLE", message)));
        };
        let mut values = Interner::default();
        let mut changes = Changes::new(columns.len());
        let mut words = Vec::with_capacity(columns.len());
        for (index, row) in rows.iter().enumerate() {
            if row.len() != columns.len() {
                let (values, wanted) = (counted(row.len(), "value"), counted(columns.len(), "column"));
                let message = format!("table '{table}', row {index}: {values} for {wanted}");
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
