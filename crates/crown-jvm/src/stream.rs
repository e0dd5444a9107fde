//! A batch whose deltas are read while they are produced.

use arrow::array::RecordBatch;
use crown_kernel::engine::{Emit, Engine, Input, OnInvalid};
use crown_kernel::error::{KernelError, Result};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::thread::JoinHandle;

/// Blocks that may wait for their reader.
const BLOCKS_AHEAD: usize = 4;

enum Message {
    Validated,
    Block(RecordBatch),
}

struct Sender(SyncSender<Message>);

impl Sender {
    fn send(&self, message: Message) -> Result<()> {
        self.0.send(message).map_err(|_| KernelError::state("CROWN-INTERNAL", "the batch was given up"))
    }
}

impl Emit for Sender {
    fn validated(&mut self) -> Result<()> {
        self.send(Message::Validated)
    }

    fn is_stream(&self) -> bool {
        true
    }

    fn emit(&mut self, block: RecordBatch) -> Result<()> {
        self.send(Message::Block(block))
    }
}

/// The applying thread owns the engine, and returns it when all blocks have been read.
pub struct Stream {
    receiver: Option<Receiver<Message>>,
    thread: Option<JoinHandle<Result<Engine>>>,
}

impl Stream {
    /// Returns when the batch was found valid.
    pub fn start(mut engine: Engine, inputs: Vec<Input>, policy: OnInvalid) -> Result<Stream> {
        let (sender, receiver) = sync_channel(BLOCKS_AHEAD);
        let mut sender = Sender(sender);
        let apply = move || {
            let apply = AssertUnwindSafe(|| engine.apply(inputs, false, policy, &mut sender).map(|()| engine));
            catch_unwind(apply).unwrap_or_else(|_| Err(failed("the kernel failed")))
        };
        let thread = std::thread::Builder::new()
            .name("crown-batch".into())
            .spawn(apply)
            .map_err(|error| failed(&format!("the system gives no thread for the batch: {error}")))?;
        let stream = Stream { receiver: Some(receiver), thread: Some(thread) };
        match stream.receive() {
            Some(Message::Validated) => Ok(stream),
            Some(Message::Block(_)) => Err(failed("the kernel gave deltas before it checked the batch")),
            None => Err(stream.end().err().unwrap_or_else(|| failed("the kernel did not check the batch"))),
        }
    }

    /// The next block of the delta, `None` when there are no more.
    pub fn next_block(&mut self) -> Option<RecordBatch> {
        loop {
            match self.receive()? {
                Message::Block(block) => return Some(block),
                Message::Validated => {}
            }
        }
    }

    /// After the last block: the engine, or what the batch failed with.
    pub fn end(mut self) -> Result<Engine> {
        self.join().unwrap_or_else(|| Err(failed("the batch has ended before")))
    }

    fn receive(&self) -> Option<Message> {
        self.receiver.as_ref().and_then(|receiver| receiver.recv().ok())
    }

    fn join(&mut self) -> Option<Result<Engine>> {
        // A thread that waits for its reader must see that there is none any more.
        self.receiver = None;
        self.thread.take().map(|thread| thread.join().unwrap_or_else(|_| Err(failed("the kernel failed"))))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.join();
    }
}

fn failed(what: &str) -> KernelError {
    KernelError::state("CROWN-INTERNAL", what)
}
