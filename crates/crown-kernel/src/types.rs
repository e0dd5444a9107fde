//! Column types and how a value of each becomes a word.

use crate::chunk::Word;
use crate::error::{KernelError, Result};
use crate::interval::Span;
use crate::nested::{self, Nested};

/// The type of a column. Its values are stored as words of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// `boolean`
    Boolean,
    /// `int8`
    Int8,
    /// `int16`
    Int16,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `float32`
    Float32,
    /// `float64`
    Float64,
    /// `decimal(precision, scale)`: the unscaled value, interned if it is wide.
    Decimal {
        /// The number of digits.
        precision: u8,
        /// How many of them are after the point.
        scale: i8,
    },
    /// `string`, interned.
    String,
    /// `binary`, interned.
    Binary,
    /// `date`: days since 1970.
    Date,
    /// `timestamp`: microseconds since 1970, UTC.
    Timestamp,
    /// `timestamp_ntz`: microseconds without a time zone.
    TimestampNtz,
    /// `uint8`, of columns of tables only: expressions cast them to a signed type.
    UInt8,
    /// `uint16`
    UInt16,
    /// `uint32`
    UInt32,
    /// `time`: microseconds since midnight.
    Time,
    /// `interval_day_to_second` and its like: months or microseconds.
    Interval(Span),
    /// `uuid`: its text in lower case, interned.
    Uuid,
    /// An array, a struct or a map, interned (see [`crate::nested`]).
    Nested(&'static Nested),
}

impl DataType {
    /// Reads a type's name in a plan.
    pub fn parse(name: &str) -> Result<DataType> {
        Ok(match name {
            "boolean" => DataType::Boolean,
            "int8" => DataType::Int8,
            "int16" => DataType::Int16,
            "int32" => DataType::Int32,
            "int64" => DataType::Int64,
            "float32" => DataType::Float32,
            "float64" => DataType::Float64,
            "string" => DataType::String,
            "binary" => DataType::Binary,
            "date" => DataType::Date,
            "timestamp" => DataType::Timestamp,
            "timestamp_ntz" => DataType::TimestampNtz,
            "uint8" => DataType::UInt8,
            "uint16" => DataType::UInt16,
            "uint32" => DataType::UInt32,
            "time" => DataType::Time,
            "uuid" => DataType::Uuid,
            _ if name.starts_with("interval_") => {
                return Span::parse(name).map(DataType::Interval).ok_or_else(|| DataType::unknown(name));
            }
            _ if name.ends_with('>') => return nested::parse(name).ok_or_else(|| DataType::unknown(name)),
            _ => return DataType::parse_decimal(name),
        })
    }

    /// The type as SQL writes it.
    pub fn sql_name(self) -> String {
        let name = match self {
            DataType::Boolean => "BOOLEAN",
            DataType::Int8 => "TINYINT",
            DataType::Int16 => "SMALLINT",
            DataType::Int32 => "INT",
            DataType::Int64 => "BIGINT",
            DataType::Float32 => "FLOAT",
            DataType::Float64 => "DOUBLE",
            DataType::Decimal { precision, scale } => return format!("DECIMAL({precision},{scale})"),
            DataType::String => "STRING",
            DataType::Binary => "BINARY",
            DataType::Date => "DATE",
            DataType::Timestamp => "TIMESTAMP",
            DataType::TimestampNtz => "TIMESTAMP_NTZ",
            DataType::Time => "TIME",
            DataType::UInt8 => "UTINYINT",
            DataType::UInt16 => "USMALLINT",
            DataType::UInt32 => "UINTEGER",
            DataType::Uuid => "UUID",
            DataType::Interval(span) => return span.sql_name(),
            DataType::Nested(nested) => return nested.sql_name(),
        };
        name.into()
    }

    fn parse_decimal(name: &str) -> Result<DataType> {
        name.strip_prefix("decimal(")
            .and_then(|rest| rest.strip_suffix(')'))
            .and_then(|inside| inside.split_once(','))
            .and_then(|(p, s)| Some((p.trim().parse().ok()?, s.trim().parse().ok()?)))
            .filter(|(precision, scale): &(u8, i8)| {
                (1..=38).contains(precision) && (0..=*precision as i8).contains(scale)
            })
            .map(|(precision, scale)| DataType::Decimal { precision, scale })
            .ok_or_else(|| DataType::unknown(name))
    }

    fn unknown(name: &str) -> KernelError {
        KernelError::plan("CROWN-PLAN-MALFORMED", format!("unknown type '{name}'"))
    }

    /// The digits after the point of a decimal; 0 for other types.
    pub fn scale(self) -> i8 {
        match self {
            DataType::Decimal { scale, .. } => scale,
            _ => 0,
        }
    }

    /// Whether words of this type are ids of the interner: strings, binary, nested values, and
    /// decimals of more than 18 digits (16 bytes, little-endian).
    pub fn interned(self) -> bool {
        match self {
            DataType::String | DataType::Binary | DataType::Uuid | DataType::Nested(_) => true,
            DataType::Decimal { precision, .. } => precision > 18,
            _ => false,
        }
    }
}

/// A float's word: one NaN, no -0, so that equal values have equal words. `float32` is widened
/// first.
pub fn float_word(value: f64) -> Word {
    if value.is_nan() {
        f64::NAN.to_bits()
    } else if value == 0.0 {
        0
    } else {
        value.to_bits()
    }
}

/// The float that a word represents.
pub fn word_float(word: Word) -> f64 {
    f64::from_bits(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_parse_and_bad_ones_are_refused() {
        assert_eq!(DataType::parse("decimal(12, 2)").unwrap(), DataType::Decimal { precision: 12, scale: 2 });
        for bad in ["decimal(39,2)", "decimal(5,6)", "decimal", "int", ""] {
            assert_eq!(DataType::parse(bad).unwrap_err().code, "CROWN-PLAN-MALFORMED", "{bad}");
        }
    }

    #[test]
    fn equal_floats_have_equal_words() {
        assert_eq!(float_word(-0.0), float_word(0.0));
        assert_eq!(float_word(f64::NAN), float_word(-f64::NAN));
    }
}
