//! CAST between all types that Spark's ANSI mode allows.

use super::calendar::{self, Moment, MICROS_PER_DAY, MICROS_PER_SECOND};
use super::decimal::Scaled;
use super::time_of_day::{format_time, parse_time};
use super::value::Value;
use super::{decimal, overflow, utf8};
use crate::arrow_values::parse_uuid;
use crate::error::{KernelError, Result};
use crate::interval::{Field, Span};
use crate::types::DataType;
use std::borrow::Cow;

/// The code of an error about a value that Spark reads and Crown does not: `try_cast` must not make
/// it NULL.
pub(super) const UNSUPPORTED: &str = "CROWN-CAST-UNSUPPORTED";

/// What compilation needs: whether ANSI SQL has this cast at all.
pub(super) fn allowed(from: DataType, to: DataType) -> bool {
    use DataType::*;
    let numeric =
        |data_type| integer_range(data_type).is_some() || matches!(data_type, Float32 | Float64 | Decimal { .. });
    let time = |data_type| matches!(data_type, Date | Timestamp | TimestampNtz);
    match (from, to) {
        _ if from == to => true,
        (Nested(_), _) | (_, Nested(_)) => false,
        (String, _) | (_, String) => true,
        (Uuid, _) | (_, Uuid) => false,
        (Timestamp | TimestampNtz, Time) => true,
        (Time, _) | (_, Time) => false,
        (Interval(one), Interval(other)) => one.is_months() == other.is_months(),
        (Interval(_), other) | (other, Interval(_)) => {
            integer_range(other).is_some() || matches!(other, Decimal { .. })
        }
        (Binary, _) | (_, Binary) => false,
        (Boolean, to) => numeric(to),
        (from, Boolean) => numeric(from),
        (from, to) if numeric(from) && numeric(to) || time(from) && time(to) => true,
        (Timestamp, to) => numeric(to),
        (from, Timestamp) => numeric(from),
        _ => false,
    }
}

/// The cast of a non-NULL value; `None` is NULL (only a NaN or an infinity as a decimal).
pub(super) fn cast<'a>(value: Value<'a>, from: DataType, to: DataType) -> Result<Option<Value<'a>>> {
    if from == to {
        return Ok(Some(value));
    }
    if to == DataType::String {
        return to_string(value, from).map(Some);
    }
    if from == DataType::String {
        return from_string(value.bytes(), to).map(Some);
    }
    if let DataType::Interval(span) = from {
        return from_interval(value.integer(), span, to).map(Some);
    }
    let result = match to {
        DataType::Boolean => Value::Boolean(match value {
            Value::Integer(value) => value != 0,
            Value::Float(value) => value != 0.0,
            Value::Decimal(value) => value != 0,
            other => return Ok(Some(other)),
        }),
        DataType::Float32 => Value::Float(f64::from(match value {
            Value::Integer(value) if from == DataType::Timestamp => seconds(value) as f32,
            Value::Integer(value) => value as f32,
            value => to_float(value, from) as f32,
        })),
        DataType::Float64 => Value::Float(match value {
            Value::Integer(value) if from == DataType::Timestamp => seconds(value),
            value => to_float(value, from),
        }),
        DataType::Decimal { precision, scale } => return to_decimal(value, from, precision, scale),
        DataType::Date => Value::Integer(value.integer().div_euclid(MICROS_PER_DAY)),
        DataType::Time => Value::Integer(value.integer().rem_euclid(MICROS_PER_DAY)),
        DataType::Interval(span) => Value::Integer(to_interval(value, from, span)?),
        DataType::Timestamp | DataType::TimestampNtz => Value::Integer(to_timestamp(value, from)?),
        _ => Value::Integer(to_integer(value, from, to)?),
    };
    Ok(Some(result))
}

/// The least and the greatest value of an integer type.
pub(super) fn integer_range(data_type: DataType) -> Option<(i64, i64)> {
    match data_type {
        DataType::Int8 => Some((i64::from(i8::MIN), i64::from(i8::MAX))),
        DataType::Int16 => Some((i64::from(i16::MIN), i64::from(i16::MAX))),
        DataType::Int32 => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
        DataType::Int64 => Some((i64::MIN, i64::MAX)),
        DataType::UInt8 => Some((0, i64::from(u8::MAX))),
        DataType::UInt16 => Some((0, i64::from(u16::MAX))),
        DataType::UInt32 => Some((0, i64::from(u32::MAX))),
        _ => None,
    }
}

pub(super) fn in_range(value: i128, data_type: DataType) -> Result<i64> {
    let (least, greatest) = match data_type {
        DataType::Interval(span) => span.range(),
        _ => integer_range(data_type).unwrap_or((i64::MIN, i64::MAX)),
    };
    i64::try_from(value)
        .ok()
        .filter(|value| (least..=greatest).contains(value))
        .ok_or_else(|| overflow(name(data_type)))
}

fn name(data_type: DataType) -> &'static str {
    match data_type {
        DataType::Int8 => "an int8",
        DataType::Int16 => "an int16",
        DataType::Int32 => "an int32",
        DataType::Timestamp | DataType::TimestampNtz => "a timestamp",
        DataType::Interval(_) => "an interval",
        _ => "an int64",
    }
}

fn seconds(micros: i64) -> f64 {
    micros as f64 / MICROS_PER_SECOND as f64
}

fn to_float(value: Value, from: DataType) -> f64 {
    match (value, from) {
        (Value::Boolean(value), _) => f64::from(u8::from(value)),
        (Value::Integer(value), _) => value as f64,
        (Value::Decimal(value), DataType::Decimal { scale, .. }) => decimal::to_float(value, scale),
        (Value::Float(value), _) => value,
        _ => unreachable!("compilation refuses this cast"),
    }
}

fn to_integer(value: Value, from: DataType, to: DataType) -> Result<i64> {
    let exact = match (value, from) {
        (Value::Boolean(value), _) => i128::from(value),
        (Value::Integer(value), DataType::Timestamp) => i128::from(value.div_euclid(MICROS_PER_SECOND)),
        (Value::Integer(value), _) => i128::from(value),
        (Value::Decimal(value), DataType::Decimal { scale, .. }) => value / 10i128.pow(scale as u32),
        // `as` saturates, so what is out of an i128's range is out of every integer type's range
        // too.
        (Value::Float(value), _) if !value.is_nan() => value as i128,
        _ => return Err(overflow(name(to))),
    };
    in_range(exact, to)
}

fn to_timestamp(value: Value, from: DataType) -> Result<i64> {
    let micros = match (value, from) {
        (Value::Integer(value), DataType::Date) => i128::from(value) * i128::from(MICROS_PER_DAY),
        (Value::Integer(value), DataType::Timestamp | DataType::TimestampNtz) => i128::from(value),
        // Spark stops at the last timestamp instead of failing.
        (Value::Integer(value), _) => i128::from(value.saturating_mul(MICROS_PER_SECOND)),
        (Value::Decimal(value), DataType::Decimal { scale, .. }) => {
            let scaled = value.checked_mul(i128::from(MICROS_PER_SECOND)).ok_or_else(|| overflow("a timestamp"))?;
            scaled / 10i128.pow(scale as u32)
        }
        (Value::Float(value), _) if value.is_finite() => (value * MICROS_PER_SECOND as f64) as i128,
        _ => return Err(overflow("a timestamp")),
    };
    in_range(micros, DataType::Timestamp)
}

/// A number of the interval's last field; of that, decimals have a fraction only of seconds.
fn from_interval<'a>(value: i64, span: Span, to: DataType) -> Result<Value<'a>> {
    match to {
        DataType::Interval(other) => Ok(Value::Integer(other.truncate(value))),
        DataType::Decimal { precision, scale } if span.last() == Field::Second => {
            Ok(Value::Decimal(decimal::rescale(value.into(), 6, scale, precision)?))
        }
        DataType::Decimal { precision, scale } => {
            Ok(Value::Decimal(decimal::rescale((value / span.last().unit()).into(), 0, scale, precision)?))
        }
        _ => in_range((value / span.last().unit()).into(), to).map(Value::Integer),
    }
}

/// So many of the interval's last field, rounded to months or microseconds: `CAST(0.5 AS INTERVAL DAY)`
/// is twelve hours.
fn to_interval(value: Value, from: DataType, span: Span) -> Result<i64> {
    let unit = i128::from(span.last().unit());
    let exact = match (value, from) {
        (Value::Decimal(value), DataType::Decimal { scale, .. }) => {
            decimal::multiply(Scaled { value, scale }, Scaled { value: unit, scale: 0 }, 0, 38)?
        }
        (value, _) => i128::from(value.integer()) * unit,
    };
    in_range(exact, DataType::Interval(span))
}

fn to_decimal(value: Value<'_>, from: DataType, precision: u8, scale: i8) -> Result<Option<Value<'static>>> {
    let (unscaled, from_scale) = match (value, from) {
        (Value::Boolean(value), _) => (i128::from(value), 0),
        (Value::Integer(value), DataType::Timestamp) => (i128::from(value), 6),
        (Value::Integer(value), _) => (i128::from(value), 0),
        (Value::Decimal(value), DataType::Decimal { scale, .. }) => (value, scale),
        (Value::Float(value), _) if !value.is_finite() => return Ok(None),
        (Value::Float(value), _) => (decimal::from_float(value, scale).ok_or_else(|| overflow("a decimal"))?, scale),
        _ => unreachable!("compilation refuses this cast"),
    };
    Ok(Some(Value::Decimal(decimal::rescale(unscaled, from_scale, scale, precision)?)))
}

fn to_string<'a>(value: Value<'a>, from: DataType) -> Result<Value<'a>> {
    let text = match (value, from) {
        (Value::Bytes(bytes), _) => {
            utf8(&bytes)?;
            return Ok(Value::Bytes(bytes));
        }
        (Value::Boolean(value), _) => value.to_string(),
        (Value::Integer(value), DataType::Date) => calendar::format_date(value),
        (Value::Integer(value), DataType::Timestamp | DataType::TimestampNtz) => calendar::format_timestamp(value),
        (Value::Integer(value), DataType::Time) => format_time(value),
        (Value::Integer(value), DataType::Interval(span)) => span.format(value),
        (Value::Integer(value), _) => value.to_string(),
        (Value::Decimal(value), DataType::Decimal { scale, .. }) => decimal::format(value, scale),
        (Value::Float(value), DataType::Float32) => {
            let two_digits = format!("{:.1e}", value as f32);
            let same = two_digits.parse::<f32>().is_ok_and(|read| f64::from(read) == value);
            format_float(if same { two_digits } else { format!("{:e}", value as f32) })
        }
        (Value::Float(value), _) => {
            let two_digits = format!("{value:.1e}");
            let same = two_digits.parse() == Ok(value);
            format_float(if same { two_digits } else { format!("{value:e}") })
        }
        (Value::Decimal(_), _) => unreachable!("decimals have a decimal type"),
    };
    Ok(Value::Bytes(Cow::Owned(text.into_bytes())))
}

/// Java's notation from Rust's `{:e}` (the shortest, but of two digits at least): plain from 10^-3
/// to below 10^7, else `d.dddEn`.
fn format_float(scientific: String) -> String {
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return match scientific.as_str() {
            "inf" => "Infinity".into(),
            "-inf" => "-Infinity".into(),
            other => other.into(),
        };
    };
    let exponent: i32 = exponent.parse().expect("Rust writes a whole exponent");
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole == "0" {
        return format!("{sign}0.0");
    }
    let fraction = fraction.trim_end_matches('0');
    if !(-3..7).contains(&exponent) {
        return format!("{sign}{whole}.{}E{exponent}", if fraction.is_empty() { "0" } else { fraction });
    }
    let digits = format!("{whole}{fraction}");
    if exponent < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize));
    }
    let point = exponent as usize + 1;
    let digits = format!("{digits:0<point$}");
    let (before, after) = digits.split_at(point);
    format!("{sign}{before}.{}", if after.is_empty() { "0" } else { after })
}

fn from_string(bytes: &[u8], to: DataType) -> Result<Value<'static>> {
    let invalid = || {
        let shown = String::from_utf8_lossy(bytes);
        KernelError::invalid("CROWN-CAST", format!("the string '{shown}' can't be cast to {}", to.sql_name()))
    };
    let unsupported = |what: &str| {
        let shown = String::from_utf8_lossy(bytes);
        KernelError::invalid(UNSUPPORTED, format!("the string '{shown}' has {what}, which is not supported"))
    };
    if to == DataType::Binary {
        return Ok(Value::Bytes(Cow::Owned(bytes.to_vec())));
    }
    // Spark trims blanks and control characters before it reads a value, of ASCII only.
    let text = std::str::from_utf8(bytes).map_err(|_| invalid())?;
    let text = text.trim_matches(|c: char| c <= ' ' || c == '\x7F');
    let value = match to {
        DataType::Boolean => match text.to_ascii_lowercase().as_str() {
            "t" | "true" | "y" | "yes" | "1" => Some(Value::Boolean(true)),
            "f" | "false" | "n" | "no" | "0" => Some(Value::Boolean(false)),
            _ => None,
        },
        DataType::Float64 => without_suffix(text).parse().ok().map(Value::Float),
        DataType::Float32 => without_suffix(text).parse::<f32>().ok().map(|value| Value::Float(f64::from(value))),
        DataType::Decimal { precision, scale } => {
            let is_number = text.parse::<f64>().is_ok_and(f64::is_finite)
                && text.ends_with(|c: char| c.is_ascii_digit() || c == '.');
            if !is_number {
                let other_digits = text.chars().any(|c| !c.is_ascii() && c.is_numeric());
                return Err(if other_digits { unsupported("digits other than 0 to 9") } else { invalid() });
            }
            let value = decimal::parse(text, scale).ok_or_else(|| overflow("a decimal"))?;
            Some(Value::Decimal(decimal::rescale(value, scale, scale, precision)?))
        }
        DataType::Date => calendar::parse_date(text).map(Value::Integer),
        DataType::Time => parse_time(text).map(Value::Integer),
        DataType::Interval(span) => span.read(text).map(Value::Integer),
        DataType::Uuid => parse_uuid(text).map(|text| Value::Bytes(Cow::Owned(text.into_bytes()))),
        DataType::Timestamp | DataType::TimestampNtz => match calendar::parse_timestamp(text) {
            Some(Moment::At { local, zone }) => {
                let zone = if to == DataType::Timestamp { zone } else { 0 };
                local.checked_sub(zone).map(Value::Integer)
            }
            Some(Moment::InRegion) => return Err(unsupported("a named time zone")),
            Some(Moment::Today) if to == DataType::Timestamp => {
                return Err(unsupported("a time without a date, which Spark combines with the current date"));
            }
            Some(Moment::Today) | None => None,
        },
        _ => text.parse::<i64>().ok().and_then(|value| in_range(i128::from(value), to).ok()).map(Value::Integer),
    };
    value.ok_or_else(invalid)
}

/// Java reads `1.5d` and `2f` as floats.
fn without_suffix(text: &str) -> &str {
    let number = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    if number.ends_with(|c: char| c.is_ascii_digit() || c == '.') {
        number
    } else {
        text
    }
}
