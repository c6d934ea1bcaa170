//! A column of the replay buffer, in memory or in a mapped file.

use bytemuck::Pod;
use memmap2::MmapMut;
use std::fs::{self, OpenOptions};
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::Path;

/// The elements of one column, row by row.
pub(super) enum Column<T> {
    Memory(Vec<T>),
    /// A mapped file without a name, which disappears with the training.
    Mapped(MmapMut),
}

impl<T: Pod> Column<T> {
    /// `len` zeros, in memory or mapped from a file that is created in `folder`.
    pub(super) fn new(len: usize, folder: Option<&Path>) -> io::Result<Self> {
        let Some(folder) = folder.filter(|_| len > 0) else {
            return Ok(Self::Memory(vec![T::zeroed(); len]));
        };
        let path = folder.join(format!("replay.{}.{len}.tmp", std::process::id()));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)?;
        // Its name is not needed any more. Where open files keep theirs, the next reading of the checkpoint
        // removes it.
        drop(fs::remove_file(&path));
        file.set_len((len * size_of::<T>()) as u64)?;
        #[expect(unsafe_code, reason = "maps a file")]
        // SAFETY: the file has no name, so that nobody else writes to it.
        let map = unsafe { MmapMut::map_mut(&file)? };
        Ok(Self::Mapped(map))
    }
}

impl<T: Pod> Deref for Column<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Memory(values) => values,
            Self::Mapped(map) => bytemuck::cast_slice(map),
        }
    }
}

impl<T: Pod> DerefMut for Column<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Memory(values) => values,
            Self::Mapped(map) => bytemuck::cast_slice_mut(map),
        }
    }
}
