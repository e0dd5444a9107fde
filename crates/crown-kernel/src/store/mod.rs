//! How rows are stored: hashing, indexes, slabs, interned strings, buffers, and the netting of changes.

pub mod hash;
pub mod index;
pub mod interner;
pub mod net;
pub mod pool;
pub mod row_table;
pub mod slab;
