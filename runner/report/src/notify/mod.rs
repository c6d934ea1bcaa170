//! `notify:`, the messages on a run that has ended. They are bounded in time, and cannot fail the run.

mod drift;
mod mail;
mod message;
#[cfg(test)]
mod tests;

use crate::web::{Body, Trouble, Web};
pub use message::Message;
use reqwest::Method;
use runner_pipeline::{Channel, Notify, Url};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The times that a message is tried to be sent.
const TRIES: u32 = 3;

/// The time limit of a try, and of a command.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The time before the second try, and a third of that before the third.
const PAUSE: Duration = Duration::from_secs(1);

/// The means of sending.
struct Sending {
    timeout: Duration,
    pause: Duration,
    variable: fn(&str) -> Option<String>,
}

impl Sending {
    /// The value of a variable of the environment.
    fn secret(&self, name: &str) -> Result<String, Trouble> {
        (self.variable)(name).ok_or_else(|| Trouble::Final(format!("the variable `{name}` is not set")))
    }

    fn url(&self, url: &Url) -> Result<String, Trouble> {
        match url {
            Url::Plain(url) => Ok(url.clone()),
            Url::Secret(name) => self.secret(name),
        }
    }
}

/// Sends a message to those that its occasions concern, side by side. Returns a line for each that did not
/// get it.
pub fn send(all: &[Notify], message: &Message) -> Vec<String> {
    let sending = Sending {
        timeout: TIMEOUT,
        pause: PAUSE,
        variable: |name| std::env::var(name).ok().filter(|value| !value.is_empty()),
    };
    send_by(all, message, &sending)
}

fn send_by(all: &[Notify], message: &Message, sending: &Sending) -> Vec<String> {
    let concerned = |notify: &&Notify| notify.on.iter().any(|on| message.occasions.contains(on));
    let concerned: Vec<&Notify> = all.iter().filter(concerned).collect();
    std::thread::scope(|scope| {
        let send = |notify: &Notify| repeatedly(&notify.channel, message, sending).err();
        let threads = concerned.iter().map(|notify| {
            let thread = std::thread::Builder::new().spawn_scoped(scope, move || send(notify));
            (notify, thread)
        });
        // All are started before the first is waited for.
        let threads: Vec<_> = threads.collect();
        let ended = threads.into_iter().filter_map(|(notify, thread)| {
            let why = match thread {
                Ok(thread) => thread.join().unwrap_or_else(|_| Some("its thread panicked".to_owned())),
                Err(err) => Some(err.to_string()),
            };
            why.map(|why| format!("the {} was not sent: {why}", name(&notify.channel)))
        });
        ended.collect()
    })
}

fn name(channel: &Channel) -> &'static str {
    match channel {
        Channel::Webhook { .. } => "message by `webhook`",
        Channel::Command(_) => "message by `command`",
        Channel::Email(_) => "e-mail",
        Channel::Ping(_) => "ping",
    }
}

fn repeatedly(channel: &Channel, message: &Message, sending: &Sending) -> Result<(), String> {
    let mut pause = sending.pause;
    for attempt in 1.. {
        match once(channel, message, sending) {
            Ok(()) => return Ok(()),
            Err(Trouble::Passing(why)) if attempt == TRIES => return Err(format!("{why}, {TRIES} times")),
            Err(Trouble::Passing(_)) => {
                std::thread::sleep(pause);
                pause *= 3;
            }
            Err(trouble) => return Err(trouble.text()),
        }
    }
    Ok(())
}

fn once(channel: &Channel, message: &Message, sending: &Sending) -> Result<(), Trouble> {
    match channel {
        Channel::Webhook { url, shape } => request(url, Some(message.document(*shape)), sending),
        Channel::Ping(url) => request(url, None, sending),
        Channel::Email(email) => mail::send(email, (&message.title, &message.text), sending),
        Channel::Command(command) => run(command, message, sending),
    }
}

/// Sends a document by POST, or without one a GET request.
fn request(url: &Url, document: Option<Value>, sending: &Sending) -> Result<(), Trouble> {
    let web = Web::new(sending.timeout)?;
    let url = sending.url(url)?;
    let answer = match document {
        Some(document) => web.send(Method::POST, &url, &[], Body::Json(document.to_string())),
        None => web.send(Method::GET, &url, &[], Body::None),
    };
    answer.map(drop)
}

/// Runs a command, which reads the document from standard input, once: it may have done its work before it
/// failed.
fn run(command: &str, message: &Message, sending: &Sending) -> Result<(), Trouble> {
    let failed = |what: &str| Trouble::Final(what.to_owned());
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|err| failed(&err.to_string()))?;
    if let Some(mut input) = child.stdin.take() {
        // A few kilobytes, which a pipe holds: a command that does not read them does not block this. It may
        // end before, too.
        let _ = input.write_all(message.document(runner_pipeline::Shape::Json).to_string().as_bytes());
    }
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(failed(&format!("the command ended with {status}"))),
            Ok(None) if began.elapsed() < sending.timeout => std::thread::sleep(Duration::from_millis(10)),
            Ok(None) => {
                end(&mut child);
                return Err(failed(&format!(
                    "the command ran for {} s and was ended",
                    sending.timeout.as_secs()
                )));
            }
            Err(err) => return Err(failed(&err.to_string())),
        }
    }
}

/// Kills a command with its children.
fn end(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}
