//! Python values as words and back.

use crate::arrow_stream::ArrowStream;
use crate::errors::raise;
use crown_kernel::arrow_out::{word_decimal, Output};
use crown_kernel::arrow_values::{decimal_word, parse_uuid, uuid_of_bytes};
use crown_kernel::chunk::{Chunk, Nulls, Word};
use crown_kernel::error::KernelError;
use crown_kernel::interval;
use crown_kernel::mask::{self, Bits};
use crown_kernel::nested::{self, Nested};
use crown_kernel::store::interner::Interner;
use crown_kernel::store::pool::ColumnPool;
use crown_kernel::types::{float_word, word_float, DataType};
use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

const DAYS_BEFORE_1970: i64 = 719_163;
const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;

/// Words of a tuple's values, as many as there are types, and its NULL mask; else the position of
/// what does not fit.
pub fn to_row(
    row: &Bound<'_, PyTuple>,
    types: impl Iterator<Item = DataType>,
    values: &mut Interner,
    words: &mut Vec<Word>,
) -> Result<Nulls, (usize, PyErr)> {
    let mut nulls = mask::Builder::default();
    words.clear();
    for (position, (value, data_type)) in row.iter_borrowed().zip(types).enumerate() {
        let word = to_word(&value, data_type, values).map_err(|error| (position, error))?;
        nulls.set(position, word.is_none());
        words.push(word.unwrap_or(0));
    }
    Ok(nulls.finish())
}

/// The error for a value that does not fit. What is no error of a value, such as Ctrl-C, stays what
/// it is.
pub fn misfit(py: Python<'_>, table: &str, column: &str, row: usize, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyException>(py) {
        return error;
    }
    let message = format!("table '{table}', column '{column}', row {row}: {}", error.value(py));
    raise(py, &KernelError::invalid("CROWN-CHANGE-TYPE", message))
}

/// Tuples as Arrow columns of the given names and types.
#[pyfunction]
pub fn rows_to_arrow(
    py: Python<'_>,
    table: &str,
    columns: Vec<(String, String)>,
    rows: Vec<Bound<'_, PyTuple>>,
) -> PyResult<ArrowStream> {
    let kernel = |error: KernelError| raise(py, &error);
    let mut types = Vec::with_capacity(columns.len());
    for (name, text) in &columns {
        types.push((name.as_str(), DataType::parse(text).map_err(kernel)?, true));
    }
    let (mut values, mut words, mut chunk) = (Interner::default(), Vec::new(), Chunk::new(columns.len()));
    for (index, row) in rows.iter().enumerate() {
        let nulls = to_row(row, types.iter().map(|column| column.1), &mut values, &mut words)
            .map_err(|(position, error)| misfit(py, table, &columns[position].0, index, error))?;
        chunk.push(&words, nulls, 1);
    }
    let output = Output::new(types.iter().copied(), false, false, false, ColumnPool::default());
    let batch = output.batch(&mut chunk, Vec::new(), &values).map_err(kernel)?;
    Ok(ArrowStream::from_batches(output.schema(), vec![batch]))
}

/// The word of a Python value; `None` is NULL. The message of an error says what does not fit.
pub fn to_word(value: &Bound<'_, PyAny>, data_type: DataType, interner: &mut Interner) -> PyResult<Option<Word>> {
    if value.is_none() {
        return Ok(None);
    }
    let refuse = || {
        let name = value.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
        PyTypeError::new_err(format!("expected {}, found a Python {name}: {}", data_type.sql_name(), shown(value)))
    };
    let out_of_range =
        || PyTypeError::new_err(format!("{} is out of range for {}", shown(value), data_type.sql_name()));
    let integer = |least: i64, most: i64| {
        // (Whatever has an index is an integer, such as numpy's; a truth value is none.)
        if value.is_instance_of::<PyBool>() || !value.is_instance_of::<PyInt>() && !value.hasattr("__index__")? {
            return Err(refuse());
        }
        match value.extract::<i64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(number as Word),
            Err(error) if !error.is_instance_of::<PyException>(value.py()) => Err(error),
            Err(error) if error.is_instance_of::<PyTypeError>(value.py()) => Err(refuse()),
            _ => Err(out_of_range()),
        }
    };
    let word = match data_type {
        DataType::Int8 => integer(i8::MIN.into(), i8::MAX.into())?,
        DataType::Int16 => integer(i16::MIN.into(), i16::MAX.into())?,
        DataType::Int32 => integer(i32::MIN.into(), i32::MAX.into())?,
        DataType::Int64 => integer(i64::MIN, i64::MAX)?,
        DataType::UInt8 => integer(0, u8::MAX.into())?,
        DataType::UInt16 => integer(0, u16::MAX.into())?,
        DataType::UInt32 => integer(0, u32::MAX.into())?,
        DataType::Boolean => value.cast::<PyBool>().map_err(|_| refuse())?.is_true().into(),
        DataType::Float32 | DataType::Float64 => {
            let number = value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>();
            if value.is_instance_of::<PyBool>() || !number && !value.hasattr("__float__")? {
                return Err(refuse());
            }
            let number: f64 = value.extract().map_err(|_| out_of_range())?;
            let narrow = f64::from(number as f32);
            if data_type == DataType::Float32 && narrow.is_infinite() && number.is_finite() {
                return Err(out_of_range());
            }
            float_word(if data_type == DataType::Float32 { narrow } else { number })
        }
        DataType::String => {
            let text = value.cast::<PyString>().map_err(|_| refuse())?.to_cow();
            let text = text.map_err(|_| {
                PyTypeError::new_err(format!("{} is not valid Unicode text, which STRING requires", shown(value)))
            });
            interner.intern(text?.as_bytes())
        }
        DataType::Binary => {
            if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
                return Err(refuse());
            }
            let bytes: Vec<u8> = value.extract().map_err(|_| refuse())?;
            interner.intern(&bytes)
        }
        DataType::Decimal { precision, scale } => {
            let decimals = decimal_class(value.py())?;
            if !value.is_instance(decimals)? && (!value.is_instance_of::<PyInt>() || value.is_instance_of::<PyBool>()) {
                return Err(refuse());
            }
            // A great exponent would be written out with all its zeros.
            if value.is_instance(decimals)? && value.call_method0("adjusted")?.extract::<i64>()?.abs() > 100 {
                return Err(out_of_range());
            }
            let text: String =
                value.call_method1("__format__", (if value.is_instance(decimals)? { "f" } else { "d" },))?.extract()?;
            let number = parse_decimal(&text, scale).and_then(|number| decimal_word(number, precision, interner));
            number.ok_or_else(|| {
                PyTypeError::new_err(format!("{} does not fit into {}", clipped(&text), data_type.sql_name()))
            })?
        }
        DataType::Date => {
            let ordinal: i64 = value.call_method0("toordinal").map_err(|_| refuse())?.extract()?;
            if value.hasattr("hour")? {
                return Err(refuse());
            }
            (ordinal - DAYS_BEFORE_1970) as Word
        }
        DataType::Timestamp | DataType::TimestampNtz => timestamp(value, data_type).map_err(|_| refuse())?,
        DataType::Time => {
            if value.hasattr("toordinal")? || !value.getattr("tzinfo").map_err(|_| refuse())?.is_none() {
                return Err(refuse());
            }
            let part = |name: &str| value.getattr(name).and_then(|part| part.extract::<i64>()).map_err(|_| refuse());
            let seconds = part("hour")? * 3600 + part("minute")? * 60 + part("second")?;
            (seconds * 1_000_000 + part("microsecond")?) as Word
        }
        DataType::Interval(span) => {
            let part = |name: &str| value.getattr(name).and_then(|part| part.extract::<i64>()).map_err(|_| refuse());
            let word = if value.hasattr("total_seconds")? {
                let micros = i128::from(part("seconds")?) * 1_000_000 + i128::from(part("microseconds")?);
                interval::of_parts(0, part("days")?, (micros * 1000) as i64, span)
            } else {
                interval::of_parts(part("months")?, part("days")?, part("nanoseconds")?, span)
            };
            word.map_err(|message| PyTypeError::new_err(format!("{message}: {}", shown(value))))?
        }
        DataType::Uuid => {
            // A string, or what Python's `uuid.UUID` is.
            let number = value.getattr("int").and_then(|number| number.extract::<u128>());
            let text = match value.cast::<PyString>() {
                Ok(text) => parse_uuid(&text.to_cow().map_err(|_| refuse())?).ok_or_else(refuse)?,
                Err(_) => uuid_of_bytes(number.map_err(|_| refuse())?.to_be_bytes()),
            };
            interner.intern(text.as_bytes())
        }
        DataType::Nested(nested) => {
            let bytes = nested_bytes(value, nested, interner, &refuse)?;
            interner.intern(&bytes)
        }
    };
    Ok(Some(word))
}

/// The bytes of a list, a dict or a tuple.
fn nested_bytes(
    value: &Bound<'_, PyAny>,
    nested: &'static Nested,
    interner: &mut Interner,
    refuse: &dyn Fn() -> PyErr,
) -> PyResult<Vec<u8>> {
    let is_text = value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>();
    match nested {
        Nested::Array(element) => {
            if is_text || value.is_instance_of::<PyDict>() {
                return Err(refuse());
            }
            let words = value.try_iter().map_err(|_| refuse())?.map(|one| to_word(&one?, *element, interner));
            let words = words.collect::<PyResult<Vec<_>>>()?;
            Ok(nested::array_of(*element, words, interner))
        }
        Nested::Map(key, element) => {
            let mut entries = Vec::new();
            let pairs = if let Ok(dict) = value.cast::<PyDict>() { dict.items().into_any() } else { value.clone() };
            for pair in pairs.try_iter().map_err(|_| refuse())? {
                let (one, other): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair?.extract().map_err(|_| refuse())?;
                let missing = || PyTypeError::new_err("a map has a NULL as a key");
                entries
                    .push((to_word(&one, *key, interner)?.ok_or_else(missing)?, to_word(&other, *element, interner)?));
            }
            nested::map_of((*key, *element), entries, interner).map_err(PyTypeError::new_err)
        }
        Nested::Struct(fields) => {
            let mut words = Vec::with_capacity(fields.len());
            if let Ok(dict) = value.cast::<PyDict>() {
                let known = |name: &Bound<'_, PyAny>| fields.iter().any(|(field, _)| name.eq(field).unwrap_or(false));
                if let Some(extra) = dict.keys().iter().find(|name| !known(name)) {
                    return Err(PyTypeError::new_err(format!("the struct has no field {}", shown(&extra))));
                }
                for (name, field) in fields {
                    let one = dict.get_item(name)?;
                    words.push((*field, one.map_or(Ok(None), |one| to_word(&one, *field, interner))?));
                }
            } else {
                let parts = value.cast::<PyTuple>().map_err(|_| refuse())?;
                if parts.len() != fields.len() {
                    return Err(refuse());
                }
                for (one, (_, field)) in parts.iter().zip(fields) {
                    words.push((*field, to_word(&one, *field, interner)?));
                }
            }
            Ok(nested::struct_of(words, interner))
        }
    }
}

/// The Python value of a part of a nested value.
fn part_to_python<'py>(py: Python<'py>, bytes: Option<&[u8]>, data_type: DataType) -> PyResult<Bound<'py, PyAny>> {
    let Some(bytes) = bytes else { return Ok(py.None().into_bound(py)) };
    let mut interner = Interner::default();
    let word = nested::word(bytes, data_type, &mut interner);
    to_python(py, word, false, data_type, &interner)
}

/// Lists, dicts by field, and for maps dicts by key, or lists of pairs if a key can't be one of a
/// dict.
fn nested_to_python<'py>(py: Python<'py>, bytes: &[u8], nested: &'static Nested) -> PyResult<Bound<'py, PyAny>> {
    Ok(match nested {
        Nested::Array(element) => {
            let parts = nested::elements(bytes, *element).map(|one| part_to_python(py, one, *element));
            PyList::new(py, parts.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        Nested::Struct(fields) => {
            let dict = PyDict::new(py);
            for (one, (name, field)) in nested::fields(bytes, fields).zip(fields) {
                dict.set_item(name, part_to_python(py, one, *field)?)?;
            }
            dict.into_any()
        }
        Nested::Map(key, value) => {
            let pair = |(one, other)| Ok((part_to_python(py, Some(one), *key)?, part_to_python(py, other, *value)?));
            let pairs = nested::entries(bytes, *key, *value).map(pair).collect::<PyResult<Vec<_>>>()?;
            let dict = PyDict::new(py);
            match pairs.iter().try_for_each(|(one, other)| dict.set_item(one, other)) {
                Ok(()) => dict.into_any(),
                Err(_) => PyList::new(py, pairs)?.into_any(),
            }
        }
    })
}

/// A value in a message.
fn shown(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or_else(|_| "?".into(), |text| clipped(&text.to_string_lossy()))
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(100) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into(),
    }
}

/// Microseconds of a datetime; one without time zone counts as UTC.
fn timestamp(value: &Bound<'_, PyAny>, data_type: DataType) -> PyResult<Word> {
    let days = value.call_method0("toordinal")?.extract::<i64>()? - DAYS_BEFORE_1970;
    let part = |name: &str| value.getattr(name).and_then(|part| part.extract::<i64>());
    let seconds = part("hour")? * 3600 + part("minute")? * 60 + part("second")?;
    if part("nanosecond").is_ok_and(|nanoseconds| nanoseconds != 0) {
        return Err(PyTypeError::new_err("nanoseconds"));
    }
    let mut microseconds = days * MICROSECONDS_PER_DAY + seconds * 1_000_000 + part("microsecond")?;
    let offset = value.call_method0("utcoffset")?;
    if !offset.is_none() {
        if data_type == DataType::TimestampNtz {
            return Err(PyTypeError::new_err("a time zone"));
        }
        microseconds -= (offset.call_method0("total_seconds")?.extract::<f64>()? * 1e6) as i64;
    }
    Ok(microseconds as Word)
}

/// The digits of a plain decimal number at `scale`; `None` when digits would be lost.
fn parse_decimal(text: &str, scale: i8) -> Option<i128> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let kept = fraction.trim_end_matches('0');
    let padding = usize::try_from(scale).ok()?.checked_sub(kept.len())?;
    let number: i128 = format!("{whole}{kept}{}", "0".repeat(padding)).parse().ok()?;
    Some(if negative { -number } else { number })
}

fn decimal_class(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    Ok(CLASS.get_or_try_init(py, || Ok::<_, PyErr>(py.import("decimal")?.getattr("Decimal")?.unbind()))?.bind(py))
}

/// `date`, and 1970 as datetimes with and without UTC, and `timedelta`.
fn calendar(py: Python<'_>) -> PyResult<&[Py<PyAny>; 4]> {
    static OBJECTS: PyOnceLock<[Py<PyAny>; 4]> = PyOnceLock::new();
    OBJECTS.get_or_try_init(py, || {
        let module = py.import("datetime")?;
        let utc = module.getattr("timezone")?.getattr("utc")?;
        let class = module.getattr("datetime")?;
        let aware = class.call1((1970, 1, 1, 0, 0, 0, 0, utc))?;
        let plain = class.call1((1970, 1, 1))?;
        Ok([module.getattr("date")?.unbind(), aware.unbind(), plain.unbind(), module.getattr("timedelta")?.unbind()])
    })
}

/// The Python value of a word.
pub fn to_python<'py>(
    py: Python<'py>,
    word: Word,
    null: bool,
    data_type: DataType,
    interner: &Interner,
) -> PyResult<Bound<'py, PyAny>> {
    if null {
        return Ok(py.None().into_bound(py));
    }
    Ok(match data_type {
        DataType::Boolean => PyBool::new(py, word != 0).to_owned().into_any(),
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            (word as i64).into_pyobject(py)?.into_any()
        }
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => (word as i64).into_pyobject(py)?.into_any(),
        DataType::Float32 | DataType::Float64 => PyFloat::new(py, word_float(word)).into_any(),
        DataType::String => PyString::new(py, &String::from_utf8_lossy(interner.get(word))).into_any(),
        DataType::Binary => PyBytes::new(py, interner.get(word)).into_any(),
        DataType::Uuid => PyString::new(py, &String::from_utf8_lossy(interner.get(word))).into_any(),
        DataType::Nested(nested) => nested_to_python(py, interner.get(word), nested)?,
        DataType::Time => {
            let (seconds, micros) = (word as i64 / 1_000_000, word as i64 % 1_000_000);
            let parts = (seconds / 3600, seconds / 60 % 60, seconds % 60, micros);
            py.import("datetime")?.getattr("time")?.call1(parts)?
        }
        DataType::Interval(span) if span.is_months() => {
            py.import("pyarrow")?.getattr("MonthDayNano")?.call1(((word as i32, 0, 0),))?
        }
        DataType::Interval(_) => calendar(py)?[3].bind(py).call1((0, 0, word as i64))?,
        DataType::Decimal { precision, scale } => {
            let number = word_decimal(word, precision, interner);
            decimal_class(py)?.call1((number.to_string(),))?.call_method1("scaleb", (-i32::from(scale), wide(py)?))?
        }
        DataType::Date => calendar(py)?[0].bind(py).call_method1("fromordinal", (word as i64 + DAYS_BEFORE_1970,))?,
        DataType::Timestamp | DataType::TimestampNtz => {
            let objects = calendar(py)?;
            let start = &objects[if data_type == DataType::Timestamp { 1 } else { 2 }];
            let passed = objects[3].bind(py).call1((0, 0, word as i64))?;
            start.bind(py).call_method1("__add__", (passed,))?
        }
    })
}

/// A decimal context that never rounds 38 digits.
fn wide(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static CONTEXT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let make = || Ok::<_, PyErr>(py.import("decimal")?.getattr("Context")?.call1((76,))?.unbind());
    Ok(CONTEXT.get_or_try_init(py, make)?.bind(py))
}

/// Row `index` of a chunk as a tuple.
pub fn to_tuple<'py>(
    py: Python<'py>,
    rows: &Chunk,
    index: usize,
    types: &[DataType],
    interner: &Interner,
) -> PyResult<Bound<'py, PyTuple>> {
    let nulls: Nulls = rows.nulls_at(index);
    let values =
        rows.columns.iter().zip(types).enumerate().map(|(position, (column, data_type))| {
            to_python(py, column[index], nulls.has(position), *data_type, interner)
        });
    PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)
}
