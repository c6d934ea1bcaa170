//! A model of a file system: names, files, and the parts of both that a power failure may lose.

use std::collections::{BTreeMap, BTreeSet};

/// The bytes of a blob, or the key of a record.
pub(crate) type Id = u8;

/// The names that the protocol uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Name {
    Blob(Id),
    Record(Id),
    /// The temporary file of an actor.
    Tmp(Id),
    /// `damaged/…`, by the name that was moved there.
    AsideBlob(Id),
    AsideRecord(Id),
    Unflushed,
    Flushing,
    /// The recorded time of the last flush.
    Flushed,
}

impl Name {
    pub(crate) fn quarantined(self) -> Self {
        match self {
            Self::Blob(id) => Self::AsideBlob(id),
            Self::Record(id) => Self::AsideRecord(id),
            other => other,
        }
    }
}

/// The contents of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Data {
    Nothing,
    Blob(Id),
    Record(Id),
    /// Everything that was written before this time is on the disk.
    Note(u8),
    /// Damaged, with the right length.
    Damaged,
}

/// A file's creator and its number among the creator's files, which do not depend on the interleaving.
pub(crate) type FileId = (Id, u8);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct File {
    pub data: Data,
    /// Its modification time.
    pub written: u8,
    /// True if its bytes are on the disk.
    pub flushed: bool,
    /// The holder of its lock.
    pub locked: Option<Id>,
}

/// Names and files, and of names changed since the last flush the files they named since.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Disk {
    files: BTreeMap<FileId, File>,
    names: BTreeMap<Name, FileId>,
    changed: BTreeMap<Name, BTreeSet<Option<FileId>>>,
    pub clock: u8,
}

impl Disk {
    pub(crate) fn named(&self, name: Name) -> Option<FileId> {
        self.names.get(&name).copied()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = Name> + '_ {
        self.names.keys().copied()
    }

    pub(crate) fn file(&self, id: FileId) -> &File {
        &self.files[&id]
    }

    pub(crate) fn file_mut(&mut self, id: FileId) -> &mut File {
        self.files.get_mut(&id).unwrap()
    }

    /// The contents of a named file.
    pub(crate) fn data(&self, name: Name) -> Option<Data> {
        self.named(name).map(|id| self.file(id).data)
    }

    fn set(&mut self, name: Name, file: Option<FileId>) {
        let before = self.named(name);
        let seen = self.changed.entry(name).or_default();
        seen.extend([before, file]);
        match file {
            Some(file) => self.names.insert(name, file),
            None => self.names.remove(&name),
        };
    }

    pub(crate) fn create(&mut self, name: Name, id: FileId, data: Data) {
        let file = File {
            data,
            written: self.clock,
            flushed: false,
            locked: None,
        };
        self.files.insert(id, file);
        self.set(name, Some(id));
    }

    /// As the system call. Returns whether the old name existed.
    pub(crate) fn rename(&mut self, from: Name, to: Name) -> bool {
        let Some(file) = self.named(from) else { return false };
        self.set(from, None);
        self.set(to, Some(file));
        true
    }

    pub(crate) fn remove(&mut self, name: Name) {
        if self.named(name).is_some() {
            self.set(name, None);
        }
    }

    pub(crate) fn write(&mut self, id: FileId, data: Data) {
        let clock = self.clock;
        let file = self.file_mut(id);
        (file.data, file.written, file.flushed) = (data, clock, false);
    }

    /// `fdatasync`.
    pub(crate) fn sync_file(&mut self, id: FileId) {
        self.file_mut(id).flushed = true;
    }

    /// `syncfs`.
    pub(crate) fn sync(&mut self) {
        self.changed.clear();
        self.files.values_mut().for_each(|file| file.flushed = true);
    }

    pub(crate) fn unlock_all_of(&mut self, actor: Id) {
        for file in self.files.values_mut() {
            if file.locked == Some(actor) {
                file.locked = None;
            }
        }
    }

    /// Drops unreachable files, so that states which differ in them alone are equal.
    pub(crate) fn tidy(&mut self, held: &BTreeSet<FileId>) {
        let reachable: BTreeSet<FileId> = self
            .names
            .values()
            .copied()
            .chain(self.changed.values().flatten().flatten().copied())
            .chain(held.iter().copied())
            .collect();
        self.files.retain(|id, _| reachable.contains(id));
    }

    /// The files that a name may have after a power failure at this instant.
    fn possible(&self, name: Name) -> BTreeSet<Option<FileId>> {
        let now = self.named(name);
        let mut all = self.changed.get(&name).cloned().unwrap_or_default();
        all.insert(now);
        all
    }

    /// True if a power failure leaves the name with bytes that are on the disk: these, or those of a file
    /// that had it before.
    pub(crate) fn survives(&self, name: Name) -> bool {
        let flushed = |file: Option<FileId>| file.is_some_and(|id| self.file(id).flushed);
        self.possible(name).into_iter().all(flushed)
    }

    /// A blob whose bytes a power failure may take and that nobody would look at afterwards: it was written
    /// before the time up to which, says a note, everything is on the disk.
    pub(crate) fn missed_by_recovery(&self) -> Option<Name> {
        let until = self
            .possible(Name::Flushed)
            .into_iter()
            .map(|id| match id.map(|id| self.file(id).data) {
                Some(Data::Note(until)) => until,
                _ => 0,
            })
            .max()
            .unwrap_or(0);
        let blobs = self.names.keys().chain(self.changed.keys()).copied();
        blobs.filter(|name| matches!(name, Name::Blob(_))).find(|&name| {
            self.possible(name).into_iter().flatten().any(|id| {
                let file = self.file(id);
                !file.flushed && file.written < until
            })
        })
    }
}
