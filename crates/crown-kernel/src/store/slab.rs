//! Slabs: access without a bounds check in release builds, prefetching, and memory on huge pages.
//!
//! A large slab is accessed at random, so nearly every access also misses the TLB. The system is
//! therefore asked to use huge pages of 2 MB. It may refuse, which changes nothing else.

/// `items[index]`.
///
/// # Safety
/// `index < items.len()`. Checked in debug builds, in which all tests run.
#[inline(always)]
pub(crate) unsafe fn at<T>(items: &[T], index: usize) -> &T {
    debug_assert!(index < items.len());
    // SAFETY: the caller's promise.
    unsafe { items.get_unchecked(index) }
}

/// `items[index]`, to be changed.
///
/// # Safety
/// As for `at`.
#[inline(always)]
pub(crate) unsafe fn at_mut<T>(items: &mut [T], index: usize) -> &mut T {
    debug_assert!(index < items.len());
    // SAFETY: the caller's promise.
    unsafe { items.get_unchecked_mut(index) }
}

/// The 32-bit half of a slab of words at `position`, counted in halves.
///
/// # Safety
/// `position / 2 < words.len()`.
#[inline(always)]
pub(crate) unsafe fn half(words: &[u64], position: usize) -> u32 {
    debug_assert!(position / 2 < words.len());
    // SAFETY: the caller's promise; a word is two halves, aligned as they need it.
    unsafe { *words.as_ptr().cast::<u32>().add(position) }
}

/// The same half, to be changed.
///
/// # Safety
/// As for `half`.
#[inline(always)]
pub(crate) unsafe fn half_mut(words: &mut [u64], position: usize) -> &mut u32 {
    debug_assert!(position / 2 < words.len());
    // SAFETY: as in `half`.
    unsafe { &mut *words.as_mut_ptr().cast::<u32>().add(position) }
}

/// Prefetches `items[index]`; an out-of-range index is ignored.
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

/// From this many bytes on huge pages are worth asking for.
const LARGE: usize = 4 << 20;
/// From this many bytes on a slab is not copied to grow: that would need the memory twice.
const HUGE: usize = 64 << 20;

/// Makes room for `additional` items, growing by an eighth: amortised constant time with little
/// slack.
#[inline(always)]
pub(crate) fn reserve_slowly<T: Copy>(items: &mut Vec<T>, additional: usize) {
    if items.capacity() - items.len() < additional {
        grow(items, additional.max(items.len() / 8).max(16));
    }
}

#[cold]
fn grow<T: Copy>(items: &mut Vec<T>, additional: usize) {
    let bytes = (items.len() + additional) * size_of::<T>();
    if (LARGE..HUGE).contains(&bytes) {
        // New memory, so that the items that are there lie on huge pages too.
        let mut grown = with_capacity(items.len() + additional);
        grown.extend_from_slice(items);
        *items = grown;
    } else {
        items.reserve_exact(additional);
        ask_for_huge_pages(items);
    }
}

pub(crate) fn with_capacity<T>(capacity: usize) -> Vec<T> {
    let items = Vec::with_capacity(capacity);
    ask_for_huge_pages(&items);
    items
}

fn ask_for_huge_pages<T>(items: &Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        let bytes = items.capacity() * size_of::<T>();
        if bytes >= LARGE {
            const PAGE: usize = 4096;
            let start = items.as_ptr() as usize;
            let (first, last) = (start.next_multiple_of(PAGE), (start + bytes) / PAGE * PAGE);
            // SAFETY: the range is the vector's own; the advice does not change what it holds.
            unsafe { libc::madvise(first as *mut libc::c_void, last - first, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = items;
}
