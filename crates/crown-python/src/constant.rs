//! `crown._kernel.constant`: the value of an expression without columns.

use crate::errors::guarded;
use crate::functions::{functions, Functions};
use crown_kernel::expression::{self, host::with_functions};
use pyo3::prelude::*;

/// The value of an expression without columns; both are the JSON of a plan.
#[pyfunction]
#[pyo3(signature = (expression, *, functions=None))]
pub fn constant(py: Python<'_>, expression: &str, functions: Functions<'_>) -> PyResult<String> {
    let known = self::functions(&functions)?;
    guarded(py, || with_functions(known, || expression::constant_from_json(expression)))
}
