//! Arrow between Python and the kernel, by the PyCapsule protocol.

use crate::errors::raise;
use crate::import::StreamReader;
use crate::stream::{DeltaStream, Failure};
use arrow::array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::ffi_stream::FFI_ArrowArrayStream;
use crown_kernel::error::KernelError;
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::{Mutex, PoisonError};

/// Record batches on their way out; they can be taken once.
#[pyclass(module = "crown._kernel", frozen)]
pub struct ArrowStream {
    reader: Mutex<Option<Box<dyn RecordBatchReader + Send>>>,
    failure: Failure,
}

impl ArrowStream {
    pub fn new(reader: Box<dyn RecordBatchReader + Send>) -> Self {
        ArrowStream { reader: Mutex::new(Some(reader)), failure: Failure::default() }
    }

    /// One that may fail while it is read.
    pub fn running(reader: DeltaStream) -> Self {
        let failure = reader.failure();
        ArrowStream { reader: Mutex::new(Some(Box::new(reader))), failure }
    }

    pub fn from_batches(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        ArrowStream::new(Box::new(RecordBatchIterator::new(batches.into_iter().map(Ok), schema)))
    }
}

#[pymethods]
impl ArrowStream {
    /// Raises what reading failed with, if it did.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        match &*self.failure.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(raise(py, error)),
            None => Ok(()),
        }
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol lets a producer ignore the requested schema.
        drop(requested_schema);
        let taken = self.reader.lock().ok().and_then(|mut reader| reader.take());
        let reader = taken.ok_or_else(|| PyValueError::new_err("this stream has already been read"))?;
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
    }
}

/// A stream over whatever has `__arrow_c_stream__`.
pub fn import_stream(data: &Bound<'_, PyAny>) -> PyResult<StreamReader> {
    let py = data.py();
    let method = data.getattr("__arrow_c_stream__").map_err(|_| {
        let name = data.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
        PyTypeError::new_err(format!("changes must have __arrow_c_stream__, which {name} does not"))
    })?;
    let capsule = method.call0().map_err(|error| producer_failed(py, error))?;
    let malformed = |why: &str| raise(py, &unreadable(why));
    let capsule = capsule.cast::<PyCapsule>().map_err(|_| malformed("__arrow_c_stream__ returned no capsule"))?;
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"));
    let pointer = pointer.map_err(|_| malformed("__arrow_c_stream__ returned a capsule of something else"))?;
    // SAFETY: the capsule's name says that it holds an ArrowArrayStream, which is moved out and
    // marked released.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr().cast()) };
    StreamReader::new(stream).map_err(|why| malformed(&why))
}

/// All record batches of a stream. Call without the GIL: the producer may be another library's
/// thread.
pub fn read_all(stream: StreamReader) -> Result<Vec<RecordBatch>, KernelError> {
    stream.collect::<Result<Vec<RecordBatch>, String>>().map_err(|why| unreadable(&why))
}

fn unreadable(why: &str) -> KernelError {
    KernelError::invalid("CROWN-CHANGE-ARROW", format!("the changes can't be read: {why}"))
}

/// An error in the producer becomes a rejection; an interrupt is passed on unchanged.
fn producer_failed(py: Python<'_>, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyException>(py) {
        return error;
    }
    let refused = raise(py, &unreadable(&format!("the producer failed: {}", error.value(py))));
    refused.set_cause(py, Some(error));
    refused
}
