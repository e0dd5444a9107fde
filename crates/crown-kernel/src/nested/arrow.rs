//! Nested values from Arrow arrays, and as Arrow arrays.

use super::{array_of, elements, entries, fields, map_of, struct_of, word, Nested};
use crate::arrow_out;
use crate::arrow_values::{arrow_name, convert, Sink};
use crate::chunk::{Nulls, Word};
use crate::store::interner::Interner;
use crate::store::pool::ColumnPool;
use crate::types::DataType;
use arrow::array::{make_array, Array, ArrayData, ArrayRef, AsArray, ListArray, MapArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType as ArrowType, Field, Fields};
use std::sync::Arc;

/// The Arrow type in which a nested value leaves.
pub fn arrow_type(nested: &Nested) -> ArrowType {
    let field =
        |name: &str, data_type: DataType, nullable| Field::new(name, arrow_out::arrow_type(data_type), nullable);
    match nested {
        Nested::Array(element) => ArrowType::List(Arc::new(field("element", *element, true))),
        Nested::Struct(fields) => ArrowType::Struct(struct_fields(fields)),
        Nested::Map(key, value) => {
            let entries = Fields::from(vec![field("key", *key, false), field("value", *value, true)]);
            ArrowType::Map(Arc::new(Field::new("entries", ArrowType::Struct(entries), false)), false)
        }
    }
}

fn struct_fields(fields: &[(String, DataType)]) -> Fields {
    fields.iter().map(|(name, data_type)| Field::new(name, arrow_out::arrow_type(*data_type), true)).collect()
}

/// An Arrow array of parts.
pub fn to_arrow<'a>(data_type: DataType, rows: &[Option<&'a [u8]>]) -> ArrayRef {
    let DataType::Nested(nested) = data_type else {
        let mut interner = Interner::default();
        let words = rows.iter().map(|row| row.map_or(0, |bytes| word(bytes, data_type, &mut interner))).collect();
        let nulls: Vec<Nulls> = rows.iter().map(|row| Nulls::from(row.is_none())).collect();
        return arrow_out::array(words, &nulls, 0, data_type, &interner, &ColumnPool::default());
    };
    let validity = NullBuffer::from_iter(rows.iter().map(Option::is_some));
    let validity = (validity.null_count() > 0).then_some(validity);
    let empty = |row: &Option<&[u8]>| row.is_none();
    match nested {
        Nested::Array(element) => {
            let parts: Vec<Vec<Option<&[u8]>>> =
                rows.iter().map(|row| row.map_or_else(Vec::new, |bytes| elements(bytes, *element).collect())).collect();
            let offsets = OffsetBuffer::from_lengths(parts.iter().map(Vec::len));
            let values = to_arrow(*element, &parts.concat());
            let ArrowType::List(field) = arrow_type(nested) else { unreachable!("the type of an array is a list") };
            Arc::new(ListArray::new(field, offsets, values, validity))
        }
        Nested::Map(key, value) => {
            let of_row =
                |row: &Option<&'a [u8]>| row.map_or_else(Vec::new, |bytes| entries(bytes, *key, *value).collect());
            let parts: Vec<Vec<_>> = rows.iter().map(of_row).collect();
            let offsets = OffsetBuffer::from_lengths(parts.iter().map(Vec::len));
            let parts = parts.concat();
            let keys: Vec<_> = parts.iter().map(|(key, _)| Some(*key)).collect();
            let values: Vec<_> = parts.iter().map(|(_, value)| *value).collect();
            let ArrowType::Map(field, sorted) = arrow_type(nested) else { unreachable!("the type of a map is a map") };
            let ArrowType::Struct(inner) = field.data_type().clone() else { unreachable!("entries are structs") };
            let entries = StructArray::new(inner, vec![to_arrow(*key, &keys), to_arrow(*value, &values)], None);
            Arc::new(MapArray::new(field, offsets, entries, validity, sorted))
        }
        Nested::Struct(inner) => {
            let parts: Vec<Vec<Option<&[u8]>>> = rows
                .iter()
                .map(|row| {
                    if empty(row) {
                        vec![None; inner.len()]
                    } else {
                        fields(row.unwrap_or_default(), inner).collect()
                    }
                })
                .collect();
            let column = |position: usize| parts.iter().map(|row| row[position]).collect::<Vec<_>>();
            let arrays = inner.iter().enumerate().map(|(at, (_, data_type))| to_arrow(*data_type, &column(at)));
            let data = ArrayData::builder(ArrowType::Struct(struct_fields(inner)))
                .len(rows.len())
                .nulls(validity)
                .child_data(arrays.map(|array| array.to_data()).collect());
            make_array(data.build().expect("each field has a value for each row"))
        }
    }
}

/// The words of an Arrow array of nested values; `Err` when none of its values could fit.
pub(crate) fn from_arrow(
    array: &ArrayRef,
    nested: &'static Nested,
    interner: &mut Interner,
    sink: &mut Sink,
) -> std::result::Result<(), String> {
    let mismatch = || format!("expected {}, found Arrow type {}", nested.sql_name(), arrow_name(array.data_type()));
    match nested {
        Nested::Array(element) => {
            let (values, ranges) = list_parts(array).ok_or_else(mismatch)?;
            let parts = Parts::read(&values, *element, interner)?;
            sink.each_nested(array, interner, |row, interner| {
                let (from, to) = ranges[row];
                parts.check(from, to)?;
                Ok(array_of(*element, (from..to).map(|at| parts.word(at)), interner))
            });
        }
        Nested::Map(key, value) => {
            let map = array.as_map_opt().ok_or_else(mismatch)?;
            let keys = Parts::read(map.keys(), *key, interner)?;
            let values = Parts::read(map.values(), *value, interner)?;
            let offsets = map.value_offsets();
            sink.each_nested(array, interner, |row, interner| {
                let (from, to) = (offsets[row] as usize, offsets[row + 1] as usize);
                keys.check(from, to)?;
                values.check(from, to)?;
                let entry = |at: usize| Ok((keys.word(at).ok_or("a map has a NULL as a key")?, values.word(at)));
                let entries = (from..to).map(entry).collect::<std::result::Result<Vec<_>, String>>()?;
                map_of((*key, *value), entries, interner)
            });
        }
        Nested::Struct(fields) => {
            let rows = array.as_struct_opt().ok_or_else(mismatch)?;
            let mut parts = Vec::new();
            for (name, data_type) in fields {
                let named = |field: &&Arc<Field>| field.name().eq_ignore_ascii_case(name);
                let position = rows.fields().iter().position(|field| named(&field)).ok_or_else(|| {
                    format!("the struct has no field '{name}'; it has Arrow type {}", arrow_name(array.data_type()))
                })?;
                parts.push((*data_type, Parts::read(rows.column(position), *data_type, interner)?));
            }
            sink.each_nested(array, interner, |row, interner| {
                for (_, part) in &parts {
                    part.check(row, row + 1)?;
                }
                Ok(struct_of(parts.iter().map(|(data_type, part)| (*data_type, part.word(row))), interner))
            });
        }
    }
    Ok(())
}

/// Lists of any kind: their values, and the range of each row.
fn list_parts(array: &ArrayRef) -> Option<(ArrayRef, Vec<(usize, usize)>)> {
    let ranges = |offsets: Vec<usize>| offsets.windows(2).map(|pair| (pair[0], pair[1])).collect();
    match array.data_type() {
        ArrowType::List(_) => {
            let list = array.as_list::<i32>();
            Some((list.values().clone(), ranges(list.value_offsets().iter().map(|at| *at as usize).collect())))
        }
        ArrowType::LargeList(_) => {
            let list = array.as_list::<i64>();
            Some((list.values().clone(), ranges(list.value_offsets().iter().map(|at| *at as usize).collect())))
        }
        ArrowType::FixedSizeList(_, width) => {
            let list = array.as_fixed_size_list();
            let width = *width as usize;
            Some((list.values().clone(), (0..list.len()).map(|row| (row * width, (row + 1) * width)).collect()))
        }
        _ => None,
    }
}

/// The words of all parts of a column.
struct Parts {
    sink: Sink,
}

impl Parts {
    fn read(array: &ArrayRef, data_type: DataType, interner: &mut Interner) -> std::result::Result<Parts, String> {
        let mut sink = Sink::default();
        convert(array, data_type, interner, &mut sink)?;
        Ok(Parts { sink })
    }

    /// Why a part of these does not fit.
    fn check(&self, from: usize, to: usize) -> std::result::Result<(), String> {
        let at = self.sink.faults.partition_point(|(row, _)| *row < from);
        match self.sink.faults.get(at) {
            Some((row, why)) if *row < to => Err(why.clone()),
            _ => Ok(()),
        }
    }

    fn word(&self, at: usize) -> Option<Word> {
        self.sink.nulls.binary_search(&at).is_err().then(|| self.sink.words[at])
    }
}
