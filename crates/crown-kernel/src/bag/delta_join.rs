//! How a change of one atom is joined with the others, computed once per atom.
//!
//! The variables of the changed atom are bound first. Then follows one join variable at a time:
//! always the one that most atoms can restrict by the variables already bound (ties by the plan's
//! order), so that lists are intersected as early as possible. Variables of a single atom are bound
//! last, by scanning its rows.

use super::relation::Relation;
use crate::error::{KernelError, Result};
use crate::plan;
use crate::types::DataType;

/// Which relation a projection of an atom is, and the variables of its columns.
pub(super) struct Projection {
    pub atom: usize,
    pub variables: Vec<usize>,
    /// The atom's columns it keeps.
    pub columns: Vec<usize>,
}

/// One atom's part in binding a variable.
pub(super) struct Participant {
    pub relation: usize,
    pub index: usize,
    /// The variables that make the index's key.
    pub key: Vec<usize>,
    /// The variables that make a row of the relation.
    pub row: Vec<usize>,
    /// Whether the atom is then bound as a whole, so that its count is a factor of the result's.
    pub whole: bool,
}

pub(super) enum JoinStep {
    /// Binds a variable to each value that all participants have.
    Extend { variable: usize, participants: Vec<Participant> },
    /// Binds an atom's own variables by running through the rows that have its join variables.
    Expand { participant: Participant },
}

#[derive(Default)]
pub(super) struct DeltaJoin {
    /// Atoms that the changed one covers: (relation, variables of its row).
    pub covered: Vec<(usize, Vec<usize>)>,
    pub steps: Vec<JoinStep>,
    /// From this step on no variable is shown, so the results of these steps are only added up.
    pub shown: usize,
}

/// The variables of a bag's atoms, by number.
pub(super) struct BagVariables {
    pub names: Vec<String>,
    pub types: Vec<DataType>,
    /// Per atom, the variable of each column.
    pub atoms: Vec<Vec<usize>>,
    /// By variable: whether several atoms have it.
    pub joins: Vec<bool>,
    /// Join variables in the plan's order.
    order: Vec<usize>,
}

impl BagVariables {
    pub fn new(stage: &plan::BagStage) -> Result<BagVariables> {
        let malformed = |what: String| KernelError::plan("CROWN-PLAN-MALFORMED", format!("bag '{}': {what}", stage.id));
        let names: Vec<String> = stage.variables.iter().map(|variable| variable.name.clone()).collect();
        let types = stage.variables.iter().map(|variable| DataType::parse(&variable.data_type));
        let types = types.collect::<Result<Vec<_>>>()?;
        if stage.atoms.is_empty() {
            return Err(malformed("it needs an atom".into()));
        }
        let number = |name: &String| {
            names.iter().position(|other| other == name).ok_or_else(|| malformed(format!("unknown variable '{name}'")))
        };
        let mut atoms: Vec<Vec<usize>> = Vec::new();
        for atom in &stage.atoms {
            let mut variables = Vec::new();
            for binding in &atom.bindings {
                let variable = number(&binding.variable)?;
                if !variables.contains(&variable) {
                    variables.push(variable);
                }
            }
            atoms.push(variables);
        }
        let uses = |variable| atoms.iter().filter(|atom| atom.contains(&variable)).count();
        if let Some(unused) = (0..names.len()).find(|variable| uses(*variable) == 0) {
            return Err(malformed(format!("no atom has the variable '{}'", names[unused])));
        }
        let joins: Vec<bool> = (0..names.len()).map(|variable| uses(variable) > 1).collect();
        let mut order = stage.order.iter().map(number).collect::<Result<Vec<_>>>()?;
        order.extend(0..names.len());
        order.retain(|variable| joins[*variable]);
        Ok(BagVariables { names, types, atoms, joins, order })
    }
}

/// Programs and the relations with the indexes that they need; relation i is atom i for the first
/// ones.
pub(super) struct Compiler<'a> {
    shape: &'a BagVariables,
    pub relations: Vec<Relation>,
    pub projections: Vec<Projection>,
}

impl Compiler<'_> {
    pub fn new(shape: &BagVariables) -> Compiler<'_> {
        let mut compiler = Compiler { shape, relations: Vec::new(), projections: Vec::new() };
        for (atom, variables) in shape.atoms.iter().enumerate() {
            compiler.relations.push(Relation::new(variables.iter().map(|variable| shape.types[*variable])));
            let columns = (0..variables.len()).collect();
            compiler.projections.push(Projection { atom, variables: variables.clone(), columns });
        }
        compiler
    }

    /// How a change of the atom `changed` is joined, when the variables `outputs` are shown.
    pub fn delta_join(&mut self, changed: usize, outputs: &[usize]) -> DeltaJoin {
        let shape = self.shape;
        let mut delta_join = DeltaJoin::default();
        let mut bound: Vec<bool> = vec![false; shape.names.len()];
        shape.atoms[changed].iter().for_each(|variable| bound[*variable] = true);
        let others: Vec<usize> = (0..shape.atoms.len()).filter(|atom| *atom != changed).collect();
        for atom in &others {
            if shape.atoms[*atom].iter().all(|variable| bound[*variable]) {
                delta_join.covered.push((*atom, shape.atoms[*atom].clone()));
            }
        }
        while let Some(variable) = self.next_variable(&others, &bound) {
            delta_join.steps.push(self.extend(variable, &others, &bound));
            bound[variable] = true;
        }
        for atom in others {
            if shape.atoms[atom].iter().any(|variable| !bound[*variable]) {
                let participant = self.participant(atom, shape.atoms[atom].clone(), &bound, None);
                delta_join.steps.push(JoinStep::Expand { participant });
            }
        }
        let binds_output = |step: &JoinStep| match step {
            JoinStep::Extend { variable, .. } => outputs.contains(variable),
            JoinStep::Expand { participant } => {
                participant.row.iter().any(|variable| !participant.key.contains(variable) && outputs.contains(variable))
            }
        };
        delta_join.shown = delta_join.steps.iter().rposition(binds_output).map_or(0, |last| last + 1);
        delta_join
    }

    fn next_variable(&self, others: &[usize], bound: &[bool]) -> Option<usize> {
        let free = self.shape.order.iter().copied().filter(|variable| !bound[*variable]);
        let restricting =
            |variable: usize| others.iter().filter(|atom| self.shape.restricts(**atom, variable, bound)).count();
        // `min_by_key` keeps the first of equals, so ties go by the plan's order.
        free.min_by_key(|variable| std::cmp::Reverse(restricting(*variable)))
    }

    fn extend(&mut self, variable: usize, others: &[usize], bound: &[bool]) -> JoinStep {
        let shape = self.shape;
        let with: Vec<usize> = others.iter().copied().filter(|atom| shape.atoms[*atom].contains(&variable)).collect();
        let restricting: Vec<usize> =
            with.iter().copied().filter(|atom| shape.restricts(*atom, variable, bound)).collect();
        // An atom of which nothing is bound yet restricts little; it gets its turn with its next
        // variable.
        let taken = if restricting.is_empty() { with } else { restricting };
        let participants = taken.into_iter().map(|atom| {
            let kept = |other: &usize| bound[*other] || *other == variable;
            let variables: Vec<usize> = shape.atoms[atom].iter().copied().filter(kept).collect();
            self.participant(atom, variables, bound, Some(variable))
        });
        JoinStep::Extend { variable, participants: participants.collect() }
    }

    fn participant(&mut self, atom: usize, variables: Vec<usize>, bound: &[bool], value: Option<usize>) -> Participant {
        let relation = self.projection(atom, variables);
        let row = self.projections[relation].variables.clone();
        let key_columns: Vec<usize> = (0..row.len()).filter(|column| bound[row[*column]]).collect();
        let value = value.map(|value| row.iter().position(|variable| *variable == value).expect("it is kept"));
        Participant {
            relation,
            key: key_columns.iter().map(|column| row[*column]).collect(),
            index: self.relations[relation].add_index(key_columns, value),
            whole: relation == atom,
            row,
        }
    }

    fn projection(&mut self, atom: usize, variables: Vec<usize>) -> usize {
        let same = |known: &Projection| known.atom == atom && known.variables == variables;
        self.projections.iter().position(same).unwrap_or_else(|| {
            let own = &self.shape.atoms[atom];
            let column = |variable: &usize| own.iter().position(|other| other == variable).expect("a subset");
            let columns = variables.iter().map(column).collect();
            // The atom itself holds the words, so the projection need not retain them.
            self.relations.push(Relation::new(variables.iter().map(|_| DataType::Int64)));
            self.projections.push(Projection { atom, variables, columns });
            self.projections.len() - 1
        })
    }
}

impl BagVariables {
    /// Whether an atom limits the values of a variable by others that are bound, or has no other
    /// join variable.
    fn restricts(&self, atom: usize, variable: usize, bound: &[bool]) -> bool {
        let variables = &self.atoms[atom];
        variables.contains(&variable)
            && (variables.iter().any(|other| bound[*other])
                || variables.iter().all(|other| *other == variable || !self.joins[*other]))
    }
}
