//! `runner export`.

use super::{artifact, remote};
use crate::args::ExportArgs;
use crate::output;
use crate::session::Session;
use runner_engine::{Failure, text};

pub(crate) fn export(session: &Session, args: &ExportArgs) -> Result<(), Failure> {
    let archive = session.archive()?;
    let digest = artifact::find_artifact(&archive, &args.what)?;
    let found = archive.store.artifact(digest)?;
    let dest = session.current.join(&args.dest);
    let used = dest.is_file() || std::fs::read_dir(&dest).is_ok_and(|mut entries| entries.next().is_some());
    if used {
        return Err(Failure::usage(format!("`{}` already exists", args.dest.display()))
            .hint("name a directory that does not exist or is empty"));
    }
    let exported = archive.store.export(&found, &dest);
    if let Some(upstream) = archive.store.upstream() {
        remote::warn(upstream);
    }
    exported?;
    let bytes: u64 = found.entries.iter().map(|entry| entry.size).sum();
    if session.json {
        return output::print_json(&serde_json::json!({
            "digest": digest,
            "dest": dest,
            "files": found.entries.len(),
            "bytes": bytes,
        }));
    }
    output::print(&format!(
        "{} of {} in {}\n",
        text::count(found.entries.len(), "file"),
        text::size(bytes),
        args.dest.display()
    ))
}
