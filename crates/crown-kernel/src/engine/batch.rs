//! Prepares a batch before it reaches any stage: reads it, resolves it in its sources, binds it to
//! atoms, nets and checks it.

use super::{Counters, Engine, Reader, Rejection};
use crate::arrow_in::{read_batch, Changes, Fault};
use crate::arrow_out::value_json;
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{KernelError, RefusedChange, Result};
use crate::expression::host::is_interrupted;
use crate::mask::Bits;
use crate::source::{Events, Source};
use crate::store::interner::Interner;
use crate::store::net::Net;
use arrow::array::RecordBatch;

/// What happens to an invalid change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnInvalid {
    /// The whole batch is rejected.
    Raise,
    /// The change is quarantined.
    Quarantine,
}

/// The changes of one table.
pub enum Input {
    /// Changes as Arrow record batches.
    Arrow {
        /// The table that they change.
        table: String,
        /// The changes, in order.
        batches: Vec<RecordBatch>,
    },
    /// Strings and the like are words of `values`.
    Words {
        /// The table that they change.
        table: String,
        /// The changes, in order.
        changes: Changes,
        /// The values that their words represent.
        values: Box<Interner>,
    },
}

/// What a rejected batch must restore, apart from the state.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    rejected: usize,
    counters: Counters,
}

/// Events of one table; `base` is the position of its first change in the whole call.
pub(super) struct Batch {
    pub source: usize,
    pub events: Events,
    pub base: u64,
}

/// Rows that one event gives to the atoms that read it: reused from event to event.
#[derive(Default)]
pub(super) struct AtomRows {
    rows: Vec<(Vec<Word>, Option<Nulls>)>,
    words: Vec<Word>,
}

impl AtomRows {
    /// Binds event `event` to every reader that it is meant for.
    pub fn bind(&mut self, readers: &[Reader], events: &Events, event: usize, interner: &mut Interner) -> Result<()> {
        let nulls = events.rows.read(event, &mut self.words);
        let mask = events.atoms_at(event);
        self.rows.resize_with(readers.len(), Default::default);
        for (reader, (row, bound)) in readers.iter().zip(&mut self.rows) {
            *bound =
                if mask & reader.route == 0 { None } else { reader.binder.bind(&self.words, nulls, row, interner)? };
        }
        Ok(())
    }

    /// Those of `taken` that suffice to tell whether the event's row exists: a complete one alone,
    /// or all of them.
    pub fn witnesses<'a>(&'a self, readers: &'a [Reader]) -> impl Iterator<Item = (&'a Reader, &'a [Word], Nulls)> {
        let place = |reader: &Reader| (reader.stage, reader.atom);
        let complete = self.taken(readers).find(|(reader, _, _)| reader.complete).map(|(reader, _, _)| place(reader));
        self.taken(readers).filter(move |(reader, _, _)| complete.is_none_or(|complete| place(reader) == complete))
    }

    /// The readers that take the event, with their rows.
    pub fn taken<'a>(&'a self, readers: &'a [Reader]) -> impl Iterator<Item = (&'a Reader, &'a [Word], Nulls)> {
        readers
            .iter()
            .zip(&self.rows)
            .filter_map(|(reader, (row, bound))| bound.map(|nulls| (reader, row.as_slice(), nulls)))
    }
}

impl Engine {
    /// Reads all inputs and lets their sources resolve them. On an error the sources are as they
    /// were.
    pub(super) fn resolve(&mut self, inputs: Vec<Input>, on_invalid: OnInvalid) -> Result<Vec<Batch>> {
        let mut batches = Vec::with_capacity(inputs.len());
        let mut base = 0;
        let mut read = Vec::with_capacity(inputs.len());
        for input in inputs {
            read.push(self.read(input)?);
        }
        for (source, mut changes) in read {
            let length = changes.len() as u64;
            self.readers[source].iter().for_each(|reader| reader.binder.prepare(&changes.rows, &self.interner));
            let events = if self.sources[source].has_state() {
                let readers = &self.readers[source];
                let check = |words: &[Word], nulls: Nulls, mask: u64, interner: &mut Interner| {
                    let mut row = Vec::new();
                    for reader in readers.iter().filter(|reader| reader.binder.can_fail() && mask & reader.route != 0) {
                        reader.binder.bind(words, nulls, &mut row, interner)?;
                    }
                    Ok(())
                };
                let events = self.sources[source].resolve(&mut changes, &mut self.interner, check);
                self.reject(source, base, &changes.rows, &changes.faults, on_invalid)?;
                events
            } else {
                self.reject(source, base, &changes.rows, &changes.faults, on_invalid)?;
                Events::from(changes)
            };
            batches.push(Batch { source, events, base });
            base += length;
        }
        self.counters.changes += base;
        Ok(batches)
    }

    fn read(&mut self, input: Input) -> Result<(usize, Changes)> {
        let (Input::Arrow { table, .. } | Input::Words { table, .. }) = &input;
        let position = self.source_position(table).ok_or_else(|| {
            let known: Vec<&str> = self.sources.iter().map(|source| source.name.as_str()).collect();
            let message = format!("the view does not read a table '{table}'; it reads {}", known.join(", "));
            KernelError::invalid("CROWN-CHANGE-TABLE", message)
        })?;
        let mut changes = match input {
            Input::Words { mut changes, values, .. } => {
                let Engine { sources, interner, .. } = self;
                for (bit, column) in sources[position].columns.iter().enumerate() {
                    if column.data_type.interned() {
                        let Chunk { columns, nulls, .. } = &mut changes.rows;
                        for (row, word) in columns[bit].iter_mut().enumerate() {
                            if nulls.get(row).is_none_or(|mask| !mask.has(bit)) {
                                *word = interner.intern(values.get(*word));
                            }
                        }
                    }
                }
                changes
            }
            Input::Arrow { batches, .. } => {
                let Source { name, columns, key, .. } = &self.sources[position];
                let mut changes = Changes::new(columns.len());
                for batch in &batches {
                    read_batch(name, columns, key, batch, &mut self.interner, &mut changes)?;
                }
                changes
            }
        };
        self.sources[position].check_profile(&mut changes);
        Ok((position, changes))
    }

    /// Adds the events of `range`, or with `sign` -1 their inverse, to the nets of the atoms that
    /// read them. A deletion of a row that is not there is a fault of its change, which then
    /// changes nothing.
    pub(super) fn net_events(
        &mut self,
        source: usize,
        events: &Events,
        range: std::ops::Range<usize>,
        sign: i64,
        bound: &mut AtomRows,
        faults: &mut Vec<Fault>,
    ) {
        let readers = &self.readers[source];
        for event in range {
            let weight = sign * events.rows.weights[event];
            if weight == 0 {
                continue;
            }
            if let Err(error) = bound.bind(readers, events, event, &mut self.interner) {
                faults.push(Fault { row: event, code: error.code, reason: error.message });
                continue;
            }
            // An inverse is checked as a whole: within it, deletions may precede their insertions.
            if weight < 0 && sign > 0 {
                let (nets, stages) = (&mut self.nets, &self.stages);
                let absent = bound.witnesses(readers).any(|(reader, row, nulls)| {
                    let existing = || stages[reader.stage].atom_multiplicity(reader.atom, row, nulls);
                    nets[reader.stage][reader.atom].copies(row, nulls, existing) + i128::from(weight) < 0
                });
                if absent {
                    faults.push(absent_fault(event));
                    continue;
                }
            }
            for (reader, row, nulls) in bound.taken(readers) {
                self.nets[reader.stage][reader.atom].add(row, nulls, weight);
            }
        }
    }

    /// Finds what is wrong with a batch that will then be applied one change at a time: deletions
    /// of absent rows, and rows that no atom can bind. Changes with faults get weight 0. Only the
    /// atoms that determine it are examined.
    pub(super) fn check_updates(&mut self, batches: &mut [Batch], on_invalid: OnInvalid) -> Result<()> {
        let mut bound = AtomRows::default();
        let deletes = |batch: &Batch| batch.events.rows.weights.iter().any(|weight| *weight < 0);
        // A deletion may be of what an earlier batch of its table inserts.
        let deleting: Vec<usize> = batches.iter().filter(|batch| deletes(batch)).map(|batch| batch.source).collect();
        for Batch { source, events, base } in batches {
            let can_fail = self.readers[*source].iter().any(|reader| reader.binder.can_fail());
            if self.sources[*source].has_state() || !(can_fail || deleting.contains(source)) {
                continue;
            }
            let mut faults = Vec::new();
            for event in 0..events.rows.len() {
                let weight = events.rows.weights[event];
                let readers = &self.readers[*source];
                if weight == 0 {
                    continue;
                }
                if let Err(error) = bound.bind(readers, events, event, &mut self.interner) {
                    faults.push(Fault { row: event, code: error.code, reason: error.message });
                    continue;
                }
                let (nets, stages) = (&mut self.nets, &self.stages);
                let mut checked = bound.witnesses(readers).map(|(reader, row, nulls)| {
                    let net = &mut nets[reader.stage][reader.atom];
                    let existing = || stages[reader.stage].atom_multiplicity(reader.atom, row, nulls);
                    weight > 0 || net.copies(row, nulls, existing) + i128::from(weight) >= 0
                });
                if checked.all(|present| present) {
                    drop(checked);
                    for (reader, row, nulls) in bound.witnesses(readers) {
                        nets[reader.stage][reader.atom].add(row, nulls, weight);
                    }
                } else {
                    faults.push(absent_fault(event));
                }
            }
            self.reject(*source, *base, &events.rows, &faults, on_invalid)?;
            faults.iter().for_each(|fault| events.rows.weights[fault.row] = 0);
        }
        self.clear_nets();
        Ok(())
    }

    /// Quarantines invalid changes, or rejects the batch for the first of them.
    pub(super) fn reject(
        &mut self,
        source: usize,
        base: u64,
        rows: &Chunk,
        faults: &[Fault],
        on_invalid: OnInvalid,
    ) -> Result<()> {
        for fault in faults {
            let source = &self.sources[source];
            let row = row_json(source, rows, fault.row, &self.interner);
            if on_invalid == OnInvalid::Raise || is_interrupted() {
                let (table, row_number) = (source.name.clone(), fault.row as u64);
                let reason = format!("{}; the row is {row}", fault.reason);
                let change = RefusedChange { table, row: row_number, position: base + row_number, reason };
                return Err(KernelError::refused(fault.code, change));
            }
            self.counters.rejects += 1;
            let (table, position) = (source.name.clone(), fault.row as u64);
            let reason = fault.reason.clone();
            self.rejected.push(Rejection { table, position, code: fault.code, reason, row });
        }
        Ok(())
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { rejected: self.rejected.len(), counters: self.counters }
    }

    /// Leaves everything as it was before the running batch; no stage was touched.
    pub(super) fn abandon(&mut self, mark: Mark) {
        self.rejected.truncate(mark.rejected);
        self.counters = mark.counters;
        for source in &mut self.sources {
            source.undo(&mut self.interner);
        }
        self.clear_nets();
        self.interner.sweep();
    }

    pub(super) fn clear_nets(&mut self) {
        self.nets.iter_mut().flatten().for_each(Net::clear);
    }
}

pub(super) fn absent_fault(row: usize) -> Fault {
    Fault { row, code: "CROWN-CHANGE-ABSENT", reason: "the deleted row is not in the table".into() }
}

fn row_json(source: &Source, rows: &Chunk, row: usize, interner: &Interner) -> String {
    let nulls = rows.nulls_at(row);
    let fields = source.columns.iter().enumerate().map(|(position, column)| {
        let null = nulls.has(position);
        let value = value_json(rows.columns[position][row], null, column.data_type, interner);
        (column.name.clone(), value)
    });
    serde_json::Value::Object(fields.collect()).to_string()
}
