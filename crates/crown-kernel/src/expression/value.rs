//! A value during evaluation, and its conversion from and to words.

use super::decimal;
use super::{utf8, wide};
use crate::chunk::Word;
use crate::error::{KernelError, Result};
use crate::store::interner::Interner;
use crate::types::{float_word, word_float, DataType};
use std::borrow::Cow;
use std::cmp::Ordering;

/// Integers, dates and timestamps are `Integer`; a decimal is its unscaled value, its scale is in
/// the type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Decimal(i128),
    Bytes(Cow<'a, [u8]>),
}

impl<'a> Value<'a> {
    pub fn from_word(data_type: DataType, word: Word, interner: &'a Interner) -> Value<'a> {
        match data_type {
            DataType::Boolean => Value::Boolean(word != 0),
            DataType::Float32 | DataType::Float64 => Value::Float(word_float(word)),
            DataType::Decimal { precision, .. } if precision > 18 => Value::Decimal(wide(interner.get(word))),
            DataType::Decimal { .. } => Value::Decimal(i128::from(word as i64)),
            DataType::String | DataType::Binary | DataType::Uuid | DataType::Nested(_) => {
                Value::Bytes(Cow::Borrowed(interner.get(word)))
            }
            _ => Value::Integer(word as i64),
        }
    }

    /// The word of an inline type, or the bytes to intern.
    pub fn encode(self, data_type: DataType) -> Encoded<'a> {
        match self {
            Value::Boolean(value) => Encoded::Word(Word::from(value)),
            Value::Integer(value) => Encoded::Word(value as Word),
            Value::Float(value) => Encoded::Word(float_word(value)),
            Value::Decimal(value) if data_type.interned() => Encoded::Bytes(Cow::Owned(value.to_le_bytes().to_vec())),
            Value::Decimal(value) => Encoded::Word(value as i64 as Word),
            Value::Bytes(bytes) => Encoded::Bytes(bytes),
        }
    }

    /// The literal of the value, as `literal` reads it.
    pub fn to_literal(&self, data_type: DataType) -> Result<serde_json::Value> {
        Ok(match self {
            Value::Boolean(value) => (*value).into(),
            Value::Integer(value) => (*value).into(),
            Value::Float(value) if value.is_finite() => (*value).into(),
            Value::Float(value) if value.is_nan() => "NaN".into(),
            Value::Float(value) => (if *value > 0.0 { "Infinity" } else { "-Infinity" }).into(),
            Value::Decimal(value) => decimal::format(*value, data_type.scale()).into(),
            Value::Bytes(bytes) if data_type == DataType::Binary => {
                bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
            }
            Value::Bytes(_) if matches!(data_type, DataType::Nested(_)) => {
                return Err(KernelError::plan("CROWN-PLAN-MALFORMED", "a nested value is not a literal"));
            }
            Value::Bytes(bytes) => utf8(bytes)?.into(),
        })
    }

    /// The order of two values of one type; as `super::compare` on their words.
    pub fn order(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Boolean(left), Value::Boolean(right)) => left.cmp(right),
            (Value::Integer(left), Value::Integer(right)) => left.cmp(right),
            (Value::Decimal(left), Value::Decimal(right)) => left.cmp(right),
            (Value::Bytes(left), Value::Bytes(right)) => left.cmp(right),
            (Value::Float(left), Value::Float(right)) => left
                .partial_cmp(right)
                // NaN equals NaN and is greater than everything else.
                .unwrap_or_else(|| left.is_nan().cmp(&right.is_nan())),
            _ => unreachable!("compilation checks that compared values have one type"),
        }
    }

    pub fn boolean(&self) -> bool {
        matches!(self, Value::Boolean(true))
    }

    pub fn integer(&self) -> i64 {
        match self {
            Value::Integer(value) => *value,
            _ => unreachable!("compilation checks that this argument is an integer"),
        }
    }

    pub fn float(&self) -> f64 {
        match self {
            Value::Float(value) => *value,
            _ => unreachable!("compilation checks that this argument is a float"),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Value::Bytes(bytes) => bytes,
            _ => unreachable!("compilation checks that this argument is a string"),
        }
    }
}

pub(super) enum Encoded<'a> {
    Word(Word),
    Bytes(Cow<'a, [u8]>),
}

/// The value of a plan literal (`crown.ir.expression` documents the JSON of each type); `None` is
/// NULL.
pub(super) fn literal(json: &serde_json::Value, data_type: DataType) -> Result<Option<Value<'static>>> {
    use serde_json::Value as Json;
    let value = match (data_type, json) {
        (_, Json::Null) => return Ok(None),
        (DataType::Boolean, Json::Bool(value)) => Some(Value::Boolean(*value)),
        (DataType::Float32 | DataType::Float64, Json::Number(number)) => number.as_f64().map(Value::Float),
        (DataType::Float32 | DataType::Float64, Json::String(text)) => text.parse().ok().map(Value::Float),
        (DataType::Decimal { precision, scale }, Json::String(text)) => {
            decimal::parse(text, scale).filter(|value| decimal::fits(*value, precision)).map(Value::Decimal)
        }
        (DataType::String | DataType::Uuid, Json::String(text)) => {
            Some(Value::Bytes(Cow::Owned(text.clone().into_bytes())))
        }
        (DataType::Binary, Json::String(text)) => hex(text).map(|bytes| Value::Bytes(Cow::Owned(bytes))),
        (DataType::Int8, Json::Number(number)) => whole(number, i64::from(i8::MIN), i64::from(i8::MAX)),
        (DataType::Int16, Json::Number(number)) => whole(number, i64::from(i16::MIN), i64::from(i16::MAX)),
        (DataType::Int32 | DataType::Date, Json::Number(number)) => {
            whole(number, i64::from(i32::MIN), i64::from(i32::MAX))
        }
        (DataType::Int64 | DataType::Timestamp | DataType::TimestampNtz | DataType::Time, Json::Number(number)) => {
            whole(number, i64::MIN, i64::MAX)
        }
        (DataType::Interval(span), Json::Number(number)) => whole(number, span.range().0, span.range().1),
        _ => None,
    };
    value.map(Some).ok_or_else(|| {
        KernelError::plan("CROWN-PLAN-MALFORMED", format!("{json} is not a literal of the type {data_type:?}"))
    })
}

fn whole(number: &serde_json::Number, least: i64, greatest: i64) -> Option<Value<'static>> {
    number.as_i64().filter(|value| (least..=greatest).contains(value)).map(Value::Integer)
}

fn hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|start| u8::from_str_radix(&text[start..start + 2], 16).ok()).collect()
}
