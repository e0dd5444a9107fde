//! One view, used by one caller at a time.
//!
//! Every call takes the lock once, for everything it does. Data is read and converted before that,
//! and a waiting caller has released the GIL. The only Python code that runs under the lock is that
//! of the functions that the query calls; these can't use a view, so no call waits for itself.

use crate::functions::refuse_inside;
use crate::iterate::Rows;
use crown_kernel::arrow_in::InputColumn;
use crown_kernel::cells::Cells;
use crown_kernel::error::{KernelError, Result};
use crown_kernel::types::DataType;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;

#[derive(Clone)]
pub struct Shared(Arc<Inner>);

struct Inner {
    held: Mutex<Held>,
    /// How many calls wait: a stream then no longer waits for its reader.
    waiting: AtomicUsize,
    /// The process that holds the lock, 0 when none does: after a fork it may be one whose threads
    /// are not here.
    holder: AtomicU32,
    process: u32,
    signature: RwLock<Arc<Signature>>,
}

/// What data for the views must look like, and how theirs does.
pub struct Signature {
    tables: Vec<(String, Vec<InputColumn>)>,
    views: Vec<(String, Vec<DataType>)>,
}

impl Signature {
    fn of(cells: &Cells) -> Arc<Signature> {
        let types = |view: usize| cells.columns(view).into_iter().map(|column| column.1).collect();
        let views = cells.view_names().into_iter().enumerate().map(|(view, name)| (name, types(view))).collect();
        Arc::new(Signature { tables: cells.tables(), views })
    }

    pub fn table_columns(&self, table: &str) -> Option<&[InputColumn]> {
        self.tables.iter().find(|(name, _)| name == table).map(|(_, columns)| columns.as_slice())
    }

    /// The types of a view's columns.
    pub fn columns(&self, view: &str) -> Option<&[DataType]> {
        self.views.iter().find(|(name, _)| name == view).map(|(_, columns)| columns.as_slice())
    }
}

pub struct Held {
    pub cells: Cells,
    /// Iterators that still read from the cells.
    iterators: Vec<Weak<Mutex<Rows>>>,
    /// Set when a batch could be neither applied nor undone.
    broken: bool,
}

impl Held {
    pub fn register(&mut self, rows: &Arc<Mutex<Rows>>) {
        self.iterators.retain(|iterator| iterator.strong_count() > 0);
        self.iterators.push(Arc::downgrade(rows));
    }

    /// Changes the view. Iterators first copy the rows that they have not returned yet.
    pub fn change<T>(&mut self, work: impl FnOnce(&mut Cells) -> Result<T>) -> Result<T> {
        for rows in self.iterators.drain(..).filter_map(|iterator| iterator.upgrade()) {
            rows.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take_rest(&mut self.cells);
        }
        self.broken = true;
        let result = work(&mut self.cells);
        self.broken = matches!(&result, Err(error) if error.code == "CROWN-STATE-BROKEN");
        result
    }
}

/// Holds the lock.
pub struct Guard<'a> {
    held: MutexGuard<'a, Held>,
    holder: &'a AtomicU32,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.holder.store(0, Ordering::SeqCst);
    }
}

impl Deref for Guard<'_> {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.held
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut Held {
        &mut self.held
    }
}

impl Shared {
    pub fn new(cells: Cells) -> Self {
        let signature = RwLock::new(Signature::of(&cells));
        let held = Mutex::new(Held { cells, iterators: Vec::new(), broken: false });
        let (waiting, holder) = (AtomicUsize::new(0), AtomicU32::new(0));
        Shared(Arc::new(Inner { held, waiting, holder, process: std::process::id(), signature }))
    }

    pub fn signature(&self) -> Arc<Signature> {
        self.0.signature.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the views are still those of a signature; while the lock is held, they stay so.
    pub fn is_current(&self, signature: &Arc<Signature>) -> bool {
        Arc::ptr_eq(signature, &self.signature())
    }

    /// Changes which views there are.
    pub fn replan(&self, work: impl FnOnce(&mut Cells) -> Result<()>) -> Result<()> {
        let mut held = self.lock()?;
        held.change(work)?;
        *self.0.signature.write().unwrap_or_else(PoisonError::into_inner) = Signature::of(&held.cells);
        Ok(())
    }

    pub fn is_wanted(&self) -> bool {
        self.0.waiting.load(Ordering::SeqCst) > 0
    }

    /// Waits for its turn; call without the GIL.
    pub fn lock(&self) -> Result<Guard<'_>> {
        refuse_inside()?;
        let held = match self.0.held.try_lock() {
            Ok(held) => held,
            Err(_) => {
                self.0.waiting.fetch_add(1, Ordering::SeqCst);
                let held = self.wait();
                self.0.waiting.fetch_sub(1, Ordering::SeqCst);
                held?
            }
        };
        self.0.holder.store(std::process::id(), Ordering::SeqCst);
        let guard = Guard { held, holder: &self.0.holder };
        if guard.broken {
            return Err(failed());
        }
        Ok(guard)
    }

    fn wait(&self) -> Result<MutexGuard<'_, Held>> {
        let process = std::process::id();
        for _ in 0..FORK_TRIES {
            let holder = self.0.holder.load(Ordering::SeqCst);
            if process == self.0.process || holder == process {
                return self.0.held.lock().map_err(|_| failed());
            }
            if holder != 0 {
                break;
            }
            // A thread of this process is just about to say that it holds the lock, or one of the
            // parent was.
            std::thread::sleep(Duration::from_millis(1));
            if let Ok(held) = self.0.held.try_lock() {
                return Ok(held);
            }
        }
        Err(forked())
    }
}

const FORK_TRIES: usize = 100;

fn failed() -> KernelError {
    KernelError::state("CROWN-INTERNAL", "this view has failed and can no longer be used")
}

pub fn forked() -> KernelError {
    KernelError::state("CROWN-FORKED", "the view was in use when this process was forked")
}
