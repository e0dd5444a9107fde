//! Functions that take a function, such as `transform(a, x -> x + 1)`.
//!
//! The plan has the body of the inner function as the JSON of an expression, in a literal. Its
//! columns are numbered: first its parameters, then the values that it reads from the row, which
//! are the last arguments of the call. So everything else sees a call like any other, whose columns
//! are those of the row.

use super::compile::{self, Scope};
use super::nested_functions::{part, value};
use super::node::{Node, Row};
use super::value::Value;
use crate::error::{KernelError, Result};
use crate::nested::{self, Nested};
use crate::plan::Expression;
use crate::types::DataType;
use std::borrow::Cow;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operation {
    /// (array), by (element, position): an array of what the body returns.
    Transform,
    /// (array), by (element, position): the elements for which the body is TRUE.
    Filter,
    /// (array), by (element): whether the body is TRUE for any element.
    Exists,
    /// (array), by (element): whether the body is TRUE for all elements.
    ForAll,
    /// (array, array), by (element, element): the shorter one is filled up with NULLs.
    Zip,
    /// (start, array), by (value so far, element).
    Reduce,
}

pub(super) fn named(function: &str) -> Option<Operation> {
    Some(match function {
        "transform" => Operation::Transform,
        "array_filter" => Operation::Filter,
        "array_exists" => Operation::Exists,
        "array_forall" => Operation::ForAll,
        "zip_with" => Operation::Zip,
        "reduce" => Operation::Reduce,
        _ => return None,
    })
}

/// A call with its body.
#[derive(Clone, Debug)]
pub(super) struct Lambda {
    operation: Operation,
    /// What the body is applied to.
    subjects: Vec<(Node, DataType)>,
    /// What the body reads from the row.
    captured: Vec<Node>,
    parameters: Vec<DataType>,
    body: Node,
    body_type: DataType,
}

fn element(data_type: DataType) -> Option<DataType> {
    match data_type {
        DataType::Nested(Nested::Array(element)) => Some(*element),
        _ => None,
    }
}

/// The call with its body compiled; `None` if its arguments are not those of the operation.
pub(super) fn compile(
    operation: Operation,
    arguments: Vec<(Node, DataType)>,
    result: DataType,
) -> Result<Option<Lambda>> {
    let mut arguments = arguments.into_iter();
    let Some((Node::Literal(Some(Value::Bytes(text))), DataType::String)) = arguments.next() else { return Ok(None) };
    let count = if matches!(operation, Operation::Zip | Operation::Reduce) { 2 } else { 1 };
    let subjects: Vec<(Node, DataType)> = arguments.by_ref().take(count).collect();
    let types: Vec<DataType> = subjects.iter().map(|(_, data_type)| *data_type).collect();
    let parameters = match (operation, &types[..]) {
        (Operation::Transform | Operation::Filter, [array]) => element(*array).map(|one| vec![one, DataType::Int32]),
        (Operation::Exists | Operation::ForAll, [array]) => element(*array).map(|one| vec![one]),
        (Operation::Zip, [one, other]) => element(*one).zip(element(*other)).map(|(one, other)| vec![one, other]),
        (Operation::Reduce, [start, array]) => element(*array).map(|one| vec![*start, one]),
        _ => None,
    };
    let Some(parameters) = parameters else { return Ok(None) };
    let expression: Expression = serde_json::from_slice(&text).map_err(|error| {
        KernelError::plan("CROWN-PLAN-MALFORMED", format!("the body of a function is not an expression: {error}"))
    })?;
    let (captured, captured_types): (Vec<Node>, Vec<DataType>) = arguments.unzip();
    let columns: Vec<(String, DataType)> = parameters
        .iter()
        .chain(&captured_types)
        .enumerate()
        .map(|(number, data_type)| (number.to_string(), *data_type))
        .collect();
    let (body, body_type) = compile::compile_in(&expression, Scope { columns: &columns, in_body: true })?;
    let fits = match operation {
        Operation::Transform | Operation::Zip => element(result) == Some(body_type),
        Operation::Filter => body_type == DataType::Boolean && result == types[0],
        Operation::Exists | Operation::ForAll => body_type == DataType::Boolean && result == DataType::Boolean,
        Operation::Reduce => body_type == types[0] && result == types[0],
    };
    Ok(fits.then_some(Lambda { operation, subjects, captured, parameters, body, body_type }))
}

impl Lambda {
    pub fn can_fail(&self) -> bool {
        self.body.can_fail() || self.arguments().any(Node::can_fail)
    }

    /// The arguments that are values of the row.
    pub fn arguments(&self) -> impl Iterator<Item = &Node> {
        self.subjects.iter().map(|(node, _)| node).chain(&self.captured)
    }

    pub fn evaluate<'a>(&'a self, row: &Row<'a>) -> Result<Option<Value<'a>>> {
        let mut subjects = Vec::with_capacity(self.subjects.len());
        for (node, _) in &self.subjects {
            subjects.push(node.evaluate(row)?);
        }
        let (start, arrays) = match self.operation {
            Operation::Reduce => (subjects.remove(0), subjects),
            _ => (None, subjects),
        };
        let Some(arrays) = arrays.into_iter().collect::<Option<Vec<Value>>>() else { return Ok(None) };
        // An error of a captured value counts only where the body reads it.
        let mut inner = Row { words: &[], nulls: 0, interner: row.interner, elements: Vec::new() };
        inner.elements.resize(self.parameters.len(), Ok(None));
        inner.elements.extend(self.captured.iter().map(|node| node.evaluate(row)));
        self.run(start, &arrays, inner)
    }

    fn run<'a>(&'a self, start: Option<Value<'a>>, arrays: &[Value], mut inner: Row<'a>) -> Result<Option<Value<'a>>> {
        let types = if self.operation == Operation::Reduce { &self.parameters[1..] } else { &self.parameters };
        let element = |bytes: Option<&[u8]>, at: usize| bytes.map(|bytes| value(bytes, types[at]));
        let first = nested::elements(arrays[0].bytes(), types[0]);
        let mut made: Vec<Option<Vec<u8>>> = Vec::new();
        match self.operation {
            Operation::Transform | Operation::Filter => {
                for (position, bytes) in first.enumerate() {
                    inner.elements[0] = Ok(element(bytes, 0));
                    inner.elements[1] = Ok(Some(Value::Integer(position as i64)));
                    let found = self.body.evaluate(&inner)?;
                    if self.operation == Operation::Transform {
                        made.push(found.map(|found| part(found, self.body_type)));
                    } else if found.is_some_and(|found| found.boolean()) {
                        made.push(bytes.map(<[u8]>::to_vec));
                    }
                }
            }
            Operation::Exists | Operation::ForAll => {
                let decisive = self.operation == Operation::Exists;
                let mut unknown = false;
                for bytes in first {
                    inner.elements[0] = Ok(element(bytes, 0));
                    match self.body.evaluate(&inner)? {
                        Some(found) if found.boolean() == decisive => return Ok(Some(Value::Boolean(decisive))),
                        Some(_) => {}
                        None => unknown = true,
                    }
                }
                return Ok((!unknown).then_some(Value::Boolean(!decisive)));
            }
            Operation::Zip => {
                let (mut one, mut other) = (first, nested::elements(arrays[1].bytes(), types[1]));
                loop {
                    let pair = (one.next(), other.next());
                    if pair == (None, None) {
                        break;
                    }
                    inner.elements[0] = Ok(element(pair.0.flatten(), 0));
                    inner.elements[1] = Ok(element(pair.1.flatten(), 1));
                    made.push(self.body.evaluate(&inner)?.map(|found| part(found, self.body_type)));
                }
            }
            Operation::Reduce => {
                inner.elements[0] = Ok(start);
                for bytes in first {
                    inner.elements[1] = Ok(element(bytes, 0));
                    inner.elements[0] = Ok(self.body.evaluate(&inner)?);
                }
                return inner.elements.swap_remove(0);
            }
        }
        let parts: Vec<Option<&[u8]>> = made.iter().map(Option::as_deref).collect();
        Ok(Some(Value::Bytes(Cow::Owned(nested::array_of_parts(&parts)))))
    }
}
