//! The changes of one table netted before they are bound to atoms.
//!
//! A table that a query reads several times sends each change to several atoms. If every row
//! reaches an atom with all columns of the table, that atom knows whether the row exists; if a
//! source has resolved keys or a window, the row is known to exist. So it is enough to net once, by
//! rows of the table, and rows that are inserted and deleted within a batch are never bound. Memory
//! is prefetched one block of changes ahead, as in `tree::prefetch`.

use super::batch::{absent_fault, Batch};
use super::stage::RunningStage;
use super::{Engine, Reader};
use crate::arrow_in::Fault;
use crate::chunk::Word;
use crate::error::Result;
use crate::source::Events;
use crate::store::net::Net;

/// Changes that are looked ahead for together.
const BLOCK: usize = 16;

/// The net of a table, and for each row of it the mask of the atoms that it is meant for.
pub(super) struct TableNet {
    net: Net,
    masks: Vec<u64>,
}

/// An event and what is looked ahead for it.
#[derive(Clone, Copy)]
struct Coming<'a> {
    event: usize,
    weight: i64,
    mask: u64,
    /// In the net.
    hash: u64,
    /// The atom that knows whether the row exists, where its row begins, that row's hash, and
    /// whether it will be looked up.
    witness: &'a Reader,
    picked: usize,
    found: u64,
    looked_up: bool,
}

impl TableNet {
    /// Adds a row that is not there, with weight 0.
    #[inline(always)]
    fn insert(&mut self, coming: &Coming, row: &[Word]) -> usize {
        self.masks.push(coming.mask);
        self.net.insert(coming.hash, row, 0)
    }

    /// Adds events that a source has resolved: deleted rows existed, and no atom fails to bind
    /// them.
    pub fn add_resolved(&mut self, events: &Events) {
        let mut row = Vec::new();
        for event in 0..events.rows.len() {
            let nulls = events.rows.read(event, &mut row);
            let hash = Net::hash(&row, nulls);
            let position = self.net.find(hash, &row, nulls).unwrap_or_else(|| {
                self.masks.push(events.atoms_at(event));
                self.net.insert(hash, &row, nulls)
            });
            self.net.add_at(position, events.rows.weights[event]);
        }
    }
}

/// A block of events, with buffers that are reused for the next one.
struct Block<'a> {
    coming: Vec<Coming<'a>>,
    width: usize,
    /// The rows of the events, and those of their witnesses.
    words: Vec<Word>,
    picked: Vec<Word>,
}

impl<'a> Block<'a> {
    fn new(width: usize) -> Block<'a> {
        Block {
            coming: Vec::with_capacity(BLOCK),
            width,
            words: Vec::with_capacity(BLOCK * width),
            picked: Vec::with_capacity(BLOCK * width),
        }
    }

    #[inline(always)]
    fn row(&self, index: usize) -> &[Word] {
        &self.words[index * self.width..(index + 1) * self.width]
    }

    /// Takes the events from `start` on, and prefetches what netting them reads.
    #[inline(always)]
    fn look_ahead(
        &mut self,
        readers: &'a [Reader],
        stages: &[RunningStage],
        events: &Events,
        start: usize,
        counted: bool,
        net: &Net,
    ) {
        let Block { coming: block, words, picked, .. } = self;
        block.clear();
        words.clear();
        picked.clear();
        for event in start..events.rows.len().min(start + BLOCK) {
            let weight = events.rows.weights[event];
            let mask = events.atoms_at(event);
            let mut reached = readers.iter().filter(|reader| mask & reader.route != 0);
            let witness = reached.find(|reader| reader.is_witness()).expect("`table_nets` has seen to it");
            let from = (words.len(), picked.len());
            words.extend(events.rows.columns.iter().map(|column| column[event]));
            witness.binder.pick(&words[from.0..], picked);
            let hash = Net::hash(&words[from.0..], 0);
            net.prefetch_slot(hash);
            let looked_up = counted || weight < 0;
            let row = &picked[from.1..];
            let found = if looked_up { stages[witness.stage].prefetch_slot(witness.atom, row) } else { 0 };
            block.push(Coming { event, weight, mask, hash, witness, picked: from.1, found, looked_up });
        }
        for Coming { hash, witness, found, looked_up, .. } in block.iter() {
            net.prefetch_row(*hash);
            if *looked_up {
                stages[witness.stage].prefetch_row(witness.atom, *found);
            }
        }
    }

    /// How many copies of the row at a position of the net there are after the event.
    #[inline(always)]
    fn copies(&self, coming: &Coming, position: usize, stages: &[RunningStage], net: &mut Net) -> i128 {
        let Coming { weight, witness, picked, .. } = *coming;
        let row = &self.picked[picked..][..witness.binder.width()];
        let existing = || stages[witness.stage].atom_multiplicity(witness.atom, row, 0);
        net.copies_at(position, existing) + i128::from(weight)
    }
}

impl Engine {
    /// A net for each table whose changes in `batches` can be netted as such: each row reaches an
    /// atom that has all its columns, or is resolved already.
    pub(super) fn table_nets(&self, batches: &[Batch]) -> Vec<Option<TableNet>> {
        let net = |source: usize| {
            let complete = self.readers[source].iter().filter(|reader| reader.is_witness());
            let routes = complete.fold(0, |routes, reader| routes | reader.route);
            let reached = |batch: &Batch| {
                let Batch { events, .. } = batch;
                events.rows.nulls.is_empty() && routes != 0 && events.atoms.iter().all(|mask| mask & routes != 0)
            };
            let own = |batch: &&Batch| batch.source == source;
            let whole = if self.sources[source].has_state() {
                // (With a single atom there is nothing to share.)
                let meant_for_all = |batch: &Batch| batch.events.atoms.iter().all(|mask| *mask == u64::MAX);
                let readers = &self.readers[source];
                readers.len() > 1
                    && !readers.iter().any(|reader| reader.binder.can_fail())
                    && batches.iter().filter(own).all(meant_for_all)
            } else {
                batches.iter().filter(own).all(reached)
            };
            whole.then(|| {
                let mut net = Net::new(self.sources[source].columns.len());
                // A deleted row existed before, or is inserted in the same batch.
                let coming = |batch: &Batch| batch.events.rows.weights.iter().filter(|weight| **weight > 0).count();
                net.reserve(batches.iter().filter(own).map(coming).sum());
                TableNet { net, masks: Vec::new() }
            })
        };
        (0..self.sources.len()).map(net).collect()
    }

    /// Adds events to the net of their table. Faults are as in `net_events`.
    pub(super) fn net_table(&mut self, source: usize, events: &Events, table: &mut TableNet, faults: &mut Vec<Fault>) {
        let Engine { readers, stages, interner, .. } = self;
        let readers = &readers[source];
        let failing: Vec<&Reader> = readers.iter().filter(|reader| reader.binder.can_fail()).collect();
        let mut bound = Vec::new();
        // A second copy of a row matters to some stages; a deletion without a row to all.
        let counted = readers.iter().any(|reader| stages[reader.stage].may_lose_net());
        let mut block = Block::new(events.rows.columns.len());
        for start in (0..events.rows.len()).step_by(BLOCK) {
            block.look_ahead(readers, stages, events, start, counted, &table.net);
            for (index, coming) in block.coming.iter().enumerate().filter(|(_, coming)| coming.weight != 0) {
                let row = block.row(index);
                let known = table.net.find(coming.hash, row, 0);
                if known.is_none() {
                    let mut wanted = failing.iter().filter(|reader| coming.mask & reader.route != 0);
                    let failed = wanted.find_map(|reader| reader.binder.bind(row, 0, &mut bound, interner).err());
                    if let Some(error) = failed {
                        faults.push(Fault { row: coming.event, code: error.code, reason: error.message });
                        continue;
                    }
                }
                let position = known.unwrap_or_else(|| table.insert(coming, row));
                if coming.looked_up && block.copies(coming, position, stages, &mut table.net) < 0 {
                    faults.push(absent_fault(coming.event));
                    continue;
                }
                table.net.add_at(position, coming.weight);
            }
        }
    }

    /// Gives the net of a table to the atoms.
    pub(super) fn bind_table(&mut self, source: usize, table: &TableNet) -> Result<()> {
        table.net.check()?;
        let Engine { readers, interner, nets, .. } = self;
        let mut row = Vec::new();
        // Atom by atom, so that the memory of one net is written at a time.
        for reader in &readers[source] {
            let net = &mut nets[reader.stage][reader.atom];
            if reader.is_witness() {
                net.reserve_pushed(table.net.len());
            }
            for ((words, nulls, weight, before), mask) in table.net.all_rows().zip(&table.masks) {
                if weight == 0 || mask & reader.route == 0 {
                    continue;
                }
                // It did not fail when the row came first.
                if let Ok(Some(nulls)) = reader.binder.bind(words, nulls, &mut row, interner) {
                    if reader.complete {
                        net.push(&row, nulls, weight, before);
                    } else {
                        net.add(&row, nulls, weight);
                    }
                }
            }
        }
        Ok(())
    }
}
