//! Validates the contents of an Arrow array of changes before any value is read.
//!
//! Arrays come from other libraries. Their types and buffer sizes can be trusted; offsets, views,
//! dictionary indices and text may contain anything. All of it is checked once per column and
//! batch, in passes that the compiler can vectorise: text is examined row by row only if it is
//! invalid or not ASCII. Values under a NULL are undefined and are not checked.

use arrow::array::{Array, ArrayRef, AsArray, ByteView, GenericByteArray, GenericByteViewArray};
use arrow::datatypes::{self as types, ArrowDictionaryKeyType, ByteArrayType, ByteViewType, DataType};

/// The metadata of a field whose array could not be imported, because it is broken or of a type
/// that no column has: why.
pub const UNREADABLE: &str = "crown:unreadable";
/// The key of a field's metadata that says why the column has a type that Crown does not support.
pub const UNSUPPORTED: &str = "crown:unsupported";

type Result = std::result::Result<(), String>;

/// Why the array breaks the Arrow format.
pub fn check(array: &ArrayRef) -> Result {
    match array.data_type() {
        DataType::Utf8 => check_text(array.as_string::<i32>()),
        DataType::LargeUtf8 => check_text(array.as_string::<i64>()),
        DataType::Binary => check_offsets(array.as_binary::<i32>()),
        DataType::LargeBinary => check_offsets(array.as_binary::<i64>()),
        DataType::Utf8View => check_views(array.as_string_view(), true),
        DataType::BinaryView => check_views(array.as_binary_view(), false),
        DataType::Dictionary(key, _) => {
            match **key {
                DataType::Int8 => check_keys::<types::Int8Type>(array),
                DataType::Int16 => check_keys::<types::Int16Type>(array),
                DataType::Int32 => check_keys::<types::Int32Type>(array),
                DataType::Int64 => check_keys::<types::Int64Type>(array),
                DataType::UInt8 => check_keys::<types::UInt8Type>(array),
                DataType::UInt16 => check_keys::<types::UInt16Type>(array),
                DataType::UInt32 => check_keys::<types::UInt32Type>(array),
                _ => check_keys::<types::UInt64Type>(array),
            }?;
            check(array.as_any_dictionary().values())
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            check_ranges(list.value_offsets(), list.values())
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            check_ranges(list.value_offsets(), list.values())
        }
        DataType::Map(..) => {
            let map = array.as_map();
            check_ranges(map.value_offsets(), map.keys())?;
            check(map.values())
        }
        DataType::FixedSizeList(..) => check(array.as_fixed_size_list().values()),
        DataType::Struct(_) => array.as_struct().columns().iter().try_for_each(check),
        _ => Ok(()),
    }
}

/// The values of a list, and where those of each row are.
fn check_ranges<O: Copy + PartialOrd + TryInto<usize>>(offsets: &[O], values: &ArrayRef) -> Result {
    let wrong = |pair: &[O]| pair[0] > pair[1] || usize_of(pair[0]) > values.len() || usize_of(pair[1]) > values.len();
    match offsets.windows(2).position(wrong) {
        Some(row) => Err(format!("row {row}: its offsets are not within the {} values of the column", values.len())),
        None => check(values),
    }
}

fn usize_of(offset: impl TryInto<usize>) -> usize {
    offset.try_into().unwrap_or(usize::MAX)
}

fn check_offsets<T: ByteArrayType>(array: &GenericByteArray<T>) -> Result
where
    T::Offset: TryInto<usize>,
{
    let offsets: &[T::Offset] = array.offsets();
    let decreases = offsets.windows(2).fold(false, |found, pair| found | (pair[0] > pair[1]));
    let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
    if decreases || first < T::Offset::default() || usize_of(last) > array.values().len() {
        let values = array.values().len();
        let wrong = |pair: &[T::Offset]| pair[0] > pair[1] || usize_of(pair[0]) > values || usize_of(pair[1]) > values;
        let row = offsets.windows(2).position(wrong).unwrap_or(0);
        return Err(format!("row {row}: its offsets are not within the {values} bytes of the column, in order"));
    }
    Ok(())
}

fn check_text<T: ByteArrayType>(array: &GenericByteArray<T>) -> Result
where
    T::Offset: TryInto<usize>,
{
    check_offsets(array)?;
    let offsets: &[T::Offset] = array.offsets();
    let (first, last) = (usize_of(offsets[0]), usize_of(offsets[offsets.len() - 1]));
    let text = &array.values().as_slice()[..last];
    if text[first..].is_ascii() {
        return Ok(());
    }
    // No character of text that is valid as a whole may be cut by an offset.
    let starts = |offset: &T::Offset| text.get(usize_of(*offset)).is_none_or(|byte| byte & 0xC0 != 0x80);
    if std::str::from_utf8(&text[first..]).is_ok() && offsets.iter().all(starts) {
        return Ok(());
    }
    let valid = |row: usize| {
        let bytes = &text[usize_of(offsets[row])..usize_of(offsets[row + 1])];
        array.is_null(row) || std::str::from_utf8(bytes).is_ok()
    };
    (0..array.len()).find(|row| !valid(*row)).map_or(Ok(()), |row| Err(not_utf8(row)))
}

fn not_utf8(row: usize) -> String {
    format!("row {row}: the text is not valid UTF-8")
}

const INLINE: usize = 12;

fn check_views<T: ByteViewType>(array: &GenericByteViewArray<T>, text: bool) -> Result {
    let buffers = array.data_buffers();
    for (row, view) in array.views().iter().enumerate() {
        if array.is_null(row) {
            continue;
        }
        let inline = view.to_le_bytes();
        let view = ByteView::from(*view);
        let length = view.length as usize;
        let bytes = if length <= INLINE {
            if inline[4 + length..].iter().any(|byte| *byte != 0) {
                return Err(format!("row {row}: its view has more bytes than its length"));
            }
            &inline[4..4 + length]
        } else {
            let buffer = buffers.get(view.buffer_index as usize).map(|buffer| buffer.as_slice());
            let start = view.offset as usize;
            let bytes = buffer.and_then(|buffer| buffer.get(start..start.checked_add(length)?));
            let bytes = bytes.filter(|bytes| bytes[..4] == view.prefix.to_le_bytes());
            bytes.ok_or_else(|| format!("row {row}: its view does not point to its bytes"))?
        };
        if text && std::str::from_utf8(bytes).is_err() {
            return Err(not_utf8(row));
        }
    }
    Ok(())
}

fn check_keys<K: ArrowDictionaryKeyType>(array: &ArrayRef) -> Result
where
    K::Native: TryInto<usize>,
{
    let dictionary = array.as_dictionary::<K>();
    let (keys, values) = (dictionary.keys(), dictionary.values().len());
    let outside = |key: &K::Native| usize_of(*key) >= values;
    if !keys.values().iter().fold(false, |found, key| found | outside(key)) {
        return Ok(());
    }
    let wrong = |row: &usize| keys.is_valid(*row) && outside(&keys.values()[*row]);
    (0..keys.len()).find(wrong).map_or(Ok(()), |row| {
        Err(format!("row {row}: index {:?} is not in the dictionary of {values} values", keys.values()[row]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayData, DictionaryArray, Int8Array, StringArray, StringViewArray};
    use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
    use std::sync::Arc;

    /// Strings whose offsets and bytes are what a careless producer wrote.
    fn text(offsets: &[i32], bytes: &[u8], nulls: Option<Vec<bool>>) -> ArrayRef {
        let data = ArrayData::builder(DataType::Utf8)
            .len(offsets.len() - 1)
            .null_bit_buffer(nulls.map(|valid| arrow::buffer::BooleanBuffer::from(valid).into_inner()))
            .add_buffer(Buffer::from_slice_ref(offsets))
            .add_buffer(Buffer::from_slice_ref(bytes));
        // SAFETY: not valid at all; only `check` sees it.
        Arc::new(StringArray::from(unsafe { data.build_unchecked() }))
    }

    #[test]
    fn offsets_stay_within_the_bytes_and_in_order() {
        assert!(check(&text(&[0, 1, 3], b"abc", None)).is_ok());
        assert!(check(&text(&[1, 1, 3], b"abc", None)).is_ok());
        for offsets in [[0, 4, 3], [-1, 0, 3], [0, 3, 4], [0, 2, 1], [0, i32::MAX, i32::MIN]] {
            let error = check(&text(&offsets, b"abc", None)).unwrap_err();
            assert!(error.contains("offsets"), "{offsets:?}: {error}");
        }
    }

    #[test]
    fn text_is_utf8_unless_null() {
        let bytes = "aé".as_bytes();
        assert!(check(&text(&[0, 1, 3], bytes, None)).is_ok());
        assert!(check(&text(&[0, 2, 3], bytes, None)).unwrap_err().contains("row 0"), "a character cut in two");
        assert!(check(&text(&[0, 1, 2], b"a\xff", None)).unwrap_err().contains("row 1"));
        assert!(check(&text(&[0, 1, 2], b"a\xff", Some(vec![true, false]))).is_ok());
    }

    #[test]
    fn views_point_to_their_bytes() {
        let good = StringViewArray::from(vec!["short", "a text of more than twelve bytes"]);
        assert!(check(&(Arc::new(good.clone()) as ArrayRef)).is_ok());
        let long = ByteView::from(good.views()[1]);
        let wrong = [
            ByteView { buffer_index: 1, ..long },
            ByteView { offset: 1, ..long },
            ByteView { length: 1000, ..long },
            ByteView { length: u32::MAX, offset: u32::MAX, ..long },
            ByteView { prefix: 0, ..long },
        ];
        for view in wrong {
            let views = ScalarBuffer::from(vec![good.views()[0], view.as_u128()]);
            // SAFETY: not valid at all; only `check` sees it.
            let array = unsafe { StringViewArray::new_unchecked(views, good.data_buffers().to_vec().into(), None) };
            assert!(check(&(Arc::new(array) as ArrayRef)).unwrap_err().contains("row 1"), "{view:?}");
        }
    }

    #[test]
    fn dictionary_indices_have_a_value() {
        let of = |keys: Vec<Option<i8>>, values: StringArray| -> ArrayRef {
            // SAFETY: not valid at all; only `check` sees it.
            Arc::new(unsafe { DictionaryArray::new_unchecked(Int8Array::from(keys), Arc::new(values)) })
        };
        let words = || StringArray::from(vec!["x", "y"]);
        assert!(check(&of(vec![Some(1), None], words())).is_ok());
        assert!(check(&of(vec![Some(1), Some(2)], words())).unwrap_err().contains("row 1"));
        assert!(check(&of(vec![Some(-1)], words())).is_err());
        assert!(check(&of(vec![Some(0)], StringArray::new_null(0))).is_err());
        // SAFETY: as above.
        let broken = unsafe {
            StringArray::new_unchecked(OffsetBuffer::new_unchecked(vec![0, 9].into()), Buffer::from(b"abc"), None)
        };
        assert!(check(&of(vec![Some(0)], broken)).is_err());
    }
}
