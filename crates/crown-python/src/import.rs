//! Record batches out of the Arrow C stream interface.
//!
//! The interface passes pointers and counts, never the size of a buffer: sizes follow from the
//! lengths and offsets that the arrays claim. So we must trust the pointers, and that each buffer
//! is as long as claimed, but nothing else. Counts are checked here, before anything is read; the
//! contents of the buffers (offsets, views, indices, UTF-8) are checked by
//! `crown_kernel::arrow_check` when a column is read. A column that can't be imported becomes a
//! column of NULLs that says why, because it only matters if the view reads it.

use arrow::array::{make_array, new_empty_array, Array, ArrayData, ArrayRef, NullArray};
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow::ffi_stream::FFI_ArrowArrayStream;
use crown_kernel::arrow_check::{UNREADABLE, UNSUPPORTED};
use std::collections::HashMap;
use std::ffi::{c_char, c_void, CStr};
use std::ptr::NonNull;
use std::sync::Arc;

type Result<T> = std::result::Result<T, String>;

/// No array has more values, and no buffer more bytes: what lies beyond is a broken count, not
/// data.
const MOST: usize = 1 << 46;
const MOST_COLUMNS: i64 = 1 << 16;
/// Types may be nested this deep.
const DEEPEST: usize = 32;

/// `struct ArrowArray` of the C data interface.
#[repr(C)]
struct RawArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *const *const u8,
    children: *const *const RawArray,
    dictionary: *const RawArray,
    release: *const c_void,
    private_data: *const c_void,
}

/// `struct ArrowSchema` of the C data interface.
#[repr(C)]
struct RawSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *const *const RawSchema,
    dictionary: *const RawSchema,
    release: *const c_void,
    private_data: *const c_void,
}

/// A column as the stream's schema announces it; without a type it can't be read, for the reason
/// given.
struct Column {
    name: String,
    data_type: Result<DataType>,
}

/// The record batches of one stream. It ends after the first error.
pub struct StreamReader {
    stream: FFI_ArrowArrayStream,
    columns: Vec<Column>,
    ended: bool,
}

impl StreamReader {
    pub fn new(mut stream: FFI_ArrowArrayStream) -> Result<StreamReader> {
        if stream.release().is_none() {
            return Err("the stream has already been read or released".into());
        }
        let get_schema = stream.get_schema().ok_or("the stream has no schema")?;
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: the callback belongs to this stream, which is not released.
        let code = unsafe { get_schema(&raw mut stream, &raw mut schema) };
        if code != 0 {
            return Err(producer_error(&mut stream, code));
        }
        let columns = read_schema(&schema)?;
        Ok(StreamReader { stream, columns, ended: false })
    }

    fn read_next(&mut self) -> Result<Option<RecordBatch>> {
        let get_next = self.stream.get_next().ok_or("the stream has no batches")?;
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: the callback belongs to this stream, which is not released.
        let code = unsafe { get_next(&raw mut self.stream, &raw mut array) };
        if code != 0 {
            return Err(producer_error(&mut self.stream, code));
        }
        if array.is_released() {
            return Ok(None);
        }
        self.batch(Arc::new(array)).map(Some)
    }

    fn batch(&self, owner: Arc<FFI_ArrowArray>) -> Result<RecordBatch> {
        // SAFETY: both are `struct ArrowArray`.
        let raw = unsafe { &*Arc::as_ptr(&owner).cast::<RawArray>() };
        let (rows, skip) = raw.extent()?;
        if raw.n_children != self.columns.len() as i64 || (raw.n_children > 0 && raw.children.is_null()) {
            return Err(format!("a batch has {} columns, its schema {}", raw.n_children, self.columns.len()));
        }
        raw.refuse_null_rows(rows, skip)?;
        let (mut fields, mut arrays): (Vec<Field>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
        for (position, column) in self.columns.iter().enumerate() {
            let imported = match &column.data_type {
                Err(why) => Err((UNSUPPORTED, why.clone())),
                Ok(data_type) => raw.column(position, data_type, skip, rows, &owner).map_err(|why| (UNREADABLE, why)),
            };
            let (field, array) = match imported {
                Ok(array) => (Field::new(&column.name, array.data_type().clone(), true), array),
                Err((kind, why)) => {
                    let metadata = HashMap::from([(kind.to_string(), why)]);
                    let field = Field::new(&column.name, DataType::Null, true).with_metadata(metadata);
                    (field, Arc::new(NullArray::new(rows)) as ArrayRef)
                }
            };
            fields.push(field);
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
            .map_err(|error| error.to_string())
    }
}

impl Iterator for StreamReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read_next().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// What the producer says about its last failure.
fn producer_error(stream: &mut FFI_ArrowArrayStream, code: i32) -> String {
    let message = stream.get_last_error().map(|get| {
        // SAFETY: the last call on this stream, which is not released, has failed.
        unsafe { get(std::ptr::from_mut(stream)) }
    });
    match message {
        Some(text) if !text.is_null() => {
            // SAFETY: the producer's text ends with a NUL and lives until the next call.
            let text = unsafe { CStr::from_ptr(text) };
            format!("the producer failed: {}", text.to_string_lossy())
        }
        _ => format!("the producer failed with code {code}"),
    }
}

fn read_schema(schema: &FFI_ArrowSchema) -> Result<Vec<Column>> {
    // SAFETY: both are `struct ArrowSchema`.
    let raw = unsafe { &*std::ptr::from_ref(schema).cast::<RawSchema>() };
    if raw.release.is_null() || raw.format()? != "+s" {
        return Err("the stream does not contain a table".into());
    }
    if !(0..=MOST_COLUMNS).contains(&raw.n_children) || (raw.n_children > 0 && raw.children.is_null()) {
        return Err(format!("the schema has {} columns", raw.n_children));
    }
    let column = |position: i64| {
        // SAFETY: there are `n_children` pointers, each to a schema or null.
        let child = unsafe { raw.children.add(position as usize).read_unaligned().as_ref() };
        let child = child.ok_or("a column of the schema is missing")?;
        Ok(Column { name: text(child.name), data_type: child.data_type() })
    };
    (0..raw.n_children).map(column).collect()
}

/// A C string; a name that is not UTF-8 is no column of any view, so it is enough to show it.
fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: the interface's strings end with a NUL.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

impl RawSchema {
    fn format(&self) -> Result<String> {
        if self.format.is_null() {
            return Err("the schema names no type".into());
        }
        // SAFETY: the interface's strings end with a NUL.
        let format = unsafe { CStr::from_ptr(self.format) };
        format.to_str().map(String::from).map_err(|_| "the schema names an unknown type".into())
    }

    /// The type of a column; an error for one that is nested too deeply, or in a way that no column
    /// is.
    fn data_type(&self) -> Result<DataType> {
        self.check_depth(0)?;
        // SAFETY: a pointer to a schema, or null.
        let values = unsafe { self.dictionary.as_ref() };
        let nested = |format: &str| format.starts_with('+');
        if let Some(values) = values {
            let format = values.format()?;
            if nested(&format) || values.n_children != 0 || !values.dictionary.is_null() {
                return Err("a dictionary of nested values is not supported".into());
            }
        }
        // SAFETY: both are `struct ArrowSchema`.
        let schema = unsafe { &*std::ptr::from_ref(self).cast::<FFI_ArrowSchema>() };
        let data_type = DataType::try_from(schema).map_err(|error| format!("unknown Arrow type: {error}"))?;
        check_type(&data_type)?;
        Ok(data_type)
    }

    /// Checks nested types before any other code reads them.
    fn check_depth(&self, depth: usize) -> Result<()> {
        let format = self.format()?;
        let children = match format.as_bytes() {
            [b'+', b'l' | b'L' | b'm'] | [b'+', b'w', ..] => 1..=1,
            [b'+', b's'] => 0..=MOST_COLUMNS,
            [b'+', ..] => return Err(format!("Arrow types such as {} are not supported", nested_name(&format))),
            _ => 0..=0,
        };
        if depth > DEEPEST || !children.contains(&self.n_children) || (self.n_children > 0 && self.children.is_null()) {
            return Err(format!("{} with {} columns, {depth} levels deep", nested_name(&format), self.n_children));
        }
        for position in 0..self.n_children as usize {
            // SAFETY: there are `n_children` pointers, each to a schema or null.
            let child = unsafe { self.children.add(position).read_unaligned().as_ref() };
            let child = child.ok_or("a part of the schema is missing")?;
            // SAFETY: the interface's strings end with a NUL.
            let named = child.name.is_null() || unsafe { CStr::from_ptr(child.name) }.to_str().is_ok();
            if !named {
                return Err("the name of a field is not valid UTF-8".into());
            }
            if depth + 1 > DEEPEST || (!child.dictionary.is_null() && child.format()?.starts_with('+')) {
                return Err("a type that is nested too deeply".into());
            }
            child.check_depth(depth + 1)?;
        }
        Ok(())
    }
}

/// What a type implies about sizes and indices, at all its levels.
fn check_type(data_type: &DataType) -> Result<()> {
    match data_type {
        DataType::Dictionary(key, _) if !key.is_integer() => Err(format!("{key} can't index a dictionary")),
        DataType::Dictionary(_, values) => check_type(values),
        DataType::FixedSizeBinary(width) if *width < 0 => Err(format!("binary values of {width} bytes")),
        DataType::FixedSizeList(_, width) if *width < 0 => Err(format!("lists of {width} values")),
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            check_type(field.data_type())
        }
        DataType::Map(field, _) => match field.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => check_type(field.data_type()),
            _ => Err("a map without keys and values".into()),
        },
        DataType::Struct(fields) => fields.iter().try_for_each(|field| check_type(field.data_type())),
        _ => Ok(()),
    }
}

fn nested_name(format: &str) -> &str {
    match format.as_bytes() {
        [b'+', b'l' | b'L', ..] => "a list",
        [b'+', b'v', ..] => "a list view",
        [b'+', b'w', ..] => "a fixed-size list",
        [b'+', b's', ..] => "a struct",
        [b'+', b'm', ..] => "a map",
        [b'+', b'u', ..] => "a union",
        [b'+', b'r', ..] => "run-end encoded",
        _ => format,
    }
}

impl RawArray {
    /// Length and offset, whose sum is no more than an array can have.
    fn extent(&self) -> Result<(usize, usize)> {
        let count = |count: i64| usize::try_from(count).ok().filter(|count| *count <= MOST);
        match (count(self.length), count(self.offset)) {
            (Some(length), Some(offset)) => Ok((length, offset)),
            _ => Err(format!("an array can't have length {} and offset {}", self.length, self.offset)),
        }
    }

    fn buffer(&self, index: usize) -> Result<Option<NonNull<u8>>> {
        if index as i64 >= self.n_buffers || self.buffers.is_null() {
            return Err(format!("the array has {} buffers, but needs more", self.n_buffers));
        }
        // SAFETY: there are `n_buffers` pointers.
        Ok(NonNull::new(unsafe { self.buffers.add(index).read_unaligned() }.cast_mut()))
    }

    /// Buffer `index`, of which `bytes` are read; it may only be missing when these are none.
    fn bytes(&self, index: usize, bytes: usize, owner: &Arc<FFI_ArrowArray>) -> Result<Buffer> {
        match self.buffer(index)? {
            _ if bytes == 0 => Ok(Buffer::default()),
            // SAFETY: the producer vouches for the buffer's size; `owner` keeps it.
            Some(pointer) => Ok(unsafe { Buffer::from_custom_allocation(pointer, bytes, owner.clone()) }),
            None => Err(format!("buffer {index} of the array is missing")),
        }
    }

    fn validity(&self, length: usize, offset: usize, owner: &Arc<FFI_ArrowArray>) -> Result<Option<Buffer>> {
        if self.null_count < -1 || self.null_count > length as i64 {
            return Err(format!("{} values can't have {} NULLs", length, self.null_count));
        }
        match self.buffer(0)? {
            Some(_) => self.bytes(0, (length + offset).div_ceil(8), owner).map(Some),
            None if self.null_count > 0 => Err(format!("{} NULLs, but no validity bitmap", self.null_count)),
            None => Ok(None),
        }
    }

    /// A batch is a struct array, of which only the columns are read.
    fn refuse_null_rows(&self, rows: usize, skip: usize) -> Result<()> {
        if self.null_count == 0 || self.n_buffers == 0 {
            return Ok(());
        }
        let Some(bitmap) = self.buffer(0)? else {
            return if self.null_count > 0 { Err("whole rows are NULL".into()) } else { Ok(()) };
        };
        // SAFETY: the bitmap has a bit for each row.
        let present = |row: usize| unsafe { bitmap.add(row / 8).read() } >> (row % 8) & 1 != 0;
        if (skip..skip + rows).all(present) {
            Ok(())
        } else {
            Err("whole rows are NULL".into())
        }
    }

    /// Rows of one column of a batch.
    fn column(
        &self,
        position: usize,
        data_type: &DataType,
        skip: usize,
        rows: usize,
        owner: &Arc<FFI_ArrowArray>,
    ) -> Result<ArrayRef> {
        // SAFETY: there are `n_children` pointers, each to an array or null.
        let child = unsafe { self.children.add(position).read_unaligned().as_ref() };
        let child = child.ok_or("the array is missing")?;
        let (length, _) = child.extent()?;
        if length < skip + rows {
            return Err(format!("the array has {length} values for {} rows", skip + rows));
        }
        Ok(make_array(child.data(data_type, owner)?).slice(skip, rows))
    }

    /// A part of a nested array, which has `length` values at least.
    fn part(&self, index: usize, field: &Field, length: usize, owner: &Arc<FFI_ArrowArray>) -> Result<ArrayData> {
        if index as i64 >= self.n_children || self.children.is_null() {
            return Err(format!("the array has {} parts, but needs more", self.n_children));
        }
        // SAFETY: there are `n_children` pointers, each to an array or null.
        let child = unsafe { self.children.add(index).read_unaligned().as_ref() };
        let child = child.ok_or("a part of the array is missing")?;
        let (found, _) = child.extent()?;
        if found < length {
            return Err(format!("a part of the array has {found} values instead of {length}"));
        }
        child.data(field.data_type(), owner)
    }

    /// Offsets of `width` bytes, and the last of them.
    fn offsets(&self, width: usize, end: usize, owner: &Arc<FFI_ArrowArray>) -> Result<(Buffer, usize)> {
        let offsets = self.bytes(1, (end + 1) * width, owner)?;
        let last = &offsets.as_slice()[end * width..];
        let last = match width {
            4 => i64::from(i32::from_le_bytes([last[0], last[1], last[2], last[3]])),
            _ => i64::from_le_bytes([last[0], last[1], last[2], last[3], last[4], last[5], last[6], last[7]]),
        };
        match usize::try_from(last) {
            Ok(last) if last <= MOST => Ok((offsets, last)),
            _ => Err(format!("the last offset is {last}")),
        }
    }

    /// An array. Its buffers have the sizes that its length, and for text its last offset, ask for.
    fn data(&self, data_type: &DataType, owner: &Arc<FFI_ArrowArray>) -> Result<ArrayData> {
        let (length, offset) = self.extent()?;
        if *data_type == DataType::Null {
            return Ok(NullArray::new(length).into_data());
        }
        if length == 0 {
            return Ok(new_empty_array(data_type).into_data());
        }
        let validity = self.validity(length, offset, owner)?;
        let end = length + offset;
        let fixed = |width: usize| match end.checked_mul(width).filter(|bytes| *bytes <= MOST) {
            Some(bytes) => Ok(vec![self.bytes(1, bytes, owner)?]),
            None => Err(format!("an array can't have {end} values of {width} bytes")),
        };
        let mut children = Vec::new();
        let buffers = match data_type {
            DataType::Boolean => vec![self.bytes(1, end.div_ceil(8), owner)?],
            DataType::Utf8 | DataType::Binary => self.text(4, end, owner)?,
            DataType::LargeUtf8 | DataType::LargeBinary => self.text(8, end, owner)?,
            DataType::Utf8View | DataType::BinaryView => self.views(end, owner)?,
            DataType::FixedSizeBinary(width) => fixed(*width as usize)?,
            DataType::Dictionary(key, values) => {
                // SAFETY: a pointer to an array, or null.
                let dictionary = unsafe { self.dictionary.as_ref() }.ok_or("the array's dictionary is missing")?;
                children.push(dictionary.data(values, owner)?);
                fixed(key.primitive_width().unwrap_or(8))?
            }
            DataType::List(field) | DataType::Map(field, _) => {
                let (offsets, last) = self.offsets(4, end, owner)?;
                children.push(self.part(0, field, last, owner)?);
                vec![offsets]
            }
            DataType::LargeList(field) => {
                let (offsets, last) = self.offsets(8, end, owner)?;
                children.push(self.part(0, field, last, owner)?);
                vec![offsets]
            }
            DataType::FixedSizeList(field, width) => {
                let values = end.checked_mul(*width as usize).filter(|values| *values <= MOST);
                let values = values.ok_or_else(|| format!("an array can't have {end} lists of {width} values"))?;
                children.push(self.part(0, field, values, owner)?);
                Vec::new()
            }
            DataType::Struct(fields) => {
                for (index, field) in fields.iter().enumerate() {
                    children.push(self.part(index, field, end, owner)?);
                }
                Vec::new()
            }
            _ => {
                let width = data_type.primitive_width();
                fixed(width.ok_or_else(|| format!("Arrow type {data_type} is not supported"))?)?
            }
        };
        let builder = ArrayData::builder(data_type.clone()).len(length).offset(offset).null_bit_buffer(validity);
        let builder = builder.buffers(buffers).child_data(children).align_buffers(true);
        // SAFETY: the number and the sizes of the buffers are what the type requires. What they
        // hold is checked before any value is read.
        let data = unsafe { builder.skip_validation(true) }.build().map_err(|error| error.to_string())?;
        if self.null_count >= 0 && data.null_count() as i64 != self.null_count {
            return Err(format!("{} NULLs, but its NULL count is {}", data.null_count(), self.null_count));
        }
        Ok(data)
    }

    /// Offsets of `width` bytes, and as many bytes of text as the last of them says.
    fn text(&self, width: usize, end: usize, owner: &Arc<FFI_ArrowArray>) -> Result<Vec<Buffer>> {
        let (offsets, last) = self.offsets(width, end, owner)?;
        Ok(vec![offsets, self.bytes(2, last, owner)?])
    }

    /// Views, and the buffers that they point into, whose sizes the last buffer lists.
    fn views(&self, end: usize, owner: &Arc<FFI_ArrowArray>) -> Result<Vec<Buffer>> {
        let count = usize::try_from(self.n_buffers - 3).ok().filter(|count| *count <= MOST >> 20);
        let count = count.ok_or_else(|| format!("an array of views can't have {} buffers", self.n_buffers))?;
        let mut buffers = vec![self.bytes(1, end * 16, owner)?];
        let sizes = self.bytes(count + 2, count * 8, owner)?;
        for (index, size) in sizes.as_slice().chunks_exact(8).enumerate() {
            let size = i64::from_le_bytes(size.try_into().unwrap_or_default());
            let bytes = usize::try_from(size).ok().filter(|bytes| *bytes <= MOST);
            let bytes = bytes.ok_or_else(|| format!("a buffer can't have {size} bytes"))?;
            buffers.push(self.bytes(index + 2, bytes, owner)?);
        }
        Ok(buffers)
    }
}
