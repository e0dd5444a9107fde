//! Filter and compute: the only stage without state.

use super::Columns;
use crate::chunk::Chunk;
use crate::error::Result;
use crate::expression::Compiled;
use crate::mask::{self, Bits};
use crate::plan;
use crate::store::interner::Interner;
use crate::store::net::net_chunks;
use crate::types::DataType;

pub struct Map {
    columns: Columns,
    expressions: Vec<Compiled>,
    filter: Option<Compiled>,
    injective: bool,
    inputs: usize,
}

impl Map {
    pub fn new(stage: &plan::MapStage, columns: &[(String, DataType)]) -> Result<Map> {
        let expressions = stage.columns.iter().map(|column| Compiled::new(&column.expression, columns));
        let expressions = expressions.collect::<Result<Vec<_>>>()?;
        let names = stage.columns.iter().map(|column| column.name.clone());
        let own = names.zip(expressions.iter().map(Compiled::data_type)).collect();
        let copied = |column| expressions.iter().any(|expression| expression.is_column() == Some(column));
        let injective = (0..columns.len()).all(copied);
        let filter = stage.filter.as_ref().map(|filter| Compiled::new(filter, columns)).transpose()?;
        Ok(Map { columns: own, expressions, filter, injective, inputs: columns.len() })
    }

    pub fn columns(&self) -> &[(String, DataType)] {
        &self.columns
    }

    /// Whether different input rows always give different rows, since every input column is shown.
    pub fn injective(&self) -> bool {
        self.injective
    }

    /// Whether some rows may be left out.
    pub fn filters(&self) -> bool {
        self.filter.is_some()
    }

    /// For an injective map the position in its rows of each input column.
    pub fn shown_at(&self) -> Option<Vec<usize>> {
        let shown = |column| self.expressions.iter().position(|expression| expression.is_column() == Some(column));
        self.injective.then(|| (0..self.inputs).map_while(shown).collect())
    }

    /// The net change: rows that become equal are added up.
    pub fn apply(&self, input: &Chunk, interner: &mut Interner, out: &mut Chunk) -> Result<()> {
        if self.injective {
            return self.evaluate(input, interner, out);
        }
        let mut mapped = Chunk::new(self.columns.len());
        self.evaluate(input, interner, &mut mapped)?;
        out.append(&net_chunks(&[mapped], self.columns.len())?);
        Ok(())
    }

    /// One row for each input row that passes the filter, in order, with its weight. On an error `out` is as it was.
    pub fn evaluate(&self, input: &Chunk, interner: &mut Interner, out: &mut Chunk) -> Result<()> {
        let before = out.len();
        let copies: Option<Vec<usize>> = self.expressions.iter().map(Compiled::is_column).collect();
        let result = match copies {
            Some(copies) if self.filter.is_none() => {
                copy_columns(input, &copies, out);
                Ok(())
            }
            _ => self.evaluate_rows(input, interner, out),
        };
        if result.is_err() {
            out.truncate(before);
        }
        result
    }

    fn evaluate_rows(&self, input: &Chunk, interner: &mut Interner, out: &mut Chunk) -> Result<()> {
        let (mut words, mut row) = (Vec::new(), vec![0; self.expressions.len()]);
        for index in 0..input.len() {
            let nulls = input.read(index, &mut words);
            if let Some(filter) = &self.filter {
                if !filter.is_true(&words, nulls, interner)? {
                    continue;
                }
            }
            let mut row_nulls = mask::Builder::default();
            for (position, expression) in self.expressions.iter().enumerate() {
                let value = expression.evaluate(&words, nulls, interner)?;
                row_nulls.set(position, value.is_none());
                row[position] = value.unwrap_or(0);
            }
            out.push(&row, row_nulls.finish(), input.weights[index]);
        }
        Ok(())
    }
}

/// Bare columns without a filter: column by column.
fn copy_columns(input: &Chunk, copies: &[usize], out: &mut Chunk) {
    for (column, source) in out.columns.iter_mut().zip(copies) {
        column.extend_from_slice(&input.columns[*source]);
    }
    if !input.nulls.is_empty() {
        out.nulls.resize(out.weights.len(), 0);
        out.nulls.extend(input.nulls.iter().map(|nulls| nulls.gather(copies.iter().copied().zip(0..))));
    } else if !out.nulls.is_empty() {
        out.nulls.resize(out.weights.len() + input.len(), 0);
    }
    out.weights.extend_from_slice(&input.weights);
}
