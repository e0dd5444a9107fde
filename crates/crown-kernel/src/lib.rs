//! Crown's kernel: join-free change propagation (CROWN, VLDB 2023) over Arrow, without Python and without Spark.

pub mod chunk;
pub mod error;
pub mod expression;
pub mod interner;
pub mod plan;
pub mod tree;
pub mod types;
