//! Counts the bytes that this library holds, so that an executor can stop before the system kills
//! it and tests can prove that nothing leaks.

use jni::objects::JClass;
use jni::sys::jlong;
use jni::EnvUnowned;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

static BYTES: AtomicI64 = AtomicI64::new(0);
static HANDLES: AtomicI64 = AtomicI64::new(0);

pub struct Counting;

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as i64, Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as i64, Relaxed);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as i64, Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        BYTES.fetch_add(size as i64 - layout.size() as i64, Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

pub fn count_handle(change: i64) {
    HANDLES.fetch_add(change, Relaxed);
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_bytes(_env: EnvUnowned<'_>, _class: JClass<'_>) -> jlong {
    BYTES.load(Relaxed)
}

#[unsafe(no_mangle)]
pub extern "system" fn Java_crown_spark_Native_handles(_env: EnvUnowned<'_>, _class: JClass<'_>) -> jlong {
    HANDLES.load(Relaxed)
}
