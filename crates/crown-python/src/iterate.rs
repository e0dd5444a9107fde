//! The full result as Python tuples, one at a time.

use crate::errors::{guarded, raise};
use crate::shared::Shared;
use crate::values::to_tuple;
use crown_kernel::cells::{Cells, CellsCursor};
use crown_kernel::chunk::Chunk;
use crown_kernel::error::{KernelError, Result};
use crown_kernel::mask::Bits;
use crown_kernel::store::interner::Interner;
use crown_kernel::types::DataType;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Rows are fetched in blocks of this size, so the delay stays constant.
const BLOCK: usize = 256;

/// The maximum number of rows that an iterator copies when the view changes.
const MOST_KEPT: usize = 1 << 20;

/// Rows copied out of the view, strings included.
struct Block {
    rows: Chunk,
    values: Interner,
}

/// What an iterator has yet to show.
pub struct Rows {
    block: Arc<Block>,
    index: usize,
    /// How often the row at `index` was given.
    given: i64,
    rest: Rest,
    view: usize,
    width: usize,
}

enum Rest {
    /// In the view, from this place on.
    InView(Box<CellsCursor>),
    Nothing,
    Failed(KernelError),
}

impl Rows {
    fn next(&mut self) -> Option<(Arc<Block>, usize)> {
        if self.index >= self.block.rows.len() {
            return None;
        }
        let row = (self.block.clone(), self.index);
        self.given += 1;
        if self.given >= self.block.rows.weights[self.index] {
            self.index += 1;
            self.given = 0;
        }
        Some(row)
    }

    fn fetch(&mut self, cells: &mut Cells) {
        while self.index >= self.block.rows.len() {
            let Rest::InView(cursor) = &mut self.rest else { return };
            let mut block = Block { rows: Chunk::new(self.width), values: Interner::default() };
            let more = cells.fill(cursor, &mut block.rows, &mut block.values, BLOCK);
            self.block = Arc::new(block);
            self.index = 0;
            match more {
                Ok(true) => {}
                Ok(false) => self.rest = Rest::Nothing,
                Err(error) => self.rest = Rest::Failed(error),
            }
        }
    }

    /// Copies the remaining rows out of the view, which is about to change; fails if there are too
    /// many.
    pub fn take_rest(&mut self, cells: &mut Cells) {
        let Rest::InView(cursor) = &mut self.rest else { return };
        let mut block = Block { rows: Chunk::new(self.width), values: Interner::default() };
        let mut words = Vec::new();
        for index in self.index..self.block.rows.len() {
            let nulls = self.block.rows.read(index, &mut words);
            block.rows.push(&words, nulls, self.block.rows.weights[index]);
        }
        if let Err(error) = copy_rest(cells, self.view, cursor, &self.block, &mut block) {
            self.rest = Rest::Failed(error);
            block = Block { rows: Chunk::new(self.width), values: Interner::default() };
        } else {
            self.rest = Rest::Nothing;
        }
        self.block = Arc::new(block);
        self.index = 0;
    }
}

fn copy_rest(cells: &mut Cells, view: usize, cursor: &mut CellsCursor, shown: &Block, rest: &mut Block) -> Result<()> {
    for (position, (_, data_type)) in cells.columns(view).into_iter().enumerate() {
        for row in 0..rest.rows.len() {
            if data_type.interned() && !rest.rows.nulls_at(row).has(position) {
                let word = &mut rest.rows.columns[position][row];
                *word = rest.values.intern(shown.values.get(*word));
            }
        }
    }
    while cells.fill(cursor, &mut rest.rows, &mut rest.values, 65536)? {
        if rest.rows.len() > MOST_KEPT {
            return Err(KernelError::invalid("CROWN-ITERATION", "the view changed during the iteration"));
        }
    }
    Ok(())
}

#[pyclass(module = "crown._kernel", frozen)]
pub struct RowIterator {
    shared: Shared,
    types: Vec<DataType>,
    rows: Arc<Mutex<Rows>>,
}

impl RowIterator {
    pub fn new(py: Python<'_>, shared: Shared, view: &str) -> PyResult<RowIterator> {
        let (types, rows) = guarded(py, || {
            let mut held = shared.lock()?;
            let view = held.cells.view(view)?;
            let types: Vec<DataType> = held.cells.columns(view).into_iter().map(|column| column.1).collect();
            let width = types.len();
            let rest = Rest::InView(Box::new(held.cells.cursor(view)?));
            let block = Arc::new(Block { rows: Chunk::new(width), values: Interner::default() });
            let rows = Arc::new(Mutex::new(Rows { block, index: 0, given: 0, rest, view, width }));
            held.register(&rows);
            Ok((types, rows))
        })?;
        Ok(RowIterator { shared, types, rows })
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl RowIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        loop {
            {
                let mut rows = self.lock();
                if let Some((block, index)) = rows.next() {
                    drop(rows);
                    return to_tuple(py, &block.rows, index, &self.types, &block.values).map(Some);
                }
                match &rows.rest {
                    Rest::Nothing => return Ok(None),
                    Rest::Failed(error) => return Err(raise(py, error)),
                    Rest::InView(_) => {}
                }
            }
            // The view first, then the rows: as a change of the view takes them.
            guarded(py, || {
                let mut held = self.shared.lock()?;
                self.lock().fetch(&mut held.cells);
                Ok(())
            })?;
        }
    }
}
