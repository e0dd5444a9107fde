//! Deltas that are read while they are produced.

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use crown_kernel::engine::{Emit, Engine, Input, OnInvalid};
use crown_kernel::error::{KernelError, Result};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread::JoinHandle;

/// Blocks that may wait for their reader.
const BLOCKS_AHEAD: usize = 4;

/// An engine that a stream may be busy with.
#[derive(Clone)]
pub struct Shared {
    engine: Arc<Mutex<Engine>>,
}

impl Shared {
    pub fn new(engine: Engine) -> Self {
        Shared { engine: Arc::new(Mutex::new(engine)) }
    }

    /// Never waits: a stream that nobody reads would make it wait for ever.
    pub fn lock(&self) -> Result<MutexGuard<'_, Engine>> {
        self.engine.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                KernelError::invalid("CROWN-BUSY", "the view is in use: a stream is not read to its end")
            }
            TryLockError::Poisoned(_) => {
                KernelError::state("CROWN-INTERNAL", "this view failed before and can't be used any more")
            }
        })
    }
}

enum Message {
    Validated,
    Batch(RecordBatch),
    Failed(KernelError),
}

struct Sender {
    /// `None` once nobody reads: the batch is completed all the same.
    channel: Option<SyncSender<Message>>,
}

impl Sender {
    fn send(&mut self, message: Message) {
        if self.channel.as_ref().is_some_and(|channel| channel.send(message).is_err()) {
            self.channel = None;
        }
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

/// Starts the batch on a thread of its own; returns when it was found valid.
pub fn stream_batch(shared: Shared, inputs: Vec<Input>, per_update: bool, policy: OnInvalid) -> Result<StreamReader> {
    let schema = shared.lock()?.delta_schema(per_update);
    let (sender, receiver) = sync_channel(BLOCKS_AHEAD);
    let thread = std::thread::spawn(move || {
        let mut sender = Sender { channel: Some(sender) };
        let outcome = shared.lock().and_then(|mut engine| {
            let run = AssertUnwindSafe(|| engine.apply(inputs, per_update, policy, &mut sender));
            catch_unwind(run).unwrap_or_else(|_| Err(KernelError::state("CROWN-INTERNAL", "the kernel failed")))
        });
        if let Err(error) = outcome {
            sender.send(Message::Failed(error));
        }
    });
    let mut reader = StreamReader { schema, receiver: Some(receiver), thread: Some(thread) };
    match reader.receive() {
        Some(Message::Validated) => Ok(reader),
        Some(Message::Failed(error)) => Err(error),
        Some(Message::Batch(_)) | None => Err(KernelError::state("CROWN-INTERNAL", "the kernel failed")),
    }
}

pub struct StreamReader {
    schema: SchemaRef,
    receiver: Option<Receiver<Message>>,
    thread: Option<JoinHandle<()>>,
}

impl StreamReader {
    fn receive(&mut self) -> Option<Message> {
        let message = self.receiver.as_ref().and_then(|receiver| receiver.recv().ok());
        if message.is_none() {
            self.complete();
        }
        message
    }

    /// Lets the batch run to its end, so that the engine is free again.
    fn complete(&mut self) {
        self.receiver = None;
        if let Some(thread) = self.thread.take() {
            // The thread catches panics of the kernel and has none of its own.
            let _ = thread.join();
        }
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        self.complete();
    }
}

impl Iterator for StreamReader {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.receive()? {
            Message::Batch(batch) => Some(Ok(batch)),
            Message::Failed(error) => Some(Err(ArrowError::ComputeError(error.to_string()))),
            Message::Validated => self.next(),
        }
    }
}

impl RecordBatchReader for StreamReader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
