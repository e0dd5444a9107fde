//! Blobs of deltas as column buffers that Java reads in place.

use crate::blob::{self, copied};
use crate::columns::{readable, show};
use crate::errors::{arrow, guarded, Result};
use crate::handle;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::{DataType, Field, Int8Type, Schema};
use crown_kernel::arrow_in::CHANGE_TYPE;
use crown_kernel::arrow_order::by_value;
use crown_kernel::error::KernelError;
use jni::objects::{JByteArray, JByteBuffer, JClass, JIntArray, JObjectArray};
use jni::sys::jlong;
use jni::EnvUnowned;
use std::collections::VecDeque;
use std::sync::Arc;

const SORTED_ROWS: usize = 1 << 16;

struct Deltas {
    batches: VecDeque<RecordBatch>,
    /// What Java reads now.
    shown: Option<RecordBatch>,
}

impl Deltas {
    fn add(&mut self, batches: Vec<RecordBatch>) -> Result<()> {
        for column in batches.first().into_iter().flat_map(RecordBatch::columns) {
            if !readable(column.data_type()) {
                let message = format!("deltas of type {} can't be unpacked", column.data_type());
                return Err(KernelError::state("CROWN-INTERNAL", message).into());
            }
        }
        self.batches.extend(batches);
        Ok(())
    }

    /// Sorts all rows by their values.
    fn sort(&mut self) -> Result<()> {
        let plain = self.batches.iter().map(with_plain_kinds).collect::<Result<Vec<_>>>()?;
        let Some(first) = plain.first() else { return Ok(()) };
        let all = concat_batches(first.schema_ref(), &plain).map_err(arrow)?;
        let order = by_value(&all)?;
        self.batches.clear();
        for start in (0..order.len()).step_by(SORTED_ROWS) {
            let places = order.slice(start, SORTED_ROWS.min(order.len() - start));
            self.batches.push_back(take_record_batch(&all, &places).map_err(arrow)?);
        }
        Ok(())
    }
}

/// The kinds of changes as the numbers of their words, which all blobs have in common.
fn with_plain_kinds(batch: &RecordBatch) -> Result<RecordBatch> {
    let fail = || KernelError::state("CROWN-INTERNAL", "deltas have no _change_type");
    let place = batch.schema().index_of(CHANGE_TYPE).map_err(|_| fail())?;
    let mut columns = batch.columns().to_vec();
    columns[place] = Arc::new(columns[place].as_dictionary_opt::<Int8Type>().ok_or_else(fail)?.keys().clone());
    let mut fields: Vec<Arc<Field>> = batch.schema().fields().iter().cloned().collect();
    fields[place] = Arc::new(Field::new(CHANGE_TYPE, DataType::Int8, false));
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(arrow)?)
}

/// # Safety
/// See `handle::borrow`; all of Java's calls for deltas come through here.
unsafe fn deltas<'a>(handle: jlong) -> &'a mut Deltas {
    unsafe { handle::borrow(handle) }
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_deltas<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
) -> jlong {
    guarded(env, |_| Ok(handle::open(Deltas { batches: VecDeque::new(), shown: None })))
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_unpack<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    bytes: JByteArray<'local>,
) {
    guarded(env, |env| {
        let length = bytes.len(env)? as i32;
        let batches = blob::read(copied(env, &bytes, 0, length)?)?;
        // SAFETY: see `deltas`.
        unsafe { deltas(handle) }.add(batches)
    })
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_sort(env: EnvUnowned<'_>, _class: JClass<'_>, handle: jlong) {
    // SAFETY: see `deltas`.
    guarded(env, |_| unsafe { deltas(handle) }.sort())
}

/// The buffers of the next batch, null after the last; those of the batch before are void.
/// `rows[0]` is set.
#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_nextDeltas<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    rows: JIntArray<'local>,
) -> JObjectArray<'local, JByteBuffer<'local>> {
    guarded(env, |env| {
        // SAFETY: see `deltas`.
        let deltas = unsafe { deltas(handle) };
        deltas.shown = deltas.batches.pop_front();
        let Some(batch) = &deltas.shown else { return Ok(JObjectArray::default()) };
        rows.set_region(env, 0, &[batch.num_rows() as i32])?;
        show(env, batch)
    })
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_closeDeltas(_env: EnvUnowned<'_>, _class: JClass<'_>, handle: jlong) {
    // SAFETY: Java closes it once and then reads none of its buffers.
    unsafe { handle::close::<Deltas>(handle) }
}
