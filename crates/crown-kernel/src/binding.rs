//! Turns rows of a source into rows of an atom: filter, bindings, NULLs.

use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{KernelError, Result};
use crate::expression::Compiled;
use crate::mask::{self, Bits};
use crate::plan;
use crate::store::interner::Interner;
use crate::types::DataType;

/// An atom, compiled against the columns of its source.
pub struct Binder {
    filter: Option<Compiled>,
    /// The variable's position, and what binds it. A variable's second binding must give an equal
    /// value.
    bindings: Vec<(usize, Compiled)>,
    /// The column of each variable, when all are bare columns and bound once.
    plain: Option<Vec<usize>>,
    not_null: Nulls,
    width: usize,
    /// Other atoms that must be able to bind each row as well.
    checks: Vec<Binder>,
}

impl Binder {
    pub fn new(atom: &plan::Atom, columns: &[(String, DataType)]) -> Result<Binder> {
        let mut variables: Vec<&str> = Vec::new();
        let mut bindings = Vec::new();
        for binding in &atom.bindings {
            let position = variables.iter().position(|name| *name == binding.variable).unwrap_or_else(|| {
                variables.push(&binding.variable);
                variables.len() - 1
            });
            bindings.push((position, Compiled::new(&binding.expression, columns)?));
        }
        let width = variables.len();
        let mut not_null = mask::Builder::default();
        for name in &atom.not_null {
            let position = variables.iter().position(|other| other == name).ok_or_else(|| {
                let message = format!("atom '{}' does not bind its not_null variable '{name}'", atom.name);
                KernelError::plan("CROWN-PLAN-MALFORMED", message)
            })?;
            not_null.set(position, true);
        }
        let filter = atom.filter.as_ref().map(|filter| Compiled::new(filter, columns)).transpose()?;
        let plain = if bindings.len() == width {
            bindings.iter().map(|(_, expression)| expression.is_column()).collect()
        } else {
            None
        };
        Ok(Binder { filter, bindings, plain, not_null: not_null.finish(), width, checks: Vec::new() })
    }

    /// Makes `bind` fail where `other` would, so that a row can be rejected before it gets there.
    pub fn check_for(&mut self, other: Binder) {
        if other.can_fail() {
            self.checks.push(other);
        }
    }

    pub fn width(&self) -> usize {
        self.width
    }

    /// Whether a row of the atom shows all `columns` of its source.
    pub fn is_complete(&self, columns: usize) -> bool {
        let shown = |plain: &Vec<usize>| (0..columns).all(|column| plain.contains(&column));
        self.plain.as_ref().is_some_and(shown)
    }

    /// Whether every row without NULLs is one of the atom's.
    pub fn takes_all(&self) -> bool {
        self.filter.is_none() && self.plain.is_some()
    }

    /// The column of each variable of an atom that has all columns and rows of its source, where
    /// `nullable` tells which columns may be NULL.
    pub fn keeps(&self, columns: usize, nullable: impl Fn(usize) -> bool) -> Option<&[usize]> {
        let plain = self.plain.as_deref().filter(|_| self.takes_all() && self.is_complete(columns))?;
        let drops = |(position, column): (usize, &usize)| self.not_null.has(position) && nullable(*column);
        (!plain.iter().enumerate().any(drops)).then_some(plain)
    }

    /// Writes the atom's row into `row`, for a binder that takes all rows.
    pub fn pick(&self, words: &[Word], row: &mut Vec<Word>) {
        row.extend(self.plain.iter().flatten().map(|column| words[*column]));
    }

    /// Whether binding can fail on some values (arithmetic, casts).
    pub fn can_fail(&self) -> bool {
        let own = self.filter.iter().chain(self.bindings.iter().map(|(_, expression)| expression));
        !self.checks.is_empty() || own.into_iter().any(Compiled::can_fail)
    }

    /// Makes the calls of host functions for all rows together, so that `bind` finds their results.
    pub fn prepare(&self, rows: &Chunk, interner: &Interner) {
        self.checks.iter().for_each(|check| check.prepare(rows, interner));
        let expressions = self.bindings.iter().map(|(_, expression)| expression).chain(&self.filter);
        expressions.for_each(|expression| expression.prepare(rows, interner));
    }

    /// Calls `each` with the atom's row, its NULL mask and its weight for those of the source's rows
    /// that are the atom's.
    pub fn bind_all(
        &self,
        rows: &Chunk,
        interner: &mut Interner,
        mut each: impl FnMut(&[Word], Nulls, i64),
    ) -> Result<()> {
        self.prepare(rows, interner);
        let mut row = Vec::with_capacity(self.width);
        if let Some(columns) = self.plain.as_ref().filter(|_| self.checks.is_empty() && rows.nulls.is_empty()) {
            let pick = |index: usize| {
                row.clear();
                row.extend(columns.iter().map(|column| rows.columns[*column][index]));
                each(&row, 0, rows.weights[index]);
            };
            match self.filter.as_ref().map(|filter| filter.passing(rows)) {
                None => {
                    (0..rows.len()).for_each(pick);
                    return Ok(());
                }
                Some(Some(passing)) => {
                    passing.into_iter().for_each(pick);
                    return Ok(());
                }
                Some(None) => {}
            }
        }
        let mut words = Vec::with_capacity(rows.columns.len());
        for index in 0..rows.len() {
            let nulls = rows.read(index, &mut words);
            if let Some(nulls) = self.bind(&words, nulls, &mut row, interner)? {
                each(&row, nulls, rows.weights[index]);
            }
        }
        Ok(())
    }

    /// Writes the atom's row into `row` and returns its NULL mask; `None` when the source's row is
    /// not one of the atom's.
    pub fn bind(
        &self,
        words: &[Word],
        nulls: Nulls,
        row: &mut Vec<Word>,
        interner: &mut Interner,
    ) -> Result<Option<Nulls>> {
        for check in &self.checks {
            check.bind(words, nulls, row, interner)?;
        }
        row.clear();
        if let Some(filter) = &self.filter {
            if !filter.is_true(words, nulls, interner)? {
                return Ok(None);
            }
        }
        let bound = if let Some(columns) = &self.plain {
            row.extend(columns.iter().map(|column| words[*column]));
            nulls.gather(columns.iter().copied().zip(0..))
        } else {
            let mut bound = mask::Builder::default();
            for (position, expression) in &self.bindings {
                let value = expression.evaluate(words, nulls, interner)?;
                if *position == row.len() {
                    bound.set(*position, value.is_none());
                    row.push(value.unwrap_or(0));
                } else if value.is_none() || bound.has(*position) || value != Some(row[*position]) {
                    return Ok(None);
                }
            }
            bound.finish()
        };
        Ok((!bound.meets(self.not_null)).then_some(bound))
    }
}
