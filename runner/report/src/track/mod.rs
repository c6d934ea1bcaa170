//! `track:` and `runner track`: servers that follow runs. They read the event log of a run as it is written,
//! from a thread of their own: a run waits for them at its end alone, for a bounded time, and cannot fail by
//! them. What a server missed, `runner track` writes later.

mod mlflow;
mod otlp;

use crate::web::Trouble;
use cache::Store;
use mlflow::Mlflow;
use otlp::Otlp;
use runner_engine::{Failure, Stamped};
use runner_history::{Follower, Run};
use runner_pipeline::{Track, Url, Variable};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// The interval at which new events are sent.
const LOOK: Duration = Duration::from_secs(2);

/// The time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The time for which the end of a run tries again to reach a server.
const PATIENCE: Duration = Duration::from_secs(4);

/// A server that follows a run.
trait Server: Send {
    /// The name of the server in messages.
    fn name(&self) -> &'static str;

    /// Takes in events, in their order.
    fn take(&mut self, events: &[Stamped]);

    /// Sends what was taken in. What was not sent is sent the next time.
    fn send(&mut self) -> Result<(), Trouble>;

    /// Sends the rest, of a run that has ended.
    fn end(&mut self, run: &Run, store: &Store) -> Result<(), Trouble>;
}

/// The servers, and the reason why those that will never take anything do not.
type Servers = Vec<(Box<dyn Server>, Option<String>)>;

/// A run that is followed.
pub struct Tracking {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Servers>,
}

impl Tracking {
    /// Follows a run whose event log has been created; `None` if nobody does. Warnings go to `warn`.
    pub fn start(all: &[Track], runs: &Path, id: &str, warn: &mut dyn FnMut(&str)) -> Option<Self> {
        if all.is_empty() {
            return None;
        }
        let mut servers = open(all, warn);
        let mut follower = Follower::new(runs, id).ok()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let follow = move || {
            loop {
                // Before the last look, so that nothing is missed.
                let is_over = over.load(Ordering::Acquire);
                pass_on(&mut follower, &mut servers);
                if is_over {
                    return servers;
                }
                for (server, why) in servers.iter_mut().filter(|(_, why)| why.is_none()) {
                    match server.send() {
                        Ok(()) | Err(Trouble::Passing(_)) => {}
                        Err(trouble) => *why = Some(trouble.text()),
                    }
                }
                std::thread::park_timeout(LOOK);
            }
        };
        let thread = Builder::new().name("track".to_owned()).spawn(follow).ok()?;
        Some(Self { is_over, thread })
    }

    /// Sends the rest, of a run that has ended. Returns a line for each server that did not take all of it.
    pub fn finish(self, run: &Run, store: &Store) -> Vec<String> {
        self.is_over.store(true, Ordering::Release);
        self.thread.thread().unpark();
        let Ok(servers) = self.thread.join() else {
            return vec!["the thread of `track` panicked".to_owned()];
        };
        end(servers, run, store)
    }
}

fn pass_on(follower: &mut Follower, servers: &mut Servers) {
    let events = follower.events().unwrap_or_default();
    for (server, _) in servers {
        server.take(&events);
    }
}

/// Writes a run that has ended. Returns a line for each server that did not take all of it.
pub fn write(all: &[Track], runs: &Path, run: &Run, store: &Store) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    let mut servers = open(all, &mut |line| lines.push(line.to_owned()));
    let mut follower = Follower::new(runs, &run.id)?;
    pass_on(&mut follower, &mut servers);
    lines.extend(end(servers, run, store));
    Ok(lines)
}

fn end(servers: Servers, run: &Run, store: &Store) -> Vec<String> {
    let began = Instant::now();
    let end = |(mut server, why): (Box<dyn Server>, Option<String>)| {
        let name = server.name();
        let why = why.or_else(|| {
            loop {
                let sent = server.send().and_then(|()| server.end(run, store));
                match sent {
                    Ok(()) => return None,
                    Err(Trouble::Passing(_)) if began.elapsed() < PATIENCE => {
                        std::thread::sleep(Duration::from_secs(1));
                    }
                    Err(trouble) => return Some(trouble.text()),
                }
            }
        });
        why.map(|why| format!("{name} has not all of run {}: {why}", run.id))
    };
    servers.into_iter().filter_map(end).collect()
}

fn open(all: &[Track], warn: &mut dyn FnMut(&str)) -> Servers {
    let mut servers: Servers = Vec::new();
    for track in all {
        let opened: Result<Box<dyn Server>, String> = match track {
            Track::Mlflow(track) => (|| {
                let token = track.token.as_ref().map(secret).transpose()?;
                let mlflow = Mlflow::new(&address(&track.uri)?, track.experiment.clone(), token)?;
                Ok(Box::new(mlflow) as Box<dyn Server>)
            })(),
            Track::Otlp(track) => (|| {
                let headers = track.headers.as_ref().map(secret).transpose()?;
                let otlp = Otlp::new(&address(&track.endpoint)?, headers.as_deref())?;
                Ok(Box::new(otlp) as Box<dyn Server>)
            })(),
        };
        match opened {
            Ok(server) => servers.push((server, None)),
            Err(why) => warn(&format!("`track`: {why}")),
        }
    }
    servers
}

fn variable(name: &str) -> Result<String, String> {
    let value = std::env::var(name).ok().filter(|value| !value.is_empty());
    value.ok_or_else(|| format!("the variable `{name}` is not set"))
}

fn secret(Variable(name): &Variable) -> Result<String, String> {
    variable(name)
}

/// An address without a slash at its end.
fn address(url: &Url) -> Result<String, String> {
    let url = match url {
        Url::Plain(url) => url.clone(),
        Url::Secret(name) => variable(name)?,
    };
    Ok(url.trim_end_matches('/').to_owned())
}
