//! Crown's kernel: join-free change propagation (CROWN, VLDB 2023) over Arrow, without Python and
//! without Spark.
//!
//! # Where to start
//!
//! Read [`plan`] first: it is what the kernel runs. Then [`engine`], which ties the stages of a
//! plan together, and [`tree`], which is the algorithm of the paper; its module table leads on. The
//! rest can be read when it is needed.
//!
//! | module | what it does |
//! |---|---|
//! | [`plan`] | the plan as data, read from JSON |
//! | [`engine`] | a plan at work: one batch in, one delta out, whole or not at all; reads, look-ups, snapshots |
//! | [`cells`], [`router`] | a view over several engines, and the routing of changes to them |
//! | [`arrow_check`], [`arrow_in`], [`arrow_values`], [`arrow_out`], [`arrow_order`] | Arrow arrays checked, read as words, written and sorted |
//! | `source`, `table_window` | a table's primary key and profile, and its window of time |
//! | `binding` | rows of a table as rows of an atom: columns to variables, filters, NULLs |
//! | [`tree`] | one join tree: propagation, live views, enumeration of deltas and of the full result |
//! | `bag` | the atoms of a cycle, joined by delta joins |
//! | `stages` | what follows a tree: map, aggregate, distinct, set operations, first rows, window functions |
//! | [`expression`] | scalar expressions, compiled and evaluated |
//! | [`nested`] | arrays, structs and maps as bytes; their types |
//! | [`store`] | hashing, indexes, slabs, interned values, buffers, and the netting of changes |
//! | [`chunk`], [`mask`], [`types`], [`error`] | rows as words by column; their NULLs; data types; errors |
//! | [`baseline`], `random` | the chain of joins that benchmarks compare with; random numbers for samples |
//!
//! # Life of a change
//!
//! 1. [`engine::Engine::apply`] takes Arrow batches. [`arrow_check`] validates the arrays and
//!    [`arrow_in`] turns them into [`chunk`]s of words; strings and wide decimals are interned
//!    ([`store::interner`]).
//! 2. `source` resolves the primary key and the window: an upsert becomes a deletion and an
//!    insertion, and rows that expire are deleted. An invalid change is rejected or quarantined.
//! 3. `engine/batch.rs` and `engine/table_net.rs` net the changes of each atom, so that what is
//!    inserted and deleted within a batch vanishes.
//! 4. `tree/apply.rs` applies the net changes, deletions first, in blocks whose memory
//!    `tree/prefetch.rs` requests ahead. A change finds its row, climbs the tree
//!    (`tree/propagate.rs`) as long as rows enter or leave a semi-join view, and from the witnesses
//!    of the connex part (`tree/delta.rs`) the delta is enumerated (`tree/enumerate.rs`,
//!    `tree/expand.rs`).
//! 5. The delta of a stage is the input of the stages after it, down to the last.
//! 6. [`arrow_out`] writes the delta of the last stage as record batches, which the caller's
//!    [`engine::Emit`] takes. Values that nothing refers to any more are swept from the interner.
//!
//! # Rules
//!
//! No input may make the kernel panic or show a part of a batch. Only what the binding crates need
//! is public. Access without a bounds check is an `unsafe fn`, and each caller argues why it is in
//! bounds (`tree/id.rs` states the law).

#![warn(missing_docs, unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

pub mod arrow_check;
pub mod arrow_in;
pub mod arrow_order;
pub mod arrow_out;
pub mod arrow_values;
mod bag;
pub mod baseline;
mod binding;
pub mod cells;
pub mod chunk;
pub mod engine;
pub mod error;
pub mod expression;
pub mod interval;
pub mod mask;
pub mod nested;
pub mod plan;
mod random;
pub mod router;
mod source;
mod stages;
pub mod store;
mod table_window;
pub mod tree;
pub mod types;
