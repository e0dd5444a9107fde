//! Windows: rows of a table that expire.
//!
//! Each distinct row is stored once, with the number of its copies in the window; a queue holds the
//! arrivals. A copy that was deleted before it expired stays in the queue as a dead arrival and is
//! skipped. Equal rows can't be told apart, so the oldest copies count as the deleted ones.

use crate::chunk::Word;
use crate::store::interner::Interner;
use crate::store::row_table::{Interned, RowTable};
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Copy, Debug)]
pub enum Extent {
    /// The newest n rows.
    Rows(u64),
    /// Rows whose `column` is at least the newest value less `interval`.
    Interval { column: usize, interval: i64 },
}

/// `count` copies of the row in `slot` that arrived together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arrival {
    slot: u32,
    count: u32,
}

/// A row is passed and stored as the table's words, the NULL mask and the atom mask; two counters
/// follow in the store.
pub struct TableWindow {
    extent: Extent,
    width: usize,
    /// The columns whose words are the interner's: retained while their row is stored.
    interned: Interned,
    store: RowTable,
    /// In order of arrival; for an interval also in order of the column.
    queue: VecDeque<Arrival>,
    /// Arrivals behind the newest of the queue, by column value and arrival.
    late: BTreeMap<(i64, u64), Arrival>,
    sequence: u64,
    newest: Option<i64>,
    alive: u64,
    dead: u64,
    log: Vec<Undo>,
}

enum Undo {
    Stored(u32),
    Forgotten(Box<[Word]>),
    Counters { slot: u32, alive: Word, dead: Word },
    Pushed,
    Popped(Arrival),
    LatePushed((i64, u64)),
    LatePopped((i64, u64), Arrival),
    Newest(Option<i64>),
}

impl TableWindow {
    /// `width` counts the table's columns, the NULL mask and the atom mask.
    pub fn new(extent: Extent, width: usize, interned: Interned) -> TableWindow {
        TableWindow {
            extent,
            width,
            interned,
            store: RowTable::new(width + 2, (0..width).collect::<Vec<_>>()),
            queue: VecDeque::new(),
            late: BTreeMap::new(),
            sequence: 0,
            newest: None,
            alive: 0,
            dead: 0,
            log: Vec::new(),
        }
    }

    /// How many rows are in the window.
    pub fn len(&self) -> u64 {
        self.alive
    }

    fn time(&self, row: &[Word]) -> i64 {
        match self.extent {
            Extent::Rows(_) => 0,
            Extent::Interval { column, .. } => row[column] as i64,
        }
    }

    /// The smallest column value inside the window, once a row has arrived.
    fn horizon(&self) -> Option<i64> {
        match (self.extent, self.newest) {
            (Extent::Interval { interval, .. }, Some(newest)) => Some(newest.saturating_sub(interval)),
            _ => None,
        }
    }

    /// Whether the row is already outside.
    pub fn is_late(&self, row: &[Word]) -> bool {
        self.horizon().is_some_and(|horizon| self.time(row) < horizon)
    }

    pub fn copies(&self, row: &[Word]) -> u64 {
        self.store.find(row).map_or(0, |slot| self.store.row(slot)[self.width])
    }

    /// `count` copies of a row that is not late. Call `expire` after.
    pub fn push(&mut self, row: &[Word], count: u32, interner: &mut Interner) {
        let slot = self.slot(row, interner);
        let time = self.time(row);
        let arrival = Arrival { slot, count };
        self.count(slot, i64::from(count), 0, interner);
        match self.queue.back().map(|last| self.time(self.store.row(last.slot))) {
            Some(last) if time < last => {
                self.sequence += 1;
                let key = (time, self.sequence);
                self.late.insert(key, arrival);
                self.log.push(Undo::LatePushed(key));
            }
            _ => {
                self.queue.push_back(arrival);
                self.log.push(Undo::Pushed);
            }
        }
        self.advance(time);
    }

    /// Moves the clock of an interval window forward (never back).
    pub fn advance(&mut self, time: i64) {
        if matches!(self.extent, Extent::Interval { .. }) && self.newest.is_none_or(|newest| newest < time) {
            self.log.push(Undo::Newest(self.newest));
            self.newest = Some(time);
        }
    }

    /// Takes `count` copies out that are there.
    pub fn delete(&mut self, row: &[Word], count: u32, interner: &mut Interner) {
        let slot = self.slot(row, interner);
        self.count(slot, -i64::from(count), i64::from(count), interner);
    }

    /// Calls `leaves` with each row (and its number of copies) that is no longer inside.
    pub fn expire(&mut self, interner: &mut Interner, mut leaves: impl FnMut(&[Word], u32)) {
        while let Some((arrival, late)) = self.oldest() {
            let outside = match self.extent {
                Extent::Rows(rows) => self.alive.saturating_sub(rows),
                Extent::Interval { .. } => {
                    if self.is_late(self.store.row(arrival.slot)) {
                        u64::MAX
                    } else {
                        0
                    }
                }
            };
            if outside == 0 {
                break;
            }
            self.pop(late, arrival);
            let dead = self.store.row(arrival.slot)[self.width + 1].min(arrival.count.into()) as u32;
            let living = arrival.count - dead;
            let leaving = u64::from(living).min(outside) as u32;
            if leaving > 0 {
                leaves(&self.store.row(arrival.slot)[..self.width], leaving);
            }
            if leaving < living {
                // Only a count window splits an arrival, and it has no late ones.
                let rest = Arrival { slot: arrival.slot, count: living - leaving };
                self.queue.push_front(rest);
                self.log.push(Undo::Popped(Arrival { slot: rest.slot, count: 0 }));
            }
            self.count(arrival.slot, -i64::from(leaving), -i64::from(dead), interner);
        }
    }

    fn oldest(&self) -> Option<(Arrival, Option<(i64, u64)>)> {
        let front = self.queue.front().map(|arrival| (*arrival, self.time(self.store.row(arrival.slot))));
        match (front, self.late.first_key_value()) {
            (Some((_, time)), Some((key, arrival))) if key.0 < time => Some((*arrival, Some(*key))),
            (Some((arrival, _)), _) => Some((arrival, None)),
            (None, Some((key, arrival))) => Some((*arrival, Some(*key))),
            (None, None) => None,
        }
    }

    fn pop(&mut self, late: Option<(i64, u64)>, arrival: Arrival) {
        match late {
            Some(key) => {
                self.late.remove(&key);
                self.log.push(Undo::LatePopped(key, arrival));
            }
            None => {
                self.queue.pop_front();
                self.log.push(Undo::Popped(arrival));
            }
        }
    }

    fn slot(&mut self, row: &[Word], interner: &mut Interner) -> u32 {
        self.store.find(row).unwrap_or_else(|| {
            let mut stored = row.to_vec();
            stored.extend([0, 0]);
            let slot = self.store.insert(&stored);
            self.interned.retain(row, interner);
            self.log.push(Undo::Stored(slot));
            slot
        })
    }

    fn count(&mut self, slot: u32, alive: i64, dead: i64, interner: &mut Interner) {
        let width = self.width;
        let row = self.store.row_mut(slot);
        self.log.push(Undo::Counters { slot, alive: row[width], dead: row[width + 1] });
        row[width] = row[width].wrapping_add_signed(alive);
        row[width + 1] = row[width + 1].wrapping_add_signed(dead);
        let gone = row[width] == 0 && row[width + 1] == 0;
        self.alive = self.alive.wrapping_add_signed(alive);
        self.dead = self.dead.wrapping_add_signed(dead);
        if gone {
            self.interned.release(self.store.row(slot), interner);
            self.log.push(Undo::Forgotten(self.store.row(slot).into()));
            self.store.remove(slot);
        }
    }

    /// Takes back everything since the last `commit`.
    pub fn undo(&mut self, interner: &mut Interner) {
        let width = self.width;
        for step in std::mem::take(&mut self.log).into_iter().rev() {
            match step {
                Undo::Stored(slot) => {
                    self.interned.release(self.store.row(slot), interner);
                    self.store.remove(slot);
                }
                Undo::Forgotten(row) => {
                    self.interned.retain(&row, interner);
                    self.store.insert(&row);
                }
                Undo::Counters { slot, alive, dead } => {
                    let row = self.store.row_mut(slot);
                    self.alive = self.alive.wrapping_add(alive).wrapping_sub(row[width]);
                    self.dead = self.dead.wrapping_add(dead).wrapping_sub(row[width + 1]);
                    (row[width], row[width + 1]) = (alive, dead);
                }
                Undo::Pushed => {
                    self.queue.pop_back();
                }
                // A count of 0 marks the rest of a split arrival: the whole one follows.
                Undo::Popped(Arrival { count: 0, .. }) => {
                    self.queue.pop_front();
                }
                Undo::Popped(arrival) => self.queue.push_front(arrival),
                Undo::LatePushed(key) => {
                    self.late.remove(&key);
                }
                Undo::LatePopped(key, arrival) => {
                    self.late.insert(key, arrival);
                }
                Undo::Newest(newest) => self.newest = newest,
            }
        }
    }

    /// Makes everything final, and drops dead arrivals when they are most of the queue.
    pub fn commit(&mut self, interner: &mut Interner) {
        self.log.clear();
        self.log.shrink_to(1024);
        let arrivals = (self.queue.len() + self.late.len()) as u64;
        if self.dead > 64 && 2 * self.dead > arrivals {
            self.compact(interner);
        }
        if self.queue.capacity() > 4 * self.queue.len().max(64) {
            self.queue.shrink_to(2 * self.queue.len());
        }
        self.store.shrink();
    }

    fn compact(&mut self, interner: &mut Interner) {
        let mut arrivals = Vec::new();
        while let Some((mut arrival, late)) = self.oldest() {
            self.pop(late, arrival);
            let dead = self.store.row(arrival.slot)[self.width + 1].min(arrival.count.into()) as u32;
            arrival.count -= dead;
            self.count(arrival.slot, 0, -i64::from(dead), interner);
            if arrival.count > 0 {
                arrivals.push(arrival);
            }
        }
        self.queue = arrivals.into();
        self.log.clear();
    }

    /// The rows in order of leaving, with their copies.
    pub fn rows(&self) -> impl Iterator<Item = (&[Word], u32)> {
        let mut dead: Vec<Word> = Vec::new();
        let mut arrivals: Vec<Arrival> = self.queue.iter().copied().collect();
        arrivals.extend(self.late.values().copied());
        arrivals.sort_by_key(|arrival| self.time(self.store.row(arrival.slot)));
        arrivals.into_iter().filter_map(move |arrival| {
            let slot = arrival.slot as usize;
            if dead.len() <= slot {
                dead.resize(slot + 1, 0);
            }
            let row = self.store.row(arrival.slot);
            let skipped = (row[self.width + 1] - dead[slot]).min(arrival.count.into());
            dead[slot] += skipped;
            let count = arrival.count - skipped as u32;
            (count > 0).then_some((&row[..self.width], count))
        })
    }

    /// Releases the values of all rows; the window must not be used after it.
    pub fn release(&self, interner: &mut Interner) {
        self.store.slots().into_iter().for_each(|slot| self.interned.release(self.store.row(slot), interner));
    }

    pub fn newest(&self) -> Option<i64> {
        self.newest
    }

    pub fn bytes(&self) -> usize {
        self.store.bytes() + self.queue.capacity() * 8 + self.late.len() * 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(extent: Extent) -> TableWindow {
        TableWindow::new(extent, 3, Interned { columns: Vec::new(), nulls: 1 })
    }

    fn push(window: &mut TableWindow, value: Word, count: u32) -> Vec<(Word, u32)> {
        let (mut interner, mut gone) = (Interner::default(), Vec::new());
        window.push(&[value, 0, 0], count, &mut interner);
        window.expire(&mut interner, |row, count| gone.push((row[0], count)));
        gone
    }

    fn contents(window: &TableWindow) -> Vec<(Word, u32)> {
        window.rows().map(|(row, count)| (row[0], count)).collect()
    }

    #[test]
    fn the_oldest_rows_beyond_the_count_leave_and_deleted_ones_are_passed_over() {
        let mut rows = window(Extent::Rows(3));
        assert_eq!(push(&mut rows, 1, 1), []);
        assert_eq!(push(&mut rows, 2, 2), []);
        rows.delete(&[1, 0, 0], 1, &mut Interner::default());
        assert_eq!(push(&mut rows, 3, 1), []);
        assert_eq!(push(&mut rows, 1, 1), [(2, 1)], "the second 1 is not the deleted one");
        assert_eq!(contents(&rows), [(2, 1), (3, 1), (1, 1)]);
        assert_eq!(rows.len(), 3);
    }

    #[test]
    fn late_rows_leave_in_the_order_of_their_column() {
        let mut rows = window(Extent::Interval { column: 0, interval: 10 });
        for (value, gone) in
            [(100, vec![]), (93, vec![]), (95, vec![]), (104, vec![(93, 1)]), (111, vec![(95, 1), (100, 1)])]
        {
            assert_eq!(push(&mut rows, value, 1), gone, "{value}");
        }
        assert!(rows.is_late(&[100, 0, 0]) && !rows.is_late(&[101, 0, 0]));
        assert_eq!(contents(&rows), [(104, 1), (111, 1)]);
    }

    #[test]
    fn undo_restores_everything_and_commit_drops_dead_arrivals() {
        let mut interner = Interner::default();
        let mut rows = window(Extent::Rows(4));
        (0..4).for_each(|value| drop(push(&mut rows, value, 1)));
        rows.commit(&mut interner);
        let before = contents(&rows);
        push(&mut rows, 9, 3);
        rows.delete(&[9, 0, 0], 2, &mut interner);
        push(&mut rows, 1, 2);
        rows.undo(&mut interner);
        assert_eq!((contents(&rows), rows.len()), (before, 4));
        for value in 100..400 {
            push(&mut rows, value, 1);
            rows.delete(&[value, 0, 0], 1, &mut interner);
            rows.commit(&mut interner);
        }
        assert!(rows.queue.len() < 200, "{}", rows.queue.len());
        assert_eq!(rows.len(), rows.store.len() as u64 - rows.dead);
    }
}
