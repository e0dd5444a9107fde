//! How rows are stored: hashing, indexes, slabs, interned strings, buffers, and the netting of
//! changes.

pub(crate) mod fenwick;
pub(crate) mod hash;
pub(crate) mod index;
pub mod interner;
pub mod net;
pub mod pool;
pub(crate) mod row_table;
pub(crate) mod slab;
