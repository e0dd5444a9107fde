//! Python values as words and back.

use crown_kernel::arrow_in::decimal_word;
use crown_kernel::arrow_out::word_decimal;
use crown_kernel::chunk::{Chunk, Nulls, Word};
use crown_kernel::store::interner::Interner;
use crown_kernel::types::{float_word, word_float, DataType};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple};

const DAYS_BEFORE_1970: i64 = 719_163;
const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;

/// The word of a Python value; `None` is NULL. The message of an error says what does not fit.
pub fn to_word(value: &Bound<'_, PyAny>, data_type: DataType, interner: &mut Interner) -> PyResult<Option<Word>> {
    if value.is_none() {
        return Ok(None);
    }
    let refuse = || {
        let name = value.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
        PyTypeError::new_err(format!("expected {data_type:?}, found a Python {name}"))
    };
    let integer = |least: i64, most: i64| {
        if value.is_instance_of::<PyBool>() || !value.is_instance_of::<PyInt>() {
            return Err(refuse());
        }
        match value.extract::<i64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(number as Word),
            _ => Err(PyTypeError::new_err(format!("{value} is out of range for {data_type:?}"))),
        }
    };
    let word = match data_type {
        DataType::Int8 => integer(i8::MIN.into(), i8::MAX.into())?,
        DataType::Int16 => integer(i16::MIN.into(), i16::MAX.into())?,
        DataType::Int32 => integer(i32::MIN.into(), i32::MAX.into())?,
        DataType::Int64 => integer(i64::MIN, i64::MAX)?,
        DataType::Boolean => value.cast::<PyBool>().map_err(|_| refuse())?.is_true().into(),
        DataType::Float32 | DataType::Float64 => {
            if !value.is_instance_of::<PyFloat>() && !value.is_instance_of::<PyInt>() {
                return Err(refuse());
            }
            let number: f64 = value.extract()?;
            float_word(if data_type == DataType::Float32 { f64::from(number as f32) } else { number })
        }
        DataType::String => interner.intern(value.cast::<PyString>().map_err(|_| refuse())?.to_cow()?.as_bytes()),
        DataType::Binary => {
            let bytes: Vec<u8> = value.extract().map_err(|_| refuse())?;
            interner.intern(&bytes)
        }
        DataType::Decimal { precision, scale } => {
            let decimals = decimal_class(value.py())?;
            if !value.is_instance(decimals)? && (!value.is_instance_of::<PyInt>() || value.is_instance_of::<PyBool>()) {
                return Err(refuse());
            }
            let text: String =
                value.call_method1("__format__", (if value.is_instance(decimals)? { "f" } else { "d" },))?.extract()?;
            let number = parse_decimal(&text, scale).and_then(|number| decimal_word(number, precision, interner));
            number.ok_or_else(|| PyTypeError::new_err(format!("{text} does not fit decimal({precision},{scale})")))?
        }
        DataType::Date => {
            let ordinal: i64 = value.call_method0("toordinal").map_err(|_| refuse())?.extract()?;
            if value.hasattr("hour")? {
                return Err(refuse());
            }
            (ordinal - DAYS_BEFORE_1970) as Word
        }
        DataType::Timestamp | DataType::TimestampNtz => timestamp(value, data_type).map_err(|_| refuse())?,
    };
    Ok(Some(word))
}

/// Microseconds of a datetime; one without time zone counts as UTC.
fn timestamp(value: &Bound<'_, PyAny>, data_type: DataType) -> PyResult<Word> {
    let days = value.call_method0("toordinal")?.extract::<i64>()? - DAYS_BEFORE_1970;
    let part = |name: &str| value.getattr(name).and_then(|part| part.extract::<i64>());
    let seconds = part("hour")? * 3600 + part("minute")? * 60 + part("second")?;
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
        DataType::Float32 | DataType::Float64 => PyFloat::new(py, word_float(word)).into_any(),
        DataType::String => PyString::new(py, &String::from_utf8_lossy(interner.get(word))).into_any(),
        DataType::Binary => PyBytes::new(py, interner.get(word)).into_any(),
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
    let values = rows.columns.iter().zip(types).enumerate().map(|(position, (column, data_type))| {
        to_python(py, column[index], nulls >> position & 1 != 0, *data_type, interner)
    });
    PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)
}
