//! `runner track`.

use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use clap::Args;
use runner_engine::{Failure, exit};
use runner_pipeline::{Mlflow, Otlp, Track, Url, Variable};
use runner_report::track;

/// Write a run to MLflow, or its trace to OpenTelemetry.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner track latest --mlflow http://127.0.0.1:5000
  runner track 20261120T213045-k3f9 --mlflow http://127.0.0.1:5000 --experiment desk
  runner track latest --otlp http://127.0.0.1:4318")]
#[group(id = "servers", required = true, multiple = true, args = ["mlflow", "otlp"])]
pub(crate) struct TrackArgs {
    /// The run: an id, a unique prefix or suffix of one, a name, `latest`, or `latest~1`.
    #[arg(add = completed(candidates::runs))]
    pub run: String,
    /// The address of a tracking server of MLflow.
    #[arg(long, value_name = "URI")]
    pub mlflow: Option<String>,
    /// The experiment; the pipeline's name by default.
    #[arg(long, value_name = "NAME", requires = "mlflow")]
    pub experiment: Option<String>,
    /// The variable of the environment that holds a bearer token for MLflow.
    #[arg(long, value_name = "VARIABLE", requires = "mlflow")]
    pub token: Option<String>,
    /// The address of a collector of OpenTelemetry traces, by OTLP over HTTP.
    #[arg(long, value_name = "ENDPOINT")]
    pub otlp: Option<String>,
}

pub(crate) fn track(session: &Session, args: &TrackArgs) -> Result<u8, Failure> {
    let archive = session.archive()?;
    let run = archive.run(&args.run)?;
    let mut servers = Vec::new();
    for uri in args.mlflow.iter().chain(&args.otlp) {
        if !uri.starts_with("http://") && !uri.starts_with("https://") {
            return Err(
                Failure::usage(format!("`{uri}` is not an HTTP address")).hint("write `http://HOST:PORT`")
            );
        }
    }
    servers.extend(args.mlflow.as_ref().map(|uri| {
        Track::Mlflow(Mlflow {
            uri: Url::Plain(uri.clone()),
            experiment: args.experiment.clone(),
            token: args.token.clone().map(Variable),
        })
    }));
    servers.extend(args.otlp.as_ref().map(|endpoint| {
        Track::Otlp(Otlp {
            endpoint: Url::Plain(endpoint.clone()),
            headers: None,
        })
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
