//! Other numeric functions: formatting with separators, buckets, factorials.

use super::super::decimal::{self, Rounding};
use super::super::value::Value;
use super::{integer, string, utf8_of};
use crate::types::DataType;

type Evaluated<'a> = crate::error::Result<Option<Value<'a>>>;

/// Java writes this for an infinity.
const INFINITY: &str = "\u{221E}";
/// More digits than Java writes of any number.
const MOST_DIGITS: i64 = 340;

/// `format_number`: a separator after each thousand, and so many digits after the point.
pub fn format_float<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let (number, digits) = (arguments[0].float(), arguments[1].integer());
    if digits < 0 {
        return Ok(None);
    }
    if number.is_nan() {
        return string("NaN");
    }
    let sign = if number < 0.0 { "-" } else { "" };
    if number.is_infinite() {
        return string(format!("{sign}{INFINITY}"));
    }
    let digits = digits.min(MOST_DIGITS) as usize;
    let shortest = number.abs().to_string();
    let (whole, fraction) = shortest.split_once('.').unwrap_or((&shortest, ""));
    // As in Java: the digits that name the number and zeros after them; if there are more of them
    // than wanted, the exact value is rounded, and ties go to the even digit.
    let written = if fraction.len() > digits {
        format!("{:.*}", digits, number.abs())
    } else {
        let point = if digits > 0 { "." } else { "" };
        format!("{whole}{point}{fraction:0<digits$}")
    };
    string(format!("{sign}{}", separated(&written)))
}

pub fn format_integer<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let (number, digits) = (arguments[0].integer(), arguments[1].integer());
    written(&number.to_string(), digits)
}

/// Of a decimal, as text.
pub fn format_decimal<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    written(utf8_of(&arguments[0])?, arguments[1].integer())
}

fn written<'a>(number: &str, digits: i64) -> Evaluated<'a> {
    let Ok(digits) = usize::try_from(digits.min(MOST_DIGITS)) else { return Ok(None) };
    let (sign, plain) = number.strip_prefix('-').map_or(("", number), |plain| ("-", plain));
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    let rounded = if fraction.len() > digits {
        // There are fewer digits than a decimal has, so the scale is a small number.
        let value = decimal::parse_rounded(plain, digits as i8, Rounding::HalfEven);
        value.map(|value| decimal::format(value, digits as i8))
    } else {
        let point = if digits > 0 { "." } else { "" };
        Some(format!("{whole}{point}{fraction:0<digits$}"))
    };
    match rounded {
        Some(rounded) => string(format!("{sign}{}", separated(&rounded))),
        None => Ok(None),
    }
}

fn separated(number: &str) -> String {
    let (whole, fraction) = number.find('.').map_or((number, ""), |point| number.split_at(point));
    let mut out = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

/// NULL where the result has no place in 64 bits.
pub fn factorial<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    match arguments[0].integer() {
        number @ 0..=20 => integer((1..=number).product()),
        _ => Ok(None),
    }
}

/// `width_bucket(value, from, to, buckets)`: from 1; 0 and one more than there are for values
/// outside. The range may run downwards.
pub fn width_bucket<'a>(arguments: &[Value<'a>], _: DataType) -> Evaluated<'a> {
    let [value, from, to] = [0, 1, 2].map(|at: usize| arguments[at].float());
    let buckets = arguments[3].integer();
    if buckets <= 0 || buckets == i64::MAX || value.is_nan() || from == to || !from.is_finite() || !to.is_finite() {
        return Ok(None);
    }
    let (past, ahead, width) =
        if from < to { (value < from, value >= to, to - from) } else { (value > from, value <= to, from - to) };
    let distance = if from < to { value - from } else { from - value };
    integer(match (past, ahead) {
        (true, _) => 0,
        (_, true) => buckets + 1,
        // As in Java, where the sum wraps around.
        _ => ((buckets as f64 * distance / width) as i64).wrapping_add(1),
    })
}
