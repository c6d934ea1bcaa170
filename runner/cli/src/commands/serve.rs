//! `runner serve`.

use crate::complete::{candidates, completed};
use crate::project::Settings;
use crate::session::Session;
use crate::{interrupt, output};
use cache::Store;
use clap::Args;
use runner_engine::Failure;
use runner_pipeline::Schedule;
use runner_serve::{ClientLimits, Host, Server};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Show runs, data and the store as pages for a browser.
///
/// Runs in progress are followed live.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner serve
  runner serve --bind 127.0.0.1:9000 --allow-run
  runner serve --schedule pipelines/nightly.yaml
  runner serve --bind 0.0.0.0:8642 --token-file token

On a loopback address only this machine can connect. Elsewhere every request needs a token; the \
printed address has it. Traffic is not encrypted: use an SSH tunnel or a proxy with TLS over networks.")]
pub(crate) struct ServeArgs {
    /// The address to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8642")]
    pub bind: SocketAddr,
    /// Require this token with every request [default: a random one, unless ADDRESS is a loopback address].
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Run the nights of this pipeline when they are due, as `runner schedule run-due` does (repeatable).
    #[arg(long, value_name = "PIPELINE", add = completed(candidates::pipelines))]
    pub schedule: Vec<PathBuf>,
    /// Offer to start and cancel runs.
    #[arg(long)]
    pub allow_run: bool,
}

pub(crate) fn serve(session: &Session, args: &ServeArgs) -> Result<(), Failure> {
    let token = args.token_file.as_ref().map(|file| token(session, file));
    let program = std::env::current_exe()
        .map_err(|err| Failure::caused("cannot determine the path of this program", &err))?;
    let server = Server {
        host: Arc::new(session.clone()),
        program,
        home: session.home(None),
        directory: session.current.clone(),
        bind: args.bind,
        token: token.transpose()?,
        allow_run: args.allow_run,
        schedule: args.schedule.clone(),
        limits: ClientLimits::default(),
        stop: interrupt::flag()?,
    };
    runner_serve::serve(server, |address, token| {
        let query = token.map(|token| format!("?token={token}")).unwrap_or_default();
        let url = format!("http://{address}/{query}");
        match session.json {
            true => output::print(&format!(
                "{}\n",
                serde_json::json!({ "url": url, "address": address.to_string() })
            )),
            false => output::print(&format!("{url}\n")),
        }
    })
}

impl Host for Session {
    fn store(&self, home: &Path) -> Result<Store, Failure> {
        Session::store(self, home)
    }

    fn schedule(&self, file: &Path) -> Result<Schedule, Failure> {
        Ok(self.scheduled(file, &Settings::default())?.schedule)
    }

    fn warn(&self, text: &str) {
        output::warn(text);
    }
}

/// The token of a file.
fn token(session: &Session, file: &Path) -> Result<String, Failure> {
    let path = session.current.join(file);
    let text = std::fs::read_to_string(&path).map_err(Failure::at("cannot read", &path))?;
    let token = text.trim().to_owned();
    if token.len() < 16 || !token.chars().all(|c| c.is_ascii_alphanumeric() || "-_.~".contains(c)) {
        return Err(Failure::usage(format!("`{}` has no token", path.display())).hint(
            "a token is one line of 16 or more letters, digits and `-_.~`, such as `openssl rand -hex 32` \
             prints",
        ));
    }
    Ok(token)
}
