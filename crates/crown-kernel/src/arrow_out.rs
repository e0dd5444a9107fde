//! Words into Arrow record batches. Columns of 64-bit types are handed over without copying.

use crate::arrow_in::{CHANGE_TYPE, MULTIPLICITY};
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{KernelError, Result};
use crate::expression::format_time;
use crate::mask::Bits;
use crate::nested;
use crate::store::interner::Interner;
use crate::store::pool::{ColumnPool, BLOCK_ROWS};
use crate::types::{word_float, DataType};
use arrow::array::{
    ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray,
    DurationMicrosecondArray, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, Int8Array,
    IntervalMonthDayNanoArray, RecordBatch, RecordBatchOptions, StringArray, Time64MicrosecondArray,
    TimestampMicrosecondArray,
};
use arrow::buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{
    DataType as ArrowType, Field, Int8Type, IntervalMonthDayNano, IntervalUnit, Schema, SchemaRef, TimeUnit,
};
use arrow::temporal_conversions::{date32_to_datetime, timestamp_us_to_datetime};
use std::sync::{Arc, LazyLock};

/// The column that numbers the updates of a delta.
pub const UPDATE: &str = "_update";

/// The Arrow type in which a column of `data_type` leaves the kernel.
pub fn arrow_type(data_type: DataType) -> ArrowType {
    match data_type {
        DataType::Boolean => ArrowType::Boolean,
        DataType::Int8 => ArrowType::Int8,
        DataType::Int16 => ArrowType::Int16,
        DataType::Int32 => ArrowType::Int32,
        DataType::Int64 | DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => ArrowType::Int64,
        DataType::Float32 => ArrowType::Float32,
        DataType::Float64 => ArrowType::Float64,
        DataType::Decimal { precision, scale } => ArrowType::Decimal128(precision, scale),
        DataType::String => ArrowType::Utf8,
        DataType::Binary => ArrowType::Binary,
        DataType::Date => ArrowType::Date32,
        DataType::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::TimestampNtz => ArrowType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Time => ArrowType::Time64(TimeUnit::Microsecond),
        DataType::Interval(span) if span.is_months() => ArrowType::Interval(IntervalUnit::MonthDayNano),
        DataType::Interval(_) => ArrowType::Duration(TimeUnit::Microsecond),
        DataType::Uuid => ArrowType::Utf8,
        DataType::Nested(nested) => nested::arrow_type(nested),
    }
}

/// The value of a decimal's word.
pub fn word_decimal(word: Word, precision: u8, interner: &Interner) -> i128 {
    if precision > 18 {
        i128::from_le_bytes(interner.get(word).try_into().expect("wide decimals are interned as 16 bytes"))
    } else {
        i128::from(word as i64)
    }
}

/// One column as an Arrow array; `nulls` holds the rows' masks (or is empty), of which bit
/// `position` counts.
pub fn array(
    words: Vec<Word>,
    nulls: &[Nulls],
    position: usize,
    data_type: DataType,
    interner: &Interner,
    pool: &ColumnPool,
) -> ArrayRef {
    let validity = validity(nulls, position);
    let present = |row: usize| validity.as_ref().is_none_or(|validity| validity.is_valid(row));
    match data_type {
        DataType::Int64 | DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => {
            Arc::new(Int64Array::new(scalars(words, pool), validity))
        }
        DataType::Float64 => Arc::new(Float64Array::new(scalars(words, pool), validity)),
        DataType::Timestamp => {
            Arc::new(TimestampMicrosecondArray::new(scalars(words, pool), validity).with_timezone("UTC"))
        }
        DataType::TimestampNtz => Arc::new(TimestampMicrosecondArray::new(scalars(words, pool), validity)),
        DataType::Time => Arc::new(Time64MicrosecondArray::new(scalars(words, pool), validity)),
        DataType::Interval(span) if span.is_months() => {
            let months = words.iter().map(|word| IntervalMonthDayNano::new(*word as i32, 0, 0));
            Arc::new(IntervalMonthDayNanoArray::new(months.collect(), validity))
        }
        DataType::Interval(_) => Arc::new(DurationMicrosecondArray::new(scalars(words, pool), validity)),
        DataType::Int8 => Arc::new(Int8Array::new(words.iter().map(|w| *w as i8).collect(), validity)),
        DataType::Int16 => Arc::new(Int16Array::new(words.iter().map(|w| *w as i16).collect(), validity)),
        DataType::Int32 => Arc::new(Int32Array::new(words.iter().map(|w| *w as i32).collect(), validity)),
        DataType::Date => Arc::new(Date32Array::new(words.iter().map(|w| *w as i32).collect(), validity)),
        DataType::Float32 => {
            Arc::new(Float32Array::new(words.iter().map(|w| word_float(*w) as f32).collect(), validity))
        }
        DataType::Boolean => {
            let values = BooleanBuffer::collect_bool(words.len(), |row| words[row] != 0);
            Arc::new(BooleanArray::new(values, validity))
        }
        DataType::Decimal { precision, scale } => {
            let value = |(row, word): (usize, &Word)| {
                if present(row) {
                    word_decimal(*word, precision, interner)
                } else {
                    0
                }
            };
            let values: ScalarBuffer<i128> = words.iter().enumerate().map(value).collect();
            let decimals = Decimal128Array::new(values, validity).with_precision_and_scale(precision, scale);
            Arc::new(decimals.expect("precision and scale were checked when the plan was read"))
        }
        DataType::Nested(_) => {
            let row = |(row, word): (usize, &Word)| present(row).then(|| interner.get(*word));
            nested::to_arrow(data_type, &words.iter().enumerate().map(row).collect::<Vec<_>>())
        }
        DataType::String | DataType::Uuid => {
            let text = |(row, word): (usize, &Word)| present(row).then(|| String::from_utf8_lossy(interner.get(*word)));
            Arc::new(StringArray::from_iter(words.iter().enumerate().map(text)))
        }
        DataType::Binary => {
            let bytes = |(row, word): (usize, &Word)| present(row).then(|| interner.get(*word));
            Arc::new(BinaryArray::from_iter(words.iter().enumerate().map(bytes)))
        }
    }
}

/// Signed and float columns are the very bits of their words.
fn scalars<T: arrow::datatypes::ArrowNativeType>(words: Vec<Word>, pool: &ColumnPool) -> ScalarBuffer<T> {
    let length = words.len();
    ScalarBuffer::new(pool.buffer(words), 0, length)
}

fn validity(nulls: &[Nulls], position: usize) -> Option<NullBuffer> {
    if nulls.iter().all(|mask| !mask.has(position)) {
        return None;
    }
    Some(NullBuffer::new(BooleanBuffer::collect_bool(nulls.len(), |row| !nulls[row].has(position))))
}

/// How the rows of a view leave: its columns, and what is said about each row.
#[derive(Clone)]
pub struct Output {
    types: Vec<DataType>,
    schema: SchemaRef,
    change_type: bool,
    multiplicity: bool,
    update: bool,
    words: ArrayRef,
    pool: ColumnPool,
}

impl Output {
    /// Columns as (name, type, nullable), followed by `_change_type`, `_multiplicity` and `_update`
    /// as requested.
    pub fn new<'a>(
        columns: impl Iterator<Item = (&'a str, DataType, bool)>,
        change_type: bool,
        multiplicity: bool,
        update: bool,
        pool: ColumnPool,
    ) -> Output {
        let mut types = Vec::new();
        let mut fields = Vec::new();
        for (name, data_type, nullable) in columns {
            types.push(data_type);
            fields.push(Field::new(name, arrow_type(data_type), nullable));
        }
        if change_type {
            let words = ArrowType::Dictionary(Box::new(ArrowType::Int8), Box::new(ArrowType::Utf8));
            fields.push(Field::new(CHANGE_TYPE, words, false));
        }
        if multiplicity {
            fields.push(Field::new(MULTIPLICITY, ArrowType::Int64, false));
        }
        if update {
            fields.push(Field::new(UPDATE, ArrowType::Int64, false));
        }
        let words = Arc::new(StringArray::from(vec!["insert", "delete"]));
        Output { types, schema: Arc::new(Schema::new(fields)), change_type, multiplicity, update, words, pool }
    }

    /// Makes the chunk empty, with room for the columns of as many rows as will most likely come.
    pub fn renew(&self, chunk: &mut Chunk, columns: usize, rows: usize) {
        self.pool.renew(chunk, columns, rows);
    }

    /// The schema of the record batches.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The rows as they leave, whose columns are taken out: the rest of the chunk may be used
    /// again. `updates` is the cause of each row, when the output shows it.
    pub fn batch(&self, rows: &mut Chunk, updates: Vec<u64>, interner: &Interner) -> Result<RecordBatch> {
        let length = rows.len();
        let Chunk { columns, nulls, weights } = rows;
        let mut arrays: Vec<ArrayRef> = std::mem::take(columns)
            .into_iter()
            .zip(&self.types)
            .enumerate()
            .map(|(position, (words, data_type))| array(words, nulls, position, *data_type, interner, &self.pool))
            .collect();
        let single = single_copies(weights);
        if self.change_type {
            let keys = match single {
                Some(weight) => SINGLE.keys[usize::from(weight < 0)].slice(0, length),
                None => weights.iter().map(|weight| i8::from(*weight < 0)).collect(),
            };
            // SAFETY: keys are 0 or 1 and the dictionary has both words.
            let words =
                unsafe { DictionaryArray::<Int8Type>::new_unchecked(Int8Array::new(keys, None), self.words.clone()) };
            arrays.push(Arc::new(words));
        }
        if self.multiplicity {
            let copies = match single {
                Some(_) => SINGLE.copies.slice(0, length),
                None => weights.iter().map(|weight| weight.abs()).collect(),
            };
            arrays.push(Arc::new(Int64Array::new(copies, None)));
        }
        if self.update {
            arrays.push(Arc::new(Int64Array::new(scalars(updates, &self.pool), None)));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(length));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options).map_err(|error| {
            KernelError::plan("CROWN-PLAN-MALFORMED", format!("the result does not match its schema: {error}"))
        })
    }
}

/// Shared columns for blocks whose rows are all inserted, or all deleted, one copy each.
struct Single {
    /// For inserted rows, and for deleted rows.
    keys: [ScalarBuffer<i8>; 2],
    copies: ScalarBuffer<i64>,
}

const SINGLE_ROWS: usize = 2 * BLOCK_ROWS;

static SINGLE: LazyLock<Single> = LazyLock::new(|| Single {
    keys: [vec![0; SINGLE_ROWS].into(), vec![1; SINGLE_ROWS].into()],
    copies: vec![1; SINGLE_ROWS].into(),
});

/// The weight that all rows have, when it is one copy and `SINGLE` has enough of them.
fn single_copies(weights: &[i64]) -> Option<i64> {
    let first = *weights.first()?;
    let differs = || weights.iter().fold(0, |differs, weight| differs | (weight ^ first)) != 0;
    (first.abs() == 1 && weights.len() <= SINGLE_ROWS && !differs()).then_some(first)
}

/// A delta with all deletions before the insertions, so that a key never has two rows in between.
/// Mostly they are, and nothing is copied.
pub fn deletes_first(delta: Vec<RecordBatch>) -> Vec<RecordBatch> {
    let deleted: Vec<BooleanArray> = delta.iter().map(deleted).collect();
    let mut rows = deleted.iter().flat_map(|rows| rows.values().iter());
    if !rows.by_ref().skip_while(|deleted| *deleted).any(|deleted| deleted) {
        return delta;
    }
    let chosen = |batch: &RecordBatch, rows: &BooleanArray| match rows.true_count() {
        0 => None,
        count if count == batch.num_rows() => Some(batch.clone()),
        _ => Some(filter_record_batch(batch, rows).expect("one bit for each row")),
    };
    let came: Vec<BooleanArray> = deleted.iter().map(|rows| BooleanArray::new(!rows.values(), None)).collect();
    let of = |rows: &[BooleanArray]| {
        delta.iter().zip(rows).filter_map(|(batch, rows)| chosen(batch, rows)).collect::<Vec<_>>()
    };
    [of(&deleted), of(&came)].concat()
}

/// Which rows of a part of a delta went.
fn deleted(delta: &RecordBatch) -> BooleanArray {
    let words = delta.column_by_name(CHANGE_TYPE).and_then(|words| words.as_dictionary_opt::<Int8Type>());
    let keys: &[i8] = words.map_or(&[], |words| words.keys().values());
    let rows = BooleanBuffer::collect_bool(keys.len(), |row| keys[row] != 0);
    BooleanArray::new(rows, None)
}

/// The first `length` characters of a time, or the number when no calendar has it.
fn time_json(time: Option<impl std::fmt::Display>, word: Word, length: usize) -> serde_json::Value {
    match time {
        Some(time) => serde_json::Value::String(time.to_string().chars().take(length).collect()),
        None => serde_json::Value::from(word as i64),
    }
}

/// One value as JSON text, for messages and the list of rejected changes.
pub fn value_json(word: Word, null: bool, data_type: DataType, interner: &Interner) -> serde_json::Value {
    use serde_json::Value;
    if null {
        return Value::Null;
    }
    match data_type {
        DataType::Boolean => Value::Bool(word != 0),
        DataType::Float32 | DataType::Float64 => {
            let value = word_float(word);
            serde_json::Number::from_f64(value).map_or_else(|| Value::String(value.to_string()), Value::Number)
        }
        DataType::Nested(_) => nested::to_json(interner.get(word), data_type),
        DataType::Time => Value::String(format_time(word as i64)),
        DataType::Interval(span) => Value::String(span.format(word as i64)),
        DataType::String | DataType::Uuid => Value::String(String::from_utf8_lossy(interner.get(word)).into_owned()),
        DataType::Binary => Value::String(interner.get(word).iter().map(|byte| format!("{byte:02x}")).collect()),
        DataType::Decimal { precision, scale } => {
            let number = word_decimal(word, precision, interner);
            let (sign, digits) = (if number < 0 { "-" } else { "" }, number.unsigned_abs());
            let unit = 10u128.pow(scale.unsigned_abs().into());
            Value::String(match scale as usize {
                0 => format!("{sign}{digits}"),
                width => format!("{sign}{}.{:0width$}", digits / unit, digits % unit),
            })
        }
        DataType::Date => time_json(i32::try_from(word as i64).ok().and_then(date32_to_datetime), word, 10),
        DataType::Timestamp | DataType::TimestampNtz => time_json(timestamp_us_to_datetime(word as i64), word, 26),
        _ => Value::from(word as i64),
    }
}
