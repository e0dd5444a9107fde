//! `constant` for Python.

use crate::errors::guarded;
use crown_kernel::expression;
use pyo3::prelude::*;

/// The value of an expression without columns; both are the JSON of a plan.
#[pyfunction]
pub fn constant(py: Python<'_>, expression: &str) -> PyResult<String> {
    guarded(py, || expression::constant_from_json(expression))
}
