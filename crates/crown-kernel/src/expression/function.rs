//! Functions of values without NULLs: rounding, floats, strings searched in strings, days and truncated times.

use super::calendar::{self, Unit};
use super::cast::in_range;
use super::decimal::{self, Rounding};
use super::value::Value;
use super::{overflow, utf8};
use crate::error::Result;
use crate::types::DataType;
use std::borrow::Cow;

#[derive(Clone, Copy, Debug)]
pub(super) enum Function {
    /// To `digits` after the point, or before it if negative.
    Round {
        rounding: Rounding,
        digits: i8,
        from: DataType,
        to: DataType,
    },
    SquareRoot,
    Exponential,
    Logarithm,
    Power,
    Sign,
    Replace,
    StartsWith,
    EndsWith,
    Contains,
    AddDays,
    DaysBetween,
    Truncate {
        unit: Unit,
        timestamp: bool,
    },
}

/// The most arguments that a function has.
pub(super) const MOST: usize = 3;

impl Function {
    pub fn arguments(self) -> usize {
        match self {
            Function::Power | Function::StartsWith | Function::EndsWith | Function::Contains => 2,
            Function::AddDays | Function::DaysBetween => 2,
            Function::Replace => 3,
            _ => 1,
        }
    }

    /// The value; `None` is NULL (only a logarithm has none). `values` beyond the arguments are not read.
    pub fn apply<'a>(self, values: [Value<'a>; MOST]) -> Result<Option<Value<'a>>> {
        let [first, second, third] = values;
        let value = match self {
            Function::Round { rounding, digits, from, to } => round(first, rounding, digits, from, to)?,
            Function::SquareRoot => Value::Float(float(&first).sqrt()),
            Function::Exponential => Value::Float(float(&first).exp()),
            Function::Logarithm if float(&first) <= 0.0 => return Ok(None),
            Function::Logarithm => Value::Float(float(&first).ln()),
            Function::Power => Value::Float(float(&first).powf(float(&second))),
            Function::Sign => {
                let value = float(&first);
                Value::Float(if value == 0.0 { value } else { value.signum() })
            }
            Function::Replace if second.bytes().is_empty() => first,
            Function::Replace => {
                let replaced = utf8(first.bytes())?.replace(utf8(second.bytes())?, utf8(third.bytes())?);
                Value::Bytes(Cow::Owned(replaced.into_bytes()))
            }
            Function::StartsWith => Value::Boolean(first.bytes().starts_with(second.bytes())),
            Function::EndsWith => Value::Boolean(first.bytes().ends_with(second.bytes())),
            Function::Contains => Value::Boolean(utf8(first.bytes())?.contains(utf8(second.bytes())?)),
            Function::AddDays => {
                let days = first.integer().checked_add(second.integer()).and_then(|days| i32::try_from(days).ok());
                Value::Integer(days.map(i64::from).ok_or_else(|| overflow("a date"))?)
            }
            Function::DaysBetween => Value::Integer(first.integer() - second.integer()),
            Function::Truncate { unit, timestamp: false } => Value::Integer(
                calendar::truncate(first.integer() * calendar::MICROS_PER_DAY, unit) / calendar::MICROS_PER_DAY,
            ),
            Function::Truncate { unit, timestamp: true } => Value::Integer(calendar::truncate(first.integer(), unit)),
        };
        Ok(Some(value))
    }
}

fn float(value: &Value) -> f64 {
    match value {
        Value::Float(value) => *value,
        _ => unreachable!("compilation checks that this argument is a float"),
    }
}

fn round<'a>(value: Value, rounding: Rounding, digits: i8, from: DataType, to: DataType) -> Result<Value<'a>> {
    match (value, from, to) {
        (Value::Decimal(value), DataType::Decimal { scale: from, .. }, DataType::Decimal { precision, scale }) => {
            decimal::round(value, from, digits, rounding, scale, precision).map(Value::Decimal)
        }
        (Value::Integer(value), ..) => {
            let rounded = decimal::round(i128::from(value), 0, digits, rounding, 0, decimal::MAX_DIGITS)?;
            in_range(rounded, to).map(Value::Integer)
        }
        // A cast that saturates, NaN to 0, as Java's and so Spark's.
        (Value::Float(value), _, DataType::Int64) => Ok(Value::Integer(match rounding {
            Rounding::Down => value.floor() as i64,
            Rounding::Up | Rounding::HalfUp => value.ceil() as i64,
        })),
        (Value::Float(value), DataType::Float32, _) => {
            let text = format!("{:e}", value as f32);
            Ok(Value::Float(round_float(value, &text, digits, |text| text.parse::<f32>().ok().map(f64::from))))
        }
        (Value::Float(value), ..) => {
            let text = format!("{value:e}");
            Ok(Value::Float(round_float(value, &text, digits, |text| text.parse().ok())))
        }
        _ => unreachable!("compilation checks the types of rounding"),
    }
}

/// Rounds the shortest digits that name the float, as Spark does. Digits that don't fit a decimal are too many to be
/// changed by rounding: the shortest have 17 at most.
fn round_float(value: f64, shortest: &str, digits: i8, read: impl Fn(&str) -> Option<f64>) -> f64 {
    let rounded = decimal::parse(shortest, digits).and_then(|rounded| read(&format!("{rounded}e{}", -digits)));
    match rounded {
        Some(rounded) if value.is_finite() => rounded.copysign(value),
        _ => value,
    }
}
