//! Filter, compute, and make a row of each element of an array: the only stage without state.

use super::Columns;
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{KernelError, Result};
use crate::expression::Compiled;
use crate::mask::{self, Bits};
use crate::nested::{self, element_type, elements};
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
    exploded: Option<Exploded>,
}

/// The array whose elements each make a row, and the columns that show them.
struct Exploded {
    array: Compiled,
    element: DataType,
    columns: Vec<Shown>,
    /// A row without an element for an array that is NULL or empty.
    outer: bool,
}

struct Shown {
    column: usize,
    /// Whether it shows the position, from 0, instead of the element.
    position: bool,
}

impl Map {
    pub fn new(stage: &plan::MapStage, columns: &[(String, DataType)]) -> Result<Map> {
        let exploded = Exploded::new(stage, columns)?;
        let expressions = stage.columns.iter().map(|column| match Exploded::call(&column.expression) {
            Some((_, _, data_type)) => DataType::parse(data_type).map(Compiled::null),
            None => Compiled::new(&column.expression, columns),
        });
        let expressions = expressions.collect::<Result<Vec<_>>>()?;
        let names = stage.columns.iter().map(|column| column.name.clone());
        let own = names.zip(expressions.iter().map(Compiled::data_type)).collect();
        let copied = |column| expressions.iter().any(|expression| expression.is_column() == Some(column));
        let injective = exploded.is_none() && (0..columns.len()).all(copied);
        let filter = stage.filter.as_ref().map(|filter| Compiled::new(filter, columns)).transpose()?;
        Ok(Map { columns: own, expressions, filter, injective, inputs: columns.len(), exploded })
    }

    pub fn columns(&self) -> &[(String, DataType)] {
        &self.columns
    }

    /// Whether different input rows always give different rows, since every input column is shown.
    pub fn injective(&self) -> bool {
        self.injective
    }

    /// Whether some rows may be left out, or be several.
    pub fn filters(&self) -> bool {
        self.filter.is_some() || self.exploded.is_some()
    }

    /// For an injective map the position in its rows of each input column.
    pub fn shown_at(&self) -> Option<Vec<usize>> {
        let shown = |column| self.expressions.iter().position(|expression| expression.is_column() == Some(column));
        self.injective.then(|| (0..self.inputs).map_while(shown).collect())
    }

    /// The input column that a column shows as it is.
    pub fn copied(&self, column: usize) -> Option<usize> {
        self.expressions[column].is_column()
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

    /// One row, or one for each element, for each input row that passes the filter, in order, with
    /// its weight. On an error `out` is as it was.
    pub fn evaluate(&self, input: &Chunk, interner: &mut Interner, out: &mut Chunk) -> Result<()> {
        let before = out.len();
        let copies: Option<Vec<usize>> = self.expressions.iter().map(Compiled::is_column).collect();
        let passing = self.filter.as_ref().map(|filter| filter.passing(input));
        let result = match (copies, passing) {
            (Some(copies), None) if self.exploded.is_none() => {
                copy_columns(input, &copies, out);
                Ok(())
            }
            (Some(copies), Some(Some(passing))) if self.exploded.is_none() => {
                copy_rows(input, &copies, &passing, out);
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
        self.expressions.iter().chain(&self.filter).for_each(|expression| expression.prepare(input, interner));
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
            match &self.exploded {
                None => out.push(&row, row_nulls.finish(), input.weights[index]),
                Some(exploded) => {
                    let array = exploded.array.evaluate(&words, nulls, interner)?;
                    let row_nulls = row_nulls.finish();
                    exploded.push(array, &mut row, row_nulls, input.weights[index], interner, out);
                }
            }
        }
        Ok(())
    }
}

impl Exploded {
    /// The kind, the array and the type of the column, if the expression makes a row of each
    /// element.
    fn call(expression: &plan::Expression) -> Option<(&str, &plan::Expression, &str)> {
        match expression {
            plan::Expression::Call { function, arguments, data_type } if function.starts_with("explode") => {
                arguments.first().map(|array| (function.as_str(), array, data_type.as_str()))
            }
            _ => None,
        }
    }

    fn new(stage: &plan::MapStage, columns: &[(String, DataType)]) -> Result<Option<Exploded>> {
        let malformed = |why: &str| KernelError::plan("CROWN-PLAN-MALFORMED", format!("stage '{}' {why}", stage.id));
        let mut found: Option<(String, Exploded)> = None;
        for (column, output) in stage.columns.iter().enumerate() {
            let Some((function, array, data_type)) = Exploded::call(&output.expression) else { continue };
            let (outer, position) = match function {
                "explode" => (false, false),
                "explode_outer" => (true, false),
                "explode_position" => (false, true),
                "explode_position_outer" => (true, true),
                _ => return Err(malformed("has an unknown function of rows")),
            };
            let key = format!("{array:?} {outer}");
            let compiled = Compiled::new(array, columns)?;
            let element = element_type(compiled.data_type())?;
            if DataType::parse(data_type)? != if position { DataType::Int32 } else { element } {
                return Err(malformed("shows elements as another type"));
            }
            let shown = Shown { column, position };
            match &mut found {
                None => {
                    found = Some((key, Exploded { array: compiled, element, columns: vec![shown], outer }));
                }
                Some((known, exploded)) if *known == key => exploded.columns.push(shown),
                Some(_) => return Err(malformed("takes two arrays apart")),
            }
        }
        Ok(found.map(|(_, exploded)| exploded))
    }

    fn push(
        &self,
        array: Option<Word>,
        row: &mut [Word],
        nulls: Nulls,
        weight: i64,
        interner: &mut Interner,
        out: &mut Chunk,
    ) {
        // (The elements' columns are NULL in `nulls`.)
        let bytes = array.map(|array| interner.get(array).to_vec()).unwrap_or_default();
        let mut count = 0;
        for element in elements(&bytes, self.element) {
            let word = element.map(|bytes| nested::word(bytes, self.element, interner));
            for shown in &self.columns {
                row[shown.column] = if shown.position { count } else { word.unwrap_or(0) };
            }
            let absent = |shown: &&Shown| !shown.position && word.is_none();
            let present = mask::of(self.columns.iter().filter(|shown| !absent(shown)).map(|shown| shown.column));
            out.push(row, without(nulls, present), weight);
            count += 1;
        }
        if self.outer && count == 0 {
            self.columns.iter().for_each(|shown| row[shown.column] = 0);
            out.push(row, nulls, weight);
        }
    }
}

/// The columns of a set that are not in the other.
fn without(nulls: Nulls, present: Nulls) -> Nulls {
    mask::of(mask::columns(nulls).filter(|column| !present.has(*column)))
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

/// Bare columns of some rows without NULLs: column by column.
fn copy_rows(input: &Chunk, copies: &[usize], rows: &[usize], out: &mut Chunk) {
    for (column, source) in out.columns.iter_mut().zip(copies) {
        let words = &input.columns[*source];
        column.extend(rows.iter().map(|row| words[*row]));
    }
    out.weights.extend(rows.iter().map(|row| input.weights[*row]));
    if !out.nulls.is_empty() {
        out.nulls.resize(out.weights.len(), 0);
    }
}
