//! Deltas that are read while they are produced.

use crate::shared::{forked, Shared};
use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use crown_kernel::engine::{Emit, Input, OnInvalid};
use crown_kernel::error::{KernelError, Result};
use std::collections::VecDeque;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Blocks that may wait for their reader, unless somebody waits for the view.
const BLOCKS_AHEAD: usize = 4;

/// How often a stream that waits for its reader checks whether another caller waits for the view.
const LOOK: Duration = Duration::from_millis(2);

enum Message {
    Validated,
    Batch(RecordBatch),
    Failed(KernelError),
}

#[derive(Default)]
struct State {
    messages: VecDeque<Message>,
    /// Nothing more will come.
    complete: bool,
    /// Nobody reads any more: the batch is completed all the same.
    dropped: bool,
}

/// Between the thread that runs the batch and the reader of its delta.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Sender {
    queue: Arc<Queue>,
    shared: Shared,
}

impl Sender {
    fn send(&self, message: Message) {
        let mut state = self.queue.lock();
        while state.messages.len() >= BLOCKS_AHEAD && !state.dropped && !self.shared.is_wanted() {
            let waited = self.queue.changed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if !state.dropped {
            state.messages.push_back(message);
            self.queue.changed.notify_all();
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.queue.lock().complete = true;
        self.queue.changed.notify_all();
    }
}

impl Emit for Sender {
    fn validated(&mut self) -> Result<()> {
        self.send(Message::Validated);
        Ok(())
    }

    fn is_stream(&self) -> bool {
        true
    }

    fn emit(&mut self, batch: RecordBatch) -> Result<()> {
        self.send(Message::Batch(batch));
        Ok(())
    }
}

/// Starts the batch on its own thread; returns once the batch is found to be valid.
pub fn stream_batch(shared: Shared, inputs: Vec<Input>, per_update: bool, policy: OnInvalid) -> Result<DeltaStream> {
    let schema = shared.lock()?.cells.delta_schema(0, per_update);
    let queue = Arc::new(Queue::default());
    let mut sender = Sender { queue: queue.clone(), shared: shared.clone() };
    let run = move || {
        let apply = AssertUnwindSafe(|| {
            let mut held = shared.lock()?;
            held.change(|cells| cells.apply(inputs, per_update, policy, &mut sender))
        });
        let outcome = catch_unwind(apply).unwrap_or_else(|_| Err(kernel_failed()));
        if let Err(error) = outcome {
            sender.send(Message::Failed(error));
        }
    };
    std::thread::Builder::new().name("crown-stream".into()).spawn(run).map_err(|error| {
        KernelError::state("CROWN-INTERNAL", format!("the system can't start a thread for the stream: {error}"))
    })?;
    let mut reader = DeltaStream { schema, queue, process: std::process::id(), failure: Arc::default() };
    match reader.receive() {
        Some(Message::Validated) => Ok(reader),
        Some(Message::Failed(error)) => Err(error),
        Some(Message::Batch(_)) | None => Err(kernel_failed()),
    }
}

fn kernel_failed() -> KernelError {
    KernelError::state("CROWN-INTERNAL", "the kernel failed; this view can no longer be used")
}

/// What a stream failed with: Arrow's own errors carry only text.
pub type Failure = Arc<Mutex<Option<KernelError>>>;

pub struct DeltaStream {
    schema: SchemaRef,
    queue: Arc<Queue>,
    /// Where the thread is that fills the queue.
    process: u32,
    failure: Failure,
}

impl DeltaStream {
    pub fn failure(&self) -> Failure {
        self.failure.clone()
    }

    fn receive(&mut self) -> Option<Message> {
        if std::process::id() != self.process {
            return Some(Message::Failed(forked()));
        }
        let mut state = self.queue.lock();
        while state.messages.is_empty() && !state.complete {
            state = self.queue.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let message = state.messages.pop_front();
        self.queue.changed.notify_all();
        message
    }
}

impl Drop for DeltaStream {
    fn drop(&mut self) {
        if std::process::id() == self.process {
            let mut state = self.queue.lock();
            state.dropped = true;
            state.messages.clear();
            self.queue.changed.notify_all();
        }
    }
}

impl Iterator for DeltaStream {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.receive()? {
            Message::Batch(batch) => Some(Ok(batch)),
            Message::Failed(error) => {
                let text = error.to_string();
                *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                Some(Err(ArrowError::ComputeError(text)))
            }
            Message::Validated => self.next(),
        }
    }
}

impl RecordBatchReader for DeltaStream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
