//! Crown's kernel: join-free change propagation (CROWN, VLDB 2023) over Arrow, without Python and without Spark.

#![warn(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

pub mod arrow_check;
pub mod arrow_in;
pub mod arrow_out;
pub mod bag;
pub mod baseline;
pub mod binding;
pub mod cells;
pub mod chunk;
pub mod engine;
pub mod error;
pub mod expression;
pub mod plan;
mod random;
pub mod router;
pub mod source;
pub mod stages;
pub mod store;
pub mod tree;
pub mod types;
pub mod window;
