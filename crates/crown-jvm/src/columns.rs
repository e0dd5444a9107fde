//! Conversion between plain column buffers and Arrow arrays.
//!
//! For input, Java fills direct buffers: values in their width (booleans as bytes), strings as end
//! offsets and bytes, and one validity byte per row. For output, Java reads the memory of the
//! arrays directly.
//!
//! The buffers of a nested column are followed by those of its parts, which are columns of their
//! own: arrays and maps have end offsets into their parts, and a struct has a part for each field.

use crate::errors::{arrow, Result};
use arrow::array::{make_array, Array, ArrayData, ArrayRef, RecordBatch};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::{DataType as ArrowType, Field};
use crown_kernel::arrow_out::arrow_type;
use crown_kernel::error::KernelError;
use crown_kernel::nested::Nested;
use crown_kernel::types::DataType;
use jni::objects::{JByteBuffer, JObject, JObjectArray};
use jni::Env;

/// A column that Java fills. It has three buffers: presence, values or ends of values, bytes of
/// values. Those that a column has no use for are null.
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

/// The buffers of some columns that Java filled, which are read one after the other.
pub struct Filled<'a, 'local> {
    buffers: &'a JObjectArray<'local, JByteBuffer<'local>>,
    next: usize,
}

impl<'a, 'local> Filled<'a, 'local> {
    pub fn new(buffers: &'a JObjectArray<'local, JByteBuffer<'local>>) -> Self {
        Filled { buffers, next: 0 }
    }

    /// The first `rows` values of the next column.
    pub fn column(&mut self, env: &mut Env<'local>, column: &Column, rows: usize) -> Result<ArrayRef> {
        Ok(make_array(self.values(env, column.data_type, rows)?))
    }

    fn values(&mut self, env: &mut Env<'local>, data_type: DataType, rows: usize) -> Result<ArrayData> {
        let present = self.bytes(env, rows)?;
        let nulls = present.map(|bytes| NullBuffer::new(BooleanBuffer::collect_bool(rows, |row| bytes[row] != 0)));
        let form = arrow_type(data_type);
        let width = form.primitive_width();
        let mut data = ArrayData::builder(form).len(rows).nulls(nulls);
        data = match data_type {
            DataType::String | DataType::Binary | DataType::Uuid => {
                let (ends, length) = self.ends(env, rows)?;
                let bytes = needed(self.bytes(env, length)?)?;
                data.add_buffer(ends).add_buffer(Buffer::from_slice_ref(bytes))
            }
            DataType::Boolean => {
                let bytes = needed(self.bytes(env, rows)?)?;
                self.next += 1;
                data.add_buffer(BooleanBuffer::collect_bool(rows, |row| bytes[row] != 0).into_inner())
            }
            DataType::Nested(Nested::Array(element)) => {
                let (ends, length) = self.ends(env, rows)?;
                self.next += 1;
                data.add_buffer(ends).add_child_data(self.values(env, *element, length)?)
            }
            DataType::Nested(Nested::Map(key, value)) => {
                let (ends, length) = self.ends(env, rows)?;
                self.next += 1;
                let ArrowType::Map(entries, _) = arrow_type(data_type) else {
                    unreachable!("the type of a map is a map")
                };
                let entries = ArrayData::builder(entries.data_type().clone())
                    .len(length)
                    .add_child_data(self.values(env, *key, length)?)
                    .add_child_data(self.values(env, *value, length)?);
                data.add_buffer(ends).add_child_data(entries.build().map_err(arrow)?)
            }
            DataType::Nested(Nested::Struct(fields)) => {
                self.next += 2;
                for (_, field) in fields {
                    data = data.add_child_data(self.values(env, *field, rows)?);
                }
                data
            }
            _ => {
                let width = width.expect("all others are of one width");
                let values = needed(self.bytes(env, rows * width)?)?;
                self.next += 1;
                data.add_buffer(Buffer::from_slice_ref(values))
            }
        };
        Ok(data.build().map_err(arrow)?)
    }

    /// Where each value ends, and where the last one does.
    fn ends(&mut self, env: &mut Env<'local>, rows: usize) -> Result<(Buffer, usize)> {
        let ends = needed(self.bytes(env, 4 * (rows + 1))?)?;
        let (_, length) = ends.split_at(4 * rows);
        let length = i32::from_le_bytes(length.try_into().expect("four bytes"));
        Ok((Buffer::from_slice_ref(ends), length as usize))
    }

    /// The first `length` bytes of the next buffer, `None` where there is no buffer.
    pub fn bytes(&mut self, env: &mut Env<'local>, length: usize) -> Result<Option<&'local [u8]>> {
        self.next += 1;
        filled(env, self.buffers, self.next - 1, length)
    }
}

/// The first `length` bytes of a direct buffer, `None` where there is no buffer.
fn filled<'a>(
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
    let mut memory = Vec::new();
    batch.columns().iter().try_for_each(|column| memory_of(&column.to_data(), &mut memory))?;
    let array = JObjectArray::<JByteBuffer>::new(env, memory.len(), JByteBuffer::default())?;
    for (slot, buffer) in memory.iter().enumerate() {
        let Some(buffer) = buffer.as_ref().filter(|buffer| !buffer.is_empty()) else { continue };
        // SAFETY: the batch that owns the memory is held until Java closes its handle.
        let direct = unsafe { env.new_direct_byte_buffer(buffer.as_ptr().cast_mut(), buffer.len())? };
        array.set_element(env, slot, &direct)?;
        env.delete_local_ref(JObject::from(direct));
    }
    Ok(array)
}

fn memory_of(data: &ArrayData, memory: &mut Vec<Option<Buffer>>) -> Result<()> {
    let nulls = data.nulls().filter(|nulls| nulls.null_count() > 0);
    if data.offset() != 0 || nulls.is_some_and(|nulls| nulls.offset() != 0) {
        return Err(KernelError::state("CROWN-INTERNAL", "a column of deltas does not begin at its start").into());
    }
    let mut own = data.buffers().iter().cloned();
    memory.extend([nulls.map(|nulls| nulls.buffer().clone()), own.next(), own.next()]);
    match data.data_type() {
        ArrowType::List(_) | ArrowType::Struct(_) => {
            data.child_data().iter().try_for_each(|part| memory_of(part, memory))
        }
        // Its parts are the keys and the values; the entries themselves are never NULL.
        ArrowType::Map(..) => data.child_data()[0].child_data().iter().try_for_each(|part| memory_of(part, memory)),
        _ => Ok(()),
    }
}

/// Whether Java can read arrays of this type.
pub fn readable(data_type: &ArrowType) -> bool {
    match data_type {
        ArrowType::List(part) | ArrowType::Map(part, false) => readable(part.data_type()),
        ArrowType::Struct(parts) => parts.iter().all(|part| readable(part.data_type())),
        ArrowType::Boolean | ArrowType::Utf8 | ArrowType::Binary | ArrowType::Dictionary(_, _) => true,
        _ => data_type.is_primitive(),
    }
}
