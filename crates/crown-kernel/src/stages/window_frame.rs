//! The rows of a partition in order, and which of them a frame has.

use crate::chunk::{Nulls, Word};
use crate::plan::{FrameUnit, WindowFrame};
use std::ops::Range;

#[derive(Clone, Default)]
pub(super) struct Row {
    pub key: Box<[u8]>,
    /// How much of the key is partition and order.
    pub order: u32,
    /// The input's words, then those of the functions.
    pub words: Box<[Word]>,
    pub nulls: Nulls,
    /// The value that RANGE adds a distance to, growing in the order.
    pub distance: Option<i128>,
    /// It was inserted in the current batch.
    pub fresh: bool,
}

impl Row {
    pub fn fresh(
        key: Box<[u8]>,
        order: u32,
        words: &[Word],
        nulls: Nulls,
        distance: Option<i128>,
        width: usize,
    ) -> Row {
        let mut all = words.to_vec();
        all.resize(width, 0);
        Row { key, order, words: all.into(), nulls, distance, fresh: true }
    }

    /// Rows with equal bytes are equal in partition and order.
    pub fn peers(&self) -> &[u8] {
        &self.key[..self.order as usize]
    }
}

pub(super) struct Frames<'a> {
    pub rows: &'a [Row],
    pub nulls_first: bool,
}

impl Frames<'_> {
    pub fn has_distance(frame: &WindowFrame) -> bool {
        let far = |bound: Option<i64>| bound.is_some_and(|bound| bound != 0);
        frame.unit == FrameUnit::Range && (far(frame.start) || far(frame.end))
    }

    /// The rows that are equal in the order.
    pub fn peers(&self, position: usize) -> Range<usize> {
        let Some(row) = self.rows.get(position) else { return position..position };
        let own = row.peers();
        // Most have few: look at the neighbours first.
        let (mut start, mut end) = (position, position + 1);
        for _ in 0..8 {
            if start > 0 && self.rows[start - 1].peers() == own {
                start -= 1;
            }
            if end < self.rows.len() && self.rows[end].peers() == own {
                end += 1;
            }
        }
        if start > 0 && self.rows[start - 1].peers() == own {
            start = self.rows[..start].partition_point(|other| other.peers() < own);
        }
        if end < self.rows.len() && self.rows[end].peers() == own {
            end += self.rows[end..].partition_point(|other| other.peers() <= own);
        }
        start..end
    }

    /// The frame of a row; empty if it ends before it starts.
    pub fn bounds(&self, position: usize, frame: &WindowFrame) -> Range<usize> {
        let rows = self.rows.len();
        let (start, end) = match frame.unit {
            FrameUnit::Rows => {
                let at = |offset: i64| (position as i64).saturating_add(offset).clamp(0, rows as i64) as usize;
                (frame.start.map_or(0, at), frame.end.map_or(rows, |end| at(end.saturating_add(1))))
            }
            FrameUnit::Range => (
                frame.start.map_or(0, |start| self.distant(position, start, false)),
                frame.end.map_or(rows, |end| self.distant(position, end, true)),
            ),
        };
        start..end.max(start)
    }

    /// The first row at a distance, or the first row beyond it. A row without a value has its
    /// peers.
    fn distant(&self, position: usize, offset: i64, beyond: bool) -> usize {
        let peers = self.peers(position);
        let value = match self.rows[position].distance {
            Some(value) if offset != 0 => value + i128::from(offset),
            _ => return if beyond { peers.end } else { peers.start },
        };
        let counted = if self.nulls_first {
            self.rows.partition_point(|row| row.distance.is_none())..self.rows.len()
        } else {
            0..self.rows.partition_point(|row| row.distance.is_some())
        };
        let before = |row: &Row| {
            let own = row.distance.unwrap_or(value);
            own < value || beyond && own == value
        };
        counted.start + self.rows[counted].partition_point(before)
    }
}
