//! One cell: its engine, the changes that are waiting to be applied, and its deltas.
//!
//! A cell starts with `open`. Parts of a snapshot (`addPart`) and logged changes (`addChanges`,
//! `replay`) rebuild its state without enumerating anything, up to `ready`. After that, each batch
//! calls `addChanges` for every blob, `apply`, `next` until there are no more deltas, and `report`.
//! `real_time` has the calls for changes that are applied one at a time.

use crate::answers;
use crate::blob::{self, copied, Packer};
use crate::errors::{guarded, Result};
use crate::handle;
use crate::real_time::RealTime;
use crate::stream::Stream;
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use crown_kernel::engine::{Engine, Input, OnInvalid};
use crown_kernel::error::KernelError;
use crown_kernel::plan::Plan;
use jni::objects::{JByteArray, JClass, JLongArray, JObjectArray, JString};
use jni::sys::{jboolean, jint, jlong};
use jni::EnvUnowned;
use serde_json::{json, Value};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Where a dispatcher noted each change's place in its source.
const POSITION: &str = "_position";
/// A place is a partition of the source and a row number in it, in one number.
const PARTITION_SHIFT: u32 = 40;
/// Hot keys are found by looking at rows, so not in every batch.
const HOT_AGAIN: Duration = Duration::from_secs(5);
const HOT_KEYS: usize = 3;

pub struct Cell {
    plan: Plan,
    parts: Vec<Vec<u8>>,
    engine: Option<Engine>,
    /// Where changes come one at a time.
    pub real_time: RealTime,
    waiting: Vec<(String, Vec<RecordBatch>)>,
    running: Option<Running>,
    pub updates: u64,
    pub deltas: u64,
    /// The place in its source of each change of the batch, where all of them have one.
    positions: Vec<i64>,
    /// The hot keys that were last reported, and when.
    hot: Option<(Instant, Value)>,
}

/// A batch whose deltas are being read.
struct Running {
    stream: Stream,
    packer: Packer,
    full: VecDeque<Vec<u8>>,
}

fn no_engine() -> KernelError {
    KernelError::state("CROWN-INTERNAL", "the cell has no engine")
}

fn policy(quarantine: jboolean) -> OnInvalid {
    if quarantine {
        OnInvalid::Quarantine
    } else {
        OnInvalid::Raise
    }
}

impl Cell {
    fn new(plan: &str) -> Result<Cell> {
        let plan = Engine::parse_plan(plan)?;
        Ok(Cell {
            plan,
            parts: Vec::new(),
            engine: None,
            real_time: RealTime::default(),
            waiting: Vec::new(),
            running: None,
            updates: 0,
            deltas: 0,
            positions: Vec::new(),
            hot: None,
        })
    }

    /// Makes the engine of the parts so far, if there is none yet.
    fn build(&mut self) -> Result<&mut Engine> {
        if self.engine.is_none() {
            let parts = std::mem::take(&mut self.parts);
            let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            let plan = self.plan.clone();
            self.engine =
                Some(if parts.is_empty() { Engine::new(plan, true)? } else { Engine::load(plan, &parts, true)? });
        }
        Ok(self.engine()?)
    }

    pub fn engine(&mut self) -> std::result::Result<&mut Engine, KernelError> {
        self.engine.as_mut().ok_or_else(no_engine)
    }

    fn inputs(&mut self) -> Vec<Input> {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().map(|(table, batches)| Input::Arrow { table, batches }).collect()
    }

    fn replay(&mut self, on_invalid: OnInvalid) -> Result<()> {
        let inputs = self.inputs();
        Ok(self.build()?.replay(inputs, on_invalid)?)
    }

    fn ready(&mut self) -> Result<()> {
        Ok(self.build()?.replayed()?)
    }

    fn apply(&mut self, on_invalid: OnInvalid) -> Result<()> {
        let batches: Vec<RecordBatch> = self.waiting.iter().flat_map(|(_, batches)| batches).cloned().collect();
        self.updates = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        self.deltas = 0;
        self.note_positions(batches.iter());
        let inputs = self.inputs();
        let engine = self.engine.take().ok_or_else(no_engine)?;
        let stream = Stream::start(engine, inputs, on_invalid)?;
        self.running = Some(Running { stream, packer: Packer::default(), full: VecDeque::new() });
        Ok(())
    }

    /// Notes where the changes come from, where all of them say so.
    pub fn note_positions<'a>(&mut self, batches: impl Iterator<Item = &'a RecordBatch>) {
        let places = batches.map(|batch| batch.column_by_name(POSITION)?.as_primitive_opt::<Int64Type>());
        let places: Option<Vec<_>> = places.collect();
        self.positions = places.map_or(Vec::new(), |all| all.iter().flat_map(|one| one.values()).copied().collect());
    }

    fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let Some(running) = &mut self.running else { return Ok(None) };
        loop {
            if let Some(blob) = running.full.pop_front() {
                return Ok(Some(blob));
            }
            match running.stream.next_block() {
                Some(block) => {
                    self.deltas += block.num_rows() as u64;
                    running.full.extend(running.packer.add(&block)?);
                }
                None => {
                    let rest = running.packer.take()?;
                    if rest.is_none() {
                        self.engine = self.running.take().map(|running| running.stream.end()).transpose()?;
                    }
                    return Ok(rest);
                }
            }
        }
    }

    /// Updates, deltas, stored rows, bytes, and the bits of counter changes per update.
    fn report(&mut self) -> Result<[i64; 5]> {
        let stats = self.engine()?.stats();
        let sum = |list: &str, key: &str| -> i64 {
            stats[list].as_array().into_iter().flatten().filter_map(|part| part[key].as_i64()).sum()
        };
        let stored = sum("stages", "rows") + sum("tables", "stored_rows");
        let effort = stats["counter_changes_per_update"].as_f64().unwrap_or(0.0);
        let bytes = stats["bytes"].as_i64().unwrap_or(0);
        Ok([self.updates as i64, self.deltas as i64, stored, bytes, effort.to_bits() as i64])
    }

    /// What the nodes of the trees hold and have done, and their hot keys, as JSON for the console.
    fn figures(&mut self) -> Result<String> {
        let known = self.hot.take().filter(|(when, _)| when.elapsed() < HOT_AGAIN);
        let engine = self.engine()?;
        let (when, hot) = known.unwrap_or_else(|| (Instant::now(), engine.hot_keys(HOT_KEYS)));
        let text = json!({ "stages": engine.stats()["stages"], "hot_keys": hot }).to_string();
        self.hot = Some((when, hot));
        Ok(text)
    }

    /// The changes that the last batch quarantined, as lines of the side output.
    pub fn rejected(&mut self, batch: i64, origin: &str) -> Result<Vec<String>> {
        let rejected = self.engine()?.take_rejected()?;
        let texts = |column: usize| rejected.column(column).as_string::<i32>();
        let (table, reason, row) = (texts(0), texts(2), texts(3));
        let positions = rejected.column(1).as_primitive::<Int64Type>().values();
        let line = |index: usize| {
            let position = positions[index];
            let position = self.positions.get(position as usize).copied().unwrap_or(position);
            json!({
                "batch": batch,
                "cell": origin,
                "table": table.value(index),
                "partition": position >> PARTITION_SHIFT,
                "position": position & ((1 << PARTITION_SHIFT) - 1),
                "reason": reason.value(index),
                "row": row.value(index),
            })
        };
        Ok((0..rejected.num_rows()).map(|index| line(index).to_string()).collect())
    }
}

/// # Safety
/// See `handle::borrow`; all of Java's calls for cells come through here.
pub unsafe fn cell<'a>(handle: jlong) -> &'a mut Cell {
    unsafe { handle::borrow(handle) }
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_open<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    plan: JString<'local>,
) -> jlong {
    guarded(env, |env| Ok(handle::open(Cell::new(&plan.try_to_string(env)?)?)))
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_closeCell(_env: EnvUnowned<'_>, _class: JClass<'_>, handle: jlong) {
    // SAFETY: Java closes a cell once and forgets its handle. Dropping can't call into Java; a
    // panic in it aborts.
    unsafe { handle::close::<Cell>(handle) }
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_addPart<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    bytes: JByteArray<'local>,
) {
    guarded(env, |env| {
        let part = env.convert_byte_array(&bytes)?;
        // SAFETY: see `cell`.
        unsafe { cell(handle) }.parts.push(part);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_addChanges<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    table: JString<'local>,
    bytes: JByteArray<'local>,
    offset: jint,
    length: jint,
) {
    guarded(env, |env| {
        let table = table.try_to_string(env)?;
        let batches = blob::read(copied(env, &bytes, offset, length)?)?;
        // SAFETY: see `cell`.
        unsafe { cell(handle) }.waiting.push((table, batches));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_replay(
    env: EnvUnowned<'_>,
    _class: JClass<'_>,
    handle: jlong,
    quarantine: jboolean,
) {
    // SAFETY: see `cell`.
    guarded(env, |_| unsafe { cell(handle) }.replay(policy(quarantine)))
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_ready(env: EnvUnowned<'_>, _class: JClass<'_>, handle: jlong) {
    // SAFETY: see `cell`.
    guarded(env, |_| unsafe { cell(handle) }.ready())
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_apply(
    env: EnvUnowned<'_>,
    _class: JClass<'_>,
    handle: jlong,
    quarantine: jboolean,
) {
    // SAFETY: see `cell`.
    guarded(env, |_| unsafe { cell(handle) }.apply(policy(quarantine)))
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_next<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> JByteArray<'local> {
    guarded(env, |env| {
        // SAFETY: see `cell`.
        let blob = unsafe { cell(handle) }.next()?;
        answers::bytes(env, blob.as_deref())
    })
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_report<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> JLongArray<'local> {
    guarded(env, |env| {
        // SAFETY: see `cell`.
        let report = unsafe { cell(handle) }.report()?;
        let array = env.new_long_array(report.len())?;
        array.set_region(env, 0, &report)?;
        Ok(array)
    })
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_figures<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> JString<'local> {
    guarded(env, |env| {
        // SAFETY: see `cell`.
        let figures = unsafe { cell(handle) }.figures()?;
        Ok(env.new_string(figures)?)
    })
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_rejected<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    batch: jlong,
    origin: JString<'local>,
) -> JString<'local> {
    guarded(env, |env| {
        let origin = origin.try_to_string(env)?;
        // SAFETY: see `cell`.
        let lines = unsafe { cell(handle) }.rejected(batch, &origin)?;
        answers::lines(env, &lines)
    })
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_save<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> JObjectArray<'local, JByteArray<'local>> {
    guarded(env, |env| {
        // SAFETY: see `cell`.
        let parts = unsafe { cell(handle) }.engine()?.save()?;
        answers::list(env, &parts.iter().map(Vec::as_slice).collect::<Vec<_>>())
    })
}
