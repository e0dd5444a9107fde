//! The changes of one table, before any atom sees them: primary keys, windows, and invalid changes.
//!
//! A table without primary key and window passes its changes on unchanged. With a primary key, an
//! insertion replaces the row with the same key, and a deletion needs only the key; any other value
//! in it that is not NULL must equal that of the row. A window adds deletions of the rows that
//! expire. A table declared `insert_only` accepts neither deletions nor updates. Nothing here is
//! final before `commit`.

use crate::arrow_in::{Changes, Fault, InputColumn};
use crate::chunk::{Chunk, Nulls, Word};
use crate::error::{KernelError, Result};
use crate::mask::{Bits, Mask};
use crate::plan;
use crate::store::interner::Interner;
use crate::store::row_table::{Interned, RowTable};
use crate::table_window::{Extent, TableWindow};
use crate::types::DataType;

pub struct Source {
    pub name: String,
    pub columns: Vec<InputColumn>,
    pub key: Vec<usize>,
    interned: Interned,
    /// No change may delete a row or replace it; a window still does.
    insert_only: bool,
    /// Rows by primary key: words, NULL mask, atom mask.
    keyed: Option<RowTable>,
    log: Vec<Undo>,
    window: Option<TableWindow>,
    window_column: Option<usize>,
    /// Rows that arrived when they were already outside the window; those since the last `commit`
    /// are counted separately.
    late: u64,
    late_now: u64,
}

enum Undo {
    Inserted(u32),
    Removed(Box<[Word]>),
}

/// Changes to rows of the table, in order, after keys and windows.
#[derive(Default)]
pub struct Events {
    pub rows: Chunk,
    pub atoms: Vec<u64>,
    /// The position of the change behind each event; empty when event i is change i.
    causes: Vec<u32>,
}

impl From<Changes> for Events {
    /// Each change of a table without state is its own event; one with a fault has weight 0.
    fn from(mut changes: Changes) -> Events {
        for fault in &changes.faults {
            changes.rows.weights[fault.row] = 0;
        }
        Events { rows: changes.rows, atoms: changes.atoms, causes: Vec::new() }
    }
}

impl Events {
    pub fn cause(&self, event: usize) -> usize {
        self.causes.get(event).map_or(event, |cause| *cause as usize)
    }

    pub fn atoms_at(&self, event: usize) -> u64 {
        self.atoms.get(event).copied().unwrap_or(u64::MAX)
    }

    fn push(&mut self, row: &[Word], weight: i64, cause: usize) {
        let columns = row.len() - 2;
        self.rows.push(&row[..columns], row[columns], weight);
        self.atoms.push(row[columns + 1]);
        self.causes.push(cause as u32);
    }
}

impl Source {
    pub fn new(table: &plan::Table) -> Result<Source> {
        let fail =
            |message: String| KernelError::plan("CROWN-PLAN-MALFORMED", format!("table '{}': {message}", table.name));
        let mut columns = Vec::new();
        for column in &table.columns {
            let (name, nullable) = (column.name.clone(), column.nullable);
            columns.push(InputColumn { name, data_type: DataType::parse(&column.data_type)?, nullable });
        }
        let position = |name: &str| {
            columns.iter().position(|column| column.name == name).ok_or_else(|| fail(format!("no column '{name}'")))
        };
        let key = table.primary_key.iter().map(|name| position(name)).collect::<Result<Vec<usize>>>()?;
        let is_interned = |column: &usize| columns[*column].data_type.interned();
        let interned = Interned { columns: (0..columns.len()).filter(is_interned).collect(), nulls: columns.len() };
        let width = columns.len() + 2;
        let window_column = match &table.window {
            Some(plan::Window { interval: Some(_), column: Some(column), .. }) => Some(position(column)?),
            _ => None,
        };
        let extent = match (&table.window, window_column) {
            (None, _) => None,
            (Some(plan::Window { rows: Some(rows), .. }), _) => Some(Extent::Rows(*rows)),
            (Some(plan::Window { interval: Some(interval), .. }), Some(column)) if *interval >= 0 => {
                Some(Extent::Interval { column, interval: *interval })
            }
            _ => return Err(fail("a window needs a number of rows, or a column and an interval of at least 0".into())),
        };
        let ordered = |column: usize| {
            use DataType::{Date, Int16, Int32, Int64, Int8, Timestamp, TimestampNtz};
            matches!(columns[column].data_type, Int8 | Int16 | Int32 | Int64 | Date | Timestamp | TimestampNtz)
        };
        if window_column.is_some_and(|column| !ordered(column)) {
            return Err(fail("the column of a window must be an integer, a date or a timestamp".into()));
        }
        Ok(Source {
            name: table.name.clone(),
            keyed: (!key.is_empty()).then(|| RowTable::new(width, key.clone())),
            window: extent.map(|extent| TableWindow::new(extent, width, interned.clone())),
            columns,
            key,
            interned,
            insert_only: table.profile == "insert_only",
            log: Vec::new(),
            window_column,
            late: 0,
            late_now: 0,
        })
    }

    pub fn has_state(&self) -> bool {
        self.keyed.is_some() || self.window.is_some()
    }

    /// Deletions from a table that is insert-only are faults of their changes.
    pub fn check_profile(&self, changes: &mut Changes) {
        if !self.insert_only {
            return;
        }
        let faults = changes.faults.len();
        for (row, weight) in changes.rows.weights.iter().enumerate() {
            if *weight < 0 && changes.faults[..faults].binary_search_by_key(&row, |fault| fault.row).is_err() {
                changes.faults.push(Fault { row, code: PROFILE, reason: insert_only("deletions") });
            }
        }
        changes.faults.sort_by_key(|fault| fault.row);
    }

    pub fn late(&self) -> u64 {
        self.late
    }

    /// The effect of the changes on the table's rows, for a table with state. Changes with faults
    /// have no events; further faults are added. `check` returns whether the atoms can bind a row.
    pub fn resolve(
        &mut self,
        changes: &mut Changes,
        interner: &mut Interner,
        check: impl Fn(&[Word], Nulls, u64, &mut Interner) -> Result<()>,
    ) -> Events {
        let mut events = Events { rows: Chunk::new(self.columns.len()), ..Events::default() };
        let mut known = std::mem::take(&mut changes.faults).into_iter().peekable();
        let mut row = Vec::new();
        for index in 0..changes.len() {
            if let Some(fault) = known.next_if(|fault| fault.row == index) {
                changes.faults.push(fault);
                continue;
            }
            let nulls = changes.rows.read(index, &mut row);
            row.extend([nulls, changes.atoms_at(index)]);
            let weight = changes.rows.weights[index];
            let done = if weight > 0 {
                self.insert(&row, weight, index, &mut events, interner, &check)
            } else {
                self.delete(&row, -weight, changes.absent, index, &mut events, interner)
            };
            if let Err((code, reason)) = done {
                changes.faults.push(Fault { row: index, code, reason });
            }
        }
        events
    }

    fn insert(
        &mut self,
        row: &[Word],
        count: i64,
        cause: usize,
        events: &mut Events,
        interner: &mut Interner,
        check: &impl Fn(&[Word], Nulls, u64, &mut Interner) -> Result<()>,
    ) -> std::result::Result<(), (&'static str, String)> {
        let (columns, nulls, mask) = (self.columns.len(), row[self.columns.len()], row[self.columns.len() + 1]);
        let count = self.count(count)?;
        self.check_key(nulls)?;
        check(&row[..columns], nulls, mask, interner).map_err(|error| (error.code, error.message))?;
        if let Some(window) = &self.window {
            if self.window_column.is_some_and(|column| nulls.has(column)) {
                return Err(("CROWN-CHANGE-NULL", "NULL in the column of the window".into()));
            }
            if window.is_late(row) {
                self.late_now += u64::from(count);
                return Ok(());
            }
        }
        if let Some(keyed) = &mut self.keyed {
            if let Some(slot) = keyed.find(row) {
                let old: Box<[Word]> = keyed.row(slot).into();
                if *old == *row {
                    return Ok(());
                }
                if self.insert_only {
                    return Err((PROFILE, insert_only("updates")));
                }
                events.push(&old, -1, cause);
                if let Some(window) = &mut self.window {
                    window.delete(&old, 1, interner);
                }
                forget(keyed, slot, &self.interned, &mut self.log, interner);
            }
            if mask == 0 {
                return Ok(());
            }
            let slot = keyed.insert(row);
            self.interned.retain(row, interner);
            self.log.push(Undo::Inserted(slot));
        }
        events.push(row, count.into(), cause);
        if let Some(window) = &mut self.window {
            window.push(row, count, interner);
        }
        self.expire(cause, events, interner);
        Ok(())
    }

    fn delete(
        &mut self,
        row: &[Word],
        count: i64,
        missing: Mask,
        cause: usize,
        events: &mut Events,
        interner: &mut Interner,
    ) -> std::result::Result<(), (&'static str, String)> {
        let (nulls, mask) = (row[self.columns.len()], row[self.columns.len() + 1]);
        let count = self.count(count)?;
        self.check_key(nulls)?;
        if let Some(keyed) = &mut self.keyed {
            let Some(slot) = keyed.find(row) else {
                return if mask == 0 { Ok(()) } else { Err(absent()) };
            };
            let old: Box<[Word]> = keyed.row(slot).into();
            let old_nulls = old[self.columns.len()];
            for (position, column) in self.columns.iter().enumerate() {
                let given = !missing.has(position) && !nulls.has(position);
                if given && (old_nulls.has(position) || old[position] != row[position]) {
                    let reason =
                        format!("the row with this primary key has a different value in column '{}'", column.name);
                    return Err(("CROWN-CHANGE-DIFFERS", reason));
                }
            }
            forget(keyed, slot, &self.interned, &mut self.log, interner);
            if let Some(window) = &mut self.window {
                window.delete(&old, 1, interner);
            }
            events.push(&old, -1, cause);
        } else if let Some(window) = &mut self.window {
            if window.copies(row) < count.into() {
                return Err(absent());
            }
            window.delete(row, count, interner);
            events.push(row, -i64::from(count), cause);
        }
        Ok(())
    }

    /// Moves the window's clock; returns the deletions.
    pub fn advance(&mut self, watermark: i64, interner: &mut Interner) -> Result<Events> {
        let mut events = Events { rows: Chunk::new(self.columns.len()), ..Events::default() };
        match (&mut self.window, self.window_column) {
            (Some(window), Some(_)) => window.advance(watermark),
            _ => {
                let message = format!("table '{}' has no time window to advance", self.name);
                return Err(KernelError::invalid("CROWN-CHANGE-WINDOW", message));
            }
        }
        self.expire(0, &mut events, interner);
        Ok(events)
    }

    fn expire(&mut self, cause: usize, events: &mut Events, interner: &mut Interner) {
        let Some(window) = &mut self.window else { return };
        let mut leaving: Vec<Box<[Word]>> = Vec::new();
        let keyed = self.keyed.is_some();
        window.expire(interner, |row, count| {
            events.push(row, -i64::from(count), cause);
            if keyed {
                leaving.push(row.into());
            }
        });
        for row in leaving {
            let keyed = self.keyed.as_mut().expect("rows are collected only with a primary key");
            if let Some(slot) = keyed.find(&row) {
                forget(keyed, slot, &self.interned, &mut self.log, interner);
            }
        }
    }

    fn count(&self, count: i64) -> std::result::Result<u32, (&'static str, String)> {
        match u32::try_from(count) {
            Ok(count) if self.keyed.is_none() || count == 1 => Ok(count),
            _ => Err(("CROWN-CHANGE-VALUE", format!("a change of {count} copies of a row is not allowed here"))),
        }
    }

    fn check_key(&self, nulls: Nulls) -> std::result::Result<(), (&'static str, String)> {
        match self.key.iter().find(|column| nulls.has(**column)) {
            Some(column) => {
                Err(("CROWN-CHANGE-NULL", format!("column '{}': NULL in a primary key", self.columns[*column].name)))
            }
            None => Ok(()),
        }
    }

    /// Takes back everything since the last `commit`.
    pub fn undo(&mut self, interner: &mut Interner) {
        self.late_now = 0;
        if let Some(keyed) = &mut self.keyed {
            for step in self.log.drain(..).rev() {
                match step {
                    Undo::Inserted(slot) => {
                        self.interned.release(keyed.row(slot), interner);
                        keyed.remove(slot);
                    }
                    Undo::Removed(row) => {
                        keyed.insert(&row);
                        self.interned.retain(&row, interner);
                    }
                }
            }
        }
        if let Some(window) = &mut self.window {
            window.undo(interner);
        }
    }

    pub fn commit(&mut self, interner: &mut Interner) {
        self.late += std::mem::take(&mut self.late_now);
        self.log.clear();
        self.log.shrink_to(1024);
        if let Some(keyed) = &mut self.keyed {
            keyed.shrink();
        }
        if let Some(window) = &mut self.window {
            window.commit(interner);
        }
    }

    /// The stored rows in the order in which they must be loaded again: words, NULL mask, atom
    /// mask, copies.
    pub fn stored_rows(&self) -> Vec<(&[Word], u32)> {
        match (&self.window, &self.keyed) {
            (Some(window), _) => window.rows().collect(),
            (None, Some(keyed)) => keyed.slots().into_iter().map(|slot| (keyed.row(slot), 1)).collect(),
            (None, None) => Vec::new(),
        }
    }

    /// Puts a row of `stored_rows` back into an empty source.
    pub fn restore(&mut self, row: &[Word], count: u32, interner: &mut Interner) {
        if let Some(keyed) = &mut self.keyed {
            if keyed.find(row).is_none() {
                keyed.insert(row);
                self.interned.retain(row, interner);
            }
        }
        if let Some(window) = &mut self.window {
            window.push(row, count, interner);
        }
    }

    /// The clock of the window, and the count of late rows: what a saved state needs besides the
    /// rows.
    pub fn clock(&self) -> (Option<i64>, u64) {
        (self.window.as_ref().and_then(TableWindow::newest), self.late)
    }

    pub fn set_clock(&mut self, newest: Option<i64>, late: u64) {
        self.late = late;
        if let (Some(window), Some(newest)) = (&mut self.window, newest) {
            window.advance(newest);
        }
    }

    /// Releases the values of all rows; the source must not be used after it.
    pub fn release(&self, interner: &mut Interner) {
        if let Some(keyed) = &self.keyed {
            keyed.slots().into_iter().for_each(|slot| self.interned.release(keyed.row(slot), interner));
        }
        if let Some(window) = &self.window {
            window.release(interner);
        }
    }

    pub fn stored_count(&self) -> u64 {
        let keyed = self.keyed.as_ref().map_or(0, |keyed| keyed.len() as u64);
        self.window.as_ref().map_or(keyed, TableWindow::len)
    }

    pub fn bytes(&self) -> usize {
        self.keyed.as_ref().map_or(0, RowTable::bytes) + self.window.as_ref().map_or(0, TableWindow::bytes)
    }
}

const PROFILE: &str = "CROWN-CHANGE-PROFILE";

fn insert_only(changes: &str) -> String {
    format!("the table is declared insert_only, so {changes} are not allowed")
}

fn absent() -> (&'static str, String) {
    ("CROWN-CHANGE-ABSENT", "the deleted row is not in the table".into())
}

fn forget(keyed: &mut RowTable, slot: u32, interned: &Interned, log: &mut Vec<Undo>, interner: &mut Interner) {
    interned.release(keyed.row(slot), interner);
    log.push(Undo::Removed(keyed.row(slot).into()));
    keyed.remove(slot);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(window: Option<plan::Window>) -> Source {
        let column = |name: &str| plan::TableColumn { name: name.into(), data_type: "int64".into(), nullable: true };
        Source::new(&plan::Table {
            name: "r".into(),
            columns: vec![column("key"), column("value")],
            primary_key: vec!["key".into()],
            profile: "arbitrary".into(),
            window,
            updates: 1.0,
        })
        .unwrap()
    }

    /// Events as (row, weight), and the codes of faults, of (row, NULL mask, weight).
    fn resolve(source: &mut Source, rows: &[([Word; 2], Nulls, i64)]) -> (Vec<([Word; 2], i64)>, Vec<&'static str>) {
        let mut changes = Changes::new(2);
        for (row, nulls, weight) in rows {
            changes.push(&source.columns.clone(), row, *nulls, *weight);
        }
        let events = source.resolve(&mut changes, &mut Interner::default(), |_, _, _, _| Ok(()));
        let rows = &events.rows;
        let event = |index| ([rows.columns[0][index], rows.columns[1][index]], rows.weights[index]);
        ((0..rows.len()).map(event).collect(), changes.faults.iter().map(|fault| fault.code).collect())
    }

    #[test]
    fn an_upsert_is_the_old_row_going_and_the_new_one_coming() {
        let mut source = source(None);
        let (events, faults) = resolve(&mut source, &[([1, 5], 0, 1), ([1, 6], 0, 1), ([1, 6], 0, 1)]);
        assert_eq!(events, [([1, 5], 1), ([1, 5], -1), ([1, 6], 1)]);
        assert!(faults.is_empty());
        let (events, faults) =
            resolve(&mut source, &[([1, 5], 0, -1), ([2, 0], 0b10, -1), ([0, 1], 0b01, 1), ([1, 0], 0b10, -1)]);
        assert_eq!(events, [([1, 6], -1)]);
        assert_eq!(faults, ["CROWN-CHANGE-DIFFERS", "CROWN-CHANGE-ABSENT", "CROWN-CHANGE-NULL"]);
    }

    #[test]
    fn undo_restores_rows_and_slots() {
        let mut source = source(Some(plan::Window { rows: Some(2), interval: None, column: None }));
        resolve(&mut source, &[([1, 5], 0, 1), ([2, 5], 0, 1)]);
        source.commit(&mut Interner::default());
        let rows =
            |source: &Source| -> Vec<Vec<Word>> { source.stored_rows().iter().map(|(row, _)| row.to_vec()).collect() };
        let before = rows(&source);
        let (events, _) = resolve(&mut source, &[([2, 7], 0, 1), ([3, 1], 0, 1), ([4, 1], 0, 1)]);
        let expected = [([2, 5], -1), ([2, 7], 1), ([3, 1], 1), ([1, 5], -1), ([4, 1], 1), ([2, 7], -1)];
        assert_eq!(events, expected);
        source.undo(&mut Interner::default());
        assert_eq!(rows(&source), before);
        assert_eq!(source.stored_count(), 2);
    }
}
