//! Sets of columns: the NULLs of a row, in one word.
//!
//! Columns below 62 each have a bit of the word. A set with a higher column is stored once per
//! process, and the word holds its number. So equal sets are equal words, whatever their width, and
//! a row has one word for its NULLs. Such sets are never freed; there are as many as wide rows have
//! ever had different combinations of NULLs.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

/// A set of columns. Bit 63 is free for a mark of the owner.
pub type Mask = u64;

/// Columns that have a bit in the word itself.
pub(crate) const INLINE: usize = 62;
const WIDE: Mask = 1 << 62;
/// The bit that no set uses.
pub const MARK: Mask = 1 << 63;

/// Operations on a set of columns.
pub trait Bits: Copy {
    /// Whether a column is in the set.
    fn has(self, column: usize) -> bool;
    /// The set of `to` for all pairs of which it has `from`.
    fn gather(self, pairs: impl IntoIterator<Item = (usize, usize)>) -> Mask;
    /// The columns of both.
    fn union(self, other: Mask) -> Mask;
    /// Whether a column is in both.
    fn meets(self, other: Mask) -> bool;
    /// Whether all columns, and the mark, are in `other`.
    fn within(self, other: Mask) -> bool;
    /// Each column moved up by `places`.
    fn shifted(self, places: usize) -> Mask;
    /// The columns below `place`, and those from it on, moved down.
    fn split(self, place: usize) -> (Mask, Mask);
}

impl Bits for Mask {
    #[inline(always)]
    fn has(self, column: usize) -> bool {
        if self & WIDE == 0 {
            column < INLINE && self >> column & 1 != 0
        } else {
            has_wide(self, column)
        }
    }

    #[inline]
    fn gather(self, pairs: impl IntoIterator<Item = (usize, usize)>) -> Mask {
        if self & !MARK == 0 {
            return 0;
        }
        let mut builder = Builder::default();
        for (from, to) in pairs {
            builder.set(to, self.has(from));
        }
        builder.finish()
    }

    #[inline]
    fn union(self, other: Mask) -> Mask {
        if (self | other) & WIDE == 0 {
            self | other
        } else {
            combine(self, other, |left, right| left | right) | ((self | other) & MARK)
        }
    }

    #[inline]
    fn meets(self, other: Mask) -> bool {
        if (self | other) & WIDE == 0 {
            self & other & !MARK != 0
        } else {
            combine(self, other, |left, right| left & right) != 0
        }
    }

    #[inline]
    fn within(self, other: Mask) -> bool {
        if (self | other) & WIDE == 0 {
            self & !other == 0
        } else {
            self & !other & MARK == 0 && combine(self, other, |left, right| left & !right) == 0
        }
    }

    #[inline]
    fn shifted(self, places: usize) -> Mask {
        if self == 0 {
            return 0;
        }
        of(columns(self).map(|column| column + places))
    }

    fn split(self, place: usize) -> (Mask, Mask) {
        if self == 0 {
            return (0, 0);
        }
        let above = columns(self).filter(|column| *column >= place).map(|column| column - place);
        (of(columns(self).filter(|column| *column < place)), of(above))
    }
}

/// The set of these columns.
pub fn of(columns: impl IntoIterator<Item = usize>) -> Mask {
    let mut builder = Builder::default();
    columns.into_iter().for_each(|column| builder.set(column, true));
    builder.finish()
}

/// Collects a set column by column.
#[derive(Default)]
pub struct Builder {
    low: Mask,
    high: Vec<u64>,
}

impl Builder {
    /// Adds a column if `is_in`.
    #[inline(always)]
    pub fn set(&mut self, column: usize, is_in: bool) {
        if column < INLINE {
            self.low |= Mask::from(is_in) << column;
        } else if is_in {
            self.set_high(column);
        }
    }

    /// Adds all columns of a set.
    #[inline]
    pub fn add(&mut self, mask: Mask) {
        if mask & WIDE == 0 {
            self.low |= mask & !MARK;
        } else {
            columns(mask).for_each(|column| self.set(column, true));
        }
    }

    /// Whether a column was added.
    #[inline]
    pub fn has(&self, column: usize) -> bool {
        if column < INLINE {
            self.low >> column & 1 != 0
        } else {
            bit(&self.high, column)
        }
    }

    /// The set.
    #[inline(always)]
    pub fn finish(self) -> Mask {
        if self.high.is_empty() {
            self.low
        } else {
            self.finish_wide()
        }
    }

    #[cold]
    fn set_high(&mut self, column: usize) {
        let word = column / 64;
        if self.high.len() <= word {
            self.high.resize(word + 1, 0);
        }
        self.high[word] |= 1 << (column % 64);
    }

    #[cold]
    fn finish_wide(mut self) -> Mask {
        self.high[0] |= self.low;
        intern(self.high)
    }
}

#[cold]
fn has_wide(mask: Mask, column: usize) -> bool {
    bit(WideSets::get(mask), column)
}

fn bit(words: &[u64], column: usize) -> bool {
    words.get(column / 64).is_some_and(|word| word >> (column % 64) & 1 != 0)
}

/// The columns of a set, in order.
pub fn columns(mask: Mask) -> impl Iterator<Item = usize> {
    let (narrow, wide) = if mask & WIDE == 0 { (mask & !MARK, &[][..]) } else { (0, WideSets::get(mask)) };
    std::iter::once(narrow).chain(wide.iter().copied()).enumerate().flat_map(move |(index, word)| {
        let start = if index == 0 { 0 } else { (index - 1) * 64 };
        (0..64).filter(move |place| word >> place & 1 != 0).map(move |place| start + place)
    })
}

#[cold]
fn combine(left: Mask, right: Mask, operation: impl Fn(u64, u64) -> u64) -> Mask {
    let words = |mask: Mask| {
        let mut builder = Builder::default();
        builder.add(mask);
        if builder.high.is_empty() {
            vec![builder.low]
        } else {
            builder.high[0] |= builder.low;
            builder.high
        }
    };
    let (left, right) = (words(left), words(right));
    let word = |words: &[u64], index: usize| words.get(index).copied().unwrap_or(0);
    intern((0..left.len().max(right.len())).map(|index| operation(word(&left, index), word(&right, index))).collect())
}

fn intern(mut words: Vec<u64>) -> Mask {
    while words.len() > 1 && words.last() == Some(&0) {
        words.pop();
    }
    if words.len() == 1 && words[0] >> INLINE == 0 {
        words[0]
    } else {
        WideSets::put(words)
    }
}

/// The sets with columns from `INLINE` on, by number: in segments of doubling size, so that reading
/// needs no lock.
struct WideSets {
    segments: [OnceLock<Segment>; 32],
    numbers: LazyLock<Mutex<HashMap<&'static [u64], u32>>>,
}

type Segment = Box<[OnceLock<&'static [u64]>]>;

static WIDE_SETS: WideSets =
    WideSets { segments: [const { OnceLock::new() }; 32], numbers: LazyLock::new(Mutex::default) };

impl WideSets {
    fn place(number: u32) -> (usize, usize) {
        let segment = (number + 1).ilog2();
        (segment as usize, (number + 1 - (1 << segment)) as usize)
    }

    fn get(mask: Mask) -> &'static [u64] {
        let (segment, offset) = WideSets::place(mask as u32);
        WIDE_SETS.segments[segment].get().and_then(|sets| sets[offset].get()).expect("a mask has a set")
    }

    fn put(words: Vec<u64>) -> Mask {
        let mut numbers = WIDE_SETS.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let number = numbers.get(words.as_slice()).copied().unwrap_or_else(|| {
            let number = u32::try_from(numbers.len()).ok().filter(|number| *number < u32::MAX);
            let number = number.expect("fewer than 2^32 combinations of NULLs");
            let words: &'static [u64] = Vec::leak(words);
            let (segment, offset) = WideSets::place(number);
            let sets = WIDE_SETS.segments[segment].get_or_init(|| vec![OnceLock::new(); 1 << segment].into());
            let _ = sets[offset].set(words);
            numbers.insert(words, number);
            number
        });
        WIDE | Mask::from(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn equal_sets_are_equal_words_and_operations_are_those_of_sets() {
        let mut random = crate::random::Random(7);
        let draw = |random: &mut crate::random::Random| -> BTreeSet<usize> {
            let width = [5, 61, 62, 63, 64, 65, 128, 300][random.index(8)];
            (0..random.index(6)).map(|_| random.index(width)).collect()
        };
        for _ in 0..2000 {
            let (left, right) = (draw(&mut random), draw(&mut random));
            let (a, b) = (of(left.iter().copied()), of(right.iter().copied()));
            assert_eq!(a == b, left == right);
            assert_eq!(columns(a).collect::<BTreeSet<_>>(), left);
            assert!((0..310).all(|column| a.has(column) == left.contains(&column)));
            assert_eq!(a.union(b), of(left.union(&right).copied()));
            assert_eq!(a.meets(b), !left.is_disjoint(&right));
            assert_eq!(a.within(b), left.is_subset(&right));
            assert_eq!(a.shifted(70), of(left.iter().map(|column| column + 70)));
            let (below, above) = a.split(63);
            assert_eq!(below.union(above.shifted(63)), a);
            assert!(columns(below).all(|column| column < 63));
            let turned = |column: usize| 309 - column;
            assert_eq!(a.gather((0..310).map(|column| (column, turned(column)))), of(left.into_iter().map(turned)));
        }
    }

    #[test]
    fn the_mark_is_no_column() {
        for set in [of([3]), of([3, 100])] {
            assert!(columns(set | MARK).eq(columns(set)));
            assert_eq!((set | MARK).gather([(3, 5), (63, 6)]), of([5]));
            assert_eq!((set | MARK).union(of([70])), of(columns(set).chain([70])) | MARK);
            assert!(!(set | MARK).within(set) && set.within(set | MARK) && !MARK.meets(MARK));
        }
    }
}
