//! Arrays, structs and maps as bytes: equal values have equal bytes, and bytes compare as the
//! values do.
//!
//! So a nested value is interned like a string, and equality, grouping, joins and order need no
//! special code for it; only functions that access its parts decode it. Within a nested value each
//! part is preceded by one byte: `NULL`, or `VALUE` and the part itself. NULL is the least value,
//! and an array is less than a longer one that begins with it, as in Spark. The entries of a map
//! are sorted by key, so their original order does not matter.

use crate::arrow_out;
use crate::arrow_values::{arrow_name, convert, Sink};
use crate::chunk::{Nulls, Word};
use crate::error::{KernelError, Result};
use crate::expression::{key_word, order_key, OrderKey};
use crate::store::interner::Interner;
use crate::store::pool::ColumnPool;
use crate::types::DataType;
use arrow::array::{make_array, Array, ArrayData, ArrayRef, AsArray, ListArray, MapArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType as ArrowType, Field, Fields};
use std::collections::HashSet;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

/// What a nested type consists of.
#[derive(Debug, PartialEq, Eq, Hash)]
pub enum Nested {
    /// `array<type>`
    Array(DataType),
    /// `struct<`name`:type,...>`
    Struct(Vec<(String, DataType)>),
    /// `map<key,value>`
    Map(DataType, DataType),
}

impl Nested {
    /// The type as SQL writes it.
    pub fn sql_name(&self) -> String {
        match self {
            Nested::Array(element) => format!("ARRAY<{}>", element.sql_name()),
            Nested::Map(key, value) => format!("MAP<{}, {}>", key.sql_name(), value.sql_name()),
            Nested::Struct(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|(name, field)| format!("{name}: {}", field.sql_name())).collect();
                format!("STRUCT<{}>", fields.join(", "))
            }
        }
    }
}

const END: u8 = 0;
const NULL: u8 = 1;
const VALUE: u8 = 2;
/// Types may be nested this deep.
const DEEPEST: usize = 32;

/// The types of all plans of the process: there are as many as plans have different ones.
static KNOWN: LazyLock<RwLock<HashSet<&'static Nested>>> = LazyLock::new(RwLock::default);

/// The one copy of a nested type.
pub fn known(nested: Nested) -> DataType {
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.get(&nested) {
        return DataType::Nested(found);
    }
    let leaked: &'static Nested = Box::leak(Box::new(nested));
    known.insert(leaked);
    DataType::Nested(leaked)
}

/// Reads the name of a nested type; `None` if it is not one.
pub fn parse(name: &str) -> Option<DataType> {
    let mut rest = name;
    let found = parse_part(&mut rest, 0)?;
    rest.is_empty().then_some(found)
}

fn parse_part(rest: &mut &str, depth: usize) -> Option<DataType> {
    if depth > DEEPEST {
        return None;
    }
    if let Some(inside) = rest.strip_prefix("array<") {
        *rest = inside;
        let element = parse_part(rest, depth + 1)?;
        eat(rest, '>')?;
        return Some(known(Nested::Array(element)));
    }
    if let Some(inside) = rest.strip_prefix("map<") {
        *rest = inside;
        let key = parse_part(rest, depth + 1)?;
        eat(rest, ',')?;
        let value = parse_part(rest, depth + 1)?;
        eat(rest, '>')?;
        return Some(known(Nested::Map(key, value)));
    }
    if let Some(inside) = rest.strip_prefix("struct<") {
        *rest = inside;
        let mut fields = Vec::new();
        loop {
            let name = quoted(rest)?;
            eat(rest, ':')?;
            fields.push((name, parse_part(rest, depth + 1)?));
            if eat(rest, ',').is_none() {
                break;
            }
        }
        eat(rest, '>')?;
        return Some(known(Nested::Struct(fields)));
    }
    let end = flat_end(rest);
    let (name, after) = rest.split_at(end);
    *rest = after;
    DataType::parse(name).ok()
}

/// Where a flat type ends: at the first comma or bracket that is not within parentheses.
fn flat_end(text: &str) -> usize {
    let mut inside = false;
    for (at, character) in text.char_indices() {
        match character {
            '(' => inside = true,
            ')' => inside = false,
            ',' | '>' if !inside => return at,
            _ => {}
        }
    }
    text.len()
}

fn eat(rest: &mut &str, wanted: char) -> Option<()> {
    *rest = rest.strip_prefix(wanted)?;
    Some(())
}

fn quoted(rest: &mut &str) -> Option<String> {
    eat(rest, '`')?;
    let mut name = String::new();
    loop {
        let end = rest.find('`')?;
        name.push_str(&rest[..end]);
        *rest = &rest[end + 1..];
        if eat(rest, '`').is_none() {
            return Some(name);
        }
        name.push('`');
    }
}

/// Appends a part of a nested value.
pub fn put(out: &mut Vec<u8>, data_type: DataType, word: Option<Word>, interner: &Interner) {
    match word {
        None => out.push(NULL),
        Some(word) => {
            out.push(VALUE);
            put_value(out, data_type, word, interner);
        }
    }
}

fn put_value(out: &mut Vec<u8>, data_type: DataType, word: Word, interner: &Interner) {
    match data_type {
        DataType::Nested(_) => out.extend_from_slice(interner.get(word)),
        _ => match order_key(data_type, word, interner) {
            OrderKey::Inline(key) => out.extend(key.to_be_bytes()),
            OrderKey::Bytes(bytes) if matches!(data_type, DataType::Decimal { .. }) => out.extend_from_slice(&bytes),
            OrderKey::Bytes(bytes) => put_text(out, &bytes),
        },
    }
}

/// Ends with two zeros; a zero within is followed by 0xFF, which no end is.
fn put_text(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        out.push(*byte);
        if *byte == 0 {
            out.push(0xFF);
        }
    }
    out.extend([0, 0]);
}

/// The bytes of an array.
pub fn array_of(element: DataType, words: impl IntoIterator<Item = Option<Word>>, interner: &Interner) -> Vec<u8> {
    let mut out = Vec::new();
    words.into_iter().for_each(|word| put(&mut out, element, word, interner));
    out.push(END);
    out
}

/// The bytes of an array of parts.
pub fn array_of_parts(parts: &[Option<&[u8]>]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        match part {
            None => out.push(NULL),
            Some(bytes) => {
                out.push(VALUE);
                out.extend_from_slice(bytes);
            }
        }
    }
    out.push(END);
    out
}

/// The bytes of a map, or why there is none: two entries with one key.
pub fn map_of(
    (key_type, value_type): (DataType, DataType),
    entries: impl IntoIterator<Item = (Word, Option<Word>)>,
    interner: &Interner,
) -> std::result::Result<Vec<u8>, String> {
    let mut parts = Vec::new();
    for (key, value) in entries {
        let (mut key_bytes, mut value_bytes) = (Vec::new(), Vec::new());
        put(&mut key_bytes, key_type, Some(key), interner);
        put(&mut value_bytes, value_type, value, interner);
        parts.push((key_bytes, value_bytes));
    }
    parts.sort();
    if parts.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err("a map has a key twice".into());
    }
    let mut out: Vec<u8> = parts.into_iter().flat_map(|(key, value)| [key, value]).flatten().collect();
    out.push(END);
    Ok(out)
}

/// The bytes of a struct.
pub fn struct_of(parts: impl IntoIterator<Item = (DataType, Option<Word>)>, interner: &Interner) -> Vec<u8> {
    let mut out = Vec::new();
    parts.into_iter().for_each(|(data_type, word)| put(&mut out, data_type, word, interner));
    out
}

/// Takes the next part off: `None` at the end, `Some(None)` for NULL.
fn take<'a>(bytes: &mut &'a [u8], data_type: DataType) -> Option<Option<&'a [u8]>> {
    let (kind, rest) = bytes.split_first()?;
    *bytes = rest;
    match *kind {
        END => None,
        NULL => Some(None),
        _ => {
            let (value, rest) = rest.split_at(length(rest, data_type));
            *bytes = rest;
            Some(Some(value))
        }
    }
}

/// How many bytes the value has with which `bytes` begin.
fn length(bytes: &[u8], data_type: DataType) -> usize {
    match data_type {
        DataType::Nested(nested) => {
            let mut rest = bytes;
            match nested {
                Nested::Array(element) => while take(&mut rest, *element).is_some() {},
                Nested::Map(key, value) => {
                    while take(&mut rest, *key).is_some() {
                        take(&mut rest, *value);
                    }
                }
                Nested::Struct(fields) => fields.iter().for_each(|(_, field)| {
                    take(&mut rest, *field);
                }),
            }
            bytes.len() - rest.len()
        }
        DataType::Decimal { precision, .. } if precision > 18 => 16,
        _ if data_type.interned() => {
            let mut at = 0;
            while bytes[at] != 0 || bytes[at + 1] != 0 {
                at += if bytes[at] == 0 { 2 } else { 1 };
            }
            at + 2
        }
        _ => 8,
    }
}

/// The parts of an array's value.
pub fn elements(bytes: &[u8], element: DataType) -> impl Iterator<Item = Option<&[u8]>> {
    let mut rest = bytes;
    std::iter::from_fn(move || take(&mut rest, element))
}

/// The entries of a map's value.
pub fn entries(bytes: &[u8], key: DataType, value: DataType) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let key = take(&mut rest, key)??;
        Some((key, take(&mut rest, value)?))
    })
}

/// The fields of a struct's value.
pub fn fields<'a>(bytes: &'a [u8], fields: &'a [(String, DataType)]) -> impl Iterator<Item = Option<&'a [u8]>> {
    let mut rest = bytes;
    fields.iter().map(move |(_, data_type)| take(&mut rest, *data_type).flatten())
}

/// The word of a part.
pub fn word(bytes: &[u8], data_type: DataType, interner: &mut Interner) -> Word {
    match data_type {
        DataType::Nested(_) => interner.intern(bytes),
        DataType::Decimal { precision, .. } if precision > 18 => {
            key_word(data_type, &OrderKey::Bytes(bytes.into()), interner)
        }
        _ if data_type.interned() => interner.intern(&text(bytes)),
        _ => {
            let key = u64::from_be_bytes(bytes.try_into().expect("a value of 64 bits"));
            key_word(data_type, &OrderKey::Inline(key), interner)
        }
    }
}

/// The bytes of a text within a nested value.
pub fn text(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = &bytes[..bytes.len() - 2];
    while let Some((byte, after)) = rest.split_first() {
        out.push(*byte);
        rest = if *byte == 0 { &after[1..] } else { after };
    }
    out
}

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

/// A nested value as JSON, for messages.
pub fn to_json(bytes: &[u8], data_type: DataType) -> serde_json::Value {
    use serde_json::Value;
    let part = |bytes: Option<&[u8]>, data_type| bytes.map_or(Value::Null, |bytes| to_json(bytes, data_type));
    match data_type {
        DataType::Nested(Nested::Array(element)) => elements(bytes, *element).map(|one| part(one, *element)).collect(),
        DataType::Nested(Nested::Map(key, value)) => {
            let pair = |(k, v)| Value::Array(vec![part(Some(k), *key), part(v, *value)]);
            entries(bytes, *key, *value).map(pair).collect()
        }
        DataType::Nested(Nested::Struct(inner)) => {
            let named = fields(bytes, inner).zip(inner);
            Value::Object(named.map(|(one, (name, data_type))| (name.clone(), part(one, *data_type))).collect())
        }
        _ => {
            let mut interner = Interner::default();
            let word = word(bytes, data_type, &mut interner);
            arrow_out::value_json(word, false, data_type, &interner)
        }
    }
}

/// The type of the elements; an error for what is not an array.
pub fn element_type(data_type: DataType) -> Result<DataType> {
    match data_type {
        DataType::Nested(Nested::Array(element)) => Ok(*element),
        _ => Err(KernelError::plan("CROWN-PLAN-MALFORMED", format!("{data_type:?} is not an array"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::float_word;

    fn names(text: &str) -> DataType {
        DataType::parse(text).unwrap()
    }

    #[test]
    fn types_are_one_for_one_text_and_bad_ones_are_refused() {
        let text = "map<string,array<struct<`a``b`:decimal(20,2),`c`:int64>>>";
        assert_eq!(names(text), names(text));
        assert_ne!(names("array<int64>"), names("array<int32>"));
        for bad in ["array<>", "array<int64", "map<int64>", "struct<a:int64>", "array<int64>>", "struct<>"] {
            assert!(DataType::parse(bad).is_err(), "{bad}");
        }
        assert!(DataType::parse(&format!("{}int64{}", "array<".repeat(40), ">".repeat(40))).is_err());
    }

    #[test]
    fn arrays_compare_by_their_elements_with_nulls_first_and_prefixes_before_longer_ones() {
        let mut interner = Interner::default();
        let of =
            |interner: &Interner, words: &[Option<Word>]| array_of(DataType::String, words.iter().copied(), interner);
        let [a, b, zero] = [&b"a"[..], b"b", b"a\0"].map(|text| interner.intern(text));
        let ascending = [&[][..], &[None], &[None, Some(a)], &[Some(a)], &[Some(a), None], &[Some(zero)], &[Some(b)]];
        let bytes: Vec<Vec<u8>> = ascending.iter().map(|words| of(&interner, words)).collect();
        assert!(bytes.is_sorted() && bytes.windows(2).all(|pair| pair[0] != pair[1]));
        for (bytes, words) in bytes.iter().zip(ascending) {
            let read: Vec<Option<Vec<u8>>> = elements(bytes, DataType::String).map(|one| one.map(text)).collect();
            let expected: Vec<_> = words.iter().map(|word| word.map(|word| interner.get(word).to_vec())).collect();
            assert_eq!(read, expected);
        }
    }

    #[test]
    fn equal_maps_and_floats_have_equal_bytes() {
        let interner = Interner::default();
        let types = (DataType::Int64, DataType::Float64);
        let minus = float_word(-0.0);
        let one = map_of(types, [(1, Some(minus)), (2, None)], &interner).unwrap();
        let other = map_of(types, [(2, None), (1, Some(float_word(0.0)))], &interner).unwrap();
        assert_eq!(one, other);
        assert!(map_of(types, [(1, None), (1, Some(0))], &interner).is_err());
    }

    #[test]
    fn arrow_arrays_come_back_as_they_were() {
        let mut interner = Interner::default();
        let data_type = names("array<struct<`n`:int32,`m`:map<string,array<float64>>>>");
        let DataType::Nested(Nested::Array(element)) = data_type else { unreachable!() };
        let DataType::Nested(Nested::Struct(inner)) = *element else { unreachable!() };
        let DataType::Nested(Nested::Map(key, value)) = inner[1].1 else { unreachable!() };
        let floats = array_of(DataType::Float64, [Some(float_word(1.5)), None], &interner);
        let (k, floats) = (interner.intern(b"k"), interner.intern(&floats));
        let map = map_of((*key, *value), [(k, Some(floats))], &interner).unwrap();
        let map = interner.intern(&map);
        let one = struct_of([(DataType::Int32, Some(7)), (inner[1].1, Some(map))], &interner);
        let none = struct_of([(DataType::Int32, None), (inner[1].1, None)], &interner);
        let parts = [Some(interner.intern(&one)), None, Some(interner.intern(&none))];
        let rows = [array_of(*element, parts, &interner), array_of(*element, [], &interner)];
        let array = to_arrow(data_type, &[Some(&rows[0]), None, Some(&rows[1])]);
        let mut sink = Sink::default();
        convert(&array, data_type, &mut interner, &mut sink).unwrap();
        assert_eq!(sink.nulls, [1]);
        assert_eq!((interner.get(sink.words[0]), interner.get(sink.words[2])), (&rows[0][..], &rows[1][..]));
        assert_eq!(
            to_json(&rows[0], data_type).to_string(),
            r#"[{"m":[["k",[1.5,null]]],"n":7},null,{"m":null,"n":null}]"#
        );
    }
}
