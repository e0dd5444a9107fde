//! Functions by name, as Spark calls them: one row of `ENTRIES` to a function, with the kinds of
//! its arguments.
//!
//! All of them are NULL for a NULL argument, so none sees one. What needs more than values without
//! NULLs (literals compiled in advance, any number of arguments) is a separate node.

mod bits;
mod digest;
mod fdlibm;
pub(super) mod hashing;
mod json;
mod math;
mod number;
mod text;
pub(super) mod time;

use super::compile::Kind;
use super::value::Value;
use crate::error::Result;
use crate::types::DataType;
use std::borrow::Cow;

/// A function of values without NULLs; it also gets the type of its result. `None` is NULL.
pub(super) type Apply = for<'a> fn(&[Value<'a>], DataType) -> Result<Option<Value<'a>>>;

/// The most arguments that one of these functions has.
pub(super) const MOST: usize = 6;

/// A text that a function makes may have this many bytes. Spark's limit is 2 GB; a batch that needs
/// more than this is taken to be an accident.
const LONGEST_TEXT: usize = 256 << 20;

struct Entry {
    name: &'static str,
    arguments: &'static [Kind],
    result: Kind,
    apply: Apply,
}

/// The function of that name for arguments of these kinds.
pub(super) fn find(name: &str, arguments: &[Kind], result: Kind) -> Option<Apply> {
    let fits = |entry: &&Entry| entry.name == name && entry.arguments == arguments && entry.result == result;
    ENTRIES.iter().find(fits).map(|entry| entry.apply)
}

pub(super) fn knows(name: &str) -> bool {
    ENTRIES.iter().any(|entry| entry.name == name)
}

const fn entry(name: &'static str, arguments: &'static [Kind], result: Kind, apply: Apply) -> Entry {
    Entry { name, arguments, result, apply }
}

use Kind::{Boolean, Bytes, Date, Duration, Float, Integer, Months, Timestamp};

const ENTRIES: &[Entry] = &[
    entry("sqrt", &[Float], Float, math::sqrt),
    entry("cbrt", &[Float], Float, math::cbrt),
    entry("exp", &[Float], Float, math::exp),
    entry("expm1", &[Float], Float, math::expm1),
    entry("ln", &[Float], Float, math::ln),
    entry("log", &[Float, Float], Float, math::log),
    entry("log2", &[Float], Float, math::log2),
    entry("log10", &[Float], Float, math::log10),
    entry("log1p", &[Float], Float, math::log1p),
    entry("power", &[Float, Float], Float, math::power),
    entry("hypot", &[Float, Float], Float, math::hypot),
    entry("sin", &[Float], Float, math::sin),
    entry("cos", &[Float], Float, math::cos),
    entry("tan", &[Float], Float, math::tan),
    entry("asin", &[Float], Float, math::asin),
    entry("acos", &[Float], Float, math::acos),
    entry("atan", &[Float], Float, math::atan),
    entry("atan2", &[Float, Float], Float, math::atan2),
    entry("sinh", &[Float], Float, math::sinh),
    entry("cosh", &[Float], Float, math::cosh),
    entry("tanh", &[Float], Float, math::tanh),
    entry("degrees", &[Float], Float, math::degrees),
    entry("radians", &[Float], Float, math::radians),
    entry("rint", &[Float], Float, math::rint),
    entry("sign", &[Float], Float, math::sign),
    entry("is_nan", &[Float], Boolean, math::is_nan),
    entry("div", &[Integer, Integer], Integer, bits::div),
    entry("pmod", &[Integer, Integer], Integer, bits::pmod),
    entry("pmod", &[Float, Float], Float, math::pmod),
    entry("bit_and", &[Integer, Integer], Integer, bits::and),
    entry("bit_or", &[Integer, Integer], Integer, bits::or),
    entry("bit_xor", &[Integer, Integer], Integer, bits::xor),
    entry("bit_not", &[Integer], Integer, bits::not),
    entry("shiftleft", &[Integer, Integer], Integer, bits::shift_left),
    entry("shiftright", &[Integer, Integer], Integer, bits::shift_right),
    entry("shiftrightunsigned", &[Integer, Integer], Integer, bits::shift_right_unsigned),
    entry("bit_count", &[Integer], Integer, bits::count),
    entry("bit_count", &[Boolean], Integer, bits::count),
    entry("replace", &[Bytes, Bytes, Bytes], Bytes, text::replace),
    entry("starts_with", &[Bytes, Bytes], Boolean, text::starts_with),
    entry("ends_with", &[Bytes, Bytes], Boolean, text::ends_with),
    entry("contains", &[Bytes, Bytes], Boolean, text::contains),
    entry("trim", &[Bytes, Bytes], Bytes, text::trim),
    entry("ltrim", &[Bytes, Bytes], Bytes, text::ltrim),
    entry("rtrim", &[Bytes, Bytes], Bytes, text::rtrim),
    entry("lpad", &[Bytes, Integer, Bytes], Bytes, text::lpad),
    entry("rpad", &[Bytes, Integer, Bytes], Bytes, text::rpad),
    entry("repeat", &[Bytes, Integer], Bytes, text::repeat),
    entry("reverse", &[Bytes], Bytes, text::reverse),
    entry("translate", &[Bytes, Bytes, Bytes], Bytes, text::translate),
    entry("overlay", &[Bytes, Bytes, Integer, Integer], Bytes, text::overlay),
    entry("split_part", &[Bytes, Bytes, Integer], Bytes, text::split_part),
    entry("substring_index", &[Bytes, Bytes, Integer], Bytes, text::substring_index),
    entry("soundex", &[Bytes], Bytes, text::soundex),
    entry("chr", &[Integer], Bytes, text::chr),
    entry("ascii", &[Bytes], Integer, text::ascii),
    entry("octet_length", &[Bytes], Integer, text::octet_length),
    entry("bit_length", &[Bytes], Integer, text::bit_length),
    entry("json_text", &[Bytes, Bytes], Bytes, json::text),
    entry("json_value", &[Bytes, Bytes], Bytes, json::value),
    entry("locate", &[Bytes, Bytes, Integer], Integer, text::locate),
    entry("find_in_set", &[Bytes, Bytes], Integer, text::find_in_set),
    entry("levenshtein", &[Bytes, Bytes], Integer, text::levenshtein),
    entry("hex", &[Integer], Bytes, text::hex_of_integer),
    entry("unhex", &[Bytes], Bytes, text::unhex),
    entry("base64", &[Bytes], Bytes, text::base64),
    entry("bin", &[Integer], Bytes, text::binary_digits),
    entry("format_number", &[Float, Integer], Bytes, number::format_float),
    entry("format_number", &[Integer, Integer], Bytes, number::format_integer),
    entry("format_number", &[Bytes, Integer], Bytes, number::format_decimal),
    entry("factorial", &[Integer], Integer, number::factorial),
    entry("width_bucket", &[Float, Float, Float, Integer], Integer, number::width_bucket),
    entry("hex", &[Bytes], Bytes, text::hex_of_bytes),
    entry("md5", &[Bytes], Bytes, digest::md5),
    entry("sha1", &[Bytes], Bytes, digest::sha1),
    entry("sha2", &[Bytes, Integer], Bytes, digest::sha2),
    entry("crc32", &[Bytes], Integer, digest::crc32),
    entry("date_add", &[Date, Integer], Date, time::add_days),
    entry("date_diff", &[Date, Date], Integer, time::days_between),
    entry("add_months", &[Date, Integer], Date, time::add_months),
    entry("add_months", &[Timestamp, Integer], Timestamp, time::add_months_to_timestamp),
    entry("add_microseconds", &[Timestamp, Integer], Timestamp, time::add_microseconds),
    entry("months_between", &[Timestamp, Timestamp, Boolean], Float, time::months_between),
    entry("complete_months", &[Timestamp, Timestamp], Integer, time::complete_months),
    entry("make_date", &[Integer, Integer, Integer], Date, time::make_date),
    entry("make_timestamp", &[Integer; 6], Timestamp, time::make_timestamp),
    entry("try_make_timestamp", &[Integer; 6], Timestamp, time::try_make_timestamp),
    entry("last_day", &[Date], Date, time::last_day),
    entry("next_day", &[Date, Bytes], Date, time::next_day),
    entry("unix_date", &[Date], Integer, time::unix_date),
    entry("date_from_unix_date", &[Integer], Date, time::date_from_unix_date),
    entry("unix_micros", &[Timestamp], Integer, time::unix_micros),
    entry("unix_millis", &[Timestamp], Integer, time::unix_millis),
    entry("unix_seconds", &[Timestamp], Integer, time::unix_seconds),
    entry("length_of_interval", &[Months], Integer, time::length_of_interval),
    entry("length_of_interval", &[Duration], Integer, time::length_of_interval),
    entry("interval_of_length", &[Integer], Months, time::length_of_interval),
    entry("interval_of_length", &[Integer], Duration, time::length_of_interval),
    entry("extract_second", &[Timestamp], Kind::Decimal(6), time::extract_second),
];

fn utf8_of<'v>(value: &'v Value) -> Result<&'v str> {
    super::utf8(value.bytes())
}

fn string<'a>(text: impl Into<Vec<u8>>) -> Result<Option<Value<'a>>> {
    Ok(Some(Value::Bytes(Cow::Owned(text.into()))))
}

fn integer<'a>(value: i64) -> Result<Option<Value<'a>>> {
    Ok(Some(Value::Integer(value)))
}

fn boolean<'a>(value: bool) -> Result<Option<Value<'a>>> {
    Ok(Some(Value::Boolean(value)))
}
