//! The threads of a scheduler. Each sends a message in any case: a stage whose thread cannot be started, or
//! panics, fails, and is not waited for.

use super::Message;
use crate::failure::THREADS_LIMITED;
use stages_core::StageError;
use stages_core::error::Cause;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Sender;
use std::thread::{Builder, Scope};

/// Does work in a thread of its own. `lost` makes a message of the failure to do so.
pub(super) fn in_thread<'scope>(
    scope: &'scope Scope<'scope, '_>,
    sender: &Sender<Message>,
    work: impl FnOnce() -> Message + Send + 'scope,
    lost: impl Fn(StageError) -> Message + Clone + Send + 'scope,
) {
    let (for_thread, in_panic) = (sender.clone(), lost.clone());
    let started = Builder::new().spawn_scoped(scope, move || {
        let message = catch_unwind(AssertUnwindSafe(work));
        let _ = for_thread.send(message.unwrap_or_else(|panic| in_panic(panicked(&*panic))));
    });
    if let Err(err) = started {
        let _ = sender.send(lost(machine(format!("cannot start a thread: {err}"))));
    }
}

fn machine(message: String) -> StageError {
    StageError {
        cause: Cause::Store,
        ..StageError::new(message).hint(THREADS_LIMITED)
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> StageError {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    machine(format!(
        "a thread of the engine panicked: {}",
        text.unwrap_or("no message")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_thread_that_panics_sends_a_message() {
        let (sender, receiver) = channel();
        std::thread::scope(|scope| {
            in_thread(
                scope,
                &sender,
                || panic!("out of {}", "threads"),
                |err| Message::Prepared(7, Err(err)),
            );
        });
        let Message::Prepared(7, Err(err)) = receiver.try_recv().unwrap() else {
            panic!("another message");
        };
        assert_eq!(err.message, "a thread of the engine panicked: out of threads");
        assert_eq!(err.cause, Cause::Store);
    }
}
