//! Packs rows of changes into blobs of about 1 MB of Arrow IPC, and sends each change to its cells.
//!
//! Insertions and deletions are sent in separate blobs, so that insertions need no change type and
//! a cell can apply them first. Where order matters they stay together, with a change type for each
//! row.

use crate::blob::{self, bytes_of, copied, TARGET_BYTES};
use crate::columns::{Column, Filled};
use crate::errors::{arrow, guarded, Result};
use crate::handle;
use crate::netting::Netting;
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, Int32Array, Int8Array, RecordBatch, RecordBatchOptions,
    StringArray,
};
use arrow::compute::{concat_batches, filter_record_batch, not};
use arrow::datatypes::{Field, Int32Type, Int8Type, Schema, SchemaRef};
use crown_kernel::arrow_in::{InputColumn, CHANGE_TYPE};
use crown_kernel::engine::Engine;
use crown_kernel::error::KernelError;
use crown_kernel::router::Router;
use crown_kernel::types::DataType;
use jni::objects::{JByteArray, JByteBuffer, JClass, JIntArray, JObjectArray, JString};
use jni::sys::{jint, jlong};
use jni::EnvUnowned;
use serde::Deserialize;
use std::collections::VecDeque;
use std::sync::Arc;

/// What a dispatcher does, as the planner describes it.
#[derive(Deserialize)]
struct Spec {
    table: String,
    /// Whose routing sends rows to cells; without it they go to their `cell`, or all to the first.
    plan: Option<String>,
    cells: usize,
    /// The order of changes matters.
    ordered: bool,
    /// The operator has a row over empty input and must be called even without changes.
    wakes: bool,
    /// Changes may cancel out before they are sent. Names the columns that must not be NULL.
    netting: Option<Vec<String>>,
    /// Names and types of the columns that Java fills.
    columns: Vec<(String, String)>,
}

struct Dispatcher {
    spec: Spec,
    columns: Vec<Column>,
    schema: SchemaRef,
    router: Option<Router>,
    netting: Option<Netting>,
    rows: usize,
    /// Per cell what is inserted, then per cell what is deleted.
    waiting: Vec<Waiting>,
    full: VecDeque<Packed>,
}

#[derive(Clone, Default)]
struct Waiting {
    batches: Vec<RecordBatch>,
    bytes: usize,
}

struct Packed {
    cell: usize,
    deletes: bool,
    blob: Vec<u8>,
}

/// Some rows on their way: what they are, whether each is deleted, and the cell of each where it is
/// known.
struct Part {
    rows: RecordBatch,
    deleted: Option<BooleanArray>,
    cells: Option<Int32Array>,
}

impl Dispatcher {
    fn new(spec: &str) -> Result<Dispatcher> {
        let fail = |error: serde_json::Error| KernelError::state("CROWN-INTERNAL", error.to_string());
        let spec: Spec = serde_json::from_str(spec).map_err(fail)?;
        let columns = spec.columns.iter().map(|(name, kind)| Column::new(name, kind)).collect::<Result<Vec<_>>>()?;
        let schema = Arc::new(Schema::new(columns.iter().map(|column| column.field.clone()).collect::<Vec<_>>()));
        let router = match &spec.plan {
            Some(plan) => Some(Router::new(&Engine::parse_plan(plan)?)?),
            None => None,
        };
        let input = |(name, kind): &(String, String), required: &[String]| -> Result<InputColumn> {
            Ok(InputColumn {
                name: name.clone(),
                data_type: DataType::parse(kind)?,
                nullable: !required.contains(name),
            })
        };
        let netting = match &spec.netting {
            Some(required) => {
                let columns = spec.columns.iter().map(|column| input(column, required)).collect::<Result<Vec<_>>>()?;
                Some(Netting::new(&spec.table, columns))
            }
            None => None,
        };
        let waiting = vec![Waiting::default(); 2 * spec.cells];
        Ok(Dispatcher { spec, columns, schema, router, netting, rows: 0, waiting, full: VecDeque::new() })
    }

    fn add(&mut self, part: Part) -> Result<()> {
        self.rows += part.rows.num_rows();
        let Part { rows, deleted, cells } = part;
        match (&mut self.netting, deleted) {
            (Some(netting), Some(deleted)) => match netting.add(rows, deleted)? {
                Some((rows, deleted)) => self.place(Part { rows, deleted: Some(deleted), cells }),
                None => Ok(()),
            },
            (_, deleted) => self.place(Part { rows, deleted, cells }),
        }
    }

    /// Everything that still waits becomes blobs.
    fn finish(&mut self) -> Result<()> {
        if let Some((rows, deleted)) = self.netting.as_mut().map_or(Ok(None), Netting::take)? {
            self.place(Part { rows, deleted: Some(deleted), cells: None })?;
        }
        if self.spec.wakes && self.rows == 0 {
            self.waiting[0].batches.push(RecordBatch::new_empty(self.schema.clone()));
        }
        for slot in 0..self.waiting.len() {
            self.pack(slot)?;
        }
        Ok(())
    }

    fn place(&mut self, part: Part) -> Result<()> {
        let Part { rows, deleted, cells } = part;
        let Some(deleted) = deleted else { return self.route(rows, cells, false) };
        if self.spec.ordered {
            return self.route(with_words(&rows, &deleted)?, cells, false);
        }
        let count = deleted.true_count();
        for (deletes, share) in [(false, rows.num_rows() - count), (true, count)] {
            if share == rows.num_rows() {
                self.route(rows.clone(), cells.clone(), deletes)?;
            } else if share > 0 {
                let mask = if deletes { deleted.clone() } else { not(&deleted).map_err(arrow)? };
                let cells = cells.as_ref().map(|cells| arrow::compute::filter(cells, &mask)).transpose();
                let cells = cells.map_err(arrow)?.map(|cells| cells.as_primitive::<Int32Type>().clone());
                self.route(filter_record_batch(&rows, &mask).map_err(arrow)?, cells, deletes)?;
            }
        }
        Ok(())
    }

    fn route(&mut self, rows: RecordBatch, cells: Option<Int32Array>, deletes: bool) -> Result<()> {
        if rows.num_rows() == 0 {
            return Ok(());
        }
        if let Some(cells) = cells {
            let mut found: Vec<i32> = cells.values().to_vec();
            found.sort_unstable();
            found.dedup();
            for cell in found {
                let mask = BooleanArray::from_unary(&cells, |other| other == cell);
                self.wait(cell as usize, deletes, filter_record_batch(&rows, &mask).map_err(arrow)?)?;
            }
            return Ok(());
        }
        let Some(router) = &mut self.router else { return self.wait(0, deletes, rows) };
        for (cell, batches) in router.route(&self.spec.table, &[rows])? {
            for batch in batches {
                self.wait(cell as usize, deletes, batch)?;
            }
        }
        Ok(())
    }

    fn wait(&mut self, cell: usize, deletes: bool, rows: RecordBatch) -> Result<()> {
        let slot = cell + if deletes { self.spec.cells } else { 0 };
        let waiting = &mut self.waiting[slot];
        waiting.bytes += bytes_of(&rows);
        waiting.batches.push(rows);
        if waiting.bytes >= TARGET_BYTES {
            self.pack(slot)
        } else {
            Ok(())
        }
    }

    fn pack(&mut self, slot: usize) -> Result<()> {
        let Waiting { batches, .. } = std::mem::take(&mut self.waiting[slot]);
        let Some(first) = batches.first() else { return Ok(()) };
        let (cell, deletes) = (slot % self.spec.cells, slot >= self.spec.cells);
        // One batch per blob: a blob of many small batches costs its reader more than this copy.
        let mut rows = concat_batches(first.schema_ref(), &batches).map_err(arrow)?;
        if deletes {
            rows = with_words(&rows, &BooleanArray::from(vec![true; rows.num_rows()]))?;
        }
        self.full.push_back(Packed { cell, deletes, blob: blob::write(&[rows])? });
        Ok(())
    }
}

/// The rows with `_change_type`.
fn with_words(rows: &RecordBatch, deleted: &BooleanArray) -> Result<RecordBatch> {
    let keys: Int8Array = deleted.values().iter().map(|deleted| Some(i8::from(deleted))).collect();
    let words: ArrayRef = Arc::new(StringArray::from(vec!["insert", "delete"]));
    let words = DictionaryArray::<Int8Type>::try_new(keys, words).map_err(arrow)?;
    let mut fields: Vec<Arc<Field>> = rows.schema().fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new(CHANGE_TYPE, words.data_type().clone(), false)));
    let mut columns = rows.columns().to_vec();
    columns.push(Arc::new(words));
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(arrow)?)
}

/// A block of deltas as changes of a following operator's table.
fn from_deltas(batch: &RecordBatch) -> Result<Part> {
    let fail = || KernelError::state("CROWN-INTERNAL", "deltas have no _change_type");
    let position = batch.schema().index_of(CHANGE_TYPE).map_err(|_| fail())?;
    let mut columns = batch.columns().to_vec();
    let words = columns.remove(position);
    let words = words.as_dictionary_opt::<Int8Type>().ok_or_else(fail)?;
    let dictionary = words.values().as_string_opt::<i32>().ok_or_else(fail)?;
    let goes: Vec<bool> = (0..dictionary.len()).map(|key| dictionary.value(key) == "delete").collect();
    let deleted = words.keys().values().iter().map(|key| goes[*key as usize]).collect::<Vec<bool>>();
    let mut fields: Vec<Arc<Field>> = batch.schema().fields().iter().cloned().collect();
    fields.remove(position);
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let rows = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options).map_err(arrow)?;
    Ok(Part { rows, deleted: Some(deleted.into()), cells: None })
}

/// # Safety
/// See `handle::borrow`; all of Java's calls for dispatchers come through here.
unsafe fn dispatcher<'a>(handle: jlong) -> &'a mut Dispatcher {
    unsafe { handle::borrow(handle) }
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_dispatcher<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    spec: JString<'local>,
) -> jlong {
    guarded(env, |env| Ok(handle::open(Dispatcher::new(&spec.try_to_string(env)?)?)))
}

/// `buffers`: those of each column, then one byte per row for "is deleted" and one int for its
/// cell, or null.
#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_addRows<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    rows: jint,
    buffers: JObjectArray<'local, JByteBuffer<'local>>,
) {
    guarded(env, |env| {
        // SAFETY: see `dispatcher`.
        let dispatcher = unsafe { dispatcher(handle) };
        let count = usize::try_from(rows).unwrap_or(0);
        let mut arrays = Vec::with_capacity(dispatcher.columns.len());
        let mut filled = Filled::new(&buffers);
        for column in &dispatcher.columns {
            arrays.push(filled.column(env, column, count)?);
        }
        let deleted = filled.bytes(env, count)?;
        let deleted = deleted.map(|bytes| bytes.iter().map(|byte| *byte != 0).collect::<Vec<bool>>().into());
        let cells = filled.bytes(env, 4 * count)?;
        let cells = cells.map(|bytes| {
            let (values, _) = bytes.as_chunks::<4>();
            Int32Array::from_iter_values(values.iter().map(|value| i32::from_ne_bytes(*value)))
        });
        let rows = RecordBatch::try_new(dispatcher.schema.clone(), arrays).map_err(arrow)?;
        dispatcher.add(Part { rows, deleted, cells })
    })
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_addDeltas<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    bytes: JByteArray<'local>,
) {
    guarded(env, |env| {
        let length = bytes.len(env)? as jint;
        for batch in blob::read(copied(env, &bytes, 0, length)?)? {
            // SAFETY: see `dispatcher`.
            unsafe { dispatcher(handle) }.add(from_deltas(&batch)?)?;
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_finish(env: EnvUnowned<'_>, _class: JClass<'_>, handle: jlong) {
    // SAFETY: see `dispatcher`.
    guarded(env, |_| unsafe { dispatcher(handle) }.finish())
}

/// The next blob that is full, or null; `place` is set to its cell and whether it holds deletions.
#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_packed<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    place: JIntArray<'local>,
) -> JByteArray<'local> {
    guarded(env, |env| {
        // SAFETY: see `dispatcher`.
        let Some(packed) = unsafe { dispatcher(handle) }.full.pop_front() else { return Ok(JByteArray::default()) };
        place.set_region(env, 0, &[packed.cell as jint, jint::from(packed.deletes)])?;
        Ok(env.byte_array_from_slice(&packed.blob)?)
    })
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_closeDispatcher(
    _env: EnvUnowned<'_>,
    _class: JClass<'_>,
    handle: jlong,
) {
    // SAFETY: Java closes a dispatcher once and forgets its handle.
    unsafe { handle::close::<Dispatcher>(handle) }
}
