//! One aggregate of one group, folded from signed values.

use super::exact_sum::ExactSum;
use super::float_sum::FloatSum;
use super::higher_moments::HigherMoments;
use super::moments::Moments;
use super::multiset::Multiset;
use super::ordered_values::OrderedValues;
use super::sort_key::{encode, Order};
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{overflow, KernelError, Result};
use crate::expression::decimal;
use crate::expression::{key_word, order_key, wide, Compiled};
use crate::nested::{array_of, element_type};
use crate::plan::{self, AggregateFunction as Function};
use crate::store::interner::Interner;
use crate::types::{float_word, word_float, DataType};
use hashbrown::HashMap;
use std::mem::size_of;

/// One aggregate of a stage: how to get its argument from a row, and what it computes.
pub(super) struct Folded {
    pub kind: Kind,
    argument: Option<Compiled>,
    further: Vec<Compiled>,
    order: Vec<Order>,
    condition: Option<Compiled>,
}

/// What an aggregate reads from one row.
pub(super) enum Argument {
    Word(Word),
    Pair(Word, Word),
    /// A value with its place in an order.
    Keyed(Box<[u8]>, Option<Word>),
}

/// What an aggregate computes: its function, its argument's type (`None`: all rows count) and its
/// own type.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    pub function: Function,
    pub argument: Option<DataType>,
    pub result: DataType,
    /// Each value counts once.
    distinct: bool,
    /// Values are kept by a sort key.
    keyed: bool,
    fraction: f64,
    separator: Box<str>,
}

impl Folded {
    pub fn new(column: &plan::AggregateColumn, columns: &[(String, DataType)]) -> Result<Folded> {
        let compile = |expression: &plan::Expression| Compiled::new(expression, columns);
        let argument = column.argument.as_ref().map(compile).transpose()?;
        let further = column.further.iter().map(compile).collect::<Result<Vec<_>>>()?;
        let fraction = match column.function {
            Function::PercentileCont | Function::PercentileDisc => column.parameter.as_ref().map(|text| text.parse()),
            _ => None,
        };
        let keyed = match column.function {
            Function::First | Function::StringAgg | Function::ArrayAgg | Function::Mode => true,
            Function::PercentileCont | Function::PercentileDisc => true,
            Function::CountDistinct => !further.is_empty(),
            _ => false,
        };
        let kind = Kind {
            function: column.function,
            argument: argument.as_ref().map(Compiled::data_type),
            result: DataType::parse(&column.data_type)?,
            distinct: column.distinct,
            keyed,
            fraction: fraction.map_or(0.5, |number| number.unwrap_or(f64::NAN)),
            separator: column.parameter.clone().unwrap_or_default().into(),
        };
        let kind = kind.check(&column.name, &further)?;
        let condition = column.condition.as_ref().map(compile).transpose()?;
        Ok(Folded { kind, argument, further, order: Order::all(&column.order, columns)?, condition })
    }

    /// Makes the calls of host functions for all rows together, so that `evaluate` finds their
    /// results.
    pub fn prepare(&self, rows: &Chunk, interner: &Interner) {
        let expressions = self.argument.iter().chain(&self.further).chain(&self.condition);
        expressions.for_each(|expression| expression.prepare(rows, interner));
    }

    /// `None` if the row does not count.
    pub fn evaluate(&self, words: &[Word], nulls: Nulls, interner: &mut Interner) -> Result<Option<Argument>> {
        if let Some(condition) = &self.condition {
            if condition.evaluate(words, nulls, interner)? != Some(1) {
                return Ok(None);
            }
        }
        let Some(argument) = &self.argument else { return Ok(Some(Argument::Word(0))) };
        let value = argument.evaluate(words, nulls, interner)?;
        if value.is_none() && self.kind.function != Function::First {
            return Ok(None);
        }
        let mut further = Vec::with_capacity(self.further.len());
        for other in &self.further {
            let Some(word) = other.evaluate(words, nulls, interner)? else { return Ok(None) };
            further.push((other.data_type(), word));
        }
        if !self.kind.keyed {
            let value = value.unwrap_or_default();
            return Ok(Some(further.first().map_or(Argument::Word(value), |(_, other)| Argument::Pair(value, *other))));
        }
        let mut key = Vec::new();
        for order in &self.order {
            order.append(&mut key, words, nulls, interner)?;
        }
        encode(&mut key, value.map(|word| order_key(argument.data_type(), word, interner)), false, false);
        for (data_type, word) in further {
            encode(&mut key, Some(order_key(data_type, word, interner)), false, false);
        }
        Ok(Some(Argument::Keyed(key.into(), value)))
    }
}

impl Kind {
    fn check(self, name: &str, further: &[Compiled]) -> Result<Kind> {
        let is_integer =
            |data_type| matches!(data_type, DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64);
        let is_float = |data_type| matches!(data_type, DataType::Float32 | DataType::Float64);
        let is_decimal = |data_type| matches!(data_type, DataType::Decimal { .. });
        let is_double = self.argument == Some(DataType::Float64) && self.result == DataType::Float64;
        let fits = match (self.function, self.argument) {
            (Function::Count, _) => self.result == DataType::Int64,
            (Function::CountDistinct, argument) => argument.is_some() && self.result == DataType::Int64,
            (Function::Min | Function::Max | Function::First | Function::PercentileDisc | Function::Mode, argument) => {
                argument == Some(self.result)
            }
            (Function::Sum, Some(argument)) => {
                is_integer(argument) && self.result == DataType::Int64
                    || is_float(argument) && self.result == DataType::Float64
                    || is_decimal(argument) && is_decimal(self.result)
            }
            (Function::Avg, Some(argument)) => {
                (is_integer(argument) || is_float(argument)) && self.result == DataType::Float64
                    || is_decimal(argument) && (is_decimal(self.result) || self.result == DataType::Float64)
            }
            (Function::Sum | Function::Avg, None) => false,
            (Function::VarPop | Function::VarSamp | Function::StddevPop | Function::StddevSamp, _) => is_double,
            (Function::PercentileCont, _) => is_double,
            (Function::CovarPop | Function::CovarSamp | Function::Corr, _) => {
                is_double && further.first().map(Compiled::data_type) == Some(DataType::Float64)
            }
            (Function::Skewness | Function::Kurtosis, _) => is_double,
            (Function::ArrayAgg, argument) => argument.is_some() && element_type(self.result).ok() == argument,
            (Function::StringAgg, argument) => argument == Some(DataType::String) && argument == Some(self.result),
            (Function::BitAnd | Function::BitOr | Function::BitXor, argument) => {
                argument.is_some_and(is_integer) && argument == Some(self.result)
            }
        };
        let pairs = matches!(self.function, Function::CovarPop | Function::CovarSamp | Function::Corr);
        if fits && (0.0..=1.0).contains(&self.fraction) && (further.is_empty() || self.keyed || pairs) {
            return Ok(self);
        }
        let message = format!(
            "the aggregate '{name}' ({:?}) does not convert {:?} to {:?}",
            self.function, self.argument, self.result
        );
        Err(KernelError::plan("CROWN-PLAN-MALFORMED", message))
    }
}

pub(super) enum Accumulator {
    Count(i64),
    Distinct(HashMap<Word, i64>),
    /// Integers, and decimals by their unscaled values.
    Exact {
        count: i64,
        sum: ExactSum,
    },
    Float {
        count: i64,
        sum: FloatSum,
    },
    Extreme(Multiset),
    Moments(Box<Moments>),
    HigherMoments(Box<HigherMoments>),
    Ordered(OrderedValues),
    Bits(Box<Bits>),
    /// Each distinct value once: how often it occurs, and the aggregate over all of them.
    Once {
        values: HashMap<Word, i64>,
        inner: Box<Accumulator>,
    },
}

/// How many values there are, and how many of them have each bit.
pub(super) struct Bits {
    count: i64,
    ones: [i64; 64],
}

impl Accumulator {
    pub fn new(kind: &Kind) -> Accumulator {
        let own = match kind.function {
            _ if kind.keyed => return Accumulator::Ordered(OrderedValues::default()),
            Function::Count => return Accumulator::Count(0),
            Function::CountDistinct => return Accumulator::Distinct(HashMap::new()),
            Function::Min | Function::Max => return Accumulator::Extreme(Multiset::new()),
            Function::Sum | Function::Avg => match kind.argument {
                Some(DataType::Float32 | DataType::Float64) => {
                    Accumulator::Float { count: 0, sum: FloatSum::default() }
                }
                _ => Accumulator::Exact { count: 0, sum: ExactSum::default() },
            },
            Function::BitAnd | Function::BitOr | Function::BitXor => {
                Accumulator::Bits(Box::new(Bits { count: 0, ones: [0; 64] }))
            }
            Function::Skewness | Function::Kurtosis => Accumulator::HigherMoments(Box::default()),
            _ => Accumulator::Moments(Box::default()),
        };
        if kind.distinct {
            return Accumulator::Once { values: HashMap::new(), inner: Box::new(own) };
        }
        own
    }

    /// Adds `weight` copies of a value (for COUNT(*): of a row). True if a count does not fit; it
    /// is then right modulo 2^64, so that the inverse takes the value back.
    pub fn fold(&mut self, kind: &Kind, argument: &Argument, weight: i64, interner: &mut Interner) -> bool {
        match (self, argument) {
            (Accumulator::Ordered(values), Argument::Keyed(key, value)) => {
                values.add(key, *value, weight, kind.argument.is_some_and(DataType::interned), interner)
            }
            (Accumulator::Moments(moments), Argument::Pair(x, y)) => {
                moments.add(word_float(*x), Some(word_float(*y)), weight)
            }
            (accumulator, Argument::Word(word)) => accumulator.fold_word(kind, *word, weight, interner),
            // (`Folded` gives each function the arguments that it takes.)
            _ => false,
        }
    }

    fn fold_word(&mut self, kind: &Kind, word: Word, weight: i64, interner: &mut Interner) -> bool {
        match self {
            Accumulator::Count(count) => count_up(count, weight),
            Accumulator::Distinct(values) => count_value(values, kind, word, weight, interner).2,
            Accumulator::Once { values, inner } => {
                let (before, after, overflowed) = count_value(values, kind, word, weight, interner);
                let change = i64::from(after != 0) - i64::from(before != 0);
                overflowed | (change != 0 && inner.fold_word(kind, word, change, interner))
            }
            Accumulator::Exact { count, sum } => {
                let value = match kind.argument {
                    Some(argument) if argument.interned() => wide(interner.get(word)),
                    _ => i128::from(word as i64),
                };
                sum.add(value, weight);
                count_up(count, weight)
            }
            Accumulator::Float { count, sum } => {
                sum.add(word_float(word), weight);
                count_up(count, weight)
            }
            Accumulator::Moments(moments) => moments.add(word_float(word), None, weight),
            Accumulator::HigherMoments(moments) => moments.add(word_float(word), weight),
            Accumulator::Bits(bits) => {
                let set = bits.ones.iter_mut().enumerate().filter(|(bit, _)| word >> bit & 1 == 1);
                set.for_each(|(_, ones)| *ones = ones.wrapping_add(weight));
                count_up(&mut bits.count, weight)
            }
            Accumulator::Extreme(values) => {
                let data_type = kind.argument.expect("MIN and MAX have an argument");
                values.add(order_key(data_type, word, interner), weight)
            }
            Accumulator::Ordered(_) => false,
        }
    }

    /// SQL's value; `None` is NULL.
    pub fn result(&self, kind: &Kind, interner: &mut Interner) -> Result<Option<Word>> {
        Ok(match self {
            Accumulator::Count(count) => Some(*count as Word),
            Accumulator::Distinct(values) => Some(values.len() as Word),
            Accumulator::Once { inner, .. } => inner.result(kind, interner)?,
            Accumulator::Exact { count: 0, .. } | Accumulator::Float { count: 0, .. } => None,
            Accumulator::Exact { count, sum } => Some(exact_result(kind, *count, *sum, interner)?),
            Accumulator::Float { count, sum } => Some(float_word(match kind.function {
                Function::Avg => sum.value() / *count as f64,
                _ => sum.value(),
            })),
            Accumulator::Extreme(values) => {
                let key = match kind.function {
                    Function::Min => values.least(),
                    _ => values.greatest(),
                };
                key.map(|key| key_word(kind.result, key, interner))
            }
            Accumulator::Moments(moments) => match kind.function {
                Function::VarPop => moments.variance(false),
                Function::VarSamp => moments.variance(true),
                Function::StddevPop => moments.variance(false).map(f64::sqrt),
                Function::StddevSamp => moments.variance(true).map(f64::sqrt),
                Function::CovarPop => moments.covariance(false),
                Function::CovarSamp => moments.covariance(true),
                _ => moments.correlation(),
            }
            .map(float_word),
            Accumulator::HigherMoments(moments) => match kind.function {
                Function::Skewness => moments.skewness(),
                _ => moments.kurtosis(),
            }
            .map(float_word),
            Accumulator::Bits(bits) => (bits.count > 0).then(|| bits.result(kind.function)),
            Accumulator::Ordered(values) => ordered_result(kind, values, interner)?,
        })
    }

    /// Bytes outside the accumulator itself.
    pub fn bytes(&self) -> usize {
        let of_values = |values: &HashMap<Word, i64>| values.capacity() * (size_of::<(Word, i64)>() + 1);
        match self {
            Accumulator::Distinct(values) => of_values(values),
            Accumulator::Once { values, inner } => of_values(values) + size_of::<Accumulator>() + inner.bytes(),
            Accumulator::Extreme(values) => values.bytes(),
            Accumulator::Float { sum, .. } => sum.bytes(),
            Accumulator::Moments(moments) => size_of::<Moments>() + moments.bytes(),
            Accumulator::HigherMoments(moments) => size_of::<HigherMoments>() + moments.bytes(),
            Accumulator::Ordered(values) => values.bytes(),
            Accumulator::Bits(_) => size_of::<Bits>(),
            Accumulator::Count(_) | Accumulator::Exact { .. } => 0,
        }
    }
}

impl Bits {
    fn result(&self, function: Function) -> Word {
        let bit = |ones: i64| match function {
            Function::BitAnd => ones == self.count,
            Function::BitOr => ones > 0,
            _ => ones & 1 == 1,
        };
        (0..64).fold(0, |word, position| word | Word::from(bit(self.ones[position])) << position)
    }
}

/// Counts copies of a value, which is held while there are some: the count before and after, and
/// whether it overflows.
fn count_value(
    values: &mut HashMap<Word, i64>,
    kind: &Kind,
    word: Word,
    weight: i64,
    interner: &mut Interner,
) -> (i64, i64, bool) {
    let interned = kind.argument.is_some_and(DataType::interned);
    let copies = values.entry(word).or_insert_with(|| {
        if interned {
            interner.retain(word);
        }
        0
    });
    let before = *copies;
    let overflowed = count_up(copies, weight);
    let after = *copies;
    if after == 0 {
        values.remove(&word);
        if interned {
            interner.release(word);
        }
        if values.capacity() > 4 * values.len().max(8) {
            values.shrink_to(2 * values.len());
        }
    }
    (before, after, overflowed)
}

/// The maximum size in bytes of a string that an aggregate returns.
const MOST_BYTES: usize = 1 << 28;
/// The maximum number of elements of an array that an aggregate returns.
const MOST_ELEMENTS: i128 = 1 << 24;

fn ordered_result(kind: &Kind, values: &OrderedValues, interner: &mut Interner) -> Result<Option<Word>> {
    let counted = || values.iter().map(|(word, count)| (word, if kind.distinct { 1 } else { count }));
    Ok(match kind.function {
        Function::CountDistinct => Some(values.len() as Word),
        Function::First => counted().next().and_then(|(word, _)| word),
        Function::Mode => {
            let most = counted().map(|(_, count)| count).max();
            counted().find(|(_, count)| Some(*count) == most).and_then(|(word, _)| word)
        }
        Function::ArrayAgg => {
            let element = element_type(kind.result)?;
            if counted().map(|(_, count)| i128::from(count)).sum::<i128>() > MOST_ELEMENTS {
                return Err(overflow());
            }
            let copies = counted().flat_map(|(word, count)| (0..count).map(move |_| word));
            let bytes = array_of(element, copies, interner);
            Some(interner.intern(&bytes))
        }
        Function::StringAgg => {
            let mut text: Vec<u8> = Vec::new();
            for (number, (word, count)) in counted().enumerate() {
                let part = word.map_or(&[][..], |word| interner.get(word));
                let length = (part.len() + kind.separator.len()) as i128 * i128::from(count) + text.len() as i128;
                if length > MOST_BYTES as i128 {
                    return Err(overflow());
                }
                for copy in 0..count {
                    if number > 0 || copy > 0 {
                        text.extend(kind.separator.bytes());
                    }
                    text.extend(part);
                }
            }
            (values.len() > 0).then(|| interner.intern(&text))
        }
        _ => {
            let total = values.total(kind.distinct);
            let at = |position: i64| values.at(position, kind.distinct).0;
            if total == 0 {
                return Ok(None);
            }
            if kind.function == Function::PercentileDisc {
                return Ok(at(((kind.fraction * total as f64).ceil() as i64 - 1).max(0)));
            }
            let position = kind.fraction * (total - 1) as f64;
            let (low, high) = (position.floor(), position.ceil());
            let value = |position: f64| at(position as i64).map_or(0.0, word_float);
            let (first, second) = (value(low), value(high));
            let between = (high - position) * first + (position - low) * second;
            Some(float_word(if low == high || first == second { first } else { between }))
        }
    })
}

/// Adds to a count; true if it overflows.
pub(super) fn count_up(count: &mut i64, weight: i64) -> bool {
    let (sum, overflowed) = count.overflowing_add(weight);
    *count = sum;
    overflowed
}

fn exact_result(kind: &Kind, count: i64, sum: ExactSum, interner: &mut Interner) -> Result<Word> {
    let sum = sum.value().ok_or_else(overflow)?;
    let scale = match kind.argument {
        Some(DataType::Decimal { scale, .. }) => scale,
        _ => 0,
    };
    let DataType::Decimal { precision, scale: result_scale } = kind.result else {
        return match (kind.function, kind.result) {
            (Function::Sum, DataType::Int64) => i64::try_from(sum).map(|sum| sum as Word).map_err(|_| overflow()),
            _ => Ok(float_word(decimal::to_float(sum, scale) / count as f64)),
        };
    };
    let unscaled = match kind.function {
        Function::Avg => decimal::average(sum, scale, count, result_scale, precision)?,
        _ => decimal::rescale(sum, scale, result_scale, precision)?,
    };
    Ok(if kind.result.interned() { interner.intern(&unscaled.to_le_bytes()) } else { unscaled as i64 as Word })
}
