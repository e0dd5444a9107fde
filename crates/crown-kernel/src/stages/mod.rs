//! The stages that fold or filter signed rows: everything of a plan but trees and bags.
//!
//! All have one shape. `new` takes the plan's stage and the columns of its input. `apply` takes the
//! complete *net* change of the input and appends the complete net change of the stage's own rows
//! to `out`; when it fails, the state is as before. The stages with state also offer
//!
//! - `weight(words, nulls)`: how often the stage has this row (see `Lookup`),
//! - `rows()` and `read(start, limit, out)`: its distinct rows, and those from position `start` on,
//! - `bytes()`: the memory of its state.
//!
//! State retains the interned words that it stores, and shrinks when most of it has been deleted.

mod accumulator;
mod aggregate;
mod distinct;
mod exact_sum;
mod float_sum;
mod higher_moments;
mod map;
mod moments;
mod multiset;
mod ordered_values;
mod recursive_rows;
mod row_set;
mod set_operation;
mod sort_key;
mod sorted;
mod top;
mod window_frame;
mod window_function;
mod window_functions;

#[cfg(test)]
mod tests;

pub use aggregate::Aggregate;
pub use distinct::{Distinct, Materialize};
pub use map::Map;
pub use recursive_rows::{RecursiveRows, Showing, Support};
pub use row_set::{RowSet, WeightedRows};
pub use set_operation::SetOperation;
pub use sorted::Sorted;
pub use top::{Top, TopCursor};
pub use window_functions::{WindowFunctions, WindowFunctionsCursor};

use crate::chunk::{Nulls, Word};
use crate::types::DataType;

/// Column names and types, in order.
pub type Columns = Vec<(String, DataType)>;

/// How often a row is in a stage *now*.
pub trait Lookup {
    fn weight(&self, words: &[Word], nulls: Nulls) -> i64;
}
