//! Blobs: Arrow IPC streams of about 1 MB, the same that Python workers exchange.

use crate::errors::{arrow, Result};
use arrow::array::{Array, RecordBatch};
use arrow::buffer::{Buffer, MutableBuffer};
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::writer::StreamWriter;
use crown_kernel::error::KernelError;
use jni::objects::JByteArray;
use jni::sys::jint;
use jni::Env;

pub const TARGET_BYTES: usize = 1 << 20;

/// A copy of a part of a Java array, aligned for Arrow.
pub fn copied(env: &Env<'_>, bytes: &JByteArray<'_>, offset: jint, length: jint) -> Result<Buffer> {
    let length = usize::try_from(length).unwrap_or(0);
    let mut copy = MutableBuffer::with_capacity(length);
    // SAFETY: there is room for the bytes, which are not read before Java has written all of them.
    // (To write zeros first is a fifteenth of what a task with many deltas does.)
    unsafe { copy.set_len(length) };
    // A byte of Java is signed.
    bytes.get_region(env, offset, copy.typed_data_mut::<i8>())?;
    Ok(copy.into())
}

pub fn read(mut bytes: Buffer) -> std::result::Result<Vec<RecordBatch>, KernelError> {
    let mut decoder = StreamDecoder::new();
    let mut batches = Vec::new();
    while !bytes.is_empty() {
        batches.extend(decoder.decode(&mut bytes).map_err(arrow)?);
    }
    decoder.finish().map_err(arrow)?;
    Ok(batches)
}

pub fn write(batches: &[RecordBatch]) -> std::result::Result<Vec<u8>, KernelError> {
    let size: usize = batches.iter().map(bytes_of).sum();
    let mut writer = StreamWriter::try_new(Vec::with_capacity(size + 2048), batches[0].schema_ref()).map_err(arrow)?;
    batches.iter().try_for_each(|batch| writer.write(batch)).map_err(arrow)?;
    writer.into_inner().map_err(arrow)
}

/// The size of a batch in a blob, without the buffers that its arrays share with others.
pub fn bytes_of(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(|column| column.to_data().get_slice_memory_size().unwrap_or(0)).sum()
}

/// Joins small batches and cuts large ones into blobs of about `TARGET_BYTES`.
#[derive(Default)]
pub struct Packer {
    waiting: Vec<RecordBatch>,
    bytes: usize,
}

impl Packer {
    /// Adds a batch and returns the blobs that are full now.
    pub fn add(&mut self, batch: &RecordBatch) -> std::result::Result<Vec<Vec<u8>>, KernelError> {
        let (rows, bytes) = (batch.num_rows(), bytes_of(batch));
        let pieces = ((bytes + TARGET_BYTES / 2) / TARGET_BYTES).max(1);
        let step = rows.div_ceil(pieces).max(1);
        let mut full = Vec::new();
        for start in (0..rows).step_by(step) {
            let length = step.min(rows - start);
            self.waiting.push(batch.slice(start, length));
            self.bytes += bytes * length / rows;
            if self.bytes >= TARGET_BYTES {
                full.extend(self.take()?);
            }
        }
        Ok(full)
    }

    /// What is left, if anything.
    pub fn take(&mut self) -> std::result::Result<Option<Vec<u8>>, KernelError> {
        self.bytes = 0;
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            Ok(None)
        } else {
            write(&waiting).map(Some)
        }
    }
}
