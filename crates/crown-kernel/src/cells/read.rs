//! The result: read, counted, drawn from, looked up in the engines that hold it.

use super::Cells;
use crate::chunk::{Chunk, Nulls, Word};
use crate::engine::ResultCursor;
use crate::error::{KernelError, Result};
use crate::random::Random;
use crate::store::interner::Interner;
use crate::tree::Fixed;
use arrow::array::{RecordBatch, UInt64Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::SchemaRef;

/// A place in the enumeration of the view; valid until the next change.
pub struct CellsCursor {
    view: usize,
    end: usize,
    within: ResultCursor,
}

impl Cells {
    /// An enumeration of a view, valid until the next change.
    pub fn cursor(&mut self, view: usize) -> Result<CellsCursor> {
        let (ends, number) = self.ends(view);
        ends.iter().try_for_each(|end| end.check_defined(number))?;
        Ok(CellsCursor { view, end: 0, within: ends[0].cursor(number)? })
    }

    /// Appends about `rows` further rows with their multiplicity as weight; false at the end. Their
    /// strings and the like become words of `values`.
    pub fn fill(
        &mut self,
        cursor: &mut CellsCursor,
        output: &mut Chunk,
        values: &mut Interner,
        rows: usize,
    ) -> Result<bool> {
        let (ends, number) = self.ends(cursor.view);
        if ends[cursor.end].fill_apart(&mut cursor.within, output, values, rows)? {
            return Ok(true);
        }
        if cursor.end + 1 == ends.len() {
            return Ok(false);
        }
        cursor.end += 1;
        cursor.within = ends[cursor.end].cursor(number)?;
        Ok(true)
    }

    /// The whole result, in record batches of about `chunk_rows` rows.
    pub fn rows(
        &mut self,
        view: usize,
        chunk_rows: usize,
        multiplicity: bool,
    ) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let mut all = Vec::new();
        let mut schema = None;
        let (ends, number) = self.ends(view);
        for end in ends {
            let (of_end, mut batches) = end.rows(number, chunk_rows, multiplicity)?;
            schema = Some(of_end);
            all.append(&mut batches);
        }
        Ok((schema.ok_or_else(no_engine)?, all))
    }

    /// Rows `offset` to `offset + limit` of the enumeration, each with its `_multiplicity`. Takes
    /// time in proportion to the last of them.
    pub fn distinct_page(&mut self, view: usize, offset: usize, limit: usize) -> Result<RecordBatch> {
        const BLOCK: usize = 4096;
        let (end, number) = self.end(view);
        let output = end.output(number, false, true, false);
        let width = end.columns(number).len();
        let (mut rows, mut values) = (Chunk::new(width), Interner::default());
        let (mut skipped, wanted) = (0, offset.saturating_add(limit));
        let mut cursor = self.cursor(view)?;
        let mut more = true;
        while more && skipped + rows.len() < wanted {
            if skipped + rows.len() <= offset {
                skipped += rows.len();
                (rows, values) = (Chunk::new(width), Interner::default());
            }
            let missing = (wanted - skipped - rows.len()).min(BLOCK);
            more = self.fill(&mut cursor, &mut rows, &mut values, missing)?;
        }
        let batch = output.batch(&mut rows, Vec::new(), &values)?;
        let first = (offset - skipped.min(offset)).min(batch.num_rows());
        Ok(batch.slice(first, limit.min(batch.num_rows() - first)))
    }

    /// How many rows the result has, copies counted.
    pub fn count(&mut self, view: usize) -> Result<i128> {
        let (ends, number) = self.ends(view);
        ends.iter_mut().map(|end| end.count(number)).sum()
    }

    /// How often the result has the row, whose strings and the like are words of `values`.
    pub fn multiplicity(&mut self, view: usize, words: &[Word], nulls: Nulls, values: &Interner) -> Result<i64> {
        let (ends, number) = self.ends(view);
        ends.iter_mut().map(|end| end.multiplicity(number, words, nulls, values)).sum()
    }

    /// The rows with these values, duplicates repeated.
    pub fn lookup(&mut self, view: usize, fixed: &[Fixed], values: &Interner) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let (ends, number) = self.ends(view);
        let found = ends.iter_mut().map(|end| end.lookup(number, fixed, values)).collect::<Result<Vec<_>>>()?;
        let schema = found.first().map(|(schema, _)| schema.clone()).ok_or_else(no_engine)?;
        Ok((schema, found.into_iter().map(|(_, batch)| batch).collect()))
    }

    /// `limit` rows from position `offset` on, in the order of the enumeration.
    pub fn page(&mut self, view: usize, offset: u64, limit: u64) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let (ends, number) = self.ends(view);
        let (mut skip, mut left, mut batches, mut schema) = (offset, limit, Vec::new(), None);
        let alone = ends.len() == 1;
        for end in ends {
            let count = if alone { u64::MAX } else { u64::try_from(end.count(number)?).unwrap_or(u64::MAX) };
            let (of_end, batch) = end.page(number, skip.min(count), left)?;
            skip = skip.saturating_sub(count);
            left -= batch.num_rows() as u64;
            schema = Some(of_end);
            batches.push(batch);
        }
        Ok((schema.ok_or_else(no_engine)?, batches))
    }

    /// As `page`, in an order (see `Engine::ordered_page`). `None` where the rows are in several
    /// engines.
    pub fn ordered_page(
        &mut self,
        view: usize,
        order: &str,
        names: &[String],
        offset: u64,
        limit: u64,
    ) -> Result<Option<(SchemaRef, RecordBatch)>> {
        if self.spread.is_some() {
            return Ok(None);
        }
        self.engines[0].ordered_page(view, order, names, offset, limit).map(Some)
    }

    /// Rows drawn with replacement, each copy of a row as likely as any other.
    pub fn sample(&mut self, view: usize, rows: usize, seed: u64) -> Result<(SchemaRef, RecordBatch)> {
        let (ends, view) = self.ends(view);
        if let [end] = ends {
            return end.sample(view, rows, seed);
        }
        let mut random = Random(seed);
        let counts = ends.iter_mut().map(|end| Ok(end.count(view)?.unsigned_abs())).collect::<Result<Vec<u128>>>()?;
        let total: u128 = counts.iter().sum();
        let mut chosen: Vec<usize> = Vec::new();
        for _ in 0..if total > 0 { rows } else { 0 } {
            let mut drawn = random.below_wide(total);
            chosen.extend(counts.iter().position(|count| {
                let here = drawn < *count;
                drawn = drawn.saturating_sub(*count);
                here
            }));
        }
        let (mut batches, mut first, mut schema) = (Vec::new(), Vec::new(), None);
        let mut passed = 0;
        for (number, end) in ends.iter_mut().enumerate() {
            let wanted = chosen.iter().filter(|chosen| **chosen == number).count();
            let (of_end, batch) = end.sample(view, wanted, random.below_wide(u128::from(u64::MAX)) as u64)?;
            first.push(passed);
            passed += wanted as u64;
            batches.push(batch);
            schema = Some(of_end);
        }
        // Each draw takes the next row of its cell: in the order of the draws, not cell by cell.
        let order: Vec<u64> = chosen
            .iter()
            .map(|cell| {
                first[*cell] += 1;
                first[*cell] - 1
            })
            .collect();
        let schema = schema.ok_or_else(no_engine)?;
        let fail = |error| {
            KernelError::plan("CROWN-PLAN-MALFORMED", format!("the samples of the cells do not match: {error}"))
        };
        let all = concat_batches(&schema, &batches).map_err(fail)?;
        Ok((schema, take_record_batch(&all, &UInt64Array::from(order)).map_err(fail)?))
    }
}

fn no_engine() -> KernelError {
    KernelError::plan("CROWN-PLAN-MALFORMED", "a view has at least one cell")
}
