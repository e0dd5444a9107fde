//! One aggregate of one group, folded from signed values.

use super::exact_sum::ExactSum;
use super::float_sum::FloatSum;
use super::multiset::Multiset;
use crate::chunk::Word;
use crate::error::{overflow, KernelError, Result};
use crate::expression::decimal;
use crate::expression::{key_word, order_key, wide};
use crate::plan::AggregateFunction;
use crate::store::interner::Interner;
use crate::types::{float_word, word_float, DataType};
use hashbrown::HashMap;
use std::mem::size_of;

/// What an aggregate computes: its function, its argument's type (`None`: all rows count) and its own type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub function: AggregateFunction,
    pub argument: Option<DataType>,
    pub result: DataType,
}

impl Kind {
    pub fn check(self, name: &str) -> Result<Kind> {
        let is_integer =
            |data_type| matches!(data_type, DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64);
        let is_float = |data_type| matches!(data_type, DataType::Float32 | DataType::Float64);
        let is_decimal = |data_type| matches!(data_type, DataType::Decimal { .. });
        let fits = match (self.function, self.argument) {
            (AggregateFunction::Count, _) => self.result == DataType::Int64,
            (AggregateFunction::CountDistinct, argument) => argument.is_some() && self.result == DataType::Int64,
            (AggregateFunction::Min | AggregateFunction::Max, argument) => argument == Some(self.result),
            (AggregateFunction::Sum, Some(argument)) => {
                is_integer(argument) && self.result == DataType::Int64
                    || is_float(argument) && self.result == DataType::Float64
                    || is_decimal(argument) && is_decimal(self.result)
            }
            (AggregateFunction::Avg, Some(argument)) => {
                (is_integer(argument) || is_float(argument)) && self.result == DataType::Float64
                    || is_decimal(argument) && (is_decimal(self.result) || self.result == DataType::Float64)
            }
            (AggregateFunction::Sum | AggregateFunction::Avg, None) => false,
        };
        if fits {
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
}

impl Accumulator {
    pub fn new(kind: Kind) -> Accumulator {
        match kind.function {
            AggregateFunction::Count => Accumulator::Count(0),
            AggregateFunction::CountDistinct => Accumulator::Distinct(HashMap::new()),
            AggregateFunction::Min | AggregateFunction::Max => Accumulator::Extreme(Multiset::new()),
            AggregateFunction::Sum | AggregateFunction::Avg => match kind.argument {
                Some(DataType::Float32 | DataType::Float64) => {
                    Accumulator::Float { count: 0, sum: FloatSum::default() }
                }
                _ => Accumulator::Exact { count: 0, sum: ExactSum::default() },
            },
        }
    }

    /// Adds `weight` copies of a value that is not NULL (for COUNT(*): of a row). True if a count does not fit; it is then
    /// right modulo 2^64, so that the inverse takes the value back.
    pub fn fold(&mut self, kind: Kind, word: Word, weight: i64, interner: &mut Interner) -> bool {
        match self {
            Accumulator::Count(count) => count_up(count, weight),
            Accumulator::Distinct(values) => {
                let interned = kind.argument.is_some_and(DataType::interned);
                let copies = values.entry(word).or_insert_with(|| {
                    if interned {
                        interner.retain(word);
                    }
                    0
                });
                let overflowed = count_up(copies, weight);
                if *copies == 0 {
                    values.remove(&word);
                    if interned {
                        interner.release(word);
                    }
                    if values.capacity() > 4 * values.len().max(8) {
                        values.shrink_to(2 * values.len());
                    }
                }
                overflowed
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
            Accumulator::Extreme(values) => {
                let data_type = kind.argument.expect("MIN and MAX have an argument");
                values.add(order_key(data_type, word, interner), weight)
            }
        }
    }

    /// SQL's value; `None` is NULL.
    pub fn result(&self, kind: Kind, interner: &mut Interner) -> Result<Option<Word>> {
        Ok(match self {
            Accumulator::Count(count) => Some(*count as Word),
            Accumulator::Distinct(values) => Some(values.len() as Word),
            Accumulator::Exact { count: 0, .. } | Accumulator::Float { count: 0, .. } => None,
            Accumulator::Exact { count, sum } => Some(exact_result(kind, *count, *sum, interner)?),
            Accumulator::Float { count, sum } => Some(float_word(match kind.function {
                AggregateFunction::Avg => sum.value() / *count as f64,
                _ => sum.value(),
            })),
            Accumulator::Extreme(values) => {
                let key = match kind.function {
                    AggregateFunction::Min => values.least(),
                    _ => values.greatest(),
                };
                key.map(|key| key_word(kind.result, key, interner))
            }
        })
    }

    /// Bytes outside the accumulator itself.
    pub fn bytes(&self) -> usize {
        match self {
            Accumulator::Distinct(values) => values.capacity() * (size_of::<(Word, i64)>() + 1),
            Accumulator::Extreme(values) => values.bytes(),
            Accumulator::Float { sum, .. } => sum.bytes(),
            Accumulator::Count(_) | Accumulator::Exact { .. } => 0,
        }
    }
}

/// Adds to a count; true if it overflows.
pub(super) fn count_up(count: &mut i64, weight: i64) -> bool {
    let (sum, overflowed) = count.overflowing_add(weight);
    *count = sum;
    overflowed
}

fn exact_result(kind: Kind, count: i64, sum: ExactSum, interner: &mut Interner) -> Result<Word> {
    let sum = sum.value().ok_or_else(overflow)?;
    let scale = match kind.argument {
        Some(DataType::Decimal { scale, .. }) => scale,
        _ => 0,
    };
    let DataType::Decimal { precision, scale: result_scale } = kind.result else {
        return match (kind.function, kind.result) {
            (AggregateFunction::Sum, DataType::Int64) => {
                i64::try_from(sum).map(|sum| sum as Word).map_err(|_| overflow())
            }
            _ => Ok(float_word(decimal::to_float(sum, scale) / count as f64)),
        };
    };
    let unscaled = match kind.function {
        AggregateFunction::Avg => decimal::average(sum, scale, count, result_scale, precision)?,
        _ => decimal::rescale(sum, scale, result_scale, precision)?,
    };
    Ok(if kind.result.interned() { interner.intern(&unscaled.to_le_bytes()) } else { unscaled as i64 as Word })
}
