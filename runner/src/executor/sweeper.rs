//! Removes the folders of programs that are over, beside those that run: removing a folder may wait for the disk, which some
//! file systems tell at once what is free again.

use cache::Workspace;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

/// So many folders wait to be removed at most.
const WAITING: usize = 16;

/// Removes folders in a thread of its own, which begins with the first of them. All are gone when this is dropped.
#[derive(Default)]
pub(crate) struct Sweeper(OnceLock<(SyncSender<Workspace>, JoinHandle<()>)>);

impl Sweeper {
    /// A workspace that is swept when it is dropped.
    pub fn sweeps(&self, workspace: Workspace) -> Swept<'_> {
        Swept {
            workspace: Some(workspace),
            sweeper: self,
        }
    }

    fn take(&self, workspace: Workspace) {
        let (sender, _) = self.0.get_or_init(|| {
            let (sender, workspaces) = sync_channel(WAITING);
            (sender, std::thread::spawn(move || workspaces.into_iter().for_each(drop)))
        });
        // Without the thread it goes here and now.
        drop(sender.send(workspace));
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.0.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}

/// See [`Sweeper::sweeps`].
pub(crate) struct Swept<'s> {
    workspace: Option<Workspace>,
    sweeper: &'s Sweeper,
}

impl Swept<'_> {
    /// The folder.
    pub fn path(&self) -> &Path {
        self.workspace.as_ref().map_or(Path::new(""), Workspace::path)
    }
}

impl Drop for Swept<'_> {
    fn drop(&mut self) {
        if let Some(workspace) = self.workspace.take() {
            self.sweeper.take(workspace);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_gone_when_the_sweeper_is() {
        let dir = tempfile::tempdir().unwrap();
        let sweeper = Sweeper::default();
        for _ in 0..2 * WAITING {
            let swept = sweeper.sweeps(Workspace::new(dir.path()).unwrap());
            std::fs::create_dir(swept.path().join("work")).unwrap();
        }
        drop(sweeper);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
