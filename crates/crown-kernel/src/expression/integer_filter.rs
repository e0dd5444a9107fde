//! Filters that compare integers: evaluated for all rows of a chunk, column by column.
//!
//! Such a filter can't fail, and without NULLs it is TRUE or FALSE. So the order of its comparisons
//! does not matter, and no value has to be made of a word. Many views over one join differ in
//! filters of this kind alone.

use super::node::{Arithmetic, Comparison, Node};
use super::value::Value;
use crate::chunk::{Chunk, Word};
use crate::types::DataType;
use std::cmp::Ordering;

/// Comparisons that must all hold.
#[derive(Clone, Debug)]
pub(super) struct IntegerFilter {
    comparisons: Vec<(Term, Comparison, Term)>,
}

#[derive(Clone, Copy, Debug)]
enum Term {
    Column(usize),
    Literal(i64),
    /// The remainder of a column by a literal other than 0.
    Remainder {
        column: usize,
        divisor: i64,
    },
}

impl IntegerFilter {
    /// The filter of an expression, if it is one.
    pub fn new(node: &Node) -> Option<IntegerFilter> {
        let mut comparisons = Vec::new();
        add(node, &mut comparisons)?;
        Some(IntegerFilter { comparisons })
    }

    /// Whether the filter is TRUE for a row without NULLs.
    pub fn holds(&self, words: &[Word]) -> bool {
        let value = |term: &Term| term.value(|column| words[column]);
        self.comparisons.iter().all(|(left, comparison, right)| comparison.holds(value(left).cmp(&value(right))))
    }

    /// The positions of the rows for which the filter is TRUE, in order; the rows have no NULLs.
    pub fn passing(&self, rows: &Chunk) -> Vec<usize> {
        let mut passing: Option<Vec<usize>> = None;
        for (left, comparison, right) in &self.comparisons {
            passing = Some(match passing {
                None => compare(0..rows.len(), *left, *comparison, *right, rows),
                Some(earlier) => compare(earlier.into_iter(), *left, *comparison, *right, rows),
            });
        }
        passing.unwrap_or_else(|| (0..rows.len()).collect())
    }
}

impl Term {
    fn new(node: &Node) -> Option<Term> {
        match node {
            Node::Column { index, data_type } => is_integer(*data_type).then_some(Term::Column(*index)),
            Node::Literal(Some(Value::Integer(value))) => Some(Term::Literal(*value)),
            Node::Arithmetic { operation: Arithmetic::Modulo, arguments, .. } => {
                match (Term::new(&arguments[0])?, Term::new(&arguments[1])?) {
                    (Term::Column(column), Term::Literal(divisor)) if divisor != 0 => {
                        Some(Term::Remainder { column, divisor })
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    #[inline(always)]
    fn value(self, word: impl Fn(usize) -> Word) -> i64 {
        match self {
            Term::Column(column) => word(column) as i64,
            Term::Literal(value) => value,
            Term::Remainder { column, divisor } => (word(column) as i64).wrapping_rem(divisor),
        }
    }
}

/// Types whose words are integers in the order of their values.
fn is_integer(data_type: DataType) -> bool {
    use DataType::{Date, Int16, Int32, Int64, Int8, Timestamp, TimestampNtz};
    matches!(data_type, Int8 | Int16 | Int32 | Int64 | Date | Timestamp | TimestampNtz)
}

fn add(node: &Node, comparisons: &mut Vec<(Term, Comparison, Term)>) -> Option<()> {
    match node {
        Node::And(arguments) => arguments.iter().try_for_each(|argument| add(argument, comparisons)),
        Node::Compare { comparison, arguments } => {
            comparisons.push((Term::new(&arguments[0])?, *comparison, Term::new(&arguments[1])?));
            Some(())
        }
        _ => None,
    }
}

/// Those of the positions at which the comparison holds. The usual terms have a loop each.
fn compare(
    positions: impl Iterator<Item = usize>,
    left: Term,
    comparison: Comparison,
    right: Term,
    rows: &Chunk,
) -> Vec<usize> {
    match (left, right) {
        (Term::Column(column), Term::Literal(value)) => {
            let words = &rows.columns[column];
            select(positions, comparison, |index| (words[index] as i64).cmp(&value))
        }
        (Term::Remainder { column, divisor }, Term::Literal(value)) => {
            let words = &rows.columns[column];
            select(positions, comparison, |index| (words[index] as i64).wrapping_rem(divisor).cmp(&value))
        }
        _ => {
            let value = |term: Term, index: usize| term.value(|column| rows.columns[column][index]);
            select(positions, comparison, |index| value(left, index).cmp(&value(right, index)))
        }
    }
}

#[inline(always)]
fn select(
    positions: impl Iterator<Item = usize>,
    comparison: Comparison,
    order: impl Fn(usize) -> Ordering,
) -> Vec<usize> {
    // One loop for each comparison, which the loop would otherwise branch on.
    match comparison {
        Comparison::Equal => positions.filter(|index| order(*index).is_eq()).collect(),
        Comparison::NotEqual => positions.filter(|index| order(*index).is_ne()).collect(),
        Comparison::Less => positions.filter(|index| order(*index).is_lt()).collect(),
        Comparison::LessOrEqual => positions.filter(|index| order(*index).is_le()).collect(),
        Comparison::Greater => positions.filter(|index| order(*index).is_gt()).collect(),
        Comparison::GreaterOrEqual => positions.filter(|index| order(*index).is_ge()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::node::Row;
    use super::super::Compiled;
    use crate::chunk::Chunk;
    use crate::plan::Expression;
    use crate::random::Random;
    use crate::store::interner::Interner;
    use crate::types::DataType;
    use serde_json::{json, Value};

    fn call(function: &str, arguments: &[Value], data_type: &str) -> Value {
        json!({ "kind": "call", "function": function, "arguments": arguments, "type": data_type })
    }

    fn compiled(filter: Value) -> Compiled {
        let expression: Expression = serde_json::from_value(filter).expect("an expression");
        let columns = ["a", "b"].map(|name| (name.to_string(), DataType::Int64));
        Compiled::new(&expression, &columns).expect("it compiles")
    }

    /// Every comparison of every pair of terms, against the general evaluation row by row.
    #[test]
    fn agrees_with_evaluation() {
        let column = |name: &str| json!({ "kind": "column", "name": name, "type": "int64" });
        let literal = |value: i64| json!({ "kind": "literal", "value": value, "type": "int64" });
        let remainder = |name: &str, by: i64| call("modulo", &[column(name), literal(by)], "int64");
        let terms = [column("a"), column("b"), literal(-1), literal(2), remainder("a", 3), remainder("b", -1)];
        let mut random = Random(7);
        let mut rows = Chunk::new(2);
        let extremes = [i64::MIN, i64::MAX, 0, -1];
        for left in extremes {
            extremes.iter().for_each(|right| rows.push(&[left as u64, *right as u64], 0, 1));
        }
        for _ in 0..100 {
            rows.push(&[random.below(9), random.below(9)].map(|word| word.wrapping_sub(4)), 0, 1);
        }
        let interner = Interner::default();
        for function in ["eq", "ne", "lt", "le", "gt", "ge"] {
            for (left, right) in terms.iter().flat_map(|left| terms.iter().map(move |right| (left, right))) {
                let compare = call(function, &[left.clone(), right.clone()], "boolean");
                let second = call("ge", &[column("b"), literal(0)], "boolean");
                for filter in [compare.clone(), call("and", &[compare, second], "boolean")] {
                    let filter = compiled(filter);
                    let mut words = Vec::new();
                    let mut expected = Vec::new();
                    for index in 0..rows.len() {
                        let nulls = rows.read(index, &mut words);
                        let row = Row { words: &words, nulls, interner: &interner, elements: Vec::new() };
                        let held =
                            filter.node.evaluate(&row).expect("it can't fail").is_some_and(|held| held.boolean());
                        assert_eq!(filter.is_true(&words, nulls, &interner).expect("it can't fail"), held);
                        expected.extend(held.then_some(index));
                    }
                    assert_eq!(filter.passing(&rows), Some(expected), "{function} {left} {right}");
                }
            }
        }
    }

    /// With a NULL, and where a divisor may be 0, rows are evaluated one by one.
    #[test]
    fn leaves_nulls_and_failures_to_evaluation() {
        let column = |name: &str| json!({ "kind": "column", "name": name, "type": "int64" });
        let filter = compiled(call("ne", &[column("a"), column("b")], "boolean"));
        let interner = Interner::default();
        let mut rows = Chunk::new(2);
        rows.push(&[0, 1], 1, 1);
        assert_eq!(filter.passing(&rows), None);
        assert!(!filter.is_true(&[0, 1], 1, &interner).expect("NULL does not fail"));
        let divided =
            compiled(call("eq", &[call("modulo", &[column("a"), column("b")], "int64"), column("a")], "boolean"));
        assert!(divided.is_true(&[1, 0], 0, &interner).is_err());
    }
}
