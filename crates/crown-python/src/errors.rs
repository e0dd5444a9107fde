//! Kernel errors as the exceptions of `crown.errors`.

use crown_kernel::error::{KernelError, Kind};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Why a change of this kind can't be taken, and what to do about it.
fn advice(code: &str) -> (Option<&'static str>, Option<&'static str>) {
    match code {
        "CROWN-CHANGE-ABSENT" => (
            Some("a deletion must match a row that exists at that point of the batch"),
            Some("check the row, or set on_invalid='quarantine' to skip such changes"),
        ),
        "CROWN-CHANGE-DIFFERS" => (
            Some("a deletion from a table with a PRIMARY KEY must match the row with that key"),
            Some("give only the key (NULL elsewhere), or the stored row"),
        ),
        "CROWN-CHANGE-NULL" => {
            (Some("the column is declared NOT NULL or PRIMARY KEY"), Some("give a value, or relax the schema"))
        }
        "CROWN-CHANGE-TYPE" | "CROWN-CHANGE-VALUE" => {
            (Some("values must fit the type of the column in the schema"), Some("convert the column first"))
        }
        "CROWN-CHANGE-PROFILE" => (
            Some("the planner relies on the declared profile"),
            Some("declare the table arbitrary (or fifo) if its rows are deleted"),
        ),
        "CROWN-CHANGE-ARROW" => {
            (Some("the data is not valid Arrow"), Some("write it with another library or version, or give rows"))
        }
        "CROWN-CHANGE-COLUMN" => (
            Some("a change must have every column that the view reads (a deletion by PRIMARY KEY only the key)"),
            Some("add the column, or name the columns as the schema does"),
        ),
        "CROWN-PLAN-COLUMNS" => (
            Some("a row of a table or of a step of the plan has at most 64 columns"),
            Some("read fewer columns, or split the query into several views"),
        ),
        "CROWN-ITERATION" => (
            Some("there were too many remaining rows to copy them"),
            Some("use to_arrow(), which reads the whole result at one point in time"),
        ),
        "CROWN-FORKED" => (
            Some("the thread that used it does not exist in this process"),
            Some("fork while the view is idle, start processes with 'spawn', or load the view in the child"),
        ),
        _ => (None, None),
    }
}

pub fn raise(py: Python<'_>, error: &KernelError) -> PyErr {
    let class = match error.kind {
        Kind::Plan => "PlanError",
        Kind::InvalidChange => "InvalidChange",
        Kind::State => "StateError",
    };
    build(py, class, error.code, &error.message).unwrap_or_else(|failure| failure)
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

/// Runs kernel code: errors become exceptions, and so does a panic, which must not cross into Python.
pub fn guarded<T>(py: Python<'_>, work: impl FnOnce() -> Result<T, KernelError> + Send) -> PyResult<T>
where
    T: Send,
{
    let outcome = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
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
