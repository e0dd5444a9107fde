//! The kernel inside a Spark executor's JVM: conversions, errors and packing, no maintenance logic.
//!
//! Each `Java_crown_spark_Native_*` function is one native method of `crown.spark.Native`. Java
//! holds what lives here by a handle and calls once per blob or block of rows, never per row.
//!
//! - `cell`: an engine and the changes that wait for it; `stream`: a batch, whose deltas are read
//!   while it runs
//! - `real_time`: changes that are applied one at a time
//! - `dispatch`: rows or deltas in, packed blobs for each cell out; `netting` cancels changes on
//!   the way
//! - `unpack`: a blob of deltas as plain column buffers
//! - `columns`: between column buffers of Java and Arrow arrays; `blob`: between Arrow and IPC
//!   bytes
//! - `answers`: what methods return; `errors`: kernel errors and panics as `CrownException`;
//!   `handle`, `memory`: what is alive

mod answers;
mod blob;
mod cell;
mod columns;
mod dispatch;
mod errors;
mod handle;
mod memory;
mod netting;
mod real_time;
mod stream;
mod unpack;

#[global_allocator]
static ALLOCATOR: memory::Counting = memory::Counting;
