//! What the protocol rests on, each of which can be left out to see that it is needed.

/// Whether each rule is kept.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// A record is written after everything that it names.
    pub record_last: bool,
    /// A file gets its name when it is complete.
    pub through_tmp: bool,
    /// A blob that is there is not replaced by its twin.
    pub keeps_twin: bool,
    /// What replaces a record is on the disk before.
    pub syncs_replacement: bool,
    /// What is put in place marks the store as unflushed once more.
    pub marks_after: bool,
    /// A flush that is not over can be told, and is done again.
    pub flush_remembers: bool,
    /// One flush waits for the other.
    pub flush_locked: bool,
    /// The note that all is flushed is written after the flush.
    pub flush_before_note: bool,
    /// A run keeps `gc` away.
    pub guard: bool,
    /// `gc` drops records before blobs.
    pub gc_records_first: bool,
    /// A file on its way into place is locked.
    pub tmp_locked: bool,
    /// Who moves a damaged file away looks whether it is that file.
    pub aside_looks: bool,
    /// Who opens a blob checks its bytes.
    pub reader_checks: bool,
}

/// The protocol as it is.
pub const SOUND: Rules = Rules {
    record_last: true,
    through_tmp: true,
    keeps_twin: true,
    syncs_replacement: true,
    marks_after: true,
    flush_remembers: true,
    flush_locked: true,
    flush_before_note: true,
    guard: true,
    gc_records_first: true,
    tmp_locked: true,
    aside_looks: true,
    reader_checks: true,
};
