//! Python functions that expressions call.

use crate::arrow_stream::{import_stream, read_all, ArrowStream};
use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use crown_kernel::error::{KernelError, Result};
use crown_kernel::expression::host::{set_interrupted, HostFunction, HostFunctions};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex, PoisonError};

/// A callable that takes a stream of arguments and returns the values, as something with
/// `__arrow_c_stream__`.
struct PythonFunction(Py<PyAny>);

thread_local! {
    static RUNNING: Cell<bool> = const { Cell::new(false) };
    /// What interrupted a function that runs on this thread, until the call into the kernel ends.
    static INTERRUPT: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// The exception of the last function that failed, by what is said about it: the cause of the error
/// that reports it.
static LAST: Mutex<Option<(String, PyErr)>> = Mutex::new(None);

pub type Functions<'py> = Option<Bound<'py, PyDict>>;

/// The functions of a dict, by name.
pub fn functions(given: &Functions<'_>) -> PyResult<HostFunctions> {
    let mut functions = HostFunctions::default();
    for (name, function) in given.iter().flat_map(|given| given.iter()) {
        functions.insert(name.extract()?, Arc::new(PythonFunction(function.unbind())));
    }
    Ok(functions)
}

/// A view can't be used by a function that one of them is calling: it would wait for itself.
pub fn refuse_inside() -> Result<()> {
    if RUNNING.get() {
        let message = "a function that a view calls can't use a view";
        return Err(KernelError::invalid("CROWN-FUNCTION-REENTRANT", message));
    }
    Ok(())
}

/// Ends a call into the kernel: what interrupted a function in it, such as Ctrl-C, which the caller
/// raises whatever the kernel made of it.
pub fn take_interrupt() -> Option<PyErr> {
    set_interrupted(false);
    INTERRUPT.take()
}

/// Python's own exception behind this message.
pub fn cause_of(message: &str) -> Option<PyErr> {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    last.take_if(|(said, _)| message.contains(&**said)).map(|(_, error)| error)
}

impl HostFunction for PythonFunction {
    fn call(&self, arguments: RecordBatch) -> std::result::Result<RecordBatch, String> {
        attached(|py| self.call_in(py, arguments))
    }
}

/// Runs Python code of the user while a view is in use: it can't use one.
pub fn attached<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    let outside = RUNNING.replace(true);
    let result = Python::attach(work);
    RUNNING.set(outside);
    result
}

impl PythonFunction {
    fn call_in(&self, py: Python<'_>, arguments: RecordBatch) -> std::result::Result<RecordBatch, String> {
        if INTERRUPT.with_borrow(Option::is_some) {
            return Err("interrupted".into());
        }
        let stream = ArrowStream::from_batches(arguments.schema(), vec![arguments]);
        let called = self.0.call1(py, (stream,)).and_then(|result| import_stream(result.bind(py)));
        let stream = called.map_err(|error| {
            let said = describe(py, &error);
            if !error.is_instance_of::<PyException>(py) {
                set_interrupted(true);
                INTERRUPT.set(Some(error.clone_ref(py)));
            }
            *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some((said.clone(), error));
            said
        })?;
        let batches = py.detach(|| read_all(stream)).map_err(|error| error.message)?;
        let schema = batches.first().map(RecordBatch::schema).ok_or("it returned no values")?;
        concat_batches(&schema, &batches).map_err(|error| error.to_string())
    }
}

fn describe(py: Python<'_>, error: &PyErr) -> String {
    let kind = error.get_type(py).name().map_or_else(|_| "an exception".into(), |name| name.to_string());
    let text = error.value(py).to_string();
    if text.is_empty() {
        kind
    } else {
        format!("{kind}: {text}")
    }
}
