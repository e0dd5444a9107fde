//! Scalar expressions with Spark SQL's ANSI semantics.
//!
//! A `plan::Expression` is compiled once against the columns it reads: names become positions, literals become
//! values, LIKE patterns become tokens. Evaluation then borrows the interner only for reading; a string that is
//! computed (not merely copied) is interned at the very end.

mod order;

pub use order::{compare, order_key, OrderKey};

use crate::chunk::{Nulls, Word};
use crate::error::{KernelError, Result};
use crate::interner::Interner;
use crate::plan::Expression;
use crate::types::DataType;

/// An expression bound to the columns of one row shape.
#[derive(Clone, Debug)]
pub struct Compiled {
    data_type: DataType,
    column: Option<usize>,
}

impl Compiled {
    /// Binds `expression` to `columns`; names, types and argument counts are checked here, so evaluation only
    /// fails on values.
    pub fn new(expression: &Expression, columns: &[(String, DataType)]) -> Result<Compiled> {
        match expression {
            Expression::Column { name, .. } => {
                let column = columns.iter().position(|(other, _)| other == name).ok_or_else(|| {
                    KernelError::plan("CROWN-PLAN-COLUMN", format!("an expression reads the unknown column '{name}'"))
                })?;
                Ok(Compiled { data_type: columns[column].1, column: Some(column) })
            }
            Expression::Literal { data_type, .. } | Expression::Call { data_type, .. } => {
                Ok(Compiled { data_type: DataType::parse(data_type)?, column: None })
            }
        }
    }

    pub fn data_type(&self) -> DataType {
        self.data_type
    }

    /// The position of the column when the expression is a bare column, for callers that can copy instead.
    pub fn is_column(&self) -> Option<usize> {
        self.column
    }

    /// The value for one row; `None` is NULL.
    pub fn evaluate(&self, words: &[Word], nulls: Nulls, _interner: &mut Interner) -> Result<Option<Word>> {
        Ok(self.column.filter(|column| nulls >> column & 1 == 0).map(|column| words[column]))
    }

    /// Whether a boolean expression is TRUE for one row (neither FALSE nor NULL).
    pub fn is_true(&self, words: &[Word], nulls: Nulls, _interner: &Interner) -> Result<bool> {
        Ok(self.column.is_some_and(|column| nulls >> column & 1 == 0 && words[column] != 0))
    }
}
