//! The private Python module `crown._kernel`: conversions and errors only, no logic.

#![warn(missing_docs, unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

mod arrow_stream;
mod baseline;
mod constant;
mod engine;
mod errors;
mod functions;
mod import;
mod iterate;
mod order;
mod router;
mod shared;
mod stream;
mod values;

use pyo3::prelude::*;

#[pymodule]
mod _kernel {
    use super::*;

    #[pymodule_export]
    use super::arrow_stream::ArrowStream;
    #[pymodule_export]
    use super::baseline::PairwiseBaseline;
    #[pymodule_export]
    use super::engine::{Engine, Prepared};
    #[pymodule_export]
    use super::order::value_order;
    #[pymodule_export]
    use super::router::Router;
    #[pymodule_export]
    use super::values::rows_to_arrow;

    #[pymodule_export]
    use super::constant::constant;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
