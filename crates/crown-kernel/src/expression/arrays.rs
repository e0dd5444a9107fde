//! Functions of whole arrays.
//!
//! Equal elements have equal bytes, and bytes are in the order of the elements (`crate::nested`).
//! So arrays are sorted, searched and put together without decoding an element.

use super::calendar::MICROS_PER_DAY;
use super::cast::cast;
use super::library::time;
use super::nested_functions::{part, value};
use super::value::Value;
use super::{overflow, utf8};
use crate::error::{KernelError, Result};
use crate::nested::{self, Nested};
use crate::types::DataType;
use std::borrow::Cow;
use std::collections::HashSet;

/// The maximum number of elements of an array that a function returns: more are assumed to be a
/// mistake.
const MOST_ELEMENTS: i64 = 10_000_000;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operation {
    /// Each element once, at its first position.
    Distinct,
    /// (array, whether ascending): NULLs first, or last if descending.
    Sort,
    /// Ascending with NULLs last.
    SortNullsLast,
    Union,
    Intersect,
    Except,
    Greatest,
    Least,
    /// (array, value): from 1, or 0.
    Position,
    Remove,
    Append,
    Prepend,
    /// Without NULLs.
    Compact,
    /// (value, how often)
    Repeat,
    Overlap,
    /// (array, start from 1 or from the end, length)
    Slice,
    Reverse,
    Flatten,
    Concat,
    /// (array of strings, delimiter[, replacement for NULL])
    Join,
    /// (string, delimiter)
    Split,
    /// (first, last, months, step): integers by the step; dates by days and timestamps by
    /// microseconds, or by months.
    Sequence,
    /// Each element cast to the type of the result's elements.
    Cast,
}

pub(super) fn named(function: &str) -> Option<Operation> {
    Some(match function {
        "array_distinct" => Operation::Distinct,
        "sort_array" => Operation::Sort,
        "array_sort" => Operation::SortNullsLast,
        "array_union" => Operation::Union,
        "array_intersect" => Operation::Intersect,
        "array_except" => Operation::Except,
        "array_max" => Operation::Greatest,
        "array_min" => Operation::Least,
        "array_position" => Operation::Position,
        "array_remove" => Operation::Remove,
        "array_append" => Operation::Append,
        "array_prepend" => Operation::Prepend,
        "array_compact" => Operation::Compact,
        "array_repeat" => Operation::Repeat,
        "arrays_overlap" => Operation::Overlap,
        "slice" => Operation::Slice,
        "array_reverse" => Operation::Reverse,
        "flatten" => Operation::Flatten,
        "array_concat" => Operation::Concat,
        "array_join" => Operation::Join,
        "split" => Operation::Split,
        "sequence" => Operation::Sequence,
        "cast_array" => Operation::Cast,
        _ => return None,
    })
}

fn element(data_type: DataType) -> Option<DataType> {
    match data_type {
        DataType::Nested(Nested::Array(element)) => Some(*element),
        _ => None,
    }
}

/// Whether the types are those that the operation takes and returns.
pub(super) fn fits(operation: Operation, types: &[DataType], result: DataType) -> bool {
    let own = types.first().copied().and_then(element);
    let int = |data_type| matches!(data_type, DataType::Int32 | DataType::Int64);
    let text = DataType::String;
    match (operation, types) {
        (Operation::Distinct | Operation::SortNullsLast | Operation::Compact | Operation::Reverse, [array]) => {
            own.is_some() && *array == result
        }
        (Operation::Sort, [array, DataType::Boolean]) => own.is_some() && *array == result,
        (Operation::Union | Operation::Intersect | Operation::Except, [one, other]) => {
            own.is_some() && one == other && *one == result
        }
        (Operation::Greatest | Operation::Least, [_]) => own == Some(result),
        (Operation::Position, [_, wanted]) => own == Some(*wanted) && result == DataType::Int64,
        (Operation::Remove | Operation::Append | Operation::Prepend, [array, one]) => {
            own == Some(*one) && *array == result
        }
        (Operation::Repeat, [one, count]) => element(result) == Some(*one) && int(*count),
        (Operation::Overlap, [one, other]) => own.is_some() && one == other && result == DataType::Boolean,
        (Operation::Slice, [array, start, length]) => own.is_some() && *array == result && int(*start) && int(*length),
        (Operation::Flatten, [_]) => own == Some(result) && element(result).is_some(),
        (Operation::Concat, [_, ..]) => own.is_some() && types.iter().all(|each| *each == result),
        (Operation::Join, [_, rest @ ..]) => {
            own == Some(text) && matches!(rest.len(), 1 | 2) && rest.iter().all(|each| *each == text) && result == text
        }
        (Operation::Split, [subject, delimiter]) => {
            *subject == text && *delimiter == text && element(result) == Some(text)
        }
        (Operation::Sequence, [first, last, months, step]) => {
            let steps = int(*first) || matches!(first, DataType::Date | DataType::Timestamp | DataType::TimestampNtz);
            steps && first == last && element(result) == Some(*first) && int(*months) && *step == DataType::Int64
        }
        (Operation::Cast, [_]) => match (own, element(result)) {
            (Some(from), Some(to)) => super::cast::allowed(from, to) || from == to,
            _ => false,
        },
        _ => false,
    }
}

type Part<'b> = Option<&'b [u8]>;

/// The operation over values of these types. Except for the element that is appended, prepended or
/// repeated, an argument that is NULL makes the result NULL.
pub(super) fn apply<'a>(
    operation: Operation,
    values: &[Option<Value<'a>>],
    types: &[DataType],
    result: DataType,
) -> Result<Option<Value<'a>>> {
    let takes_null = match operation {
        Operation::Append | Operation::Prepend => Some(1),
        Operation::Repeat => Some(0),
        Operation::Join => Some(2),
        _ => None,
    };
    if values.iter().enumerate().any(|(at, value)| value.is_none() && takes_null != Some(at)) {
        return Ok(None);
    }
    let given = |at: usize| values[at].as_ref().expect("an argument that is not NULL");
    let parts = |at: usize| -> Vec<Part> {
        element(types[at]).map_or_else(Vec::new, |element| nested::elements(given(at).bytes(), element).collect())
    };
    let one = |at: usize| values[at].clone().map(|value| part(value, types[at]));
    Ok(match operation {
        Operation::Distinct => Some(array(&distinct(parts(0)))),
        Operation::Sort => {
            let mut sorted = parts(0);
            sorted.sort();
            if !given(1).boolean() {
                sorted.reverse();
            }
            Some(array(&sorted))
        }
        Operation::SortNullsLast => {
            let mut sorted = parts(0);
            sorted.sort_by_key(|part| (part.is_none(), *part));
            Some(array(&sorted))
        }
        Operation::Union => Some(array(&distinct([parts(0), parts(1)].concat()))),
        Operation::Intersect | Operation::Except => {
            let other: HashSet<Part> = parts(1).into_iter().collect();
            let kept = operation == Operation::Intersect;
            let found = parts(0).into_iter().filter(|part| other.contains(part) == kept).collect();
            Some(array(&distinct(found)))
        }
        Operation::Greatest => parts(0).into_iter().flatten().max().map(|bytes| value(bytes, result)),
        Operation::Least => parts(0).into_iter().flatten().min().map(|bytes| value(bytes, result)),
        Operation::Position => {
            let wanted = one(1);
            let at = parts(0).iter().position(|part| *part == wanted.as_deref());
            Some(Value::Integer(at.map_or(0, |at| at as i64 + 1)))
        }
        Operation::Remove => {
            let unwanted = one(1);
            Some(array(&parts(0).into_iter().filter(|part| *part != unwanted.as_deref()).collect::<Vec<_>>()))
        }
        Operation::Append => Some(array(&[parts(0), vec![one(1).as_deref()]].concat())),
        Operation::Prepend => Some(array(&[vec![one(1).as_deref()], parts(0)].concat())),
        Operation::Compact => Some(array(&parts(0).into_iter().filter(Option::is_some).collect::<Vec<_>>())),
        Operation::Repeat => {
            let count = given(1).integer().max(0);
            check_length(count)?;
            Some(array(&vec![one(0).as_deref(); count as usize]))
        }
        Operation::Overlap => overlap(&parts(0), &parts(1)).map(Value::Boolean),
        Operation::Slice => Some(array(slice(&parts(0), given(1).integer(), given(2).integer())?)),
        Operation::Reverse => Some(array(&parts(0).into_iter().rev().collect::<Vec<_>>())),
        Operation::Flatten => {
            let Some(inner) = element(result) else { return Ok(None) };
            let arrays: Option<Vec<&[u8]>> = parts(0).into_iter().collect();
            arrays.map(|arrays| {
                array(&arrays.into_iter().flat_map(|bytes| nested::elements(bytes, inner)).collect::<Vec<_>>())
            })
        }
        Operation::Concat => Some(array(&(0..values.len()).flat_map(&parts).collect::<Vec<_>>())),
        Operation::Join => {
            let absent = values.get(2).and_then(Option::as_ref).map(|value| value.bytes().to_vec());
            if values.len() == 3 && absent.is_none() {
                return Ok(None);
            }
            let texts = parts(0).into_iter().filter_map(|part| part.map(nested::text).or_else(|| absent.clone()));
            Some(Value::Bytes(Cow::Owned(texts.collect::<Vec<_>>().join(given(1).bytes()))))
        }
        Operation::Split => {
            let found: Vec<Vec<u8>> = utf8(given(0).bytes())?
                .split(utf8(given(1).bytes())?)
                .map(|text| part(Value::Bytes(Cow::Borrowed(text.as_bytes())), DataType::String))
                .collect();
            Some(array(&found.iter().map(|part| Some(part.as_slice())).collect::<Vec<_>>()))
        }
        Operation::Sequence => {
            let numbers = [0, 1, 2, 3].map(|at| given(at).integer());
            let found = sequence(numbers, types[0])?;
            let parts: Vec<Vec<u8>> = found.into_iter().map(|number| part(Value::Integer(number), types[0])).collect();
            Some(array(&parts.iter().map(|part| Some(part.as_slice())).collect::<Vec<_>>()))
        }
        Operation::Cast => {
            let (Some(from), Some(to)) = (element(types[0]), element(result)) else { return Ok(None) };
            let each = |bytes: &[u8]| Ok(cast(value(bytes, from), from, to)?.map(|value| part(value, to)));
            let found = parts(0).into_iter().map(|part| part.map_or(Ok(None), each)).collect::<Result<Vec<_>>>()?;
            Some(array(&found.iter().map(Option::as_deref).collect::<Vec<_>>()))
        }
    })
}

fn array<'a>(parts: &[Part]) -> Value<'a> {
    Value::Bytes(Cow::Owned(nested::array_of_parts(parts)))
}

fn distinct(parts: Vec<Part>) -> Vec<Part> {
    let mut met = HashSet::new();
    parts.into_iter().filter(|part| met.insert(*part)).collect()
}

/// Whether two arrays have an element in common; unknown if only a NULL might be one.
fn overlap(one: &[Part], other: &[Part]) -> Option<bool> {
    let values: HashSet<&[u8]> = one.iter().copied().flatten().collect();
    if other.iter().flatten().any(|part| values.contains(part)) {
        return Some(true);
    }
    let open = !one.is_empty() && !other.is_empty() && one.iter().chain(other).any(Option::is_none);
    (!open).then_some(false)
}

fn slice<'p, 'b>(parts: &'p [Part<'b>], start: i64, length: i64) -> Result<&'p [Part<'b>]> {
    let invalid = |message: &str| KernelError::invalid("CROWN-ARRAY-INDEX", message.to_string());
    if start == 0 {
        return Err(invalid("slice counts from 1, or from the end if the start is negative; it can't be 0"));
    }
    if length < 0 {
        return Err(invalid("the length of a slice can't be negative"));
    }
    let count = parts.len() as i64;
    let first = if start > 0 { start - 1 } else { count + start };
    if first < 0 || first >= count {
        return Ok(&[]);
    }
    Ok(&parts[first as usize..first.saturating_add(length).min(count) as usize])
}

/// The numbers from the first to the last one, which is included only if the steps reach it.
fn sequence([first, last, months, step]: [i64; 4], data_type: DataType) -> Result<Vec<i64>> {
    let forward = months > 0 || (months == 0 && step > 0);
    if (months == 0 && step == 0 && first != last) || (first < last && !forward) || (first > last && forward) {
        let message = "the step of a sequence leads away from its end";
        return Err(KernelError::invalid("CROWN-ARRAY-INDEX", message.to_string()));
    }
    if first == last {
        return Ok(vec![first]);
    }
    let distance = i128::from(last) - i128::from(first);
    let unit = match data_type {
        _ if months == 0 => i128::from(step),
        DataType::Date => i128::from(months) * 28,
        _ => i128::from(months) * 28 * i128::from(MICROS_PER_DAY),
    };
    check_length(i64::try_from(distance / unit).unwrap_or(i64::MAX))?;
    let mut found = Vec::new();
    for number in 0.. {
        // From the first one: the last day of a month is not that of all others.
        let next = match (months, data_type) {
            (0, _) => first.checked_add(step.checked_mul(number).ok_or_else(|| overflow("a sequence"))?),
            (_, DataType::Date) => time::months_on(first, months * number),
            _ => {
                let (day, rest) = (first.div_euclid(MICROS_PER_DAY), first.rem_euclid(MICROS_PER_DAY));
                time::months_on(day, months * number).map(|day| day * MICROS_PER_DAY + rest)
            }
        };
        match next {
            Some(next) if (forward && next <= last) || (!forward && next >= last) => found.push(next),
            _ => break,
        }
    }
    Ok(found)
}

fn check_length(count: i64) -> Result<()> {
    if count <= MOST_ELEMENTS {
        return Ok(());
    }
    let message = format!("an array of {count} elements is too long: at most {MOST_ELEMENTS} are made");
    Err(KernelError::invalid("CROWN-ARRAY-INDEX", message))
}
