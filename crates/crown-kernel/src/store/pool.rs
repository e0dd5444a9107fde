//! A pool of buffers for output columns.
//!
//! The columns of a large delta are returned as Arrow arrays. If each used fresh memory, the system
//! would have to clear it first, which takes a large part of the time of writing it. So when the
//! last reference to a column is dropped, its buffer returns to the pool.

use crate::chunk::{Chunk, Word};
use arrow::buffer::Buffer;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Rows of a full block. Output leaves in record batches of about this size.
pub const BLOCK_ROWS: usize = 65536;

/// Words that a block has room for: a little more, since a walk ends where it ends.
const ROOM: usize = BLOCK_ROWS + BLOCK_ROWS / 8;

/// Bytes of blocks that may wait here.
const MOST: usize = 64 << 20;

type Free = Mutex<Vec<Vec<Word>>>;

/// The blocks of one engine that wait for their next use.
#[derive(Clone, Default)]
pub struct ColumnPool {
    free: Arc<Free>,
}

impl ColumnPool {
    /// Makes the chunk empty, with new columns for a delta of `rows`, or for its first block. Room
    /// for weights is kept.
    pub fn renew(&self, chunk: &mut Chunk, columns: usize, rows: usize) {
        let column = |_| if rows >= BLOCK_ROWS { self.take() } else { Vec::with_capacity(rows + rows / 8) };
        chunk.columns = (0..columns).map(column).collect();
        chunk.nulls.clear();
        chunk.weights.clear();
    }

    fn take(&self) -> Vec<Word> {
        let known = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        known.unwrap_or_else(|| Vec::with_capacity(ROOM))
    }

    /// The words as an Arrow buffer, without a copy.
    pub fn buffer(&self, mut words: Vec<Word>) -> Buffer {
        if words.capacity() != ROOM {
            return Buffer::from_vec(words);
        }
        let start = NonNull::new(words.as_mut_ptr().cast::<u8>()).expect("a vector's memory is not null");
        let length = words.len() * size_of::<Word>();
        // SAFETY: the memory belongs to `words`, which the buffer owns and nobody changes until it
        // is dropped.
        unsafe { Buffer::from_custom_allocation(start, length, Arc::new(Lent::new(words, &self.free))) }
    }

    /// Lets go of blocks that a delta of `rows` has no use for.
    pub fn trim(&self, columns: usize, rows: usize) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.truncate(columns * rows.div_ceil(BLOCK_ROWS));
        free.shrink_to_fit();
    }
}

/// A block while somebody reads it.
struct Lent {
    words: Vec<Word>,
    home: Weak<Free>,
}

impl Lent {
    fn new(words: Vec<Word>, home: &Arc<Free>) -> Lent {
        Lent { words, home: Arc::downgrade(home) }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(home) = self.home.upgrade() else { return };
        let mut free = home.lock().unwrap_or_else(PoisonError::into_inner);
        if (free.len() + 1) * ROOM * size_of::<Word>() <= MOST {
            self.words.clear();
            free.push(std::mem::take(&mut self.words));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(pool: &ColumnPool) -> usize {
        pool.free.lock().unwrap().len()
    }

    fn full_block(pool: &ColumnPool, word: Word) -> Buffer {
        let mut chunk = Chunk::default();
        pool.renew(&mut chunk, 1, BLOCK_ROWS);
        chunk.columns[0].resize(BLOCK_ROWS, word);
        pool.buffer(chunk.columns.remove(0))
    }

    #[test]
    fn a_block_comes_back_when_its_last_reader_lets_go() {
        let pool = ColumnPool::default();
        let first = full_block(&pool, 7);
        let (again, place) = (first.clone(), first.as_ptr());
        drop(first);
        assert_eq!(waiting(&pool), 0);
        assert!(again.typed_data::<u64>().iter().all(|word| *word == 7));
        drop(again);
        assert_eq!(waiting(&pool), 1);
        assert_eq!(full_block(&pool, 8).as_ptr(), place);
    }

    #[test]
    fn readers_may_outlive_the_engine_and_small_columns_stay_away() {
        let pool = ColumnPool::default();
        let buffer = full_block(&pool, 7);
        drop(pool.buffer(vec![1, 2, 3]));
        assert_eq!(waiting(&pool), 0);
        drop(pool);
        assert_eq!(buffer.typed_data::<u64>()[BLOCK_ROWS - 1], 7);
    }

    #[test]
    fn what_waits_is_bounded_and_follows_the_deltas() {
        let pool = ColumnPool::default();
        let most = MOST / (ROOM * size_of::<Word>());
        drop((0..most + 20).map(|_| full_block(&pool, 1)).collect::<Vec<_>>());
        assert_eq!(waiting(&pool), most);
        pool.trim(4, 2 * BLOCK_ROWS);
        assert_eq!(waiting(&pool), 8);
        pool.trim(4, 0);
        assert_eq!(waiting(&pool), 0);
    }
}
