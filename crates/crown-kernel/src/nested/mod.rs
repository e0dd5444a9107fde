//! Arrays, structs and maps as bytes: equal values have equal bytes, and bytes compare as the
//! values do.
//!
//! So a nested value is interned like a string, and equality, grouping, joins and order need no
//! special code for it; only functions that access its parts decode it. Within a nested value each
//! part is preceded by one byte: `NULL`, or `VALUE` and the part itself. NULL is the least value,
//! and an array is less than a longer one that begins with it, as in Spark. The entries of a map
//! are sorted by key, so their original order does not matter.

mod arrow;
mod types;

pub(crate) use arrow::from_arrow;
pub use arrow::{arrow_type, to_arrow};
pub use types::{element_type, known, parse, Nested};

use crate::arrow_out;
use crate::chunk::Word;
use crate::expression::{key_word, order_key, OrderKey};
use crate::store::interner::Interner;
use crate::types::DataType;

const END: u8 = 0;
const NULL: u8 = 1;
const VALUE: u8 = 2;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrow_values::{convert, Sink};
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
