//! The compiled form of an expression and its evaluation for one row.

use super::calendar::Part;
use super::cast::{cast, in_range, UNSUPPORTED};
use super::characters::{initial_capitals, substring, substring_bytes};
use super::decimal::{self, Rounding, Scaled};
use super::host::Host;
use super::lambda::Lambda;
use super::library::{hashing, Apply, MOST};
use super::like::Pattern;
use super::nested_functions::{self, Operation};
use super::pattern::Matcher;
use super::rounding::round;
use super::value::Value;
use super::{calendar, divide_by_zero, overflow, several_rows, utf8};
use crate::chunk::{Nulls, Word};
use crate::error::Result;
use crate::mask::Bits;
use crate::store::interner::Interner;
use crate::types::DataType;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) struct Row<'a> {
    pub words: &'a [Word],
    pub nulls: Nulls,
    pub interner: &'a Interner,
    /// What the body of a function reads instead of words; empty outside of one.
    pub elements: Vec<Evaluated<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    pub fn holds(self, ordering: Ordering) -> bool {
        match self {
            Comparison::Equal => ordering.is_eq(),
            Comparison::NotEqual => ordering.is_ne(),
            Comparison::Less => ordering.is_lt(),
            Comparison::LessOrEqual => ordering.is_le(),
            Comparison::Greater => ordering.is_gt(),
            Comparison::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

/// Functions of strings; `binary` arguments are taken by bytes instead of characters.
#[derive(Clone, Copy, Debug)]
pub(super) enum Text {
    Upper,
    Lower,
    InitialCapitals,
    Length { binary: bool },
    Concat,
    Substring { binary: bool },
    Trim { start: bool, end: bool },
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    Column {
        index: usize,
        data_type: DataType,
    },
    Literal(Option<Value<'static>>),
    Arithmetic {
        operation: Arithmetic,
        arguments: Box<[Node; 2]>,
        scales: [i8; 2],
        data_type: DataType,
    },
    Negate {
        argument: Box<Node>,
        data_type: DataType,
        only_negative: bool,
    },
    Compare {
        comparison: Comparison,
        arguments: Box<[Node; 2]>,
    },
    IsNotDistinct(Box<[Node; 2]>),
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    IsNull(Box<Node>),
    In(Vec<Node>),
    Case {
        branches: Vec<(Node, Node)>,
        otherwise: Option<Box<Node>>,
    },
    Coalesce(Vec<Node>),
    /// The value of a scalar subquery and the number of its rows, which must not be more than one.
    SingleRow(Box<[Node; 2]>),
    Cast {
        argument: Box<Node>,
        from: DataType,
        to: DataType,
    },
    /// As `Cast`, but NULL where there is no value.
    TryCast {
        argument: Box<Node>,
        from: DataType,
        to: DataType,
    },
    Extreme {
        arguments: Vec<Node>,
        wanted: Ordering,
    },
    Match {
        argument: Box<Node>,
        by: Matcher,
    },
    /// LIKE whose pattern is known with the row only.
    Like(Box<[Node; 2]>),
    Text {
        function: Text,
        arguments: Vec<Node>,
    },
    Library {
        apply: Apply,
        arguments: Vec<Node>,
        data_type: DataType,
        divides: bool,
    },
    Round {
        argument: Box<Node>,
        rounding: Rounding,
        digits: i8,
        from: DataType,
        to: DataType,
    },
    Truncate {
        argument: Box<Node>,
        unit: calendar::Unit,
        timestamp: bool,
    },
    /// The separator, then the texts between which it stands; NULLs are left out.
    ConcatWith(Vec<Node>),
    Hash {
        arguments: Vec<(Node, DataType)>,
        wide: bool,
    },
    Part {
        part: Part,
        argument: Box<Node>,
        timestamp: bool,
    },
    Host(Arc<Host>),
    /// A parameter of the function whose body this is, or a value that it captured.
    Element(usize),
    Lambda(Box<Lambda>),
    Nested {
        operation: Operation,
        arguments: Vec<(Node, DataType)>,
        data_type: DataType,
    },
}

pub(super) type Evaluated<'a> = Result<Option<Value<'a>>>;

/// The value, or NULL for the whole function.
macro_rules! present {
    ($value:expr) => {
        match $value {
            Some(value) => value,
            None => return Ok(None),
        }
    };
}

impl Node {
    /// Whether `evaluate` may fail: comparisons and conditionals do not fail by themselves.
    pub fn can_fail(&self) -> bool {
        let any = |nodes: &[Node]| nodes.iter().any(Node::can_fail);
        match self {
            Node::Column { .. } | Node::Literal(_) => false,
            Node::Lambda(lambda) => lambda.can_fail(),
            Node::Compare { arguments, .. } | Node::IsNotDistinct(arguments) => any(&arguments[..]),
            Node::Not(argument) | Node::IsNull(argument) => argument.can_fail(),
            Node::And(arguments) | Node::Or(arguments) | Node::In(arguments) | Node::Coalesce(arguments) => {
                any(arguments)
            }
            Node::Extreme { arguments, .. } => any(arguments),
            Node::Case { branches, otherwise } => {
                branches.iter().any(|(when, then)| when.can_fail() || then.can_fail())
                    || otherwise.as_ref().is_some_and(|otherwise| otherwise.can_fail())
            }
            Node::Arithmetic { operation: Arithmetic::Modulo, arguments, .. } if arguments[1].is_nonzero_integer() => {
                arguments[0].can_fail()
            }
            Node::Arithmetic { .. }
            | Node::Negate { .. }
            | Node::SingleRow(_)
            | Node::Cast { .. }
            | Node::TryCast { .. }
            | Node::Match { .. }
            | Node::Like(_)
            | Node::Text { .. }
            | Node::Library { .. }
            | Node::Round { .. }
            | Node::Truncate { .. }
            | Node::ConcatWith(_)
            | Node::Hash { .. }
            | Node::Host(_)
            | Node::Element(_)
            | Node::Nested { operation: Operation::RequiredItem | Operation::MakeMap, .. }
            | Node::Part { .. } => true,
            Node::Nested { arguments, .. } => arguments.iter().any(|(node, _)| node.can_fail()),
        }
    }

    fn is_nonzero_integer(&self) -> bool {
        matches!(self, Node::Literal(Some(Value::Integer(value))) if *value != 0)
    }

    /// Visits the calls of host functions that are not an argument of another.
    pub fn each_host(&self, visit: &mut dyn FnMut(&Host)) {
        let mut each = |nodes: &[Node]| nodes.iter().for_each(|node| node.each_host(visit));
        match self {
            Node::Column { .. } | Node::Literal(_) | Node::Element(_) => {}
            Node::Host(host) => visit(host),
            Node::Lambda(lambda) => lambda.arguments().for_each(|node| node.each_host(visit)),
            Node::Arithmetic { arguments, .. }
            | Node::Compare { arguments, .. }
            | Node::IsNotDistinct(arguments)
            | Node::SingleRow(arguments)
            | Node::Like(arguments) => each(&arguments[..]),
            Node::Negate { argument, .. }
            | Node::Not(argument)
            | Node::IsNull(argument)
            | Node::Cast { argument, .. }
            | Node::TryCast { argument, .. }
            | Node::Match { argument, .. }
            | Node::Round { argument, .. }
            | Node::Truncate { argument, .. }
            | Node::Part { argument, .. } => argument.each_host(visit),
            Node::And(arguments)
            | Node::Or(arguments)
            | Node::In(arguments)
            | Node::Coalesce(arguments)
            | Node::ConcatWith(arguments)
            | Node::Extreme { arguments, .. }
            | Node::Text { arguments, .. }
            | Node::Library { arguments, .. } => each(arguments),
            Node::Case { branches, otherwise } => {
                for (when, then) in branches {
                    when.each_host(visit);
                    then.each_host(visit);
                }
                if let Some(otherwise) = otherwise {
                    otherwise.each_host(visit);
                }
            }
            Node::Hash { arguments, .. } | Node::Nested { arguments, .. } => {
                arguments.iter().for_each(|(node, _)| node.each_host(visit));
            }
        }
    }

    pub fn evaluate<'a>(&'a self, row: &Row<'a>) -> Evaluated<'a> {
        match self {
            Node::Column { index, .. } if row.nulls.has(*index) => Ok(None),
            Node::Column { index, data_type } => {
                Ok(Some(Value::from_word(*data_type, row.words[*index], row.interner)))
            }
            Node::Literal(value) => Ok(value.as_ref().map(borrowed)),
            Node::Arithmetic { operation, arguments, scales, data_type } => {
                let [left, right] = if matches!(operation, Arithmetic::Divide | Arithmetic::Modulo) {
                    // Spark looks at the divisor first, also where the dividend is NULL.
                    let right = present!(arguments[1].evaluate(row)?);
                    [present!(arguments[0].evaluate(row)?), right]
                } else {
                    let left = present!(arguments[0].evaluate(row)?);
                    [left, present!(arguments[1].evaluate(row)?)]
                };
                arithmetic(*operation, left, right, *scales, *data_type).map(Some)
            }
            Node::Negate { argument, data_type, only_negative } => {
                let value = present!(argument.evaluate(row)?);
                negate(value, *data_type, *only_negative).map(Some)
            }
            Node::Compare { comparison, arguments } => {
                let left = present!(arguments[0].evaluate(row)?);
                let right = present!(arguments[1].evaluate(row)?);
                boolean(comparison.holds(left.order(&right)))
            }
            Node::IsNotDistinct(arguments) => is_not_distinct(&arguments[..], row),
            Node::And(arguments) => connect(arguments, row, false),
            Node::Or(arguments) => connect(arguments, row, true),
            Node::Not(argument) => boolean(!present!(argument.evaluate(row)?).boolean()),
            Node::IsNull(argument) => boolean(argument.evaluate(row)?.is_none()),
            Node::In(arguments) => is_in(arguments, row),
            Node::Case { branches, otherwise } => {
                for (when, then) in branches {
                    if when.evaluate(row)?.is_some_and(|value| value.boolean()) {
                        return then.evaluate(row);
                    }
                }
                otherwise.as_ref().map_or(Ok(None), |otherwise| otherwise.evaluate(row))
            }
            Node::Coalesce(arguments) => coalesce(arguments, row),
            Node::SingleRow(arguments) => match arguments[1].evaluate(row)? {
                Some(rows) if rows.integer() > 1 => Err(several_rows()),
                _ => arguments[0].evaluate(row),
            },
            Node::Cast { argument, from, to } => cast(present!(argument.evaluate(row)?), *from, *to),
            Node::TryCast { argument, from, to } => match cast(present!(argument.evaluate(row)?), *from, *to) {
                Err(error) if error.code == UNSUPPORTED => Err(error),
                result => Ok(result.unwrap_or_default()),
            },
            Node::Extreme { arguments, wanted } => extreme(arguments, *wanted, row),
            Node::Match { argument, by } => by.apply(present!(argument.evaluate(row)?)).map(Some),
            Node::Like(arguments) => {
                let value = present!(arguments[0].evaluate(row)?);
                let pattern = present!(arguments[1].evaluate(row)?);
                boolean(Pattern::new(utf8(pattern.bytes())?)?.matches(utf8(value.bytes())?))
            }
            Node::Text { function, arguments } => text_function(*function, arguments, row),
            Node::Library { apply, arguments, data_type, divides } => {
                if *divides {
                    // The divisor first, as in arithmetic.
                    present!(arguments[1].evaluate(row)?);
                }
                let mut values = [const { Value::Integer(0) }; MOST];
                for (value, argument) in values.iter_mut().zip(arguments) {
                    *value = present!(argument.evaluate(row)?);
                }
                apply(&values[..arguments.len()], *data_type)
            }
            Node::Round { argument, rounding, digits, from, to } => {
                round(present!(argument.evaluate(row)?), *rounding, *digits, *from, *to).map(Some)
            }
            Node::Truncate { argument, unit, timestamp } => {
                let value = present!(argument.evaluate(row)?).integer();
                calendar::truncate(value, *unit, *timestamp).map(|start| Some(Value::Integer(start)))
            }
            Node::ConcatWith(arguments) => concat_with(arguments, row),
            Node::Hash { arguments, wide } => hash(arguments, *wide, row),
            Node::Part { part, argument, timestamp } => {
                let value = present!(argument.evaluate(row)?).integer();
                Ok(Some(Value::Integer(calendar::part(value, *timestamp, *part))))
            }
            Node::Host(host) => host.evaluate(row),
            Node::Element(index) => row.elements[*index].clone(),
            Node::Lambda(lambda) => lambda.evaluate(row),
            Node::Nested { operation, arguments, data_type } => {
                nested_functions::apply(*operation, arguments, *data_type, row)
            }
        }
    }
}

fn is_not_distinct<'a>(arguments: &'a [Node], row: &Row<'a>) -> Evaluated<'a> {
    boolean(match (arguments[0].evaluate(row)?, arguments[1].evaluate(row)?) {
        (None, None) => true,
        (Some(left), Some(right)) => left.order(&right).is_eq(),
        _ => false,
    })
}

fn coalesce<'a>(arguments: &'a [Node], row: &Row<'a>) -> Evaluated<'a> {
    for argument in arguments {
        if let Some(value) = argument.evaluate(row)? {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// GREATEST and LEAST: NULLs are left out.
fn extreme<'a>(arguments: &'a [Node], wanted: Ordering, row: &Row<'a>) -> Evaluated<'a> {
    let mut best: Option<Value> = None;
    for argument in arguments {
        let Some(value) = argument.evaluate(row)? else { continue };
        if best.as_ref().is_none_or(|best| value.order(best) == wanted) {
            best = Some(value);
        }
    }
    Ok(best)
}

fn boolean<'a>(value: bool) -> Evaluated<'a> {
    Ok(Some(Value::Boolean(value)))
}

fn borrowed<'a>(value: &'a Value<'static>) -> Value<'a> {
    match value {
        Value::Bytes(bytes) => Value::Bytes(Cow::Borrowed(bytes)),
        other => other.clone(),
    }
}

/// AND (decided by FALSE) and OR (decided by TRUE): the first decisive argument ends it, else NULL
/// wins.
fn connect<'a>(arguments: &'a [Node], row: &Row<'a>, decisive: bool) -> Evaluated<'a> {
    let mut unknown = false;
    for argument in arguments {
        match argument.evaluate(row)? {
            None => unknown = true,
            Some(value) if value.boolean() == decisive => return boolean(decisive),
            Some(_) => {}
        }
    }
    Ok((!unknown).then_some(Value::Boolean(!decisive)))
}

fn is_in<'a>(arguments: &'a [Node], row: &Row<'a>) -> Evaluated<'a> {
    let value = present!(arguments[0].evaluate(row)?);
    let mut unknown = false;
    for candidate in &arguments[1..] {
        match candidate.evaluate(row)? {
            None => unknown = true,
            Some(candidate) if value.order(&candidate).is_eq() => return boolean(true),
            Some(_) => {}
        }
    }
    Ok((!unknown).then_some(Value::Boolean(false)))
}

fn concat_with<'a>(arguments: &'a [Node], row: &Row<'a>) -> Evaluated<'a> {
    let separator = present!(arguments[0].evaluate(row)?);
    let mut joined: Option<Vec<u8>> = None;
    for argument in &arguments[1..] {
        let Some(value) = argument.evaluate(row)? else { continue };
        match &mut joined {
            None => joined = Some(value.bytes().to_vec()),
            Some(joined) => {
                joined.extend_from_slice(separator.bytes());
                joined.extend_from_slice(value.bytes());
            }
        }
    }
    Ok(Some(Value::Bytes(Cow::Owned(joined.unwrap_or_default()))))
}

fn hash<'a>(arguments: &'a [(Node, DataType)], wide: bool, row: &Row<'a>) -> Evaluated<'a> {
    let step = if wide { hashing::xxhash64 } else { hashing::murmur3 };
    let mut hash = hashing::SEED;
    for (argument, data_type) in arguments {
        // A NULL leaves the hash as it is.
        if let Some(value) = argument.evaluate(row)? {
            hash = step(&value, *data_type, hash);
        }
    }
    Ok(Some(Value::Integer(hash)))
}

fn arithmetic<'a>(
    operation: Arithmetic,
    left: Value,
    right: Value,
    scales: [i8; 2],
    data_type: DataType,
) -> Result<Value<'a>> {
    match (left, right, data_type) {
        (Value::Integer(left), Value::Integer(right), _) => {
            let wide = (i128::from(left), i128::from(right));
            let exact = match operation {
                Arithmetic::Add => wide.0 + wide.1,
                Arithmetic::Subtract => wide.0 - wide.1,
                Arithmetic::Multiply => wide.0 * wide.1,
                Arithmetic::Divide | Arithmetic::Modulo if right == 0 => return Err(divide_by_zero()),
                // Only the smallest integer by -1 has no place in 64 bits.
                Arithmetic::Divide => left.checked_div(right).map_or(-wide.0, i128::from),
                Arithmetic::Modulo => left.wrapping_rem(right).into(),
            };
            in_range(exact, data_type).map(Value::Integer)
        }
        (Value::Float(left), Value::Float(right), _) => {
            let value = match operation {
                Arithmetic::Add => left + right,
                Arithmetic::Subtract => left - right,
                Arithmetic::Multiply => left * right,
                Arithmetic::Divide | Arithmetic::Modulo if right == 0.0 => return Err(divide_by_zero()),
                Arithmetic::Divide => left / right,
                Arithmetic::Modulo => left % right,
            };
            // A double holds the exact sum, product or quotient well enough to round to a float
            // once more.
            Ok(Value::Float(if data_type == DataType::Float32 { f64::from(value as f32) } else { value }))
        }
        (Value::Decimal(left), Value::Decimal(right), DataType::Decimal { precision, scale }) => {
            let (left, right) = (Scaled { value: left, scale: scales[0] }, Scaled { value: right, scale: scales[1] });
            let value = match operation {
                Arithmetic::Add => decimal::add(left, right, scale, precision),
                Arithmetic::Subtract => decimal::add(left, Scaled { value: -right.value, ..right }, scale, precision),
                Arithmetic::Multiply => decimal::multiply(left, right, scale, precision),
                Arithmetic::Divide => decimal::divide(left, right, scale, precision),
                Arithmetic::Modulo => decimal::modulo(left, right, scale, precision),
            };
            value.map(Value::Decimal)
        }
        _ => unreachable!("compilation checks the types of arithmetic"),
    }
}

fn negate<'a>(value: Value, data_type: DataType, only_negative: bool) -> Result<Value<'a>> {
    match value {
        Value::Integer(value) if !only_negative || value < 0 => {
            in_range(-i128::from(value), data_type).map(Value::Integer)
        }
        Value::Integer(value) => Ok(Value::Integer(value)),
        Value::Float(value) => Ok(Value::Float(if only_negative { value.abs() } else { -value })),
        Value::Decimal(value) => Ok(Value::Decimal(if only_negative { value.abs() } else { -value })),
        _ => Err(overflow("a number")),
    }
}

fn text_function<'a>(function: Text, arguments: &'a [Node], row: &Row<'a>) -> Evaluated<'a> {
    if let Text::Concat = function {
        let mut joined = Vec::new();
        for argument in arguments {
            joined.extend_from_slice(present!(argument.evaluate(row)?).bytes());
        }
        return Ok(Some(Value::Bytes(Cow::Owned(joined))));
    }
    let value = present!(arguments[0].evaluate(row)?);
    let bytes = value.bytes();
    let result = match function {
        Text::Upper => utf8(bytes)?.to_uppercase().into_bytes(),
        Text::Lower => utf8(bytes)?.to_lowercase().into_bytes(),
        Text::InitialCapitals => initial_capitals(utf8(bytes)?).into_bytes(),
        Text::Trim { start, end } => {
            let text = utf8(bytes)?;
            let text = if start { text.trim_start_matches(' ') } else { text };
            (if end { text.trim_end_matches(' ') } else { text }).as_bytes().to_vec()
        }
        Text::Length { binary: true } => return Ok(Some(Value::Integer(bytes.len() as i64))),
        Text::Length { binary: false } => return Ok(Some(Value::Integer(utf8(bytes)?.chars().count() as i64))),
        Text::Substring { binary } => {
            let start = present!(arguments[1].evaluate(row)?).integer();
            let length = match arguments.get(2) {
                Some(length) => present!(length.evaluate(row)?).integer(),
                // As in Spark, where it matters for a start far before the beginning.
                None => i64::from(i32::MAX),
            };
            if binary {
                substring_bytes(bytes, start, length).to_vec()
            } else {
                substring(utf8(bytes)?, start, length).as_bytes().to_vec()
            }
        }
        Text::Concat => unreachable!("handled above, since it takes any number of arguments"),
    };
    Ok(Some(Value::Bytes(Cow::Owned(result))))
}
