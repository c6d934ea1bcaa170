//! Arguments of `runner serve`.

use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Args, Clone, Debug)]
pub(crate) struct ServeArgs {
    /// The address to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8642")]
    pub bind: SocketAddr,
    /// Need this token with every request [default: a random one, where ADDRESS is not a loopback address].
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Run the nights of this pipeline when they are due, as `runner schedule run-due` does (repeatable).
    #[arg(long, value_name = "PIPELINE")]
    pub schedule: Vec<PathBuf>,
    /// Offer to start and cancel runs.
    #[arg(long)]
    pub allow_run: bool,
}
