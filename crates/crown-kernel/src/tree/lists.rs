//! Lists of row ids, contiguous, in one pool.
//!
//! Enumeration walks lists, so their rows lie side by side (one cache miss for a block, not one per row); there is a list
//! per key and most are short, so none has an allocation of its own. A list of one row is stored in its own
//! header; longer ones take a block of 4, 8, 16, ... words whose first word is the size class. A block grows when
//! it is full and shrinks when it is three quarters empty, so each push and removal costs amortised constant time.

const NONE: u32 = u32::MAX;

/// A list's header. Everything about it but its length goes through the pool.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct List {
    /// The only row when `len` is 1, else where the block starts.
    start: u32,
    pub len: u32,
}

#[derive(Default)]
pub(super) struct Lists {
    pool: Vec<u32>,
    /// The first free block of each class; a free block's second word leads to the next.
    free: Vec<u32>,
    used: usize,
}

fn size(class: u32) -> usize {
    4 << class
}

impl Lists {
    #[inline(always)]
    pub fn slice<'a>(&'a self, list: &'a List) -> &'a [u32] {
        if list.len <= 1 {
            &std::slice::from_ref(&list.start)[..list.len as usize]
        } else {
            let start = list.start as usize + 1;
            &self.pool[start..start + list.len as usize]
        }
    }

    #[inline(always)]
    pub fn get(&self, list: &List, position: u32) -> u32 {
        if list.len <= 1 {
            list.start
        } else {
            self.pool[list.start as usize + 1 + position as usize]
        }
    }

    #[inline(always)]
    pub fn set(&mut self, list: &mut List, position: u32, row: u32) {
        if list.len <= 1 {
            list.start = row;
        } else {
            self.pool[list.start as usize + 1 + position as usize] = row;
        }
    }

    /// Appends a row; its position is the length before.
    #[inline]
    pub fn push(&mut self, list: &mut List, row: u32) {
        match list.len {
            0 => list.start = row,
            1 => {
                let block = self.allocate(0);
                self.pool[block as usize + 1] = list.start;
                self.pool[block as usize + 2] = row;
                list.start = block;
            }
            len => {
                let class = self.pool[list.start as usize];
                if len as usize + 1 == size(class) {
                    self.resize(list, class, class + 1);
                }
                self.pool[list.start as usize + 1 + len as usize] = row;
            }
        }
        list.len += 1;
    }

    /// Removes the row at `position`; gives the row that took its place, if one did.
    #[inline]
    pub fn swap_remove(&mut self, list: &mut List, position: u32) -> Option<u32> {
        let last = list.len - 1;
        let moved = (position != last).then(|| self.get(list, last));
        if let Some(row) = moved {
            self.set(list, position, row);
        }
        self.truncate(list, last);
        moved
    }

    /// Keeps the first `len` rows.
    pub fn truncate(&mut self, list: &mut List, len: u32) {
        if list.len > 1 {
            let mut class = self.pool[list.start as usize];
            if len <= 1 {
                let first = self.pool[list.start as usize + 1];
                self.release(list.start, class);
                list.start = first;
            } else {
                list.len = len;
                while class > 0 && (len as usize) < size(class) / 4 {
                    self.resize(list, class, class - 1);
                    class -= 1;
                }
            }
        }
        list.len = len;
    }

    fn resize(&mut self, list: &mut List, from: u32, to: u32) {
        let block = self.allocate(to);
        let (source, target) = (list.start as usize + 1, block as usize + 1);
        self.pool.copy_within(source..source + list.len as usize, target);
        self.release(list.start, from);
        list.start = block;
    }

    fn allocate(&mut self, class: u32) -> u32 {
        self.used += size(class);
        if self.free.len() <= class as usize {
            self.free.resize(class as usize + 1, NONE);
        }
        let head = self.free[class as usize];
        if head != NONE {
            self.free[class as usize] = self.pool[head as usize + 1];
            return head;
        }
        let block = u32::try_from(self.pool.len()).expect("fewer than 2^32 words of lists");
        reserve_slowly(&mut self.pool, size(class));
        self.pool.resize(self.pool.len() + size(class), 0);
        self.pool[block as usize] = class;
        block
    }

    fn release(&mut self, block: u32, class: u32) {
        self.used -= size(class);
        self.pool[block as usize + 1] = self.free[class as usize];
        self.free[class as usize] = block;
    }

    /// Whether most of the pool is free blocks.
    pub fn is_sparse(&self) -> bool {
        self.pool.len() > 1024 && self.used * 4 < self.pool.len()
    }

    /// Moves a list out of this pool into another.
    pub fn relocate(&self, list: &mut List, target: &mut Lists) {
        let mut copy = List::default();
        for row in self.slice(list) {
            target.push(&mut copy, *row);
        }
        *list = copy;
    }

    /// Replaces each row by its new id.
    pub fn rename(&mut self, list: &mut List, ids: &[u32]) {
        for position in 0..list.len {
            let row = self.get(list, position);
            self.set(list, position, ids[row as usize]);
        }
    }

    pub fn bytes(&self) -> usize {
        self.pool.capacity() * 4
    }
}

/// Makes room for `additional` items, growing by a quarter: amortised constant time with little slack.
pub(super) fn reserve_slowly<T>(items: &mut Vec<T>, additional: usize) {
    if items.capacity() - items.len() < additional {
        items.reserve_exact(additional.max(items.len() / 4).max(16));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_behave_like_vectors_and_reuse_their_blocks() {
        let mut lists = Lists::default();
        let mut pairs: Vec<(List, Vec<u32>)> = vec![Default::default(); 8];
        let mut state = 7u64;
        let mut peak = 0;
        for step in 0..40_000u32 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let random = (state >> 33) as usize;
            let (list, model) = &mut pairs[random % 8];
            if step / 4000 % 2 == 0 && !random.is_multiple_of(5) || model.is_empty() {
                lists.push(list, step);
                model.push(step);
            } else {
                let position = random / 8 % model.len();
                let moved = lists.swap_remove(list, position as u32);
                model.swap_remove(position);
                assert_eq!(moved, model.get(position).copied());
            }
            assert_eq!(lists.slice(list), model);
            if step == 8000 {
                peak = lists.pool.len();
            }
        }
        assert!(lists.pool.len() <= 2 * peak, "{} words after {peak}", lists.pool.len());
        for (list, _) in &mut pairs {
            lists.truncate(list, 0);
        }
        assert_eq!(lists.used, 0);
    }
}
