//! Scalar expressions with Spark SQL's ANSI semantics.
//!
//! A `plan::Expression` is compiled once against the columns it reads: names become positions,
//! literals become values, LIKE patterns become tokens. Evaluation borrows the interner for reading
//! only; a string that is computed (not merely copied) is interned at the very end.
//!
//! | module | idea |
//! |---|---|
//! | `compile` | checks names, types and argument counts |
//! | `node`, `value` | the compiled form, its evaluation, and values while they are computed |
//! | `library` | functions that return NULL for NULL, by name |
//! | `pattern`, `like`, `regex`, `time_pattern` | functions with a literal that is compiled in advance |
//! | `arrays`, `nested_functions`, `lambda` | functions of arrays, structs and maps, and those that take a function |
//! | `cast`, `rounding`, `decimal`, `characters` | what their names say |
//! | `calendar`, `time_of_day` | DATE and TIMESTAMP; TIME |
//! | `order` | the order of values, defined once |
//! | `host` | functions that other code computes |
//! | `integer_filter` | comparisons of integers, evaluated column by column |

mod arrays;
mod calendar;
mod cast;
mod characters;
mod compile;
pub(crate) mod decimal;
pub mod host;
mod integer_filter;
mod lambda;
mod library;
mod like;
mod nested_functions;
mod node;
mod order;
mod pattern;
mod regex;
mod rounding;
mod time_of_day;
mod time_pattern;
mod value;

#[cfg(test)]
mod tests;

pub use order::{compare, key_word, order_key, OrderKey};
pub(crate) use order::{rank, wide};
pub use time_of_day::format_time;

use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{KernelError, Result};
use crate::mask::Bits;
use crate::plan::Expression;
use crate::store::interner::Interner;
use crate::types::DataType;
use integer_filter::IntegerFilter;
use node::{Node, Row};
use value::Encoded;

/// An expression bound to the columns of one row shape.
#[derive(Clone, Debug)]
pub struct Compiled {
    data_type: DataType,
    node: Node,
    /// The same, if it compares integers.
    integers: Option<IntegerFilter>,
}

impl Compiled {
    /// Binds `expression` to `columns`; names, types and argument counts are checked here, so
    /// evaluation only fails on values.
    pub fn new(expression: &Expression, columns: &[(String, DataType)]) -> Result<Compiled> {
        let (node, data_type) = compile::compile(expression, columns)?;
        let integers = IntegerFilter::new(&node);
        Ok(Compiled { data_type, node, integers })
    }

    /// NULL.
    pub fn null(data_type: DataType) -> Compiled {
        Compiled { data_type, node: Node::Literal(None), integers: None }
    }

    /// The type of its values.
    pub fn data_type(&self) -> DataType {
        self.data_type
    }

    /// The position of the column when the expression is a bare column, for callers that can copy
    /// instead.
    pub fn is_column(&self) -> Option<usize> {
        match self.node {
            Node::Column { index, .. } => Some(index),
            _ => None,
        }
    }

    /// Whether there may be rows that have no value: those that overflow, for example.
    pub fn can_fail(&self) -> bool {
        self.node.can_fail()
    }

    /// Makes the calls of host functions for all rows together, so that `evaluate` finds their
    /// results.
    pub fn prepare(&self, rows: &Chunk, interner: &Interner) {
        self.node.each_host(&mut |host| host.prepare(rows, interner));
    }

    /// The value for one row; `None` is NULL.
    pub fn evaluate(&self, words: &[Word], nulls: Nulls, interner: &mut Interner) -> Result<Option<Word>> {
        if let Node::Column { index, .. } = self.node {
            return Ok((!nulls.has(index)).then(|| words[index]));
        }
        let encoded = {
            let row = Row { words, nulls, interner, elements: Vec::new() };
            match self.node.evaluate(&row)? {
                None => return Ok(None),
                Some(value) => match value.encode(self.data_type) {
                    Encoded::Word(word) => return Ok(Some(word)),
                    Encoded::Bytes(bytes) => bytes.into_owned(),
                },
            }
        };
        Ok(Some(interner.intern(&encoded)))
    }

    /// Whether a boolean expression is TRUE for one row (neither FALSE nor NULL).
    pub fn is_true(&self, words: &[Word], nulls: Nulls, interner: &Interner) -> Result<bool> {
        if let Some(integers) = self.integers.as_ref().filter(|_| nulls == 0) {
            return Ok(integers.holds(words));
        }
        let value = self.node.evaluate(&Row { words, nulls, interner, elements: Vec::new() })?;
        Ok(value.is_some_and(|value| value.boolean()))
    }

    /// The positions of the rows for which a boolean expression is TRUE, in order, if they can be
    /// found column by column; otherwise `is_true` finds them.
    pub fn passing(&self, rows: &Chunk) -> Option<Vec<usize>> {
        self.integers.as_ref().filter(|_| rows.nulls.is_empty()).map(|integers| integers.passing(rows))
    }
}

/// The value of an expression without columns, as the JSON of a plan's literal.
pub fn constant_from_json(expression: &str) -> Result<String> {
    let expression: Expression = serde_json::from_str(expression)
        .map_err(|error| KernelError::plan("CROWN-PLAN-MALFORMED", format!("not an expression: {error}")))?;
    let (node, data_type) = compile::compile(&expression, &[])?;
    let interner = Interner::default();
    let value = node.evaluate(&Row { words: &[], nulls: 0, interner: &interner, elements: Vec::new() })?;
    Ok(value.map_or(Ok(serde_json::Value::Null), |value| value.to_literal(data_type))?.to_string())
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| KernelError::invalid("CROWN-UTF8", "a string is not valid UTF-8"))
}

fn overflow(what: &str) -> KernelError {
    KernelError::invalid("CROWN-OVERFLOW", format!("a computed value does not fit into {what}"))
}

fn several_rows() -> KernelError {
    KernelError::invalid("CROWN-SCALAR-ROWS", "a scalar subquery returned more than one row")
}

fn divide_by_zero() -> KernelError {
    KernelError::invalid("CROWN-DIVIDE-BY-ZERO", "division by zero")
}
