//! Rust values that Java refers to by a number. Java uses each from one thread at a time and closes
//! it once.

use crate::memory::count_handle;
use jni::sys::jlong;

pub fn open<T>(value: T) -> jlong {
    count_handle(1);
    Box::into_raw(Box::new(value)) as jlong
}

/// # Safety
/// `handle` came from `open::<T>`, was not closed, and nobody else uses it before the borrow ends.
pub unsafe fn borrow<'a, T>(handle: jlong) -> &'a mut T {
    unsafe { &mut *(handle as *mut T) }
}

/// # Safety
/// As for `borrow`; the handle may not be used again.
pub unsafe fn close<T>(handle: jlong) {
    count_handle(-1);
    drop(unsafe { Box::from_raw(handle as *mut T) });
}
