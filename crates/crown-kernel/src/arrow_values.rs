//! One Arrow array into words: any width, scale, unit and encoding that can hold the column's type.

use crate::chunk::Word;
use crate::interval::{self, Span};
use crate::nested;
use crate::store::interner::Interner;
use crate::types::{float_word, DataType};
use arrow::array::{Array, ArrayRef, AsArray, Decimal256Array, FixedSizeBinaryArray, PrimitiveArray};
use arrow::datatypes::{self as arrow_types, ArrowPrimitiveType, DataType as ArrowType, IntervalUnit, TimeUnit};

/// Where one column's words go; `nulls` and `faults` count rows from the column's beginning.
#[derive(Default)]
pub(crate) struct Sink {
    pub words: Vec<Word>,
    pub nulls: Vec<usize>,
    pub faults: Vec<(usize, String)>,
}

impl Sink {
    /// One word per row: `value` returns it, or why the row's value does not fit.
    fn each<T>(
        &mut self,
        array: &dyn Array,
        get: impl Fn(usize) -> T,
        mut value: impl FnMut(T) -> std::result::Result<Word, String>,
    ) {
        self.words.reserve(array.len());
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        for row in 0..array.len() {
            if nulls.is_some_and(|nulls| nulls.is_null(row)) {
                self.nulls.push(row);
                self.words.push(0);
                continue;
            }
            self.words.push(value(get(row)).unwrap_or_else(|why| {
                self.faults.push((row, why));
                0
            }));
        }
    }

    /// One nested value per row: `value` returns its bytes, or why it does not fit.
    pub fn each_nested(
        &mut self,
        array: &dyn Array,
        interner: &mut Interner,
        value: impl Fn(usize, &Interner) -> std::result::Result<Vec<u8>, String>,
    ) {
        self.each(array, |row| row, |row| value(row, interner).map(|bytes| interner.intern(&bytes)));
    }

    fn integers<P: ArrowPrimitiveType>(&mut self, array: &ArrayRef, value: impl FnMut(P::Native) -> Fitted)
    where
        P::Native: Copy,
    {
        let array: &PrimitiveArray<P> = array.as_primitive();
        let values = array.values();
        self.each(array, |row| values[row], value);
    }
}

type Fitted = std::result::Result<Word, String>;

/// `Err` when no value of the array's type could fit.
pub(crate) fn convert(
    array: &ArrayRef,
    target: DataType,
    interner: &mut Interner,
    sink: &mut Sink,
) -> std::result::Result<(), String> {
    if let ArrowType::Dictionary(..) = array.data_type() {
        return convert_dictionary(array, target, interner, sink);
    }
    if *array.data_type() == ArrowType::Null {
        sink.nulls.extend(0..array.len());
        sink.words.resize(sink.words.len() + array.len(), 0);
        return Ok(());
    }
    match target {
        DataType::Int64 if *array.data_type() == ArrowType::Int64 && array.null_count() == 0 => {
            sink.words.extend(array.as_primitive::<arrow_types::Int64Type>().values().iter().map(|v| *v as Word));
            Ok(())
        }
        DataType::Int8 => integer(array, sink, target, i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => integer(array, sink, target, i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => integer(array, sink, target, i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => integer(array, sink, target, i64::MIN, i64::MAX),
        DataType::UInt8 => integer(array, sink, target, 0, u8::MAX.into()),
        DataType::UInt16 => integer(array, sink, target, 0, u16::MAX.into()),
        DataType::UInt32 => integer(array, sink, target, 0, u32::MAX.into()),
        DataType::Float32 | DataType::Float64 => float(array, sink, target),
        DataType::Decimal { precision, scale } => decimal(array, sink, interner, precision, scale),
        DataType::Boolean => {
            let booleans = array.as_boolean_opt().ok_or_else(|| mismatch(target, array))?;
            sink.each(booleans, |row| booleans.value(row), |value| Ok(value.into()));
            Ok(())
        }
        DataType::String | DataType::Binary => bytes(array, sink, interner, target),
        DataType::Uuid => uuid(array, sink, interner),
        DataType::Time => time(array, sink),
        DataType::Interval(span) => interval(array, sink, span),
        DataType::Nested(nested) => nested::from_arrow(array, nested, interner, sink),
        DataType::Date => date(array, sink),
        DataType::Timestamp | DataType::TimestampNtz => timestamp(array, sink, target),
    }
}

fn mismatch(target: DataType, array: &ArrayRef) -> String {
    format!("expected {}, found Arrow type {}", target.sql_name(), arrow_name(array.data_type()))
}

/// An Arrow type by the name that pyarrow, pandas and polars users know.
pub(crate) fn arrow_name(data_type: &ArrowType) -> String {
    let name = match data_type {
        ArrowType::Boolean => "bool",
        ArrowType::Float16 => "halffloat",
        ArrowType::Float32 => "float",
        ArrowType::Float64 => "double",
        ArrowType::Utf8 => "string",
        ArrowType::LargeUtf8 => "large_string",
        ArrowType::Utf8View => "string_view",
        ArrowType::Date32 => "date32",
        ArrowType::Date64 => "date64",
        ArrowType::Timestamp(_, None) => "timestamp",
        ArrowType::Timestamp(_, Some(zone)) => return format!("timestamp with time zone {zone}"),
        ArrowType::Dictionary(_, values) => return format!("dictionary of {}", arrow_name(values)),
        ArrowType::List(field) | ArrowType::LargeList(field) => {
            return format!("list<{}>", arrow_name(field.data_type()));
        }
        other => return other.to_string().to_lowercase(),
    };
    name.into()
}

/// Each distinct value is converted (and interned) once.
fn convert_dictionary(
    array: &ArrayRef,
    target: DataType,
    interner: &mut Interner,
    sink: &mut Sink,
) -> std::result::Result<(), String> {
    let dictionary = array.as_any_dictionary();
    let mut values = Sink::default();
    convert(dictionary.values(), target, interner, &mut values)?;
    if values.words.is_empty() {
        sink.nulls.extend(0..array.len());
        sink.words.resize(sink.words.len() + array.len(), 0);
        return Ok(());
    }
    let keys = dictionary.normalized_keys();
    for (row, key) in keys.into_iter().enumerate() {
        if dictionary.keys().is_null(row) || values.nulls.binary_search(&key).is_ok() {
            sink.nulls.push(row);
            sink.words.push(0);
            continue;
        }
        if let Ok(found) = values.faults.binary_search_by_key(&key, |fault| fault.0) {
            sink.faults.push((row, values.faults[found].1.clone()));
        }
        sink.words.push(values.words[key]);
    }
    Ok(())
}

fn integer(
    array: &ArrayRef,
    sink: &mut Sink,
    target: DataType,
    least: i64,
    most: i64,
) -> std::result::Result<(), String> {
    let fit = |value: i128| {
        if value < i128::from(least) || value > i128::from(most) {
            return Err(format!("{value} is out of range for {}", target.sql_name()));
        }
        Ok(value as i64 as Word)
    };
    let float = |value: f64| {
        if value.fract() != 0.0 || !value.is_finite() || value.abs() >= 9.3e18 {
            return Err(format!("{value} is not a whole number for {}", target.sql_name()));
        }
        fit(value as i128)
    };
    match array.data_type() {
        ArrowType::Int8 => sink.integers::<arrow_types::Int8Type>(array, |v| fit(v.into())),
        ArrowType::Int16 => sink.integers::<arrow_types::Int16Type>(array, |v| fit(v.into())),
        ArrowType::Int32 => sink.integers::<arrow_types::Int32Type>(array, |v| fit(v.into())),
        ArrowType::Int64 => sink.integers::<arrow_types::Int64Type>(array, |v| fit(v.into())),
        ArrowType::UInt8 => sink.integers::<arrow_types::UInt8Type>(array, |v| fit(v.into())),
        ArrowType::UInt16 => sink.integers::<arrow_types::UInt16Type>(array, |v| fit(v.into())),
        ArrowType::UInt32 => sink.integers::<arrow_types::UInt32Type>(array, |v| fit(v.into())),
        ArrowType::UInt64 => sink.integers::<arrow_types::UInt64Type>(array, |v| fit(v.into())),
        ArrowType::Float32 => sink.integers::<arrow_types::Float32Type>(array, |v| float(v.into())),
        ArrowType::Float64 => sink.integers::<arrow_types::Float64Type>(array, float),
        ArrowType::Decimal128(_, scale) => {
            let scale = *scale;
            sink.integers::<arrow_types::Decimal128Type>(array, |v| fit(rescale(v, scale, 0)?));
        }
        _ => return Err(mismatch(target, array)),
    }
    Ok(())
}

fn float(array: &ArrayRef, sink: &mut Sink, target: DataType) -> std::result::Result<(), String> {
    let narrow = target == DataType::Float32;
    let fit = |value: f64| Ok(float_word(if narrow { f64::from(value as f32) } else { value }));
    match array.data_type() {
        ArrowType::Int8 => sink.integers::<arrow_types::Int8Type>(array, |v| fit(v.into())),
        ArrowType::Int16 => sink.integers::<arrow_types::Int16Type>(array, |v| fit(v.into())),
        ArrowType::Int32 => sink.integers::<arrow_types::Int32Type>(array, |v| fit(v.into())),
        ArrowType::Int64 => sink.integers::<arrow_types::Int64Type>(array, |v| fit(v as f64)),
        ArrowType::UInt8 => sink.integers::<arrow_types::UInt8Type>(array, |v| fit(v.into())),
        ArrowType::UInt16 => sink.integers::<arrow_types::UInt16Type>(array, |v| fit(v.into())),
        ArrowType::UInt32 => sink.integers::<arrow_types::UInt32Type>(array, |v| fit(v.into())),
        ArrowType::UInt64 => sink.integers::<arrow_types::UInt64Type>(array, |v| fit(v as f64)),
        ArrowType::Float16 => sink.integers::<arrow_types::Float16Type>(array, |v| fit(v.to_f64())),
        ArrowType::Float32 => sink.integers::<arrow_types::Float32Type>(array, |v| fit(v.into())),
        ArrowType::Float64 => sink.integers::<arrow_types::Float64Type>(array, fit),
        ArrowType::Decimal128(_, scale) => {
            let unit = 10f64.powi((*scale).into());
            sink.integers::<arrow_types::Decimal128Type>(array, |v| fit(v as f64 / unit));
        }
        _ => return Err(mismatch(target, array)),
    }
    Ok(())
}

/// `value` at scale `from`, exactly, at scale `to`.
fn rescale(value: i128, from: i8, to: i8) -> std::result::Result<i128, String> {
    let power = 10i128.checked_pow(u32::from(from.abs_diff(to))).ok_or("the scale is out of range")?;
    if to >= from {
        return value.checked_mul(power).ok_or_else(|| format!("{value} is out of range at scale {to}"));
    }
    if value % power != 0 {
        return Err(format!("{value}e-{from} has more than {to} digits after the point"));
    }
    Ok(value / power)
}

/// The word of a decimal that has `precision` digits at most; `None` when it has more.
pub fn decimal_word(value: i128, precision: u8, interner: &mut Interner) -> Option<Word> {
    if value.unsigned_abs() >= 10u128.pow(precision.into()) {
        return None;
    }
    Some(if precision > 18 { interner.intern(&value.to_le_bytes()) } else { value as i64 as Word })
}

fn decimal(
    array: &ArrayRef,
    sink: &mut Sink,
    interner: &mut Interner,
    precision: u8,
    scale: i8,
) -> std::result::Result<(), String> {
    let claimed = match array.data_type() {
        ArrowType::Decimal32(digits, _)
        | ArrowType::Decimal64(digits, _)
        | ArrowType::Decimal128(digits, _)
        | ArrowType::Decimal256(digits, _) => 10u128.checked_pow((*digits).into()),
        _ => None,
    };
    let mut fit = |value: i128, from: i8| {
        if claimed.is_some_and(|claimed| value.unsigned_abs() >= claimed) {
            return Err(format!("{value} has more digits than its own type {}", array.data_type()));
        }
        let scaled = rescale(value, from, scale)?;
        decimal_word(scaled, precision, interner)
            .ok_or_else(|| format!("{scaled}e-{scale} is out of range for decimal({precision},{scale})"))
    };
    match array.data_type() {
        ArrowType::Decimal32(_, from) => {
            sink.integers::<arrow_types::Decimal32Type>(array, |v| fit(v.into(), *from));
        }
        ArrowType::Decimal64(_, from) => {
            sink.integers::<arrow_types::Decimal64Type>(array, |v| fit(v.into(), *from));
        }
        ArrowType::Decimal128(_, from) => sink.integers::<arrow_types::Decimal128Type>(array, |v| fit(v, *from)),
        ArrowType::Decimal256(_, from) => {
            let values: &Decimal256Array = array.as_primitive();
            let narrow = |row: usize| values.value(row).to_i128();
            sink.each(values, narrow, |v| fit(v.ok_or("the decimal has more than 38 digits")?, *from));
        }
        ArrowType::Int8 => sink.integers::<arrow_types::Int8Type>(array, |v| fit(v.into(), 0)),
        ArrowType::Int16 => sink.integers::<arrow_types::Int16Type>(array, |v| fit(v.into(), 0)),
        ArrowType::Int32 => sink.integers::<arrow_types::Int32Type>(array, |v| fit(v.into(), 0)),
        ArrowType::Int64 => sink.integers::<arrow_types::Int64Type>(array, |v| fit(v.into(), 0)),
        ArrowType::UInt64 => sink.integers::<arrow_types::UInt64Type>(array, |v| fit(v.into(), 0)),
        _ => return Err(mismatch(DataType::Decimal { precision, scale }, array)),
    }
    Ok(())
}

fn bytes(
    array: &ArrayRef,
    sink: &mut Sink,
    interner: &mut Interner,
    target: DataType,
) -> std::result::Result<(), String> {
    let mut intern = |value: &[u8]| Ok(interner.intern(value));
    let text = target == DataType::String;
    match array.data_type() {
        ArrowType::Utf8 if text => {
            let values = array.as_string::<i32>();
            sink.each(values, |row| values.value(row).as_bytes(), &mut intern);
        }
        ArrowType::LargeUtf8 if text => {
            let values = array.as_string::<i64>();
            sink.each(values, |row| values.value(row).as_bytes(), &mut intern);
        }
        ArrowType::Utf8View if text => {
            let values = array.as_string_view();
            sink.each(values, |row| values.value(row).as_bytes(), &mut intern);
        }
        ArrowType::Binary if !text => {
            let values = array.as_binary::<i32>();
            sink.each(values, |row| values.value(row), &mut intern);
        }
        ArrowType::LargeBinary if !text => {
            let values = array.as_binary::<i64>();
            sink.each(values, |row| values.value(row), &mut intern);
        }
        ArrowType::BinaryView if !text => {
            let values = array.as_binary_view();
            sink.each(values, |row| values.value(row), &mut intern);
        }
        ArrowType::FixedSizeBinary(_) if !text => {
            let values: &FixedSizeBinaryArray = array.as_fixed_size_binary();
            sink.each(values, |row| values.value(row), &mut intern);
        }
        _ => return Err(mismatch(target, array)),
    }
    Ok(())
}

/// Text of any usual form, or 16 bytes.
fn uuid(array: &ArrayRef, sink: &mut Sink, interner: &mut Interner) -> std::result::Result<(), String> {
    let mut texts = Sink::default();
    if let ArrowType::FixedSizeBinary(16) = array.data_type() {
        let values = array.as_fixed_size_binary();
        let text = |bytes: &[u8]| uuid_of_bytes(bytes.try_into().unwrap_or_default());
        sink.each(values, |row| values.value(row), |bytes| Ok(interner.intern(text(bytes).as_bytes())));
        return Ok(());
    }
    bytes(array, &mut texts, interner, DataType::String)?;
    let words = std::mem::take(&mut texts.words);
    sink.each(
        array,
        |row| words[row],
        |word| {
            let text = String::from_utf8_lossy(interner.get(word)).into_owned();
            let text = parse_uuid(&text).ok_or_else(|| format!("'{}' is not a UUID", clip(&text)))?;
            Ok(interner.intern(text.as_bytes()))
        },
    );
    Ok(())
}

fn clip(text: &str) -> &str {
    text.char_indices().nth(50).map_or(text, |(end, _)| &text[..end])
}

/// The text of a UUID's 16 bytes.
pub fn uuid_of_bytes(bytes: [u8; 16]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

/// A UUID's text in lower case with hyphens; braces, and hyphens between any digits, may be left
/// out or in.
pub fn parse_uuid(text: &str) -> Option<String> {
    let trimmed = text.trim();
    let inner = trimmed.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(trimmed);
    let digits: String = inner.chars().filter(|character| *character != '-').collect();
    if digits.len() != 32 {
        return None;
    }
    u128::from_str_radix(&digits, 16).ok().map(|value| uuid_of_bytes(value.to_be_bytes()))
}

/// Microseconds since midnight.
fn time(array: &ArrayRef, sink: &mut Sink) -> std::result::Result<(), String> {
    match array.data_type() {
        ArrowType::Time32(TimeUnit::Second) => {
            sink.integers::<arrow_types::Time32SecondType>(array, |v| time_of_day(i64::from(v) * 1_000_000));
        }
        ArrowType::Time32(_) => {
            sink.integers::<arrow_types::Time32MillisecondType>(array, |v| time_of_day(i64::from(v) * 1_000));
        }
        ArrowType::Time64(TimeUnit::Nanosecond) => {
            sink.integers::<arrow_types::Time64NanosecondType>(array, |v| time_of_day(v.div_euclid(1000)));
        }
        ArrowType::Time64(_) => sink.integers::<arrow_types::Time64MicrosecondType>(array, time_of_day),
        _ => return Err(mismatch(DataType::Time, array)),
    }
    Ok(())
}

/// Months or microseconds; nanoseconds are cut off downwards, as those of timestamps are.
fn interval(array: &ArrayRef, sink: &mut Sink, span: Span) -> std::result::Result<(), String> {
    let micros = |value: i64, factor: i64| {
        let micros = value.checked_mul(factor).ok_or_else(|| format!("duration {value} is out of range"));
        micros.and_then(|micros| interval::fitted(micros, span))
    };
    match array.data_type() {
        ArrowType::Interval(IntervalUnit::MonthDayNano) => {
            sink.integers::<arrow_types::IntervalMonthDayNanoType>(array, |v| {
                interval::of_parts(v.months.into(), v.days.into(), v.nanoseconds, span)
            });
        }
        ArrowType::Interval(IntervalUnit::YearMonth) => {
            sink.integers::<arrow_types::IntervalYearMonthType>(array, |v| interval::of_parts(v.into(), 0, 0, span));
        }
        ArrowType::Interval(IntervalUnit::DayTime) => {
            sink.integers::<arrow_types::IntervalDayTimeType>(array, |v| {
                interval::of_parts(0, v.days.into(), i64::from(v.milliseconds) * 1_000_000, span)
            });
        }
        _ if span.is_months() => return Err(mismatch(DataType::Interval(span), array)),
        ArrowType::Duration(TimeUnit::Second) => {
            sink.integers::<arrow_types::DurationSecondType>(array, |v| micros(v, 1_000_000));
        }
        ArrowType::Duration(TimeUnit::Millisecond) => {
            sink.integers::<arrow_types::DurationMillisecondType>(array, |v| micros(v, 1_000));
        }
        ArrowType::Duration(TimeUnit::Microsecond) => {
            sink.integers::<arrow_types::DurationMicrosecondType>(array, |v| micros(v, 1));
        }
        ArrowType::Duration(TimeUnit::Nanosecond) => {
            sink.integers::<arrow_types::DurationNanosecondType>(array, |v| micros(v.div_euclid(1000), 1));
        }
        _ => return Err(mismatch(DataType::Interval(span), array)),
    }
    Ok(())
}

fn time_of_day(micros: i64) -> Fitted {
    if (0..MICROSECONDS_PER_DAY).contains(&micros) {
        Ok(micros as Word)
    } else {
        Err(format!("{micros} microseconds are not a time of day"))
    }
}

const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;

fn date(array: &ArrayRef, sink: &mut Sink) -> std::result::Result<(), String> {
    let midnight = |value: i64, per_day: i64| {
        if value % per_day != 0 {
            return Err(format!("timestamp {value} is not a midnight, so not a date"));
        }
        let days = i32::try_from(value / per_day).map_err(|_| format!("timestamp {value} is out of range for a date"));
        days.map(|days| i64::from(days) as Word)
    };
    match array.data_type() {
        ArrowType::Date32 => sink.integers::<arrow_types::Date32Type>(array, |v| Ok(i64::from(v) as Word)),
        ArrowType::Date64 => sink.integers::<arrow_types::Date64Type>(array, |v| midnight(v, 86_400_000)),
        ArrowType::Timestamp(unit, None) => match unit {
            TimeUnit::Second => sink.integers::<arrow_types::TimestampSecondType>(array, |v| midnight(v, 86_400)),
            TimeUnit::Millisecond => {
                sink.integers::<arrow_types::TimestampMillisecondType>(array, |v| midnight(v, 86_400_000));
            }
            TimeUnit::Microsecond => {
                sink.integers::<arrow_types::TimestampMicrosecondType>(array, |v| midnight(v, MICROSECONDS_PER_DAY));
            }
            TimeUnit::Nanosecond => {
                let per_day = 1000 * MICROSECONDS_PER_DAY;
                sink.integers::<arrow_types::TimestampNanosecondType>(array, |v| midnight(v, per_day));
            }
        },
        _ => return Err(mismatch(DataType::Date, array)),
    }
    Ok(())
}

/// Microseconds since 1970; nanoseconds are cut off downwards, as Spark does.
fn timestamp(array: &ArrayRef, sink: &mut Sink, target: DataType) -> std::result::Result<(), String> {
    let scaled = |value: i64, factor: i64| {
        value.checked_mul(factor).map(|v| v as Word).ok_or_else(|| format!("timestamp {value} is out of range"))
    };
    match array.data_type() {
        ArrowType::Timestamp(_, Some(zone))
            if target == DataType::TimestampNtz && !matches!(&**zone, "UTC" | "Etc/UTC" | "+00:00" | "Z") =>
        {
            return Err(format!("a timestamp without time zone can't be read from one in zone '{zone}'"));
        }
        ArrowType::Timestamp(TimeUnit::Second, _) => {
            sink.integers::<arrow_types::TimestampSecondType>(array, |v| scaled(v, 1_000_000));
        }
        ArrowType::Timestamp(TimeUnit::Millisecond, _) => {
            sink.integers::<arrow_types::TimestampMillisecondType>(array, |v| scaled(v, 1_000));
        }
        ArrowType::Timestamp(TimeUnit::Microsecond, _) => {
            sink.integers::<arrow_types::TimestampMicrosecondType>(array, |v| Ok(v as Word));
        }
        ArrowType::Timestamp(TimeUnit::Nanosecond, _) => {
            sink.integers::<arrow_types::TimestampNanosecondType>(array, |v| Ok(v.div_euclid(1000) as Word));
        }
        ArrowType::Date32 => {
            sink.integers::<arrow_types::Date32Type>(array, |v| scaled(v.into(), MICROSECONDS_PER_DAY));
        }
        _ => return Err(mismatch(target, array)),
    }
    Ok(())
}
