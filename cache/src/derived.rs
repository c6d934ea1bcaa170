//! Derived files: bytes that can be recomputed at any time, saved under a name that their producer chooses. A
//! missing, damaged or dropped file costs only the time to recompute it.

use crate::checksummed::{self, Checksummed};
use crate::digest::{BlobDigest, KeyHasher};
use crate::error::Result;
use crate::fs::touch_record;
use crate::gc::Collection;
use crate::store::{Store, sharded};
use std::path::PathBuf;

const FOLDER: &str = "derived";

impl Store {
    fn derived_path(&self, name: &[u8]) -> PathBuf {
        let name = KeyHasher::new("runner 2026-11 derived v1").field(name).memo_key();
        sharded(&self.folder(FOLDER), &name.to_hex())
    }

    /// Returns the bytes saved under `name`; `None` if there are none, or if they do not match their
    /// checksum.
    pub fn load_derived(&self, name: &[u8]) -> Option<Vec<u8>> {
        let path = self.derived_path(name);
        match checksummed::read_bytes(&path) {
            Ok(Checksummed::Intact(bytes, meta)) => {
                touch_record(&path, &meta);
                Some(bytes)
            }
            _ => None,
        }
    }

    /// Saves bytes under `name`, replacing earlier ones.
    pub fn save_derived(&self, name: &[u8], bytes: Vec<u8>) -> Result<()> {
        checksummed::write_bytes(self.root(), &self.derived_path(name), bytes)
    }

    /// Drops the derived files that were not used within the plan's retention time.
    pub(crate) fn gc_derived(&self, plan: &Collection<'_>) -> Result<()> {
        for file in self.list::<BlobDigest>(FOLDER)? {
            if !plan.is_young_file(&file.meta) {
                self.drop_any(plan, &file.path, false)?;
            }
        }
        Ok(())
    }
}
