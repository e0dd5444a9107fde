//! Arrow record batches of changes into words.
//!
//! A column is accepted when its Arrow type can hold the table's type at all (any integer width,
//! decimals of any scale, dictionaries, views, any time unit); a value that does not fit is a fault
//! of its row, not of the batch. So a wrong column type is an error at once, while a wrong value
//! can be quarantined with its row.

use crate::arrow_check::{check, UNREADABLE, UNSUPPORTED};
use crate::arrow_values::{convert, Sink};
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{KernelError, Result};
use crate::mask::{self, Bits, Mask};
use crate::store::interner::Interner;
use crate::types::DataType;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes as arrow_types;

/// The column that says whether a row is inserted or deleted.
pub const CHANGE_TYPE: &str = "_change_type";
/// The column that counts the copies of a row.
pub const MULTIPLICITY: &str = "_multiplicity";
/// The column with the mask of the routes that a row is sent along, added by the router.
pub const ATOMS: &str = "_atoms";

/// One column of a table as changes must bring it.
#[derive(Clone, Debug)]
pub struct InputColumn {
    /// The name of the column.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// Whether it may be NULL.
    pub nullable: bool,
}

/// A change that does not fit: `row` is its position in the change table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The position of the change in its table of changes.
    pub row: usize,
    /// The stable error code.
    pub code: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

/// Changes of one table, in order: weight +n for n insertions, -n for n deletions.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// The changed rows.
    pub rows: Chunk,
    /// A mask of routes per row, or empty: every atom takes every row.
    pub atoms: Vec<u64>,
    /// The columns that did not come (only deletions by key may leave columns out).
    pub absent: Mask,
    /// At most one per row, by row.
    pub faults: Vec<Fault>,
}

impl Changes {
    /// No changes of a table with `columns` columns.
    pub fn new(columns: usize) -> Self {
        Changes { rows: Chunk::new(columns), atoms: Vec::new(), absent: 0, faults: Vec::new() }
    }

    /// The number of changes.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Appends one change; NULL in a NOT NULL column is its fault.
    pub fn push(&mut self, columns: &[InputColumn], words: &[Word], nulls: Nulls, weight: i64) {
        if nulls != 0 && weight > 0 {
            let absent = |(position, column): &(usize, &InputColumn)| nulls.has(*position) && !column.nullable;
            if let Some((_, column)) = columns.iter().enumerate().find(absent) {
                self.faults.push(null_fault(self.len(), &column.name));
            }
        }
        self.rows.push(words, nulls, weight);
    }

    /// The mask of the routes of a row; all of them if there are no masks.
    pub fn atoms_at(&self, row: usize) -> u64 {
        self.atoms.get(row).copied().unwrap_or(u64::MAX)
    }
}

/// More changes of one table than this can't be applied together: their positions are 32 bits wide.
const MOST_CHANGES: usize = u32::MAX as usize;
/// Columns of NULLs take no memory at all, so their length may be anything. More rows than this
/// need a bit each.
const MOST_EMPTY_ROWS: usize = 1 << 24;

/// Appends the rows of `batch` to `changes`. `key` are the positions of the primary key, empty
/// without one.
pub fn read_batch(
    table: &str,
    columns: &[InputColumn],
    key: &[usize],
    batch: &RecordBatch,
    interner: &mut Interner,
    changes: &mut Changes,
) -> Result<()> {
    let (start, length) = (changes.len(), batch.num_rows());
    reserve(table, batch, changes)?;
    read_weights(table, batch, interner, changes)?;
    read_masks(table, batch, start, changes)?;
    if !changes.rows.nulls.is_empty() {
        changes.rows.nulls.resize(start + length, 0);
    }
    let deletions_by_key = !key.is_empty() && changes.rows.weights[start..].iter().all(|weight| *weight < 0);
    let mut far = FarNulls::default();
    for (position, column) in columns.iter().enumerate() {
        let Some(array) = find_column(table, batch, &column.name)? else {
            if deletions_by_key && !key.contains(&position) {
                changes.absent = changes.absent.union(mask::of([position]));
                changes.rows.columns[position].resize(start + length, 0);
                set_null(&mut changes.rows, &mut far, position, start..start + length);
                continue;
            }
            let known: Vec<&str> = batch.schema_ref().fields().iter().map(|field| field.name().as_str()).collect();
            let why = format!("the changes do not have it; they have [{}]", known.join(", "));
            return Err(wrong("CROWN-CHANGE-COLUMN", table, &column.name, &why));
        };
        let mut sink = Sink { words: std::mem::take(&mut changes.rows.columns[position]), ..Sink::default() };
        let converted = convert(array, column.data_type, interner, &mut sink);
        changes.rows.columns[position] = sink.words;
        converted.map_err(|why| wrong(TYPE, table, &column.name, &why))?;
        for row in &sink.nulls {
            set_null(&mut changes.rows, &mut far, position, start + row..start + row + 1);
        }
        for (row, reason) in sink.faults {
            set_null(&mut changes.rows, &mut far, position, start + row..start + row + 1);
            let reason = format!("column '{}': {reason}", column.name);
            changes.faults.push(Fault { row: start + row, code: "CROWN-CHANGE-VALUE", reason });
        }
        if !column.nullable {
            let absent = |row: &&usize| key.is_empty() || changes.rows.weights[start + **row] > 0;
            for row in sink.nulls.iter().filter(absent) {
                changes.faults.push(null_fault(start + row, &column.name));
            }
        }
    }
    far.write(&mut changes.rows);
    changes.faults.sort_by_key(|fault| fault.row);
    changes.faults.dedup_by_key(|fault| fault.row);
    Ok(())
}

/// Room for the rows of `batch`: a count that no memory can hold is refused, not tried.
fn reserve(table: &str, batch: &RecordBatch, changes: &mut Changes) -> Result<()> {
    let (rows, length) = (&mut changes.rows, batch.num_rows());
    let bytes = || batch.columns().iter().map(|column| column.get_buffer_memory_size()).sum::<usize>();
    let room = |vector: &mut Vec<u64>| vector.try_reserve(length).is_ok();
    let fits = rows.weights.len().checked_add(length).is_some_and(|total| total <= MOST_CHANGES)
        && (length <= MOST_EMPTY_ROWS || length / 8 <= bytes())
        && rows.weights.try_reserve(length).is_ok()
        && rows.columns.iter_mut().all(room);
    if fits {
        return Ok(());
    }
    let message = format!("table '{table}': {length} changes are too many for one batch");
    Err(KernelError::invalid("CROWN-CHANGE-SIZE", message))
}

const TYPE: &str = "CROWN-CHANGE-TYPE";

fn wrong(code: &'static str, table: &str, column: &str, why: &str) -> KernelError {
    KernelError::invalid(code, format!("table '{table}', column '{column}': {why}"))
}

/// The one column of this name, checked, if there is one.
fn find_column<'a>(table: &str, batch: &'a RecordBatch, name: &str) -> Result<Option<&'a ArrayRef>> {
    let fields = batch.schema_ref().fields();
    let mut found = fields.iter().enumerate().filter(|(_, field)| field.name() == name);
    let Some((position, field)) = found.next() else { return Ok(None) };
    if found.next().is_some() {
        return Err(wrong("CROWN-CHANGE-COLUMN", table, name, "the changes have more than one column of this name"));
    }
    if let Some(why) = field.metadata().get(UNSUPPORTED) {
        return Err(wrong(TYPE, table, name, why));
    }
    let array = batch.column(position);
    let checked = field.metadata().get(UNREADABLE).map_or_else(|| check(array), |why| Err(why.clone()));
    checked.map_err(|why| wrong("CROWN-CHANGE-ARROW", table, name, &why))?;
    Ok(Some(array))
}

fn null_fault(row: usize, column: &str) -> Fault {
    Fault { row, code: "CROWN-CHANGE-NULL", reason: format!("column '{column}': NULL in a NOT NULL column") }
}

/// NULLs of a batch in columns that have no bit of their own, by row and column: a set is made once
/// for each row.
#[derive(Default)]
struct FarNulls(Vec<(usize, usize)>);

impl FarNulls {
    fn write(mut self, rows: &mut Chunk) {
        self.0.sort_unstable();
        for cells in self.0.chunk_by(|left, right| left.0 == right.0) {
            let mut set = mask::Builder::default();
            set.add(rows.nulls[cells[0].0]);
            cells.iter().for_each(|(_, column)| set.set(*column, true));
            rows.nulls[cells[0].0] = set.finish();
        }
    }
}

fn set_null(rows: &mut Chunk, far: &mut FarNulls, column: usize, range: std::ops::Range<usize>) {
    rows.nulls.resize(rows.weights.len(), 0);
    if column < mask::INLINE {
        rows.nulls[range].iter_mut().for_each(|mask| *mask |= 1 << column);
    } else {
        far.0.extend(range.map(|row| (row, column)));
    }
}

/// `_change_type` and `_multiplicity` as weights.
fn read_weights(table: &str, batch: &RecordBatch, interner: &mut Interner, changes: &mut Changes) -> Result<()> {
    let (start, length) = (changes.len(), batch.num_rows());
    changes.rows.weights.resize(start + length, 1);
    let weights = &mut changes.rows.weights[start..];
    let mut fault = |row: usize, reason: String| {
        changes.faults.push(Fault { row: start + row, code: "CROWN-CHANGE-VALUE", reason });
    };
    if let Some(array) = find_column(table, batch, MULTIPLICITY)? {
        let mut sink = Sink::default();
        convert(array, DataType::Int64, interner, &mut sink).map_err(|why| wrong(TYPE, table, MULTIPLICITY, &why))?;
        for (row, word) in sink.words.into_iter().enumerate() {
            match word as i64 {
                count if count > 0 => weights[row] = count,
                count => fault(row, format!("{MULTIPLICITY} must be a positive number, not {count}")),
            }
        }
    }
    if let Some(array) = find_column(table, batch, CHANGE_TYPE)? {
        let mut sink = Sink::default();
        convert(array, DataType::String, interner, &mut sink).map_err(|why| wrong(TYPE, table, CHANGE_TYPE, &why))?;
        let [insert, postimage, delete, preimage] =
            [&b"insert"[..], b"update_postimage", b"delete", b"update_preimage"].map(|word| interner.find(word));
        let mut nulls = sink.nulls.into_iter().peekable();
        for (row, word) in sink.words.into_iter().enumerate() {
            let word = if nulls.next_if(|null| *null == row).is_some() { None } else { Some(word) };
            if word.is_some() && (word == delete || word == preimage) {
                weights[row] = -weights[row];
            } else if word.is_none() || (word != insert && word != postimage) {
                let found = word.map_or("NULL".into(), |word| String::from_utf8_lossy(interner.get(word)));
                let words = "insert, delete, update_preimage or update_postimage";
                fault(row, format!("{CHANGE_TYPE} is '{found}', not {words}"));
            }
        }
    }
    Ok(())
}

fn read_masks(table: &str, batch: &RecordBatch, start: usize, changes: &mut Changes) -> Result<()> {
    let length = batch.num_rows();
    match find_column(table, batch, ATOMS)? {
        None if changes.atoms.is_empty() => {}
        None => changes.atoms.resize(start + length, u64::MAX),
        Some(array) => {
            changes.atoms.resize(start, u64::MAX);
            if let Some(masks) = array.as_primitive_opt::<arrow_types::UInt8Type>() {
                changes.atoms.extend(masks.values().iter().map(|mask| u64::from(*mask)));
            } else if let Some(masks) = array.as_primitive_opt::<arrow_types::UInt64Type>() {
                changes.atoms.extend_from_slice(masks.values());
            } else {
                let why = format!("expected uint8 or uint64, found {}", array.data_type());
                return Err(wrong(TYPE, table, ATOMS, &why));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        DictionaryArray, Int64Array, Int8Array, LargeStringArray, StringArray, TimestampMillisecondArray,
    };
    use std::sync::Arc;

    fn read(data_type: &str, array: ArrayRef) -> Result<(Vec<Word>, Vec<Nulls>, Vec<usize>)> {
        let column = InputColumn { name: "c".into(), data_type: DataType::parse(data_type).unwrap(), nullable: true };
        let batch = RecordBatch::try_from_iter([("c", array)]).unwrap();
        let mut changes = Changes::new(1);
        read_batch("t", &[column], &[], &batch, &mut Interner::default(), &mut changes)?;
        let faults = changes.faults.iter().map(|fault| fault.row).collect();
        Ok((changes.rows.columns.remove(0), changes.rows.nulls, faults))
    }

    #[test]
    fn integers_of_any_width_fit_or_are_faults_of_their_rows() {
        let wide: ArrayRef = Arc::new(Int64Array::from(vec![Some(127), Some(128), None]));
        assert_eq!(read("int8", wide).unwrap(), (vec![127, 0, 0], vec![0, 1, 1], vec![1]));
        let narrow: ArrayRef = Arc::new(Int8Array::from(vec![-1]));
        assert_eq!(read("int64", narrow).unwrap().0, [u64::MAX]);
        let text: ArrayRef = Arc::new(StringArray::from(vec!["1"]));
        let error = read("int64", text).unwrap_err();
        assert!(error.message.contains("table 't', column 'c'"), "{}", error.message);
    }

    #[test]
    fn dictionaries_and_large_strings_are_strings() {
        let keys = Int8Array::from(vec![Some(1), None, Some(0)]);
        let dictionary = DictionaryArray::new(keys, Arc::new(StringArray::from(vec!["x", "y"])));
        let (words, nulls, _) = read("string", Arc::new(dictionary)).unwrap();
        assert_eq!((words, nulls), (vec![1, 0, 0], vec![0, 1, 0]));
        let (words, _, _) = read("string", Arc::new(LargeStringArray::from(vec!["a", "b", "a"]))).unwrap();
        assert_eq!(words, [0, 1, 0]);
    }

    #[test]
    fn time_units_become_microseconds() {
        let array: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![-1, i64::MAX]));
        let (words, _, faults) = read("timestamp", array).unwrap();
        assert_eq!((words[0] as i64, faults), (-1000, vec![1]));
    }

    #[test]
    fn decimals_are_rescaled_exactly() {
        let array = arrow::array::Decimal128Array::from(vec![1250, 1255]).with_precision_and_scale(9, 3).unwrap();
        let (words, _, faults) = read("decimal(9,2)", Arc::new(array)).unwrap();
        assert_eq!((words[0], faults), (125, vec![1]));
    }
}
