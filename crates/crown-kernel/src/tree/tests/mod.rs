//! Tests of the tree: against a brute-force oracle after every single update, named cases, and
//! bounds by counting operations.

mod bounds;
mod harness;
mod named;
mod optional;
mod oracle;
mod ordered;
mod random;
