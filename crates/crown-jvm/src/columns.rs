//! Conversion between plain column buffers and Arrow arrays.
//!
//! For input, Java fills direct buffers: values in their width (booleans as bytes), strings as end
//! offsets and bytes, and one validity byte per row. For output, Java reads the memory of the
//! arrays directly.

use crate::errors::{arrow, Result};
use arrow::array::{make_array, Array, ArrayData, ArrayRef, RecordBatch};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{DataType as ArrowType, Field};
use crown_kernel::arrow_out::arrow_type;
use crown_kernel::error::KernelError;
use crown_kernel::types::DataType;
use jni::objects::{JByteBuffer, JObject, JObjectArray};
use jni::Env;

/// Buffers of one column: presence, values or ends of values, bytes of values. Those that a column
/// has no use for are null.
pub const BUFFERS: usize = 3;

pub struct Column {
    pub field: Field,
    data_type: DataType,
}

impl Column {
    pub fn new(name: &str, data_type: &str) -> Result<Column> {
        let data_type = DataType::parse(data_type)?;
        Ok(Column { field: Field::new(name, arrow_type(data_type), true), data_type })
    }
}

/// The first `rows` values of a column that Java filled.
pub fn read(
    env: &mut Env<'_>,
    column: &Column,
    buffers: &JObjectArray<'_, JByteBuffer<'_>>,
    first: usize,
    rows: usize,
) -> Result<ArrayRef> {
    let present = filled(env, buffers, first, rows)?;
    let nulls = present.map(|bytes| NullBuffer::new(BooleanBuffer::collect_bool(rows, |row| bytes[row] != 0)));
    let mut data = ArrayData::builder(column.field.data_type().clone()).len(rows).nulls(nulls);
    data = match column.data_type {
        DataType::String | DataType::Binary => {
            let ends = needed(filled(env, buffers, first + 1, 4 * (rows + 1))?)?;
            let (_, length) = ends.split_at(4 * rows);
            let length = i32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
            let bytes = needed(filled(env, buffers, first + 2, length)?)?;
            data.add_buffer(Buffer::from_slice_ref(ends)).add_buffer(Buffer::from_slice_ref(bytes))
        }
        DataType::Boolean => {
            let bytes = needed(filled(env, buffers, first + 1, rows)?)?;
            data.add_buffer(BooleanBuffer::collect_bool(rows, |row| bytes[row] != 0).into_inner())
        }
        _ => {
            let width = column.field.data_type().primitive_width().expect("all others are of one width");
            data.add_buffer(Buffer::from_slice_ref(needed(filled(env, buffers, first + 1, rows * width)?)?))
        }
    };
    Ok(make_array(data.build().map_err(arrow)?))
}

/// The first `length` bytes of a direct buffer, `None` where there is no buffer.
pub fn filled<'a>(
    env: &mut Env<'a>,
    buffers: &JObjectArray<'_, JByteBuffer<'_>>,
    index: usize,
    length: usize,
) -> Result<Option<&'a [u8]>> {
    let buffer = buffers.get_element(env, index)?;
    if buffer.is_null() {
        return Ok(None);
    }
    if env.get_direct_buffer_capacity(&buffer)? < length {
        return Err(KernelError::state("CROWN-INTERNAL", format!("column buffer {index} is too short")).into());
    }
    let address = env.get_direct_buffer_address(&buffer)?;
    // SAFETY: the caller's array keeps the buffer alive until the native method returns, and Java
    // does not write to it meanwhile.
    Ok(Some(unsafe { std::slice::from_raw_parts(address, length) }))
}

fn needed<T>(found: Option<T>) -> std::result::Result<T, KernelError> {
    found.ok_or_else(|| KernelError::state("CROWN-INTERNAL", "a column buffer is missing"))
}

/// The memory of a batch's columns as direct buffers, which are good for as long as the batch
/// lives. Presence is a bit per row here, as are booleans; of a dictionary only the keys are given.
pub fn show<'local>(env: &mut Env<'local>, batch: &RecordBatch) -> Result<JObjectArray<'local, JByteBuffer<'local>>> {
    let array = JObjectArray::<JByteBuffer>::new(env, BUFFERS * batch.num_columns(), JByteBuffer::default())?;
    for (position, column) in batch.columns().iter().enumerate() {
        let data = column.to_data();
        if data.offset() != 0 {
            return Err(KernelError::state("CROWN-INTERNAL", "a column of deltas does not begin at its start").into());
        }
        let nulls = data.nulls().filter(|nulls| nulls.null_count() > 0).map(|nulls| nulls.buffer());
        let values = data.buffers().iter().map(Some);
        for (slot, buffer) in [nulls].into_iter().chain(values).take(BUFFERS).enumerate() {
            let Some(buffer) = buffer.filter(|buffer| !buffer.is_empty()) else { continue };
            // SAFETY: the batch that owns the memory is held until Java closes its handle.
            let direct = unsafe { env.new_direct_byte_buffer(buffer.as_ptr().cast_mut(), buffer.len())? };
            array.set_element(env, BUFFERS * position + slot, &direct)?;
            env.delete_local_ref(JObject::from(direct));
        }
    }
    Ok(array)
}

/// Whether Java can read arrays of this type.
pub fn readable(data_type: &ArrowType) -> bool {
    data_type.is_primitive()
        || matches!(data_type, ArrowType::Boolean | ArrowType::Utf8 | ArrowType::Binary | ArrowType::Dictionary(_, _))
}
