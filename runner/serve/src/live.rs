//! Fragments of pages that change: rendered in one thread for all watchers of a page, while there are any.

use axum::response::sse::{Event, KeepAlive, KeepAliveStream, Sse};
use futures_util::Stream;
use futures_util::stream::unfold;
use runner_engine::{Failure, no_thread};
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;
use tokio::sync::watch;

/// The interval between two renderings.
const INTERVAL: Duration = Duration::from_millis(500);

/// The number of renderings without a watcher after which a source is closed; until then, a reload finds it
/// open.
const UNWATCHED: u32 = 6;

/// The events for one watcher.
type BoxedEvents = Pin<Box<dyn Stream<Item = Result<Event, Infallible>> + Send>>;

/// The answer with the events of a page.
pub(crate) type Events = Sse<KeepAliveStream<BoxedEvents>>;

/// HTML fragments by the id of the element that contains them.
pub(crate) type Fragments = BTreeMap<&'static str, String>;

/// A page's source of fragments.
pub(crate) trait Source: Send {
    /// Renders the fragments that may have changed.
    fn render(&mut self) -> Fragments;

    /// True once nothing will change any more.
    fn is_over(&self) -> bool;
}

/// The last fragments of a page.
#[derive(Default)]
struct State {
    fragments: BTreeMap<&'static str, Arc<str>>,
    is_over: bool,
}

/// The pages that are watched, by name.
#[derive(Clone, Default)]
pub(crate) struct Hub {
    pages: Arc<Mutex<HashMap<String, watch::Sender<Arc<State>>>>>,
}

impl Hub {
    /// Returns the events of a page; `open` opens the page's source if nobody watches it yet.
    pub(crate) fn watch(
        &self,
        name: &str,
        open: impl FnOnce() -> Result<Box<dyn Source>, Failure>,
    ) -> Result<Events, Failure> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let states = match pages.get(name) {
            Some(page) => page.subscribe(),
            None => {
                let mut source = open()?;
                let (sender, states) = watch::channel(Arc::new(State::default()));
                pages.insert(name.to_owned(), sender.clone());
                let (hub, page) = (self.clone(), name.to_owned());
                let run = move || hub.follow(&page, source.as_mut(), &sender);
                if let Err(err) = Builder::new().spawn(run) {
                    pages.remove(name);
                    return Err(no_thread(err));
                }
                states
            }
        };
        drop(pages);
        let events: BoxedEvents = Box::pin(events(states));
        Ok(Sse::new(events).keep_alive(KeepAlive::default()))
    }

    /// Renders until the source is over, or nobody watches.
    fn follow(&self, name: &str, source: &mut dyn Source, sender: &watch::Sender<Arc<State>>) {
        let mut unwatched = 0;
        loop {
            let rendered = source.render();
            let is_over = source.is_over();
            sender.send_if_modified(|state| {
                let mut fragments = state.fragments.clone();
                let mut is_new = is_over != state.is_over;
                for (id, html) in rendered {
                    if fragments.get(id).is_none_or(|before| **before != *html) {
                        fragments.insert(id, html.into());
                        is_new = true;
                    }
                }
                if is_new {
                    *state = Arc::new(State { fragments, is_over });
                }
                is_new
            });
            // A watcher that arrives now waits for the lock, and then opens the source again.
            let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
            unwatched = if sender.receiver_count() == 0 { unwatched + 1 } else { 0 };
            if is_over || unwatched > UNWATCHED {
                pages.remove(name);
                return;
            }
            drop(pages);
            std::thread::sleep(INTERVAL);
        }
    }
}

/// The events for one watcher: first all fragments, then the fragments that differ from those already sent.
fn events(states: watch::Receiver<Arc<State>>) -> impl Stream<Item = Result<Event, Infallible>> {
    let sent: BTreeMap<&'static str, Arc<str>> = BTreeMap::new();
    unfold((states, sent, false), |(mut states, mut sent, is_ended)| async move {
        if is_ended {
            return None;
        }
        loop {
            let state = Arc::clone(&states.borrow_and_update());
            let new: BTreeMap<&str, &str> = state
                .fragments
                .iter()
                .filter(|(id, html)| sent.get(*id).is_none_or(|before| !Arc::ptr_eq(before, html)))
                .map(|(id, html)| (*id, &**html))
                .collect();
            if !new.is_empty() {
                let event = Event::default().data(serde_json::to_string(&new).unwrap_or_default());
                drop(new);
                sent.clone_from(&state.fragments);
                return Some((Ok(event), (states, sent, false)));
            }
            drop(new);
            if state.is_over || states.changed().await.is_err() {
                return Some((Ok(Event::default().event("end").data("ended")), (states, sent, true)));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    static RENDERED: AtomicU32 = AtomicU32::new(0);

    struct Counting(u32);

    impl Source for Counting {
        fn render(&mut self) -> Fragments {
            self.0 += 1;
            RENDERED.fetch_add(1, Ordering::SeqCst);
            Fragments::from([("count", self.0.to_string()), ("same", "x".to_owned())])
        }

        fn is_over(&self) -> bool {
            self.0 == 3
        }
    }

    #[test]
    fn watchers_share_a_source_and_are_sent_what_is_new() {
        use futures_util::StreamExt as _;
        let hub = Hub::default();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let open = || -> Result<Box<dyn Source>, Failure> { Ok(Box::new(Counting(0))) };
        let states = |hub: &Hub| {
            drop(hub.watch("page", open).unwrap());
            hub.pages.lock().unwrap()["page"].subscribe()
        };
        let entered = runtime.enter();
        let (first, second) = (states(&hub), states(&hub));
        drop(entered);
        runtime.block_on(async {
            let texts = |stream| async move {
                let events: Vec<_> = Box::pin(events(stream)).collect::<Vec<_>>().await;
                events
                    .into_iter()
                    .map(|event| format!("{:?}", event.unwrap()))
                    .collect::<Vec<_>>()
            };
            let (first, second) = (texts(first).await, texts(second).await);
            assert!(first.len() >= 2 && first.last().unwrap().contains("end"), "{first:?}");
            assert_eq!(
                first.iter().filter(|text| text.contains("same")).count(),
                1,
                "{first:?}"
            );
            assert!(second.last().unwrap().contains("end"));
        });
        assert_eq!(RENDERED.load(Ordering::SeqCst), 3);
        assert!(hub.pages.lock().unwrap().is_empty());
    }
}
