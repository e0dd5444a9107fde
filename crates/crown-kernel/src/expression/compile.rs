//! From the plan's expression to nodes: every name, type and argument count is checked here.

use super::calendar::{Part, Unit};
use super::cast::{allowed, integer_range};
use super::decimal::Rounding;
use super::host;
use super::lambda;
use super::library;
use super::nested_functions;
use super::node::{Arithmetic, Comparison, Node, Text};
use super::pattern::Matcher;
use super::value::{literal, Value};
use crate::error::{KernelError, Result};
use crate::nested::Nested;
use crate::plan::Expression;
use crate::types::DataType;
use std::cmp::Ordering;

type Typed = (Node, DataType);

/// What an expression may read: the columns of a row, or the parameters and captured values of a
/// function's body.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub columns: &'a [(String, DataType)],
    pub in_body: bool,
}

pub(super) fn compile(expression: &Expression, columns: &[(String, DataType)]) -> Result<Typed> {
    compile_in(expression, Scope { columns, in_body: false })
}

pub(super) fn compile_in(expression: &Expression, scope: Scope) -> Result<Typed> {
    match expression {
        Expression::Column { name, .. } => {
            let index = scope.columns.iter().position(|(other, _)| other == name);
            let index = index.ok_or_else(|| {
                KernelError::plan("CROWN-PLAN-MALFORMED", format!("an expression reads the unknown column '{name}'"))
            })?;
            let data_type = scope.columns[index].1;
            let node = if scope.in_body { Node::Element(index) } else { Node::Column { index, data_type } };
            Ok((node, data_type))
        }
        Expression::Literal { value, data_type } => {
            let data_type = DataType::parse(data_type)?;
            Ok((Node::Literal(literal(value, data_type)?), data_type))
        }
        Expression::Call { function, arguments, data_type } => {
            let data_type = DataType::parse(data_type)?;
            let arguments = arguments.iter().map(|argument| compile_in(argument, scope)).collect::<Result<Vec<_>>>()?;
            let node = match host::name(function) {
                // The calls of a batch are made together, before its rows are evaluated.
                Some(name) if scope.in_body => {
                    let message = format!("the body of a function calls '{}'", name.0);
                    return Err(KernelError::plan("CROWN-PLAN-MALFORMED", message));
                }
                Some(name) => host::compile(name, arguments, data_type)?,
                None => call(function, arguments, data_type)?,
            };
            Ok((node, data_type))
        }
    }
}

fn call(function: &str, arguments: Vec<Typed>, data_type: DataType) -> Result<Node> {
    let call = Call { function, data_type };
    match function {
        "add" => call.arithmetic(Arithmetic::Add, arguments),
        "subtract" => call.arithmetic(Arithmetic::Subtract, arguments),
        "multiply" => call.arithmetic(Arithmetic::Multiply, arguments),
        "divide" => call.arithmetic(Arithmetic::Divide, arguments),
        "modulo" => call.arithmetic(Arithmetic::Modulo, arguments),
        "negate" => call.negate(arguments, false),
        "abs" => call.negate(arguments, true),
        "eq" => call.comparison(Comparison::Equal, arguments),
        "ne" => call.comparison(Comparison::NotEqual, arguments),
        "lt" => call.comparison(Comparison::Less, arguments),
        "le" => call.comparison(Comparison::LessOrEqual, arguments),
        "gt" => call.comparison(Comparison::Greater, arguments),
        "ge" => call.comparison(Comparison::GreaterOrEqual, arguments),
        "is_not_distinct" => {
            call.result(DataType::Boolean)?;
            call.comparable(&arguments)?;
            Ok(Node::IsNotDistinct(Box::new(call.exactly(arguments)?)))
        }
        "and" => Ok(Node::And(call.booleans(arguments)?)),
        "or" => Ok(Node::Or(call.booleans(arguments)?)),
        "not" => {
            let [argument] = call.booleans(arguments)?.try_into().map_err(|_| call.wrong("takes one argument"))?;
            Ok(Node::Not(Box::new(argument)))
        }
        "is_null" => {
            call.result(DataType::Boolean)?;
            let [argument] = call.exactly(arguments)?;
            Ok(Node::IsNull(Box::new(argument)))
        }
        "in" => {
            call.result(DataType::Boolean)?;
            call.comparable(&arguments)?;
            Ok(Node::In(call.at_least(1, arguments)?))
        }
        "case" => call.case(arguments),
        "coalesce" => {
            call.same_as_result(&arguments)?;
            Ok(Node::Coalesce(call.at_least(1, arguments)?))
        }
        "single_row" => {
            if !matches!(arguments.get(1), Some((_, DataType::Int64))) {
                return Err(call.wrong("takes a value and the number of rows"));
            }
            call.same_as_result(&arguments[..1])?;
            Ok(Node::SingleRow(Box::new(call.exactly(arguments)?)))
        }
        "greatest" => call.extreme(arguments, Ordering::Greater),
        "least" => call.extreme(arguments, Ordering::Less),
        "cast" => call.cast(arguments, false),
        "try_cast" => call.cast(arguments, true),
        "like" => call.like(arguments),
        "year" => call.part(Part::Year, arguments),
        "month" => call.part(Part::Month, arguments),
        "day" => call.part(Part::Day, arguments),
        "quarter" => call.part(Part::Quarter, arguments),
        "dayofweek" => call.part(Part::DayOfWeek, arguments),
        "hour" => call.part(Part::Hour, arguments),
        "minute" => call.part(Part::Minute, arguments),
        "second" => call.part(Part::Second, arguments),
        "dayofyear" => call.part(Part::DayOfYear, arguments),
        "weekday" => call.part(Part::Weekday, arguments),
        "weekofyear" => call.part(Part::Week, arguments),
        "yearofweek" => call.part(Part::YearOfWeek, arguments),
        "round" => call.round(Rounding::HalfUp, arguments),
        "bround" => call.round(Rounding::HalfEven, arguments),
        "floor" => call.round(Rounding::Down, arguments),
        "ceil" => call.round(Rounding::Up, arguments),
        "date_trunc" => call.truncate(arguments),
        "concat_ws" => {
            call.result(DataType::String)?;
            call.same_as_result(&arguments)?;
            Ok(Node::ConcatWith(call.at_least(1, arguments)?))
        }
        "hash" => call.hash(arguments, DataType::Int32),
        "xxhash64" => call.hash(arguments, DataType::Int64),
        "rlike" | "regexp_extract" | "regexp_replace" | "date_format" | "to_timestamp" => call.matcher(arguments),
        "upper" => call.text(Text::Upper, arguments),
        "lower" => call.text(Text::Lower, arguments),
        "initcap" => call.text(Text::InitialCapitals, arguments),
        "trim" | "ltrim" | "rtrim" if arguments.len() == 2 => call.library(arguments),
        "trim" => call.text(Text::Trim { start: true, end: true }, arguments),
        "ltrim" => call.text(Text::Trim { start: true, end: false }, arguments),
        "rtrim" => call.text(Text::Trim { start: false, end: true }, arguments),
        "concat" => call.text(Text::Concat, arguments),
        "length" => {
            let binary = matches!(arguments.first(), Some((_, DataType::Binary)));
            call.text(Text::Length { binary }, arguments)
        }
        "substring" => {
            let binary = matches!(arguments.first(), Some((_, DataType::Binary)));
            call.text(Text::Substring { binary }, arguments)
        }
        _ if lambda::named(function).is_some() => call.lambda(arguments),
        _ if nested_functions::named(function).is_some() => call.nested(arguments),
        _ if library::knows(function) => call.library(arguments),
        _ => Err(call.wrong("is not a function of the kernel")),
    }
}

/// The function being compiled, for its checks and their messages.
struct Call<'a> {
    function: &'a str,
    data_type: DataType,
}

impl Call<'_> {
    fn wrong(&self, what: &str) -> KernelError {
        KernelError::plan("CROWN-PLAN-MALFORMED", format!("'{}' {what}", self.function))
    }

    fn result(&self, expected: DataType) -> Result<()> {
        if self.data_type == expected {
            Ok(())
        } else {
            Err(self.wrong(&format!("returns {expected:?}, the plan has {:?}", self.data_type)))
        }
    }

    fn exactly<const COUNT: usize>(&self, arguments: Vec<Typed>) -> Result<[Node; COUNT]> {
        let nodes: Vec<Node> = arguments.into_iter().map(|(node, _)| node).collect();
        nodes.try_into().map_err(|_| self.wrong(&format!("takes {COUNT} arguments")))
    }

    fn at_least(&self, count: usize, arguments: Vec<Typed>) -> Result<Vec<Node>> {
        if arguments.len() < count {
            return Err(self.wrong(&format!("takes at least {count} arguments")));
        }
        Ok(arguments.into_iter().map(|(node, _)| node).collect())
    }

    /// All arguments have one kind of value.
    fn comparable(&self, arguments: &[Typed]) -> Result<()> {
        let mut kinds = arguments.iter().map(|(_, data_type)| Kind::of(*data_type));
        let first = kinds.next();
        if kinds.all(|kind| Some(kind) == first) {
            Ok(())
        } else {
            Err(self.wrong("has arguments of different types"))
        }
    }

    fn same_as_result(&self, arguments: &[Typed]) -> Result<()> {
        let result = Kind::of(self.data_type);
        if arguments.iter().all(|(_, data_type)| Kind::of(*data_type) == result) {
            Ok(())
        } else {
            Err(self.wrong("has an argument and a result of different types"))
        }
    }

    fn booleans(&self, arguments: Vec<Typed>) -> Result<Vec<Node>> {
        self.result(DataType::Boolean)?;
        self.same_as_result(&arguments)?;
        self.at_least(1, arguments)
    }

    fn comparison(&self, comparison: Comparison, arguments: Vec<Typed>) -> Result<Node> {
        self.result(DataType::Boolean)?;
        self.comparable(&arguments)?;
        Ok(Node::Compare { comparison, arguments: Box::new(self.exactly(arguments)?) })
    }

    fn arithmetic(&self, operation: Arithmetic, arguments: Vec<Typed>) -> Result<Node> {
        let mut scales = [0; 2];
        for (position, (_, data_type)) in arguments.iter().enumerate().take(2) {
            let fits = match (data_type, self.data_type) {
                (DataType::Decimal { scale, .. }, DataType::Decimal { .. }) => {
                    scales[position] = *scale;
                    true
                }
                (argument @ DataType::Interval(_), result) => {
                    let adds = matches!(operation, Arithmetic::Add | Arithmetic::Subtract);
                    adds && Kind::of(*argument) == Kind::of(result)
                }
                (argument, result) => Kind::of(*argument) == Kind::of(result) && is_numeric(*argument),
            };
            if !fits {
                return Err(self.wrong(&format!("does not convert {data_type:?} to {:?}", self.data_type)));
            }
        }
        let arguments = Box::new(self.exactly(arguments)?);
        Ok(Node::Arithmetic { operation, arguments, scales, data_type: self.data_type })
    }

    fn negate(&self, arguments: Vec<Typed>, only_negative: bool) -> Result<Node> {
        self.same_as_result(&arguments)?;
        if !is_numeric(self.data_type) && !matches!(self.data_type, DataType::Interval(_)) {
            return Err(self.wrong("takes a number or an interval"));
        }
        let [argument] = self.exactly(arguments)?;
        Ok(Node::Negate { argument: Box::new(argument), data_type: self.data_type, only_negative })
    }

    fn extreme(&self, arguments: Vec<Typed>, wanted: Ordering) -> Result<Node> {
        self.same_as_result(&arguments)?;
        Ok(Node::Extreme { arguments: self.at_least(1, arguments)?, wanted })
    }

    fn case(&self, arguments: Vec<Typed>) -> Result<Node> {
        let mut branches = Vec::new();
        let mut rest = arguments.into_iter();
        while let Some((first, first_type)) = rest.next() {
            let Some((then, then_type)) = rest.next() else {
                self.same_as_result(&[(Node::Literal(None), first_type)])?;
                return Ok(Node::Case { branches, otherwise: Some(Box::new(first)) });
            };
            if first_type != DataType::Boolean {
                return Err(self.wrong("takes boolean conditions"));
            }
            self.same_as_result(&[(Node::Literal(None), then_type)])?;
            branches.push((first, then));
        }
        Ok(Node::Case { branches, otherwise: None })
    }

    fn cast(&self, arguments: Vec<Typed>, null_if_invalid: bool) -> Result<Node> {
        let to = self.data_type;
        let from = arguments.first().map_or(to, |(_, from)| *from);
        if !allowed(from, to) {
            return Err(self.wrong(&format!("from {from:?} to {to:?} does not exist")));
        }
        let [argument] = self.exactly(arguments)?;
        let argument = Box::new(argument);
        Ok(if null_if_invalid { Node::TryCast { argument, from, to } } else { Node::Cast { argument, from, to } })
    }

    fn like(&self, arguments: Vec<Typed>) -> Result<Node> {
        self.result(DataType::Boolean)?;
        if arguments.iter().any(|(_, data_type)| *data_type != DataType::String) {
            return Err(self.wrong("takes strings"));
        }
        match arguments.get(1) {
            Some((Node::Literal(Some(_)), _)) => self.matcher(arguments),
            Some((Node::Literal(None), _)) => Ok(Node::Literal(None)),
            _ => Ok(Node::Like(Box::new(self.exactly(arguments)?))),
        }
    }

    /// A function of one value and literals.
    fn matcher(&self, mut arguments: Vec<Typed>) -> Result<Node> {
        let (takes, gives) = match self.function {
            "like" | "rlike" => (Kind::Bytes, Kind::Boolean),
            "date_format" => (Kind::Timestamp, Kind::Bytes),
            "to_timestamp" => (Kind::Bytes, Kind::Timestamp),
            _ => (Kind::Bytes, Kind::Bytes),
        };
        let subject_fits = arguments.first().is_some_and(|(_, data_type)| Kind::of(*data_type) == takes);
        if !subject_fits || Kind::of(self.data_type) != gives {
            return Err(self.wrong("has an argument or a result of the wrong type"));
        }
        let literals = arguments.split_off(1).into_iter().map(|(node, _)| match node {
            Node::Literal(Some(value)) => Ok(value),
            _ => Err(self.wrong("takes literals after its first argument")),
        });
        let literals = literals.collect::<Result<Vec<_>>>()?;
        let by = Matcher::new(self.function, &literals)?.ok_or_else(|| self.wrong("takes different literals"))?;
        let [argument] = self.exactly(arguments)?;
        Ok(Node::Match { argument: Box::new(argument), by })
    }

    /// Makes or takes apart an array, a struct or a map.
    fn nested(&self, mut arguments: Vec<Typed>) -> Result<Node> {
        let checked = nested_functions::named(self.function)
            .and_then(|it| nested_functions::checked(it, &arguments, self.data_type));
        let (operation, kept) = checked.ok_or_else(|| self.wrong("has arguments or a result of the wrong type"))?;
        arguments.truncate(kept);
        Ok(Node::Nested { operation, arguments, data_type: self.data_type })
    }

    fn hash(&self, arguments: Vec<Typed>, result: DataType) -> Result<Node> {
        self.result(result)?;
        if arguments.is_empty() {
            return Err(self.wrong("takes at least one argument"));
        }
        Ok(Node::Hash { arguments, wide: result == DataType::Int64 })
    }

    /// A function of the library; its result is as wide as the function may need.
    fn library(&self, arguments: Vec<Typed>) -> Result<Node> {
        let kinds: Vec<Kind> = arguments.iter().map(|(_, data_type)| Kind::of(*data_type)).collect();
        // A narrow integer is only given where it is taken too: the function may need more.
        let same = arguments.iter().any(|(_, data_type)| *data_type == self.data_type);
        let narrow = matches!(self.data_type, DataType::Int8 | DataType::Int16) && !same;
        let apply = library::find(self.function, &kinds, Kind::of(self.data_type)).filter(|_| !narrow);
        let apply = apply.ok_or_else(|| self.wrong("has arguments or a result of the wrong type"))?;
        let divides = matches!(self.function, "div" | "pmod");
        Ok(Node::Library { apply, arguments: self.at_least(1, arguments)?, data_type: self.data_type, divides })
    }

    fn lambda(&self, arguments: Vec<Typed>) -> Result<Node> {
        let compiled = match lambda::named(self.function) {
            Some(operation) => lambda::compile(operation, arguments, self.data_type)?,
            None => None,
        };
        let compiled = compiled.ok_or_else(|| self.wrong("has arguments or a result of the wrong type"))?;
        Ok(Node::Lambda(Box::new(compiled)))
    }

    fn text(&self, function: Text, arguments: Vec<Typed>) -> Result<Node> {
        let is_text = |data_type| matches!(data_type, DataType::String | DataType::Binary);
        let (texts, numbers, result_is_number) = match function {
            Text::Concat => (arguments.len(), 0..=0, false),
            Text::Substring { .. } => (1, 1..=2, false),
            Text::Length { .. } => (1, 0..=0, true),
            Text::Upper | Text::Lower | Text::InitialCapitals | Text::Trim { .. } => (1, 0..=0, false),
        };
        let fits = arguments.len() >= texts
            && numbers.contains(&(arguments.len() - texts))
            && arguments[..texts].iter().all(|(_, data_type)| is_text(*data_type))
            && arguments[texts..].iter().all(|(_, data_type)| integer_range(*data_type).is_some())
            && if result_is_number { integer_range(self.data_type).is_some() } else { is_text(self.data_type) };
        if !fits {
            return Err(self.wrong("has arguments or a result of the wrong type"));
        }
        Ok(Node::Text { function, arguments: self.at_least(1, arguments)? })
    }

    /// `round` has a literal number of digits; `floor` and `ceil` go to whole numbers.
    fn round(&self, rounding: Rounding, mut arguments: Vec<Typed>) -> Result<Node> {
        let digits = match rounding {
            Rounding::HalfUp | Rounding::HalfEven => match arguments.pop() {
                Some((Node::Literal(Some(Value::Integer(digits @ -38..=38))), _)) => digits as i8,
                _ => return Err(self.wrong("takes a literal number of digits from -38 to 38")),
            },
            Rounding::Down | Rounding::Up => 0,
        };
        let has_digits = matches!(rounding, Rounding::HalfUp | Rounding::HalfEven);
        let Some((_, from)) = arguments.first() else { return Err(self.wrong("takes a number")) };
        let (from, to) = (*from, self.data_type);
        let fits = match (Kind::of(from), Kind::of(to)) {
            (Kind::Decimal(_), Kind::Decimal(scale)) => scale >= digits.max(0).min(from.scale()),
            (Kind::Integer, Kind::Integer) => true,
            (Kind::Float, Kind::Float) => has_digits,
            (Kind::Float, Kind::Integer) => !has_digits && to == DataType::Int64,
            _ => false,
        };
        if !fits {
            return Err(self.wrong(&format!("does not convert {from:?} to {to:?}")));
        }
        let [argument] = self.exactly(arguments)?;
        Ok(Node::Round { argument: Box::new(argument), rounding, digits, from, to })
    }

    fn truncate(&self, arguments: Vec<Typed>) -> Result<Node> {
        let [unit, subject] =
            <[Typed; 2]>::try_from(arguments).map_err(|_| self.wrong("takes a unit and a date or timestamp"))?;
        let unit = match &unit.0 {
            Node::Literal(Some(Value::Bytes(name))) => match name.as_ref() {
                b"year" => Unit::Year,
                b"quarter" => Unit::Quarter,
                b"month" => Unit::Month,
                b"week" => Unit::Week,
                b"day" => Unit::Day,
                b"hour" => Unit::Hour,
                b"minute" => Unit::Minute,
                b"second" => Unit::Second,
                b"millisecond" => Unit::Millisecond,
                b"microsecond" => Unit::Microsecond,
                _ => return Err(self.wrong("does not support the unit")),
            },
            _ => return Err(self.wrong("takes a literal unit")),
        };
        let timestamp = match Kind::of(self.data_type) {
            Kind::Date => false,
            Kind::Timestamp => true,
            _ => return Err(self.wrong("returns a date or a timestamp")),
        };
        if Kind::of(subject.1) != Kind::of(self.data_type) {
            return Err(self.wrong("does not change the type"));
        }
        Ok(Node::Truncate { argument: Box::new(subject.0), unit, timestamp })
    }

    fn part(&self, part: Part, arguments: Vec<Typed>) -> Result<Node> {
        let timestamp = match arguments.first() {
            Some((_, DataType::Date)) => false,
            Some((_, DataType::Timestamp | DataType::TimestampNtz)) => true,
            // A time is that of the first day.
            Some((_, DataType::Time)) if matches!(part, Part::Hour | Part::Minute | Part::Second) => true,
            _ => return Err(self.wrong("takes a date or a timestamp")),
        };
        if integer_range(self.data_type).is_none() {
            return Err(self.wrong("returns an integer"));
        }
        let [argument] = self.exactly(arguments)?;
        Ok(Node::Part { part, argument: Box::new(argument), timestamp })
    }
}

/// Values of one kind can replace each other without a cast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Boolean,
    Integer,
    Float,
    Decimal(i8),
    Bytes,
    Date,
    Timestamp,
    Time,
    Months,
    Duration,
    Nested(&'static Nested),
}

impl Kind {
    pub fn of(data_type: DataType) -> Kind {
        match data_type {
            DataType::Boolean => Kind::Boolean,
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => Kind::Integer,
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => Kind::Integer,
            DataType::Float32 | DataType::Float64 => Kind::Float,
            DataType::Decimal { scale, .. } => Kind::Decimal(scale),
            DataType::String | DataType::Binary | DataType::Uuid => Kind::Bytes,
            DataType::Date => Kind::Date,
            DataType::Timestamp | DataType::TimestampNtz => Kind::Timestamp,
            DataType::Time => Kind::Time,
            DataType::Interval(span) if span.is_months() => Kind::Months,
            DataType::Interval(_) => Kind::Duration,
            DataType::Nested(nested) => Kind::Nested(nested),
        }
    }
}

fn is_numeric(data_type: DataType) -> bool {
    matches!(Kind::of(data_type), Kind::Integer | Kind::Float | Kind::Decimal(_))
}
