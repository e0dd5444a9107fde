//! A bag of a cyclic query: the join of its atoms, by worst-case-optimal delta joins.
//!
//! The law: a join is linear in each atom, so a change of one atom's row changes the result by the
//! join of that row with the other atoms as they are, times the change. Several atoms over one
//! table are changed one after the other.
//!
//! No pairwise join is ever materialised: the state is the atoms' rows and indexes on them. A
//! change binds its variables; the other variables are then bound one by one, each by scanning the
//! *smallest* of the lists that restrict it and probing the others (see `delta_join`).

mod delta_join;
pub(crate) mod relation;

#[cfg(test)]
mod tests;

use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{KernelError, Result};
use crate::mask::{self, Bits};
use crate::plan;
use crate::store::interner::Interner;
use crate::types::DataType;
use delta_join::{BagVariables, Compiler, DeltaJoin, JoinStep, Participant, Projection};
use relation::Relation;

pub struct Bag {
    columns: Vec<(String, DataType)>,
    outputs: Vec<usize>,
    shape: BagVariables,
    relations: Vec<Relation>,
    projections: Vec<Projection>,
    delta_joins: Vec<DeltaJoin>,
    /// Per atom: the columns that other atoms share, in which NULL must not come.
    join_columns: Vec<Nulls>,
    values: Vec<Word>,
    work: u64,
}

/// Figures of a bag's state; `work` counts candidates visited and rows probed since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BagStats {
    pub rows: usize,
    pub keys: usize,
    pub bytes: usize,
    pub work: u64,
}

impl Bag {
    pub fn new(stage: &plan::BagStage) -> Result<Bag> {
        let shape = BagVariables::new(stage)?;
        let mut outputs = Vec::new();
        for name in &stage.outputs {
            let variable = shape.names.iter().position(|other| other == name).ok_or_else(|| {
                KernelError::plan(
                    "CROWN-PLAN-MALFORMED",
                    format!("bag '{}' has no variable '{name}' to show", stage.id),
                )
            })?;
            outputs.push(variable);
        }
        let columns = outputs.iter().map(|variable| (shape.names[*variable].clone(), shape.types[*variable]));
        let mut compiler = Compiler::new(&shape);
        let delta_joins = (0..shape.atoms.len()).map(|atom| compiler.delta_join(atom, &outputs)).collect();
        let Compiler { relations, projections, .. } = compiler;
        let join_columns =
            shape.atoms.iter().map(|atom| mask::of((0..atom.len()).filter(|column| shape.joins[atom[*column]])));
        Ok(Bag {
            columns: columns.collect(),
            outputs,
            join_columns: join_columns.collect(),
            values: vec![0; shape.names.len()],
            shape,
            relations,
            projections,
            delta_joins,
            work: 0,
        })
    }

    pub fn columns(&self) -> &[(String, DataType)] {
        &self.columns
    }

    /// How often an atom has a row (over its variables, in the order of its bindings).
    pub fn atom_multiplicity(&self, atom: usize, words: &[Word], nulls: Nulls) -> i64 {
        self.relations[atom].count(words, nulls)
    }

    /// Changes an atom's row and appends what this changes in the bag: rows over the outputs with
    /// signed multiplicity. Where outputs leave variables out, a row may come several times. On an
    /// error nothing has changed.
    pub fn apply(
        &mut self,
        atom: usize,
        words: &[Word],
        nulls: Nulls,
        weight: i64,
        interner: &mut Interner,
        out: &mut Chunk,
    ) -> Result<()> {
        if weight == 0 {
            return Ok(());
        }
        if nulls.meets(self.join_columns[atom]) {
            let message = format!("atom {atom} of a bag got a NULL in a join variable; the plan must exclude it");
            return Err(KernelError::plan("CROWN-PLAN-MALFORMED", message));
        }
        let count = self.relations[atom].count(words, nulls);
        if count.checked_add(weight).ok_or_else(overflow)? < 0 {
            return Err(KernelError::invalid("CROWN-CHANGE-ABSENT", "a deleted row is not in the table"));
        }
        self.join(atom, words, nulls, weight, out)?;
        self.relations[atom].add(words, nulls, weight, interner);
        // Projections only tell whether there is a row: they count rows, not copies, so that they
        // can't overflow.
        let rows = i64::from(count + weight > 0) - i64::from(count > 0);
        if rows == 0 {
            return Ok(());
        }
        for relation in self.shape.atoms.len()..self.relations.len() {
            let projection = &self.projections[relation];
            if projection.atom == atom {
                self.values.clear();
                self.values.extend(projection.columns.iter().map(|column| words[*column]));
                self.relations[relation].add(&self.values, 0, rows, interner);
            }
        }
        Ok(())
    }

    /// Appends the join of one row of an atom with all other atoms; nothing on an error.
    fn join(&mut self, atom: usize, words: &[Word], nulls: Nulls, weight: i64, out: &mut Chunk) -> Result<()> {
        let start = out.len();
        let mut values = std::mem::take(&mut self.values);
        values.clear();
        values.resize(self.shape.names.len(), 0);
        let value_nulls =
            nulls.gather(self.shape.atoms[atom].iter().enumerate().map(|(column, variable)| (column, *variable)));
        for (column, variable) in self.shape.atoms[atom].iter().enumerate() {
            values[*variable] = words[column];
        }
        let delta_join = &self.delta_joins[atom];
        let mut run = Run {
            relations: &self.relations,
            outputs: &self.outputs,
            steps: &delta_join.steps,
            shown: delta_join.shown,
            sum: 0,
            values,
            nulls: value_nulls,
            row: Vec::new(),
            work: 0,
            overflowed: false,
            out: &mut *out,
        };
        let mut product = weight;
        for (relation, row) in &delta_join.covered {
            let count = run.probe(*relation, row);
            product = run.multiply(product, count);
        }
        if product != 0 {
            run.step(0, product);
        }
        let Run { values, work, overflowed, .. } = run;
        self.values = values;
        self.work += work;
        if overflowed {
            out.columns.iter_mut().for_each(|column| column.truncate(start));
            out.nulls.truncate(start);
            out.weights.truncate(start);
            return Err(overflow());
        }
        Ok(())
    }

    /// Appends the join of the rows `start..start + limit` of the first atom with all others, and
    /// returns the next start: from 0 to `atom_len(0)` this is the whole bag.
    #[cfg(test)]
    pub fn read(&mut self, start: usize, limit: usize, out: &mut Chunk) -> Result<usize> {
        let end = self.atom_len(0).min(start.saturating_add(limit));
        let mut words = Vec::new();
        for position in start..end {
            let (row, nulls) = self.relations[0].row(position);
            words.clear();
            words.extend_from_slice(row);
            self.join(0, &words, nulls, self.relations[0].count_at(position), out)?;
        }
        Ok(end)
    }

    /// Distinct rows of an atom.
    #[cfg(test)]
    pub fn atom_len(&self, atom: usize) -> usize {
        self.relations[atom].len()
    }

    /// The distinct rows of an atom with their multiplicities.
    pub fn atom_rows(&self, atom: usize) -> impl Iterator<Item = (&[Word], Nulls, i64)> {
        let relation = &self.relations[atom];
        (0..relation.len()).map(|position| {
            let (words, nulls) = relation.row(position);
            (words, nulls, relation.count_at(position))
        })
    }

    pub fn stats(&self) -> BagStats {
        BagStats {
            rows: self.relations.iter().map(Relation::len).sum(),
            keys: self.relations.iter().map(Relation::keys).sum(),
            bytes: self.relations.iter().map(Relation::bytes).sum(),
            work: self.work,
        }
    }
}

/// One delta join under way.
struct Run<'a> {
    relations: &'a [Relation],
    outputs: &'a [usize],
    steps: &'a [JoinStep],
    shown: usize,
    /// What the steps from `shown` on add up to for the values bound before.
    sum: i64,
    values: Vec<Word>,
    nulls: Nulls,
    row: Vec<Word>,
    work: u64,
    overflowed: bool,
    out: &'a mut Chunk,
}

impl<'a> Run<'a> {
    fn step(&mut self, number: usize, weight: i64) {
        if number < self.shown {
            return self.bind(number, weight);
        }
        if number == self.shown {
            self.sum = 0;
        }
        self.bind(number, weight);
        if number == self.shown && self.sum != 0 {
            self.emit(self.sum);
        }
    }

    fn bind(&mut self, number: usize, weight: i64) {
        match self.steps.get(number) {
            None => {
                let (sum, overflowed) = self.sum.overflowing_add(weight);
                self.sum = sum;
                self.overflowed |= overflowed;
            }
            Some(JoinStep::Extend { variable, participants }) => self.extend(number, *variable, participants, weight),
            Some(JoinStep::Expand { participant }) => self.expand(number, participant, weight),
        }
    }

    fn extend(&mut self, number: usize, variable: usize, participants: &'a [Participant], weight: i64) {
        let mut smallest: (usize, &[_]) = (0, &[]);
        for (position, participant) in participants.iter().enumerate() {
            let list = self.candidates(participant);
            if list.is_empty() {
                return;
            }
            if position == 0 || list.len() < smallest.1.len() {
                smallest = (position, list);
            }
        }
        let (chosen, list) = smallest;
        let (relation, whole) = (&self.relations[participants[chosen].relation], participants[chosen].whole);
        self.work += list.len() as u64;
        'candidates: for candidate in list {
            self.values[variable] = candidate.word;
            let mut product = weight;
            if whole {
                product = self.multiply(weight, relation.count_at(candidate.row as usize));
            }
            for (position, participant) in participants.iter().enumerate() {
                if position == chosen {
                    continue;
                }
                let count = self.probe(participant.relation, &participant.row);
                if count == 0 {
                    continue 'candidates;
                }
                if participant.whole {
                    product = self.multiply(product, count);
                }
            }
            self.step(number + 1, product);
        }
    }

    fn expand(&mut self, number: usize, participant: &'a Participant, weight: i64) {
        let relation = &self.relations[participant.relation];
        let before = self.nulls;
        for candidate in self.candidates(participant) {
            self.work += 1;
            let (words, nulls) = relation.row(candidate.row as usize);
            self.nulls = before.union(nulls.gather((0..).zip(participant.row.iter().copied())));
            for (column, variable) in participant.row.iter().enumerate() {
                self.values[*variable] = words[column];
            }
            let product = self.multiply(weight, relation.count_at(candidate.row as usize));
            self.step(number + 1, product);
        }
        self.nulls = before;
    }

    fn candidates(&mut self, participant: &Participant) -> &'a [relation::Candidate] {
        self.row.clear();
        self.row.extend(participant.key.iter().map(|variable| self.values[*variable]));
        self.relations[participant.relation].candidates(participant.index, &self.row)
    }

    fn probe(&mut self, relation: usize, row: &[usize]) -> i64 {
        self.work += 1;
        self.row.clear();
        self.row.extend(row.iter().map(|variable| self.values[*variable]));
        self.relations[relation].count(&self.row, 0)
    }

    fn multiply(&mut self, left: i64, right: i64) -> i64 {
        let (product, overflowed) = left.overflowing_mul(right);
        self.overflowed |= overflowed;
        product
    }

    fn emit(&mut self, weight: i64) {
        self.row.clear();
        self.row.extend(self.outputs.iter().map(|variable| self.values[*variable]));
        let nulls = self.nulls.gather(self.outputs.iter().copied().zip(0..));
        self.out.push(&self.row, nulls, weight);
    }
}

fn overflow() -> KernelError {
    KernelError::invalid("CROWN-OVERFLOW", "a multiplicity does not fit into an int64")
}
