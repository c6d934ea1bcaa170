//! `runner track`.

use crate::args::TrackArgs;
use crate::output;
use crate::session::Session;
use runner_engine::{Failure, exit};
use runner_history as history;
use runner_pipeline::{Track, Url};
use runner_report::track;

pub(crate) fn track(session: &Session, args: &TrackArgs) -> Result<u8, Failure> {
    let archive = session.archive()?;
    let id = history::resolve(&archive.runs, &args.run)?;
    let run = history::load(&archive.runs, &id)?;
    let mut servers = Vec::new();
    for uri in args.mlflow.iter().chain(&args.otlp) {
        if !uri.starts_with("http://") && !uri.starts_with("https://") {
            return Err(
                Failure::usage(format!("`{uri}` is not an HTTP address")).hint("write `http://HOST:PORT`")
            );
        }
    }
    servers.extend(args.mlflow.as_ref().map(|uri| Track::Mlflow {
        uri: Url::Plain(uri.clone()),
        experiment: args.experiment.clone(),
        token: args.token.clone(),
    }));
    servers.extend(args.otlp.as_ref().map(|endpoint| Track::Otlp {
        endpoint: Url::Plain(endpoint.clone()),
        headers: None,
    }));
    let lines = track::write(&servers, &archive.runs, &run, &archive.store)?;
    for line in &lines {
        output::say(&format!("error: {line}"));
    }
    match lines.is_empty() {
        true => Ok(exit::DONE),
        false => Ok(exit::MACHINE_FAILED),
    }
}
