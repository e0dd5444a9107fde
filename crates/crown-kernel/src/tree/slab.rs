//! Access to slabs by id without a bounds check in release builds.
//!
//! Ids of rows, entries and places in pools never come from outside: they are handed out by the store that they index, and every link to
//! a slot is removed before the slot is freed. Following a link is most of what an update does, so the check, which never
//! fails, is left to debug builds, in which all tests run.

#[inline(always)]
pub(super) fn at<T>(items: &[T], index: usize) -> &T {
    debug_assert!(index < items.len());
    // SAFETY: see above.
    unsafe { items.get_unchecked(index) }
}

#[inline(always)]
pub(super) fn at_mut<T>(items: &mut [T], index: usize) -> &mut T {
    debug_assert!(index < items.len());
    // SAFETY: see above.
    unsafe { items.get_unchecked_mut(index) }
}

/// The `place`th 32-bit half of a slab of words.
#[inline(always)]
pub(super) fn half(words: &[u64], place: usize) -> u32 {
    debug_assert!(place / 2 < words.len());
    // SAFETY: see above; a word is two halves, aligned as they need it.
    unsafe { *words.as_ptr().cast::<u32>().add(place) }
}

#[inline(always)]
pub(super) fn half_mut(words: &mut [u64], place: usize) -> &mut u32 {
    debug_assert!(place / 2 < words.len());
    // SAFETY: as in `half`.
    unsafe { &mut *words.as_mut_ptr().cast::<u32>().add(place) }
}

/// Asks the memory for an item that will be read soon; changes nothing else. An index out of range asks in vain.
#[inline(always)]
pub(crate) fn prefetch<T>(items: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing into registers and can't fault, whatever the address.
    unsafe {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        _mm_prefetch(items.as_ptr().wrapping_add(index).cast(), _MM_HINT_T0);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, index);
}
