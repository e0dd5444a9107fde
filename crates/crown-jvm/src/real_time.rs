//! Changes that are applied one at a time, as they arrive, until their batch ends.
//!
//! Partitions have no common order, so a deletion may arrive before the insertion of its row. It is
//! held until the insertion arrives; if the batch ends first, it is rejected. Where the order of
//! changes matters, the changes of a key arrive in order, and nothing is held.

use crate::answers;
use crate::blob::{self, copied};
use crate::cell::{cell, Cell};
use crate::errors::{arrow, guarded, Result};
use arrow::array::{AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{Int8Type, SchemaRef};
use crown_kernel::arrow_in::CHANGE_TYPE;
use crown_kernel::engine::{Input, OnInvalid};
use crown_kernel::error::{KernelError, Kind};
use jni::objects::{JByteArray, JClass, JIntArray, JObjectArray, JString};
use jni::sys::{jboolean, jlong};
use jni::{Env, EnvUnowned};
use std::collections::HashMap;

/// Changes that wait to be joined: each has its own buffers, of hundreds of bytes.
const LOOSE: usize = 1024;

/// The applied changes of a table that have the same form, in order of arrival.
///
/// They are joined while the batch runs, because the next batch can't begin before the log of this
/// one is written.
struct Logged {
    table: String,
    schema: SchemaRef,
    deletions: bool,
    joined: Vec<RecordBatch>,
    loose: Vec<RecordBatch>,
}

impl Logged {
    fn new(table: &str, first: &RecordBatch) -> Logged {
        Logged {
            table: table.to_string(),
            schema: first.schema(),
            deletions: is_deletion(first),
            joined: Vec::new(),
            loose: Vec::new(),
        }
    }

    fn add(&mut self, change: RecordBatch) -> Result<()> {
        self.loose.push(change);
        if self.loose.len() == LOOSE {
            self.join()?;
        }
        Ok(())
    }

    fn join(&mut self) -> Result<()> {
        let loose = std::mem::take(&mut self.loose);
        if !loose.is_empty() {
            self.joined.push(concat_batches(&self.schema, &loose).map_err(arrow)?);
        }
        Ok(())
    }

    /// All changes as one batch.
    fn rows(&mut self) -> Result<RecordBatch> {
        self.join()?;
        Ok(concat_batches(&self.schema, &self.joined).map_err(arrow)?)
    }
}

/// A batch that is under way.
#[derive(Default)]
pub struct RealTime {
    batch: i64,
    origin: String,
    quarantine: bool,
    /// Deletions that arrived too early, by table and row.
    held: HashMap<(String, Vec<u8>), Vec<RecordBatch>>,
    log: Vec<Logged>,
    rejected: Vec<String>,
}

impl Cell {
    fn change(&mut self, table: &str, change: RecordBatch, ordered: bool) -> Result<Vec<RecordBatch>> {
        let deletion = !ordered && is_deletion(&change);
        match self.try_change(table, &change) {
            Ok(mut deltas) => {
                self.applied(table, &change)?;
                if !ordered && !deletion {
                    self.release(table, &change, &mut deltas)?;
                }
                Ok(deltas)
            }
            Err(error) if deletion && error.code == "CROWN-CHANGE-ABSENT" => {
                let place = (table.to_string(), row_bytes(&change)?);
                self.real_time.held.entry(place).or_default().push(change);
                Ok(Vec::new())
            }
            Err(error) => self.refuse(table, change, error).map(|()| Vec::new()),
        }
    }

    /// The deltas of a change; one that does not fit leaves the engine as it was.
    fn try_change(&mut self, table: &str, change: &RecordBatch) -> std::result::Result<Vec<RecordBatch>, KernelError> {
        let input = Input::Arrow { table: table.to_string(), batches: vec![change.clone()] };
        let mut deltas = Vec::new();
        self.engine()?.apply(vec![input], false, OnInvalid::Raise, &mut deltas)?;
        Ok(deltas)
    }

    fn applied(&mut self, table: &str, change: &RecordBatch) -> Result<()> {
        self.updates += 1;
        let log = &mut self.real_time.log;
        let same = |logged: &Logged| logged.table == table && &logged.schema == change.schema_ref();
        let position = log.iter().position(same).unwrap_or_else(|| {
            log.push(Logged::new(table, change));
            log.len() - 1
        });
        log[position].add(change.clone())
    }

    /// Applies a held deletion of the row that was just inserted.
    fn release(&mut self, table: &str, change: &RecordBatch, deltas: &mut Vec<RecordBatch>) -> Result<()> {
        if self.real_time.held.is_empty() {
            return Ok(());
        }
        let place = (table.to_string(), row_bytes(change)?);
        let Some(held) = self.real_time.held.get_mut(&place) else { return Ok(()) };
        let deletion = held.pop();
        if held.is_empty() {
            self.real_time.held.remove(&place);
        }
        if let Some(deletion) = deletion {
            deltas.extend(self.change(table, deletion, false)?);
        }
        Ok(())
    }

    fn refuse(&mut self, table: &str, change: RecordBatch, error: KernelError) -> Result<()> {
        if !self.real_time.quarantine || error.kind != Kind::InvalidChange {
            return Err(error.into());
        }
        self.note_positions([&change].into_iter());
        let input = Input::Arrow { table: table.to_string(), batches: vec![change] };
        self.engine()?.apply(vec![input], false, OnInvalid::Quarantine, &mut Vec::new())?;
        let (batch, origin) = (self.real_time.batch, self.real_time.origin.clone());
        let lines = self.rejected(batch, &origin)?;
        self.real_time.rejected.extend(lines);
        Ok(())
    }

    /// The batch ends: held deletions are tried once more, then rejected.
    fn end_real_time(&mut self) -> Result<Vec<RecordBatch>> {
        let mut deltas = Vec::new();
        for ((table, _), changes) in std::mem::take(&mut self.real_time.held) {
            for change in changes {
                match self.try_change(&table, &change) {
                    Ok(found) => {
                        deltas.extend(found);
                        self.applied(&table, &change)?;
                    }
                    Err(error) => self.refuse(&table, change, error)?,
                }
            }
        }
        Ok(deltas)
    }

    /// What was applied, in as few blobs as there are tables and forms.
    fn real_time_log(&mut self) -> Result<Vec<(String, Vec<u8>)>> {
        let packed = |mut logged: Logged| -> Result<(String, Vec<u8>)> {
            let rows = logged.rows()?;
            Ok((logged.table, blob::write(&[rows])?))
        };
        let mut log = std::mem::take(&mut self.real_time.log);
        // As in any replayed batch: insertions come before deletions.
        log.sort_by_key(|logged| logged.deletions);
        log.into_iter().map(packed).collect()
    }

    /// A blob of deltas, null when there are none; `rows[0]` is set to their number.
    fn show<'local>(
        &mut self,
        env: &mut Env<'local>,
        deltas: &[RecordBatch],
        rows: &JIntArray<'local>,
    ) -> Result<JByteArray<'local>> {
        let count = deltas.iter().map(RecordBatch::num_rows).sum::<usize>();
        self.deltas += count as u64;
        rows.set_region(env, 0, &[count as i32])?;
        let blob = if count > 0 { Some(blob::write(deltas)?) } else { None };
        answers::bytes(env, blob.as_deref())
    }
}

fn is_deletion(change: &RecordBatch) -> bool {
    let words = change.column_by_name(CHANGE_TYPE).and_then(|words| words.as_dictionary_opt::<Int8Type>());
    words.is_some_and(|words| words.keys().values().iter().all(|key| *key == 1))
}

/// A row in a form that is the same for equal rows: the columns of the table as Arrow writes them.
fn row_bytes(change: &RecordBatch) -> Result<Vec<u8>> {
    let schema = change.schema();
    let own = (0..change.num_columns())
        .filter(|place| !matches!(schema.field(*place).name().as_str(), CHANGE_TYPE | "_position"));
    Ok(blob::write(&[change.project(&own.collect::<Vec<_>>()).map_err(arrow)?])?)
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_beginRealTime<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    batch: jlong,
    origin: JString<'local>,
    quarantine: jboolean,
) {
    guarded(env, |env| {
        let origin = origin.try_to_string(env)?;
        // SAFETY: see `cell`.
        let cell = unsafe { cell(handle) };
        cell.real_time = RealTime { batch, origin, quarantine, ..RealTime::default() };
        (cell.updates, cell.deltas) = (0, 0);
        Ok(())
    })
}

/// The deltas of a change, or null; `rows[0]` is set to their number.
#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_change<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    table: JString<'local>,
    bytes: JByteArray<'local>,
    ordered: jboolean,
    rows: JIntArray<'local>,
) -> JByteArray<'local> {
    guarded(env, |env| {
        let table = table.try_to_string(env)?;
        let length = bytes.len(env)? as i32;
        // SAFETY: see `cell`.
        let cell = unsafe { cell(handle) };
        let mut deltas = Vec::new();
        for change in blob::read(copied(env, &bytes, 0, length)?)? {
            deltas.extend(cell.change(&table, change, ordered)?);
        }
        cell.show(env, &deltas, &rows)
    })
}

/// Ends the batch; its last deltas, as `change` gives them.
#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_endRealTime<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    rows: JIntArray<'local>,
) -> JByteArray<'local> {
    guarded(env, |env| {
        // SAFETY: see `cell`.
        let cell = unsafe { cell(handle) };
        let deltas = cell.end_real_time()?;
        cell.show(env, &deltas, &rows)
    })
}

/// What the batch applied: a table's name and its blob, in turns.
#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_realTimeLog<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> JObjectArray<'local, JByteArray<'local>> {
    guarded(env, |env| {
        // SAFETY: see `cell`.
        let log = unsafe { cell(handle) }.real_time_log()?;
        answers::list(env, &log.iter().flat_map(|(table, blob)| [table.as_bytes(), blob]).collect::<Vec<_>>())
    })
}

/// The changes that the batch refused, as lines; null when there are none.
#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_realTimeRejected<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> JString<'local> {
    guarded(env, |env| {
        // SAFETY: see `cell`.
        let lines = std::mem::take(&mut unsafe { cell(handle) }.real_time.rejected);
        answers::lines(env, &lines)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int64Array};
    use std::sync::Arc;

    /// The changes of a batch are joined in groups; sizes around a full group are the ones to fear.
    #[test]
    fn a_log_has_all_changes_in_order() {
        let change = |number: usize| {
            let column: ArrayRef = Arc::new(Int64Array::from(vec![number as i64]));
            RecordBatch::try_from_iter([("a", column)]).unwrap()
        };
        for count in [1, LOOSE - 1, LOOSE, LOOSE + 1, 2 * LOOSE, 2 * LOOSE + 7] {
            let mut logged = Logged::new("t", &change(0));
            for number in 0..count {
                assert!(logged.add(change(number)).is_ok());
            }
            let Ok(rows) = logged.rows() else { panic!("{count} changes can't be joined") };
            let expected: Vec<i64> = (0..count as i64).collect();
            assert_eq!(rows.column(0).as_primitive::<arrow::datatypes::Int64Type>().values(), &expected[..]);
        }
    }
}
