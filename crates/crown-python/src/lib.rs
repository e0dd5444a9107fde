//! The private Python module `crown._kernel`: conversions and errors only, no logic.

use pyo3::prelude::*;

#[pymodule]
mod _kernel {
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
