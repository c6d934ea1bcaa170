//! The threads that run actions: as many as ever ran side by side, each used again and again.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Scope;

type Work<'scope> = Box<dyn FnOnce() + Send + 'scope>;

/// The threads of one run. They end with it.
pub(super) struct Crew<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    work: Sender<Work<'scope>>,
    queue: Arc<Mutex<Receiver<Work<'scope>>>>,
    /// How many threads have, or are about to have, nothing to do.
    idle: usize,
}

impl<'scope, 'env> Crew<'scope, 'env> {
    pub fn new(scope: &'scope Scope<'scope, 'env>) -> Self {
        let (work, queue) = channel();
        Self {
            scope,
            work,
            queue: Arc::new(Mutex::new(queue)),
            idle: 0,
        }
    }

    /// Has a thread do some work, at once. Whoever learns that it is over says [`Crew::done`].
    pub fn run(&mut self, work: impl FnOnce() + Send + 'scope) {
        match self.idle.checked_sub(1) {
            Some(idle) => self.idle = idle,
            None => {
                let queue = Arc::clone(&self.queue);
                self.scope.spawn(move || {
                    loop {
                        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                        let Ok(work) = next else { return };
                        work();
                    }
                });
            }
        }
        // The other end is held here.
        let _ = self.work.send(Box::new(work));
    }

    /// Some work is over.
    pub fn done(&mut self) {
        self.idle += 1;
    }
}
