//! DISTINCT, and rows stored for look-up: both store the input's rows with their weights.

#[cfg(test)]
use super::Columns;
use super::{Lookup, WeightedRows};
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::Result;
use crate::store::interner::Interner;
use crate::types::DataType;

/// Each row of the input once: a row exists while its weight is not 0.
pub struct Distinct {
    #[cfg(test)]
    columns: Columns,
    state: WeightedRows,
}

impl Distinct {
    pub fn new(columns: &[(String, DataType)]) -> Distinct {
        Distinct {
            #[cfg(test)]
            columns: columns.to_vec(),
            state: WeightedRows::new(columns.iter().map(|(_, kind)| *kind)),
        }
    }

    #[cfg(test)]
    pub fn columns(&self) -> &[(String, DataType)] {
        &self.columns
    }

    pub fn apply(&mut self, input: &Chunk, interner: &mut Interner, out: &mut Chunk) -> Result<()> {
        let before = out.len();
        let added = self.state.add_all(input, interner, |words, nulls, before, after| match (before > 0, after > 0) {
            (false, true) => out.push(words, nulls, 1),
            (true, false) => out.push(words, nulls, -1),
            _ => {}
        });
        added.inspect_err(|_| out.truncate(before))
    }

    pub fn rows(&self) -> usize {
        self.state.len()
    }

    pub fn read(&self, start: usize, limit: usize, out: &mut Chunk) -> usize {
        self.state.read(start, limit, |_| 1, out)
    }

    pub fn bytes(&self) -> usize {
        self.state.bytes()
    }
}

impl Lookup for Distinct {
    fn weight(&self, words: &[Word], nulls: Nulls) -> i64 {
        i64::from(self.state.weight(words, nulls) > 0)
    }
}

/// The input unchanged, kept so that a set operation can look rows up.
pub struct Materialize {
    #[cfg(test)]
    columns: Columns,
    state: WeightedRows,
}

impl Materialize {
    pub fn new(columns: &[(String, DataType)]) -> Materialize {
        Materialize {
            #[cfg(test)]
            columns: columns.to_vec(),
            state: WeightedRows::new(columns.iter().map(|(_, kind)| *kind)),
        }
    }

    #[cfg(test)]
    pub fn columns(&self) -> &[(String, DataType)] {
        &self.columns
    }

    pub fn apply(&mut self, input: &Chunk, interner: &mut Interner, out: &mut Chunk) -> Result<()> {
        self.state.add_all(input, interner, |_, _, _, _| {})?;
        out.append(input);
        Ok(())
    }

    pub fn rows(&self) -> usize {
        self.state.len()
    }

    pub fn read(&self, start: usize, limit: usize, out: &mut Chunk) -> usize {
        self.state.read(start, limit, |weight| weight, out)
    }

    pub fn bytes(&self) -> usize {
        self.state.bytes()
    }
}

impl Lookup for Materialize {
    fn weight(&self, words: &[Word], nulls: Nulls) -> i64 {
        self.state.weight(words, nulls)
    }
}
