//! The rules of the protocol. Each can be turned off to show that it is needed.

/// The rules that are on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// A record is written after everything that it names.
    pub record_last: bool,
    /// A file is written under a temporary name, and renamed when it is complete.
    pub temp_file: bool,
    /// An existing blob is not replaced.
    pub keeps_existing_blob: bool,
    /// The replacement of a record is flushed before it is renamed.
    pub flushes_replacement: bool,
    /// A rename marks the store as unflushed once more.
    pub marks_after_rename: bool,
    /// A flush renames the marker, so that one that was killed is done again.
    pub renames_marker: bool,
    /// Flushes exclude each other.
    pub flush_locked: bool,
    /// The time of a flush is recorded after it.
    pub flush_before_note: bool,
    /// A run excludes `gc`.
    pub guard: bool,
    /// `gc` drops records before blobs.
    pub gc_records_first: bool,
    /// A temporary file is locked.
    pub tmp_locked: bool,
    /// The quarantine checks that the file is still the damaged one.
    pub quarantine_checks: bool,
    /// A reader checks the bytes of a blob.
    pub reader_checks: bool,
}

/// All rules.
pub(crate) const SOUND: Rules = Rules {
    record_last: true,
    temp_file: true,
    keeps_existing_blob: true,
    flushes_replacement: true,
    marks_after_rename: true,
    renames_marker: true,
    flush_locked: true,
    flush_before_note: true,
    guard: true,
    gc_records_first: true,
    tmp_locked: true,
    quarantine_checks: true,
    reader_checks: true,
};
