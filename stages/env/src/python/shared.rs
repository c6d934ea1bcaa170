//! Memory that the engine and worker processes share: a file in memory, which workers map and the engine
//! reads and writes by system calls.

use stages_core::StageError;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// The alignment of each array, a cache line.
const ALIGN: u64 = 64;

/// The places of arrays, one after the other.
#[derive(Debug, Default)]
pub struct Layout {
    size: u64,
}

impl Layout {
    /// The place of one more array, of so many bytes.
    pub fn array(&mut self, bytes: usize) -> u64 {
        let at = self.size;
        self.size += (bytes as u64).next_multiple_of(ALIGN);
        at
    }
}

/// The memory of some arrays, zero at first.
#[derive(Debug)]
pub struct SharedMemory {
    file: File,
    size: u64,
}

impl SharedMemory {
    /// Memory for the arrays of a layout.
    ///
    /// # Errors
    /// When the operating system gives none.
    pub fn new(layout: Layout) -> Result<Self, StageError> {
        let failed = |err: std::io::Error| StageError::new(format!("cannot make shared memory: {err}"));
        let file = memory().map_err(failed)?;
        // A mapping has a byte at least.
        let size = layout.size.max(ALIGN);
        file.set_len(size).map_err(failed)?;
        Ok(Self { file, size })
    }

    /// The file that a worker process maps.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Reads numbers from the place `at`.
    ///
    /// # Errors
    /// When the memory cannot be read.
    pub fn read<T: bytemuck::Pod>(&self, at: u64, values: &mut [T]) -> Result<(), StageError> {
        self.file
            .read_exact_at(bytemuck::cast_slice_mut(values), at)
            .map_err(|err| StageError::new(format!("cannot read shared memory: {err}")))
    }

    /// Writes numbers to the place `at`.
    ///
    /// # Errors
    /// When the memory cannot be written.
    pub fn write<T: bytemuck::NoUninit>(&self, at: u64, values: &[T]) -> Result<(), StageError> {
        self.file
            .write_all_at(bytemuck::cast_slice(values), at)
            .map_err(|err| StageError::new(format!("cannot write shared memory: {err}")))
    }
}

/// A file without a name in memory.
#[cfg(target_os = "linux")]
fn memory() -> std::io::Result<File> {
    Ok(rustix::fs::memfd_create("runner environments", rustix::fs::MemfdFlags::CLOEXEC)?.into())
}

/// A file whose name is removed at once.
#[cfg(not(target_os = "linux"))]
fn memory() -> std::io::Result<File> {
    let path =
        std::env::temp_dir().join(format!("runner-{}-{:?}", std::process::id(), std::time::Instant::now()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
