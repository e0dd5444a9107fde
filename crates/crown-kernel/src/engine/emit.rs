//! Where the output of a batch goes: to a caller that takes it in pieces, or nowhere.

use crate::arrow_out::Output;
use crate::chunk::Chunk;
use crate::error::Result;
use crate::mask::Bits;
use crate::store::interner::Interner;
use crate::store::pool::BLOCK_ROWS;
use crate::tree::Sink;
use arrow::array::RecordBatch;

/// Takes the record batches of a delta.
pub trait Emit {
    /// The batch was checked: from here on it will be applied.
    fn validated(&mut self) -> Result<()> {
        Ok(())
    }

    /// What follows belongs to the view of this number.
    fn view(&mut self, _number: usize) {}

    /// Whether rows are read while the batch runs, so that it can no longer be rejected.
    fn is_stream(&self) -> bool {
        false
    }

    /// Takes a part of the delta.
    fn emit(&mut self, batch: RecordBatch) -> Result<()>;
}

impl Emit for Vec<RecordBatch> {
    fn emit(&mut self, batch: RecordBatch) -> Result<()> {
        self.push(batch);
        Ok(())
    }
}

/// Gathers the deltas of all views of a plan.
#[derive(Default)]
pub struct PerView {
    /// For each view its record batches.
    pub views: Vec<Vec<RecordBatch>>,
    at: usize,
}

impl Emit for PerView {
    fn view(&mut self, number: usize) {
        self.at = number;
    }

    fn emit(&mut self, batch: RecordBatch) -> Result<()> {
        if self.views.len() <= self.at {
            self.views.resize_with(self.at + 1, Vec::new);
        }
        self.views[self.at].push(batch);
        Ok(())
    }
}

/// Drops everything.
#[derive(Default)]
pub(super) struct Discard {
    chunk: Chunk,
}

impl Discard {
    pub fn new(columns: usize) -> Self {
        Discard { chunk: Chunk::new(columns) }
    }
}

impl Sink for Discard {
    fn chunk(&mut self) -> &mut Chunk {
        &mut self.chunk
    }

    fn flush_if_full(&mut self) -> Result<()> {
        self.chunk.clear();
        Ok(())
    }
}

/// Gathers blocks of rows.
pub(super) struct Blocks<'a> {
    chunk: Chunk,
    full: Vec<Chunk>,
    width: usize,
    output: &'a Output,
}

impl<'a> Blocks<'a> {
    pub fn new(width: usize, output: &'a Output) -> Self {
        Blocks { chunk: Chunk::new(width), full: Vec::new(), width, output }
    }

    pub fn finish(mut self) -> Vec<Chunk> {
        if !self.chunk.is_empty() {
            self.full.push(self.chunk);
        }
        self.full
    }
}

impl Sink for Blocks<'_> {
    fn chunk(&mut self) -> &mut Chunk {
        &mut self.chunk
    }

    fn flush_if_full(&mut self) -> Result<()> {
        if self.chunk.len() >= BLOCK_ROWS {
            self.full.push(std::mem::take(&mut self.chunk));
            self.output.renew(&mut self.chunk, self.width, BLOCK_ROWS);
        }
        Ok(())
    }
}

/// The columns of an output row, by their position in the rows of the stage that makes them.
pub(super) type Projection = [usize];

/// Turns rows into record batches as blocks fill up.
pub(super) struct ArrowSink<'a> {
    chunk: Chunk,
    /// Rows that have left.
    emitted: usize,
    /// The update behind each row, when the output shows it.
    updates: Vec<u64>,
    update: u64,
    tagged: bool,
    width: usize,
    projection: Option<&'a Projection>,
    output: &'a Output,
    emit: &'a mut dyn Emit,
    /// Values that need the interner can't be written while a tree holds it: their blocks wait
    /// here.
    waiting: Option<Vec<(Chunk, Vec<u64>)>>,
    nothing_interned: Interner,
}

impl<'a> ArrowSink<'a> {
    /// For rows of `width` columns; `interned`: whether some of them need the interner.
    pub fn new(
        width: usize,
        interned: bool,
        projection: Option<&'a Projection>,
        tagged: bool,
        output: &'a Output,
        emit: &'a mut dyn Emit,
    ) -> Self {
        ArrowSink {
            chunk: Chunk::new(width),
            emitted: 0,
            updates: Vec::new(),
            update: 0,
            tagged,
            width,
            projection,
            output,
            emit,
            waiting: interned.then(Vec::new),
            nothing_interned: Interner::default(),
        }
    }

    /// Makes room for rows that are likely to come, so that the first block need not grow step by
    /// step.
    pub fn expect(mut self, rows: usize) -> Self {
        self.output.renew(&mut self.chunk, self.width, rows);
        self
    }

    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows from here on belong to `update`.
    pub fn begin(&mut self, update: u64) {
        self.tag();
        self.update = update;
    }

    fn tag(&mut self) {
        if self.tagged {
            self.updates.resize(self.chunk.len(), self.update);
        }
    }

    /// Appends rows that are complete.
    pub fn push_chunk(&mut self, rows: &Chunk, interner: &Interner) -> Result<()> {
        let mut start = 0;
        while start < rows.len() {
            let end = rows.len().min(start + BLOCK_ROWS);
            let before = self.chunk.len();
            for (column, words) in self.chunk.columns.iter_mut().zip(&rows.columns) {
                column.extend_from_slice(&words[start..end]);
            }
            if !rows.nulls.is_empty() || !self.chunk.nulls.is_empty() {
                self.chunk.nulls.resize(before, 0);
                self.chunk.nulls.extend((start..end).map(|index| rows.nulls_at(index)));
            }
            self.chunk.weights.extend_from_slice(&rows.weights[start..end]);
            self.flush_if_full()?;
            self.settle(interner)?;
            start = end;
        }
        Ok(())
    }

    /// Writes the blocks that wait for the interner.
    pub fn settle(&mut self, interner: &Interner) -> Result<()> {
        if self.waiting.as_ref().is_some_and(|waiting| !waiting.is_empty()) {
            for (mut rows, updates) in std::mem::take(self.waiting.as_mut().expect("just seen")) {
                project(&mut rows, self.projection);
                self.emit.emit(self.output.batch(&mut rows, updates, interner)?)?;
            }
        }
        Ok(())
    }

    /// The last, partial block. Returns the number of rows in all.
    pub fn finish(mut self, interner: &Interner) -> Result<usize> {
        self.tag();
        self.settle(interner)?;
        let total = self.emitted + self.chunk.len();
        if !self.chunk.is_empty() {
            project(&mut self.chunk, self.projection);
            self.emit.emit(self.output.batch(&mut self.chunk, self.updates, interner)?)?;
        }
        Ok(total)
    }
}

impl Sink for ArrowSink<'_> {
    fn chunk(&mut self) -> &mut Chunk {
        &mut self.chunk
    }

    fn flush_if_full(&mut self) -> Result<()> {
        if self.chunk.len() < BLOCK_ROWS {
            return Ok(());
        }
        self.tag();
        self.emitted += self.chunk.len();
        let updates = std::mem::take(&mut self.updates);
        if let Some(waiting) = &mut self.waiting {
            waiting.push((std::mem::take(&mut self.chunk), updates));
            self.output.renew(&mut self.chunk, self.width, BLOCK_ROWS);
            return Ok(());
        }
        project(&mut self.chunk, self.projection);
        let batch = self.output.batch(&mut self.chunk, updates, &self.nothing_interned);
        self.output.renew(&mut self.chunk, self.width, BLOCK_ROWS);
        self.emit.emit(batch?)
    }
}

/// Picks columns of the rows by position; a column may be picked more than once.
pub(super) fn project(rows: &mut Chunk, projection: Option<&Projection>) {
    let Some(projection) = projection else { return };
    let Chunk { columns, nulls, .. } = rows;
    let mut picked = Vec::with_capacity(projection.len());
    for (position, column) in projection.iter().enumerate() {
        let again = projection[position + 1..].contains(column);
        picked.push(if again { columns[*column].clone() } else { std::mem::take(&mut columns[*column]) });
    }
    *columns = picked;
    nulls.iter_mut().for_each(|nulls| *nulls = nulls.gather(projection.iter().copied().zip(0..)));
}
