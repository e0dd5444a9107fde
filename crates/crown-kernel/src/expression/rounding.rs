//! `round`, `bround`, `floor` and `ceil`.

use super::cast::in_range;
use super::decimal::{self, Rounding};
use super::overflow;
use super::value::Value;
use crate::error::Result;
use crate::types::DataType;

/// A number rounded to `digits` after the point, or before it if negative.
pub(super) fn round<'a>(
    value: Value,
    rounding: Rounding,
    digits: i8,
    from: DataType,
    to: DataType,
) -> Result<Value<'a>> {
    match (value, from, to) {
        (Value::Decimal(value), DataType::Decimal { scale: from, .. }, DataType::Decimal { precision, scale }) => {
            decimal::round(value, from, digits, rounding, scale, precision).map(Value::Decimal)
        }
        (Value::Integer(value), ..) => {
            let rounded = decimal::round(i128::from(value), 0, digits, rounding, 0, decimal::MAX_DIGITS)?;
            in_range(rounded, to).map(Value::Integer)
        }
        (Value::Float(value), _, DataType::Int64) => {
            whole(if rounding == Rounding::Down { value.floor() } else { value.ceil() }).map(Value::Integer)
        }
        // Spark rounds a float's value as a double.
        (Value::Float(value), DataType::Float32, _) => {
            let text = format!("{value:e}");
            let read = |text: &str| text.parse::<f32>().ok().map(f64::from);
            Ok(Value::Float(round_float(value, &text, digits, rounding, read)))
        }
        (Value::Float(value), ..) => {
            let text = format!("{value:e}");
            Ok(Value::Float(round_float(value, &text, digits, rounding, |text| text.parse().ok())))
        }
        _ => unreachable!("compilation checks the types of rounding"),
    }
}

/// A float without a fraction as a bigint. NaN is 0, as in Java and so in Spark; what is out of
/// range is an error.
fn whole(value: f64) -> Result<i64> {
    const END: f64 = 9_223_372_036_854_775_808.0;
    if value.is_nan() || (-END..END).contains(&value) {
        Ok(value as i64)
    } else {
        Err(overflow("an int64"))
    }
}

/// Rounds the shortest digits that name the float, as Spark does. Digits that don't fit a decimal
/// are too many to be changed by rounding: the shortest have 17 at most.
fn round_float(value: f64, shortest: &str, digits: i8, rounding: Rounding, read: impl Fn(&str) -> Option<f64>) -> f64 {
    let rounded =
        decimal::parse_rounded(shortest, digits, rounding).and_then(|rounded| read(&format!("{rounded}e{}", -digits)));
    match rounded {
        Some(rounded) if value.is_finite() => rounded.copysign(value),
        _ => value,
    }
}
