//! The runtime that drives requests.

use std::future::Future;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A runtime whose only thread drives connections and timers; each caller polls its own request.
pub(crate) struct Runtime {
    handle: Handle,
    /// The thread ends when this sender is dropped.
    _stop: oneshot::Sender<()>,
}

impl Runtime {
    /// Starts the runtime's thread.
    pub(crate) fn start(name: &str) -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (_stop, stopped) = oneshot::channel();
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || drop(runtime.block_on(stopped)))?;
        Ok(Self { handle, _stop })
    }

    /// Polls a request on the calling thread until it is done.
    pub(crate) fn block_on<T>(&self, request: impl Future<Output = T>) -> T {
        self.handle.block_on(request)
    }
}
