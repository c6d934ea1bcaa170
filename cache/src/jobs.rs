//! The leftovers of clusters' jobs in the store: a folder for each batch of jobs, and copies of the program,
//! by digest. The executors write them; the store counts and drops them.

use crate::error::Result;
use crate::gc::{Collection, GcReport};
use crate::listing;
use crate::store::Store;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The age up to which a job may be under way, whatever the plan of a collection says. A job that runs
/// appends to its events.
const UNDER_WAY: Duration = Duration::from_secs(24 * 3600);

/// The folder of a batch, or a copy of the program.
pub(crate) struct Piece {
    path: PathBuf,
    is_dir: bool,
    /// The total size in bytes.
    pub bytes: u64,
    /// The newest modification time.
    newest: SystemTime,
}

impl Store {
    /// The folders of batches of jobs.
    pub(crate) fn jobs(&self) -> Result<Vec<Piece>> {
        pieces(&self.folder("jobs"))
    }

    /// The copies of the program. Whoever submits a job updates the modification time of the copy it uses.
    pub(crate) fn programs(&self) -> Result<Vec<Piece>> {
        pieces(&self.folder("programs"))
    }

    /// Drops old jobs and copies of the program.
    pub(crate) fn gc_jobs(&self, plan: &Collection<'_>, report: &mut GcReport) -> Result<()> {
        let (jobs, programs) = (self.jobs()?, self.programs()?);
        for (pieces, count) in [(jobs, &mut report.jobs), (programs, &mut report.programs)] {
            for piece in pieces.iter().filter(|piece| plan.is_over(piece.newest, UNDER_WAY)) {
                count.add(piece.bytes);
                self.drop_any(plan, &piece.path, piece.is_dir)?;
            }
        }
        Ok(())
    }
}

fn pieces(folder: &Path) -> Result<Vec<Piece>> {
    let piece = |(path, meta): (PathBuf, std::fs::Metadata)| {
        let (bytes, newest) = listing::size_and_age(&path, &meta)?;
        Ok(Piece {
            is_dir: meta.is_dir(),
            path,
            bytes,
            newest,
        })
    };
    listing::entries_with_metadata(folder)?.into_iter().map(piece).collect()
}
