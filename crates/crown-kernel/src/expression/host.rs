//! Functions supplied by the host: a call is an expression whose value other code computes, over
//! Arrow columns.
//!
//! A function is deterministic by contract, so its results may be cached: it is called once for
//! equal arguments among the last [`MOST_REMEMBERED`] ones. A caller that has many rows evaluates
//! their calls together first (`Compiled::prepare`). If that fails, nothing is lost: each row then
//! makes its own call when it is evaluated, so a row that a condition excludes never causes an
//! error, and an error names the arguments of its own row.

use super::node::{Node, Row};
use super::value::Value;
use crate::arrow_in::{read_batch, Changes, InputColumn};
use crate::arrow_out::{self, value_json};
use crate::arrow_values::arrow_name;
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{counted, KernelError, Result};
use crate::mask::{self, Bits};
use crate::store::interner::Interner;
use crate::store::pool::ColumnPool;
use crate::types::DataType;
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The name in a plan of a function that is NULL, and not called, for a NULL argument; the
/// function's own name follows.
pub const STRICT: &str = "call:";
/// The same for a function that takes NULLs.
pub const WITH_NULLS: &str = "call_with_nulls:";

const MOST_REMEMBERED: usize = 1 << 16;
/// Of arguments and results together.
const MOST_REMEMBERED_BYTES: usize = 16 << 20;
/// How many rows are passed to a function in one call.
const MOST_ROWS: usize = 1 << 16;

/// What the host computes.
pub trait HostFunction: Send + Sync {
    /// One column `value` with a row for each row of `arguments`, or why there is none.
    fn call(&self, arguments: RecordBatch) -> std::result::Result<RecordBatch, String>;
}

/// Functions by name.
pub type HostFunctions = HashMap<String, Arc<dyn HostFunction>>;

thread_local! {
    static KNOWN: RefCell<HostFunctions> = RefCell::default();
    static INTERRUPTED: Cell<bool> = const { Cell::new(false) };
}

/// Tells that a function on this thread failed because the user interrupted it: that is no fault of
/// a row, so no row is quarantined for it. False again once the call of the user has ended.
pub fn set_interrupted(interrupted: bool) {
    INTERRUPTED.set(interrupted);
}

pub(crate) fn is_interrupted() -> bool {
    INTERRUPTED.get()
}

/// Runs `work`, in which expressions are compiled that may call `functions`.
pub fn with_functions<T>(functions: HostFunctions, work: impl FnOnce() -> T) -> T {
    struct Restore(HostFunctions);
    impl Drop for Restore {
        fn drop(&mut self) {
            KNOWN.with(|known| known.swap(&RefCell::new(std::mem::take(&mut self.0))));
        }
    }
    let _restore = Restore(KNOWN.with(|known| known.replace(functions)));
    work()
}

/// A call of a function, with what is remembered of it.
pub(super) struct Host {
    name: String,
    function: Arc<dyn HostFunction>,
    arguments: Vec<(Node, DataType)>,
    data_type: DataType,
    strict: bool,
    remembered: Mutex<Memory>,
}

impl fmt::Debug for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}({:?})", self.name, self.arguments)
    }
}

#[derive(Default)]
struct Memory {
    results: HashMap<Box<[u8]>, Option<Value<'static>>>,
    bytes: usize,
}

impl Memory {
    fn put(&mut self, key: Box<[u8]>, value: Option<Value<'static>>) {
        let bytes = key.len() + if let Some(Value::Bytes(bytes)) = &value { bytes.len() } else { 0 };
        if self.results.len() >= MOST_REMEMBERED || self.bytes + bytes > MOST_REMEMBERED_BYTES {
            *self = Memory::default();
        }
        if bytes <= MOST_REMEMBERED_BYTES {
            self.bytes += bytes;
            self.results.insert(key, value);
        }
    }
}

/// The name of the host's function that a plan calls `function`, and whether it is NULL for a NULL
/// argument.
pub(super) fn name(function: &str) -> Option<(&str, bool)> {
    let strict = function.strip_prefix(STRICT).map(|name| (name, true));
    strict.or_else(|| function.strip_prefix(WITH_NULLS).map(|name| (name, false)))
}

pub(super) fn compile(
    (name, strict): (&str, bool),
    arguments: Vec<(Node, DataType)>,
    data_type: DataType,
) -> Result<Node> {
    let Some(function) = KNOWN.with(|known| known.borrow().get(name).cloned()) else {
        let message = format!("the query calls the function {name}, which is not given");
        return Err(KernelError::plan("CROWN-FUNCTION-MISSING", message));
    };
    let (name, remembered) = (name.to_string(), Mutex::default());
    Ok(Node::Host(Arc::new(Host { name, function, arguments, data_type, strict, remembered })))
}

impl Host {
    pub fn evaluate<'a>(&'a self, row: &Row<'a>) -> Result<Option<Value<'a>>> {
        let arguments = self.arguments.iter().map(|(node, _)| node.evaluate(row)).collect::<Result<Vec<_>>>()?;
        if self.strict && arguments.iter().any(Option::is_none) {
            return Ok(None);
        }
        let key = self.key(&arguments);
        if let Some(known) = self.memory().results.get(&key) {
            return Ok(known.clone());
        }
        let rows = vec![arguments];
        let mut values = self.call(&rows).map_err(|why| self.failed(&rows[0], &why))?;
        let value = values.pop().flatten();
        self.memory().put(key, value.clone());
        Ok(value)
    }

    /// Makes the calls of all rows together.
    pub fn prepare(&self, rows: &Chunk, interner: &Interner) {
        for (node, _) in &self.arguments {
            node.each_host(&mut |host| host.prepare(rows, interner));
        }
        let mut words = Vec::new();
        let mut wanted: HashMap<Box<[u8]>, usize> = HashMap::new();
        let mut calls: Vec<Vec<Option<Value<'static>>>> = Vec::new();
        for index in 0..rows.len() {
            let nulls = rows.read(index, &mut words);
            let row = Row { words: &words, nulls, interner, elements: Vec::new() };
            // A row whose arguments have no value fails, if at all, when it is reached.
            let Ok(arguments) = self.arguments.iter().map(|(node, _)| node.evaluate(&row)).collect::<Result<Vec<_>>>()
            else {
                continue;
            };
            let key = self.key(&arguments);
            let skipped = self.strict && arguments.iter().any(Option::is_none);
            if skipped || wanted.contains_key(&key) || self.memory().results.contains_key(&key) {
                continue;
            }
            wanted.insert(key, calls.len());
            calls.push(arguments.into_iter().map(|value| value.map(owned)).collect());
            if calls.len() == MOST_ROWS {
                self.call_all(&mut wanted, &mut calls);
            }
        }
        self.call_all(&mut wanted, &mut calls);
    }

    fn call_all(&self, wanted: &mut HashMap<Box<[u8]>, usize>, calls: &mut Vec<Vec<Option<Value<'static>>>>) {
        if !calls.is_empty() {
            if let Ok(mut values) = self.call(calls) {
                let mut memory = self.memory();
                for (key, index) in wanted.drain() {
                    memory.put(key, values[index].take());
                }
            }
        }
        wanted.clear();
        calls.clear();
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Equal for equal arguments only.
    fn key(&self, arguments: &[Option<Value<'_>>]) -> Box<[u8]> {
        let mut key = Vec::new();
        for argument in arguments {
            match argument {
                None => key.push(0),
                Some(Value::Boolean(value)) => key.extend([1, u8::from(*value)]),
                Some(Value::Integer(value)) => key.extend(value.to_le_bytes().into_iter().chain([2])),
                Some(Value::Float(value)) => {
                    key.extend(crate::types::float_word(*value).to_le_bytes().into_iter().chain([3]));
                }
                Some(Value::Decimal(value)) => key.extend(value.to_le_bytes().into_iter().chain([4])),
                Some(Value::Bytes(bytes)) => {
                    key.push(5);
                    key.extend((bytes.len() as u64).to_le_bytes());
                    key.extend_from_slice(bytes);
                }
            }
        }
        key.into()
    }

    fn call(&self, rows: &[Vec<Option<Value<'_>>>]) -> std::result::Result<Vec<Option<Value<'static>>>, String> {
        let (batch, _) = self.batch(rows).map_err(|error| error.message)?;
        let result = self.function.call(batch)?;
        if result.num_rows() != rows.len() {
            let found = counted(result.num_rows(), "value");
            return Err(format!("it returned {found} for {}", counted(rows.len(), "row")));
        }
        let expected = arrow_out::arrow_type(self.data_type);
        let found = result.schema_ref().fields().first().map(|field| field.data_type().clone());
        if found.as_ref() != Some(&expected) {
            let found = found.map_or("nothing".into(), |found| arrow_name(&found));
            return Err(format!("it returned {found} instead of {}", arrow_name(&expected)));
        }
        let (mut interner, mut changes) = (Interner::default(), Changes::new(1));
        let column = InputColumn { name: "value".into(), data_type: self.data_type, nullable: true };
        read_batch(&self.name, &[column], &[], &result, &mut interner, &mut changes).map_err(|error| error.message)?;
        if let Some(fault) = changes.faults.first() {
            return Err(fault.reason.clone());
        }
        let rows = &changes.rows;
        let value = |row: usize| Value::from_word(self.data_type, rows.columns[0][row], &interner);
        Ok((0..rows.len()).map(|row| (!rows.nulls_at(row).has(0)).then(|| owned(value(row)))).collect())
    }

    /// The arguments as columns; with their words, for messages.
    fn batch(&self, rows: &[Vec<Option<Value<'_>>>]) -> Result<(RecordBatch, Words)> {
        let mut words = Words::default();
        let mut fields = Vec::new();
        let mut arrays = Vec::new();
        for (position, (_, data_type)) in self.arguments.iter().enumerate() {
            let mut column = Vec::with_capacity(rows.len());
            let mut nulls: Vec<Nulls> = Vec::with_capacity(rows.len());
            for row in rows {
                nulls.push(mask::of(row[position].is_none().then_some(0)));
                column.push(row[position].clone().map_or(0, |value| words.interner.put(value, *data_type)));
            }
            words.first.push((column.first().copied().unwrap_or(0), nulls.first() != Some(&0), *data_type));
            fields.push(Field::new(format!("argument {position}"), arrow_out::arrow_type(*data_type), true));
            arrays.push(arrow_out::array(column, &nulls, 0, *data_type, &words.interner, &ColumnPool::default()));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options);
        let batch = batch.map_err(|error| KernelError::invalid("CROWN-FUNCTION-FAILED", error.to_string()))?;
        Ok((batch, words))
    }

    fn failed(&self, row: &[Option<Value<'_>>], why: &str) -> KernelError {
        let shown = self.batch(&[row.to_vec()]).map_or_else(
            |_| "...".to_string(),
            |(_, words)| {
                let shown = words.first.iter().map(|(word, null, data_type)| {
                    let text = value_json(*word, *null, *data_type, &words.interner).to_string();
                    if text == "null" {
                        "NULL".to_string()
                    } else {
                        text.chars().take(100).collect()
                    }
                });
                shown.collect::<Vec<String>>().join(", ")
            },
        );
        KernelError::invalid("CROWN-FUNCTION-FAILED", format!("{}({shown}): {why}", self.name))
    }
}

/// The words of one call's arguments.
#[derive(Default)]
struct Words {
    interner: Interner,
    first: Vec<(Word, bool, DataType)>,
}

impl Interner {
    fn put(&mut self, value: Value<'_>, data_type: DataType) -> Word {
        match value.encode(data_type) {
            super::value::Encoded::Word(word) => word,
            super::value::Encoded::Bytes(bytes) => self.intern(&bytes),
        }
    }
}

fn owned(value: Value<'_>) -> Value<'static> {
    match value {
        Value::Bytes(bytes) => Value::Bytes(Cow::Owned(bytes.into_owned())),
        Value::Boolean(value) => Value::Boolean(value),
        Value::Integer(value) => Value::Integer(value),
        Value::Float(value) => Value::Float(value),
        Value::Decimal(value) => Value::Decimal(value),
    }
}
