//! Kernel errors as the exceptions of `crown.errors`.

use crate::functions::{cause_of, take_interrupt};
use crown_kernel::error::{advice, KernelError, Kind};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::panic::{catch_unwind, AssertUnwindSafe};

pub fn raise(py: Python<'_>, error: &KernelError) -> PyErr {
    let class = match error.kind {
        Kind::Plan => "PlanError",
        Kind::InvalidChange => "InvalidChange",
        Kind::State => "StateError",
    };
    let raised = build(py, class, error.code, &error.message).unwrap_or_else(|failure| failure);
    match (error.code == "CROWN-FUNCTION-FAILED").then(|| cause_of(&error.message)).flatten() {
        // An interrupt is not the function's fault.
        Some(cause) if !cause.is_instance_of::<PyException>(py) => cause,
        Some(cause) => {
            raised.set_cause(py, Some(cause));
            raised
        }
        None => raised,
    }
}

fn build(py: Python<'_>, class: &str, code: &str, message: &str) -> PyResult<PyErr> {
    let (reason, hint) = advice(code);
    let named = PyDict::new(py);
    named.set_item("code", code)?;
    named.set_item("reason", reason)?;
    named.set_item("hint", hint)?;
    let exception = py.import("crown.errors")?.getattr(class)?.call((message,), Some(&named))?;
    Ok(PyErr::from_value(exception))
}

/// Runs kernel code: errors become exceptions, and so does a panic, which must not cross into
/// Python.
pub fn guarded<T>(py: Python<'_>, work: impl FnOnce() -> Result<T, KernelError> + Send) -> PyResult<T>
where
    T: Send,
{
    let outcome = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    if let (Some(interrupt), Ok(_)) = (take_interrupt(), &outcome) {
        return Err(interrupt);
    }
    match outcome {
        Ok(result) => result.map_err(|error| raise(py, &error)),
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("unknown");
            let message = format!("the kernel failed: {text}; this view can no longer be used");
            Err(build(py, "CrownError", "CROWN-INTERNAL", &message).unwrap_or_else(|failure| failure))
        }
    }
}
