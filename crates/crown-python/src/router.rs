//! `crown._kernel.Router`: which cells a change goes to.

use crate::arrow_stream::{import_stream, read_all, ArrowStream};
use crate::errors::guarded;
use crown_kernel::engine::Engine as Kernel;
use crown_kernel::router::Router as KernelRouter;
use pyo3::prelude::*;
use std::sync::Mutex;

#[pyclass(module = "crown._kernel", frozen)]
pub struct Router {
    router: Mutex<KernelRouter>,
}

#[pymethods]
impl Router {
    #[new]
    fn new(py: Python<'_>, plan: &str) -> PyResult<Router> {
        let router = guarded(py, || KernelRouter::new(&Kernel::parse_plan(plan)?))?;
        Ok(Router { router: Mutex::new(router) })
    }

    fn route(&self, py: Python<'_>, table: &str, changes: Bound<'_, PyAny>) -> PyResult<Vec<(u64, ArrowStream)>> {
        let stream = import_stream(&changes)?;
        let cells = guarded(py, || {
            let batches = read_all(stream)?;
            self.router.lock().unwrap_or_else(std::sync::PoisonError::into_inner).route(table, &batches)
        })?;
        Ok(cells
            .into_iter()
            .map(|(cell, batches)| (cell, ArrowStream::from_batches(batches[0].schema(), batches)))
            .collect())
    }
}
