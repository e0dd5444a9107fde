//! Functions that construct arrays, structs and maps, and access their parts.

use super::arrays;
use super::node::{Node, Row};
use super::value::{Encoded, Value};
use crate::error::{KernelError, Result};
use crate::nested::{self, Nested};
use crate::store::interner::Interner;
use crate::types::DataType;
use std::borrow::Cow;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operation {
    /// (struct, literal position of the field)
    Field(usize),
    /// (array, index from 0): NULL where there is none.
    Item,
    /// The same, but an error where there is none.
    RequiredItem,
    /// (map, key): NULL where there is none.
    Entry,
    /// Elements of an array, entries of a map.
    Size,
    /// (array, value)
    Contains,
    Keys,
    Values,
    MakeArray,
    MakeStruct,
    MakeMap,
    /// A function of whole arrays.
    Whole(arrays::Operation),
}

pub(super) fn named(function: &str) -> Option<Operation> {
    Some(match function {
        "get_field" => Operation::Field(0),
        "get_item" => Operation::Item,
        "required_item" => Operation::RequiredItem,
        "map_get" => Operation::Entry,
        "size" => Operation::Size,
        "array_contains" => Operation::Contains,
        "map_keys" => Operation::Keys,
        "map_values" => Operation::Values,
        "make_array" => Operation::MakeArray,
        "make_struct" => Operation::MakeStruct,
        "make_map" => Operation::MakeMap,
        _ => return arrays::named(function).map(Operation::Whole),
    })
}

/// The operation with its literals, if its types are those that it takes and returns.
pub(super) fn checked(
    operation: Operation,
    arguments: &[(Node, DataType)],
    result: DataType,
) -> Option<(Operation, usize)> {
    let types: Vec<DataType> = arguments.iter().map(|(_, data_type)| *data_type).collect();
    if let Operation::Whole(whole) = operation {
        return arrays::fits(whole, &types, result).then_some((operation, types.len()));
    }
    let nested = |position: usize| match types.get(position) {
        Some(DataType::Nested(nested)) => Some(*nested),
        _ => None,
    };
    let int = |position: usize| matches!(types.get(position), Some(DataType::Int32 | DataType::Int64));
    let fits = match operation {
        Operation::Field(_) => match (nested(0)?, arguments.get(1)?) {
            (Nested::Struct(fields), (Node::Literal(Some(Value::Integer(at))), _)) if arguments.len() == 2 => {
                let at = usize::try_from(*at).ok()?;
                return (fields.get(at)?.1 == result).then_some((Operation::Field(at), 1));
            }
            _ => false,
        },
        Operation::Item | Operation::RequiredItem => types.len() == 2 && *nested(0)? == Nested::Array(result) && int(1),
        Operation::Entry => types.len() == 2 && *nested(0)? == Nested::Map(types[1], result),
        Operation::Size => types.len() == 1 && !matches!(nested(0)?, Nested::Struct(_)) && result == DataType::Int32,
        Operation::Contains => {
            types.len() == 2 && *nested(0)? == Nested::Array(types[1]) && result == DataType::Boolean
        }
        Operation::Keys => match (nested(0)?, result) {
            (Nested::Map(key, _), DataType::Nested(Nested::Array(element))) => types.len() == 1 && key == element,
            _ => false,
        },
        Operation::Values => match (nested(0)?, result) {
            (Nested::Map(_, value), DataType::Nested(Nested::Array(element))) => types.len() == 1 && value == element,
            _ => false,
        },
        Operation::MakeArray => match result {
            DataType::Nested(Nested::Array(element)) => types.iter().all(|data_type| data_type == element),
            _ => false,
        },
        Operation::MakeStruct => match result {
            DataType::Nested(Nested::Struct(fields)) => {
                fields.iter().map(|(_, field)| *field).eq(types.iter().copied())
            }
            _ => false,
        },
        Operation::MakeMap => match result {
            DataType::Nested(Nested::Map(key, value)) => {
                types.len().is_multiple_of(2) && types.chunks(2).all(|pair| pair == [*key, *value])
            }
            _ => false,
        },
        Operation::Whole(_) => false,
    };
    fits.then_some((operation, types.len()))
}

pub(super) fn apply<'a>(
    operation: Operation,
    arguments: &'a [(Node, DataType)],
    data_type: DataType,
    row: &Row<'a>,
) -> Result<Option<Value<'a>>> {
    let values = arguments.iter().map(|(node, _)| node.evaluate(row)).collect::<Result<Vec<_>>>()?;
    match operation {
        Operation::MakeArray | Operation::MakeStruct | Operation::MakeMap => {
            return make(operation, arguments, values, data_type).map(Some);
        }
        Operation::Whole(whole) => {
            let types: Vec<DataType> = arguments.iter().map(|(_, data_type)| *data_type).collect();
            return arrays::apply(whole, &values, &types, data_type);
        }
        _ if values.iter().any(Option::is_none) => return Ok(None),
        _ => {}
    }
    let mut values = values.into_iter().flatten();
    let (Some(subject), other) = (values.next(), values.next()) else { return Ok(None) };
    let DataType::Nested(nested) = arguments[0].1 else { return Ok(None) };
    let bytes = subject.bytes();
    let found = match (nested, operation) {
        (Nested::Struct(fields), Operation::Field(at)) => nested::fields(bytes, fields).nth(at).flatten(),
        (Nested::Array(element), Operation::Item | Operation::RequiredItem) => {
            let index = other.map_or(-1, |index| index.integer());
            let item = usize::try_from(index).ok().and_then(|at| nested::elements(bytes, *element).nth(at));
            match item {
                Some(item) => item,
                None if operation == Operation::RequiredItem => {
                    let size = nested::elements(bytes, *element).count();
                    let message = format!("index {index} is not in an array of {size} elements, counted from 0");
                    return Err(KernelError::invalid("CROWN-ARRAY-INDEX", message));
                }
                None => None,
            }
        }
        (Nested::Map(key, value), Operation::Entry) => {
            let wanted = other.map(|other| part(other, *key)).unwrap_or_default();
            nested::entries(bytes, *key, *value).find(|(key, _)| *key == wanted).and_then(|(_, value)| value)
        }
        (Nested::Array(element), Operation::Size) => return size(nested::elements(bytes, *element).count()),
        (Nested::Map(key, value), Operation::Size) => return size(nested::entries(bytes, *key, *value).count()),
        (Nested::Array(element), Operation::Contains) => {
            let wanted = other.map(|other| part(other, *element)).unwrap_or_default();
            let mut has_null = false;
            for one in nested::elements(bytes, *element) {
                match one {
                    Some(one) if one == wanted => return Ok(Some(Value::Boolean(true))),
                    Some(_) => {}
                    None => has_null = true,
                }
            }
            return Ok((!has_null).then_some(Value::Boolean(false)));
        }
        (Nested::Map(key, value), Operation::Keys | Operation::Values) => {
            let mut interner = Interner::default();
            let keys = operation == Operation::Keys;
            let element = if keys { *key } else { *value };
            let parts: Vec<_> = nested::entries(bytes, *key, *value)
                .map(|(key, value)| if keys { Some(key) } else { value })
                .map(|one| one.map(|bytes| nested::word(bytes, element, &mut interner)))
                .collect();
            return Ok(Some(Value::Bytes(Cow::Owned(nested::array_of(element, parts, &interner)))));
        }
        _ => unreachable!("compilation checks the types of what is taken apart"),
    };
    Ok(found.map(|bytes| value(bytes, data_type)))
}

fn size<'a>(count: usize) -> Result<Option<Value<'a>>> {
    Ok(Some(Value::Integer(count as i64)))
}

fn make<'a>(
    operation: Operation,
    arguments: &[(Node, DataType)],
    values: Vec<Option<Value<'a>>>,
    data_type: DataType,
) -> Result<Value<'a>> {
    let mut interner = Interner::default();
    let mut words = Vec::with_capacity(values.len());
    for (value, (_, data_type)) in values.into_iter().zip(arguments) {
        words.push(value.map(|value| word(value, *data_type, &mut interner)));
    }
    let bytes = match (operation, data_type) {
        (Operation::MakeArray, DataType::Nested(Nested::Array(element))) => {
            nested::array_of(*element, words, &interner)
        }
        (Operation::MakeMap, DataType::Nested(Nested::Map(key, value))) => {
            let invalid = |why: String| KernelError::invalid("CROWN-MAP-KEY", why);
            let entry = |pair: &[Option<u64>]| {
                Ok((pair[0].ok_or_else(|| invalid("a map has a NULL as a key".into()))?, pair[1]))
            };
            let entries = words.chunks(2).map(entry).collect::<Result<Vec<_>>>()?;
            nested::map_of((*key, *value), entries, &interner).map_err(invalid)?
        }
        _ => nested::struct_of(arguments.iter().map(|(_, data_type)| *data_type).zip(words), &interner),
    };
    Ok(Value::Bytes(Cow::Owned(bytes)))
}

fn word(value: Value<'_>, data_type: DataType, interner: &mut Interner) -> u64 {
    match value.encode(data_type) {
        Encoded::Word(word) => word,
        Encoded::Bytes(bytes) => interner.intern(&bytes),
    }
}

/// The bytes of a value within a nested one.
pub(super) fn part(value: Value<'_>, data_type: DataType) -> Vec<u8> {
    let mut interner = Interner::default();
    let word = word(value, data_type, &mut interner);
    let mut out = Vec::new();
    nested::put(&mut out, data_type, Some(word), &interner);
    out.remove(0);
    out
}

/// The value of a part.
pub(super) fn value<'a>(bytes: &[u8], data_type: DataType) -> Value<'a> {
    match data_type {
        DataType::Nested(_) => Value::Bytes(Cow::Owned(bytes.to_vec())),
        DataType::String | DataType::Binary | DataType::Uuid => Value::Bytes(Cow::Owned(nested::text(bytes))),
        _ => {
            let mut interner = Interner::default();
            let word = nested::word(bytes, data_type, &mut interner);
            match Value::from_word(data_type, word, &interner) {
                Value::Boolean(value) => Value::Boolean(value),
                Value::Integer(value) => Value::Integer(value),
                Value::Float(value) => Value::Float(value),
                Value::Decimal(value) => Value::Decimal(value),
                Value::Bytes(bytes) => Value::Bytes(Cow::Owned(bytes.into_owned())),
            }
        }
    }
}
