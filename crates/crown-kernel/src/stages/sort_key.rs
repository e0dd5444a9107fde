//! Sort keys: bytes that compare as sequences of values do.

use super::Columns;
use crate::chunk::{Nulls, Word};
use crate::error::Result;
use crate::expression::{order_key, Compiled, OrderKey};
use crate::mask::Bits;
use crate::plan;
use crate::store::interner::Interner;
use crate::types::DataType;

/// One expression of an ORDER BY.
pub(super) struct Order {
    expression: Compiled,
    descending: bool,
    nulls_first: bool,
}

impl Order {
    pub fn all(orders: &[plan::OrderBy], columns: &[(String, DataType)]) -> Result<Vec<Order>> {
        let order = |order: &plan::OrderBy| {
            Ok(Order {
                expression: Compiled::new(&order.expression, columns)?,
                descending: order.descending,
                nulls_first: order.nulls_first,
            })
        };
        orders.iter().map(order).collect()
    }

    pub fn append(&self, key: &mut Vec<u8>, words: &[Word], nulls: Nulls, interner: &mut Interner) -> Result<()> {
        let value = self.expression.evaluate(words, nulls, interner)?;
        let value = value.map(|word| order_key(self.expression.data_type(), word, interner));
        encode(key, value, self.descending, self.nulls_first);
        Ok(())
    }
}

/// Appends the values of some columns, ascending, NULLs first.
pub(super) fn append_columns(
    key: &mut Vec<u8>,
    positions: impl Iterator<Item = usize>,
    columns: &Columns,
    words: &[Word],
    nulls: Nulls,
    interner: &Interner,
) {
    for column in positions {
        let value = (!nulls.has(column)).then(|| order_key(columns[column].1, words[column], interner));
        encode(key, value, false, true);
    }
}

/// What follows all keys that begin with `prefix`: a further value begins with a byte of at most 2.
pub(super) fn after(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    end.push(3);
    end
}

/// Appends a value so that the concatenation of several orders as the sequence of values does.
pub(super) fn encode(key: &mut Vec<u8>, value: Option<OrderKey>, descending: bool, nulls_first: bool) {
    let Some(value) = value else {
        return key.push(if nulls_first { 0 } else { 2 });
    };
    key.push(1);
    let start = key.len();
    match value {
        OrderKey::Inline(value) => key.extend(value.to_be_bytes()),
        OrderKey::Bytes(bytes) => {
            // A zero byte becomes 0 255 and the end 0 0: so a prefix sorts before what it is a
            // prefix of.
            for byte in bytes {
                key.push(byte);
                if byte == 0 {
                    key.push(255);
                }
            }
            key.extend([0, 0]);
        }
    }
    if descending {
        key[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}
