//! Save and load: the rows of every atom over a table, and what the sources keep.
//!
//! Everything else is rebuilt from these in linear time. A saved state is a list of Arrow IPC
//! streams of about 1 MB: first a header, whose metadata says which plan it belongs to and what
//! follows, then the sections' rows.

use super::apply::negated;
use super::build::atoms;
use super::read::read_stage;
use super::stage::{RunningStage, State};
use super::Engine;
use crate::arrow_in::{read_batch, Changes, InputColumn, ATOMS, MULTIPLICITY};
use crate::arrow_out::{array, arrow_type};
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{KernelError, Result};
use crate::mask::Bits;
use crate::plan::{self, Plan};
use crate::store::hash::stable_hash_bytes;
use crate::store::interner::Interner;
use crate::store::net::net_chunks;
use crate::store::pool::ColumnPool;
use crate::tree::AtomChange;
use crate::types::DataType;
use arrow::array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
use arrow::datatypes::{DataType as ArrowType, Field, Schema};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

const CHUNK_BYTES: usize = 1 << 20;
const HEADER: &str = "crown";
/// Of what `save` writes. Format 1 differs in the fingerprint, which was that of the whole plan.
const FORMAT: u32 = 2;
const OLDEST: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
    /// Of what the rows mean.
    fingerprint: u64,
    /// Whether the rows that the view had from the start were shown.
    started: bool,
    /// The views of which they were not, where there are several.
    #[serde(default)]
    waiting: Vec<String>,
    atoms: Vec<Section>,
    tables: Vec<Section>,
    /// The hash of each further chunk.
    chunks: Vec<u64>,
}

/// What every format of the header has.
#[derive(Deserialize)]
struct Numbered {
    format: u32,
}

#[derive(Serialize, Deserialize)]
struct Section {
    /// A table's position, or a stage's and an atom's in the plan that wrote it.
    place: (usize, usize),
    chunks: usize,
    rows: u64,
    newest: Option<i64>,
    late: u64,
}

impl Section {
    fn check_rows(&self, found: u64) -> Result<()> {
        if found == self.rows {
            return Ok(());
        }
        Err(corrupt(format!("a section has {found} rows instead of {}", self.rows)))
    }
}

fn corrupt(why: impl std::fmt::Display) -> KernelError {
    KernelError::state("CROWN-STATE-CORRUPT", format!("the saved state can't be read: {why}"))
}

/// A fingerprint of what the saved rows mean: the tables, and for each use of a table which of its
/// rows and values it stores. It does not cover the shape of trees, the names of variables and
/// stages, or what later stages compute, because all of that is rebuilt.
fn fingerprint(plan: &Plan) -> u64 {
    let tables = plan.tables.iter().map(|t| (&t.name, &t.columns, &t.primary_key, &t.window));
    let uses = plan.tables.iter().flat_map(|table| {
        let all = plan.stages.iter().flat_map(atoms);
        all.filter(|atom| atom.source == table.name).map(|atom| {
            let names = variables(atom);
            let place = |name: &str| names.iter().position(|known| *known == name);
            let bindings: Vec<_> = atom.bindings.iter().map(|b| (place(&b.variable), &b.expression)).collect();
            let not_null: Vec<_> = atom.not_null.iter().map(|name| place(name)).collect();
            (&atom.source, bindings, &atom.filter, not_null)
        })
    });
    let meaning = (tables.collect::<Vec<_>>(), uses.collect::<Vec<_>>());
    stable_hash_bytes(&serde_json::to_vec(&meaning).unwrap_or_default())
}

/// An atom's distinct variables, in order.
fn variables(atom: &plan::Atom) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for binding in &atom.bindings {
        if !names.contains(&&*binding.variable) {
            names.push(&binding.variable);
        }
    }
    names
}

/// The types of an atom's row: its distinct variables, in order.
fn atom_types(stage: &plan::Stage, atom: &plan::Atom) -> Result<Vec<DataType>> {
    let known = match stage {
        plan::Stage::Tree(tree) => &tree.variables,
        plan::Stage::Bag(bag) => &bag.variables,
        _ => return Ok(Vec::new()),
    };
    let find = |name: &&str| {
        let variable = known.iter().find(|variable| variable.name == **name);
        let variable = variable.ok_or_else(|| KernelError::plan("CROWN-PLAN-MALFORMED", format!("no '{name}'")))?;
        DataType::parse(&variable.data_type)
    };
    variables(atom).iter().map(find).collect()
}

fn columns(types: &[DataType]) -> Vec<InputColumn> {
    let column = |(position, data_type): (usize, &DataType)| InputColumn {
        name: format!("c{position}"),
        data_type: *data_type,
        nullable: true,
    };
    types.iter().enumerate().map(column).collect()
}

/// Rows of one section on their way into chunks.
struct SectionWriter<'a> {
    types: Vec<DataType>,
    with_atoms: bool,
    rows: Chunk,
    masks: Vec<u64>,
    bytes: usize,
    total: u64,
    chunks: Vec<Vec<u8>>,
    interner: &'a Interner,
}

impl<'a> SectionWriter<'a> {
    fn new(types: Vec<DataType>, with_atoms: bool, interner: &'a Interner) -> Self {
        let (rows, masks) = (Chunk::new(types.len()), Vec::new());
        SectionWriter { types, with_atoms, rows, masks, bytes: 0, total: 0, chunks: Vec::new(), interner }
    }

    fn push(&mut self, words: &[Word], nulls: Nulls, mask: u64, count: i64) -> Result<()> {
        self.rows.push(words, nulls, count);
        if self.with_atoms {
            self.masks.push(mask);
        }
        self.total += 1;
        self.bytes += 8 * (words.len() + 1);
        for (position, (word, data_type)) in words.iter().zip(&self.types).enumerate() {
            if data_type.interned() && !nulls.has(position) {
                self.bytes += self.interner.get(*word).len();
            }
        }
        if self.bytes >= CHUNK_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let Chunk { columns, nulls, weights } = std::mem::replace(&mut self.rows, Chunk::new(self.types.len()));
        let mut fields = Vec::new();
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for (position, (words, data_type)) in columns.into_iter().zip(&self.types).enumerate() {
            fields.push(Field::new(format!("c{position}"), arrow_type(*data_type), true));
            arrays.push(array(words, &nulls, position, *data_type, self.interner, &ColumnPool::default()));
        }
        fields.push(Field::new(MULTIPLICITY, ArrowType::Int64, false));
        arrays.push(Arc::new(Int64Array::from(weights)));
        if self.with_atoms {
            fields.push(Field::new(ATOMS, ArrowType::UInt64, false));
            arrays.push(Arc::new(UInt64Array::from(std::mem::take(&mut self.masks))));
        }
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(corrupt)?;
        self.chunks.push(write(&batch)?);
        self.bytes = 0;
        Ok(())
    }
}

fn write(batch: &RecordBatch) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(batch.get_array_memory_size() + 1024);
    let mut writer = StreamWriter::try_new(&mut bytes, batch.schema_ref()).map_err(corrupt)?;
    writer.write(batch).map_err(corrupt)?;
    writer.finish().map_err(corrupt)?;
    drop(writer);
    Ok(bytes)
}

impl Engine {
    /// The state as chunks of bytes, from which an engine of the same plan is restored.
    pub fn save(&self) -> Result<Vec<Vec<u8>>> {
        let mut chunks = vec![Vec::new()];
        let (mut atom_sections, mut table_sections) = (Vec::new(), Vec::new());
        for reader in self.readers.iter().flatten() {
            let data = &self.plan.stages[reader.stage];
            let types = atom_types(data, &atoms(data)[reader.atom])?;
            let mut writer = SectionWriter::new(types, false, &self.interner);
            self.stages[reader.stage].each_atom_row(reader.atom, |words, nulls, count| {
                writer.push(words, nulls, 0, i64::try_from(count).map_err(corrupt)?)
            })?;
            writer.flush()?;
            let (place, rows) = ((reader.stage, reader.atom), writer.total);
            atom_sections.push(Section { place, chunks: writer.chunks.len(), rows, newest: None, late: 0 });
            chunks.append(&mut writer.chunks);
        }
        for (position, source) in self.sources.iter().enumerate().filter(|(_, source)| source.has_state()) {
            let types: Vec<DataType> = source.columns.iter().map(|column| column.data_type).collect();
            let width = types.len();
            let mut writer = SectionWriter::new(types, true, &self.interner);
            for (row, count) in source.stored_rows() {
                writer.push(&row[..width], row[width], row[width + 1], count.into())?;
            }
            writer.flush()?;
            let (newest, late) = source.clock();
            let rows = writer.total;
            table_sections.push(Section { place: (position, 0), chunks: writer.chunks.len(), rows, newest, late });
            chunks.append(&mut writer.chunks);
        }
        let header = Header {
            format: FORMAT,
            fingerprint: fingerprint(&self.plan),
            started: self.views.iter().all(|view| view.initial.is_none()),
            waiting: self.views.iter().filter(|view| view.initial.is_some()).map(|view| view.name.clone()).collect(),
            atoms: atom_sections,
            tables: table_sections,
            chunks: chunks[1..].iter().map(|chunk| stable_hash_bytes(chunk)).collect(),
        };
        chunks[0] = write_header(&header)?;
        Ok(chunks)
    }

    /// The engine that `save` saw. Foreign or damaged chunks are an error.
    pub fn load(plan: Plan, chunks: &[&[u8]], deltas: bool) -> Result<Engine> {
        let load = AssertUnwindSafe(|| {
            let mut engine = Engine::new(plan, deltas)?;
            engine.restore(chunks)?;
            Ok(engine)
        });
        catch_unwind(load).unwrap_or_else(|_| Err(corrupt("its contents are inconsistent")))
    }

    fn restore(&mut self, chunks: &[&[u8]]) -> Result<()> {
        let [first, rest @ ..] = chunks else { return Err(corrupt("it is empty")) };
        let header = read_header(first)?;
        if header.format > 1 && header.fingerprint != fingerprint(&self.plan) {
            return Err(KernelError::state("CROWN-STATE-OTHER-PLAN", "the saved state belongs to another plan"));
        }
        if header.chunks.len() != rest.len() {
            return Err(corrupt(format!("{} chunks instead of {}", rest.len(), header.chunks.len())));
        }
        for (number, (chunk, hash)) in rest.iter().zip(&header.chunks).enumerate() {
            if stable_hash_bytes(chunk) != *hash {
                return Err(corrupt(format!("chunk {} is damaged", number + 1)));
            }
        }
        self.check_sections(&header)?;
        let before = (0..self.stages.len()).map(|position| self.read_needed(position)).collect::<Result<Vec<_>>>()?;
        // Which stage reads a table may be another than in the plan that wrote the rows.
        let places = self.readers.iter().flatten().map(|reader| (reader.stage, reader.atom));
        let mut rest = rest;
        let mut sections = Vec::new();
        for (section, (stage, atom)) in header.atoms.iter().zip(places) {
            let (chunks, others) = rest.split_at(section.chunks);
            let rank = self.stages[stage].load_order().iter().position(|other| *other == atom);
            sections.push((stage, rank, atom, section, chunks));
            rest = others;
        }
        sections.sort_by_key(|(stage, rank, ..)| (*stage, *rank));
        for (stage, _, atom, section, chunks) in sections {
            let data = self.plan.stages.get(stage).ok_or_else(|| corrupt("an unknown stage"))?;
            let atom_data = atoms(data).get(atom).ok_or_else(|| corrupt("an unknown atom"))?;
            let columns = columns(&atom_types(data, atom_data)?);
            // A row has its multiplicity, at least.
            let most = chunks.iter().map(|chunk| chunk.len()).sum::<usize>() / size_of::<i64>();
            self.stages[stage].reserve(atom, most.min(usize::try_from(section.rows).unwrap_or(most)));
            let mut total = 0;
            for chunk in chunks {
                let rows = read_section(chunk, &columns, false, &mut self.interner)?.rows;
                total += rows.len() as u64;
                let words = rows.by_row();
                let changes = (0..rows.len()).map(|index| AtomChange {
                    atom,
                    words: &words[index * columns.len()..][..columns.len()],
                    nulls: rows.nulls_at(index),
                    weight: rows.weights[index],
                });
                self.stages[stage].load_atoms(changes, &mut self.interner)?;
            }
            section.check_rows(total)?;
        }
        let mut rest = rest.iter();
        for section in &header.tables {
            let source = self.sources.get_mut(section.place.0).ok_or_else(|| corrupt("an unknown table"))?;
            let mut total = 0;
            for chunk in rest.by_ref().take(section.chunks) {
                let changes = read_section(chunk, &source.columns, true, &mut self.interner)?;
                total += changes.len() as u64;
                let mut row = Vec::new();
                for index in 0..changes.len() {
                    let nulls = changes.rows.read(index, &mut row);
                    row.extend([nulls, changes.atoms_at(index)]);
                    let count = u32::try_from(changes.rows.weights[index]).map_err(corrupt)?;
                    source.restore(&row, count, &mut self.interner);
                }
            }
            section.check_rows(total)?;
            source.set_clock(section.newest, section.late);
            source.commit(&mut self.interner);
        }
        self.set_bounded(false);
        self.rebuild(before)?;
        self.set_bounded(true);
        for view in &mut self.views {
            let waits = !header.started && (header.waiting.is_empty() || header.waiting.contains(&view.name));
            view.initial = waits.then(|| Chunk::new(view.columns.len()));
            view.unshown = waits;
        }
        self.interner.sweep();
        Ok(())
    }

    /// The sections of a saved state are those that `save` writes, in its order, and no chunk is
    /// left over.
    fn check_sections(&self, header: &Header) -> Result<()> {
        let stored = self.sources.iter().enumerate().filter(|(_, source)| source.has_state());
        let tables = header.tables.iter().map(|section| section.place.0).eq(stored.map(|(position, _)| position));
        let atoms = header.atoms.len() == self.readers.iter().flatten().count();
        let mut sections = header.atoms.iter().chain(&header.tables);
        let chunks = sections.try_fold(0usize, |sum, section| sum.checked_add(section.chunks));
        if !tables || !atoms || chunks != Some(header.chunks.len()) {
            return Err(corrupt("its sections do not match the plan"));
        }
        Ok(())
    }

    /// All rows of a stage with atoms, or none when no stage reads it.
    pub(super) fn read_tree(&mut self, position: usize) -> Result<Chunk> {
        let width = self.stages[position].columns.len();
        if let State::Bag { loaded, .. } = &mut self.stages[position].state {
            return net_chunks(&[std::mem::replace(loaded, Chunk::new(width))], width);
        }
        let mut rows = Chunk::new(width);
        let reads = |stage: &RunningStage| {
            stage.inputs.contains(&position) || stage.feeds.iter().any(|feed| feed.input == position)
        };
        if self.stages[position].has_atoms() && self.stages.iter().any(reads) {
            read_stage(&self.stages, position, &mut rows, &mut self.interner)?;
        }
        Ok(rows)
    }

    /// The rows of a stage with atoms, if other stages need them to rebuild their state.
    fn read_needed(&mut self, position: usize) -> Result<Chunk> {
        let stage = &self.stages[position];
        if matches!(stage.state, State::Tree { .. }) && self.is_only_shown(position) {
            return Ok(Chunk::new(stage.columns.len()));
        }
        self.read_tree(position)
    }

    /// Brings every stage up to date, in the plan's order, where trees already have the rows of
    /// their tables; `before` is what they gave to the stages above without them.
    fn rebuild(&mut self, before: Vec<Chunk>) -> Result<()> {
        let mut outputs: Vec<Chunk> = Vec::with_capacity(self.stages.len());
        for (position, before) in before.into_iter().enumerate() {
            if !self.stages[position].has_atoms() {
                let rows = self.run_stage(position, &outputs)?;
                outputs.push(rows);
                continue;
            }
            if self.has_undefined(position) {
                self.stages[position].loaded(&mut self.interner)?;
                self.run_around_undefined(position, &outputs)?;
            } else {
                self.load_feeds(position, &outputs)?;
            }
            let after = self.read_needed(position)?;
            let width = after.columns.len();
            outputs.push(if before.is_empty() { after } else { net_chunks(&[negated(&before), after], width)? });
        }
        self.clear_nets();
        Ok(())
    }

    /// Gives a stage the rows of its atoms over earlier stages.
    pub(super) fn load_feeds(&mut self, position: usize, outputs: &[Chunk]) -> Result<()> {
        self.bind_feeds(position, outputs)?;
        let changes = self.nets[position].iter().enumerate().flat_map(|(atom, net)| {
            net.rows().map(move |(words, nulls, weight)| AtomChange { atom, words, nulls, weight })
        });
        self.stages[position].load_atoms(changes, &mut self.interner)?;
        self.stages[position].loaded(&mut self.interner)
    }
}

fn read_section(chunk: &[u8], columns: &[InputColumn], with_atoms: bool, interner: &mut Interner) -> Result<Changes> {
    let mut changes = Changes::new(columns.len());
    let reader = StreamReader::try_new(chunk, None).map_err(corrupt)?;
    // Other types of the same values could claim more rows than they have bytes.
    let types = columns.iter().map(|column| arrow_type(column.data_type)).chain([ArrowType::Int64]);
    let types = types.chain(with_atoms.then_some(ArrowType::UInt64));
    if !reader.schema().fields().iter().map(|field| field.data_type().clone()).eq(types) {
        return Err(corrupt("a section does not have the columns of the plan"));
    }
    for batch in reader {
        let batch = batch.map_err(corrupt)?;
        let renamed = rename(&batch, columns)?;
        read_batch("saved", columns, &[], &renamed, interner, &mut changes).map_err(corrupt)?;
    }
    match changes.faults.first() {
        Some(fault) => Err(corrupt(&fault.reason)),
        None => Ok(changes),
    }
}

/// Sections name their columns by position.
fn rename(batch: &RecordBatch, columns: &[InputColumn]) -> Result<RecordBatch> {
    let schema = batch.schema();
    let rename = |(position, field): (usize, &Arc<Field>)| match columns.get(position) {
        Some(column) => Arc::new(field.as_ref().clone().with_name(&column.name)),
        None => field.clone(),
    };
    let fields: Vec<_> = schema.fields().iter().enumerate().map(rename).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), batch.columns().to_vec()).map_err(corrupt)
}

/// The header's text behind its hash: one entry of metadata, for several have no fixed order.
fn write_header(header: &Header) -> Result<Vec<u8>> {
    let text = serde_json::to_string(header).map_err(corrupt)?;
    let entry = format!("{}:{text}", stable_hash_bytes(text.as_bytes()));
    let metadata = HashMap::from([(HEADER.to_string(), entry)]);
    write(&RecordBatch::new_empty(Arc::new(Schema::new_with_metadata(Vec::<Field>::new(), metadata))))
}

fn read_header(chunk: &[u8]) -> Result<Header> {
    let reader = StreamReader::try_new(chunk, None).map_err(corrupt)?;
    let schema = reader.schema();
    let entry = schema.metadata().get(HEADER).ok_or_else(|| corrupt("the first chunk is not a header"))?;
    let (check, text) = entry.split_once(':').ok_or_else(|| corrupt("the header is damaged"))?;
    if stable_hash_bytes(text.as_bytes()).to_string() != check {
        return Err(corrupt("the header is damaged"));
    }
    let format: Numbered = serde_json::from_str(text).map_err(corrupt)?;
    if !(OLDEST..=FORMAT).contains(&format.format) {
        let message = format!("the saved state has format {}; this version reads {OLDEST} to {FORMAT}", format.format);
        return Err(KernelError::state("CROWN-STATE-FORMAT", message));
    }
    serde_json::from_str(text).map_err(corrupt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_another_format_is_refused_by_its_number() {
        for format in [0, OLDEST, FORMAT, FORMAT + 1] {
            let header = Header {
                format,
                fingerprint: 0,
                started: true,
                waiting: vec![],
                atoms: vec![],
                tables: vec![],
                chunks: vec![],
            };
            match read_header(&write_header(&header).unwrap()) {
                Ok(_) => assert!((OLDEST..=FORMAT).contains(&format)),
                Err(error) => {
                    assert!(!(OLDEST..=FORMAT).contains(&format));
                    assert_eq!(error.code, "CROWN-STATE-FORMAT");
                    assert!(error.message.contains(&format!("format {format}; this version reads 1 to 2")));
                }
            }
        }
    }
}
