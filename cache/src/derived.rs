//! Derived files: bytes that can be made again at any time, saved under a name of their maker's choosing so
//! that they need not be. A missing, damaged or dropped one costs the time to make it.

use crate::checksummed::{self, Checksummed};
use crate::digest::{BlobDigest, KeyHasher};
use crate::error::Result;
use crate::fs::touch_record;
use crate::gc::GcPlan;
use crate::store::{Store, sharded};
use std::path::PathBuf;

const FOLDER: &str = "derived";

impl Store {
    fn derived_path(&self, name: &[u8]) -> PathBuf {
        let name = KeyHasher::new("runner 2026-11 derived v1").field(name).memo_key();
        sharded(&self.folder(FOLDER), &name.to_hex())
    }

    /// The bytes that were saved under this name; `None` where there are none, or none that pass their
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

    /// Saves bytes under this name, replacing earlier ones.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn save_derived(&self, name: &[u8], bytes: Vec<u8>) -> Result<()> {
        checksummed::write_bytes(self.root(), &self.derived_path(name), bytes)
    }

    /// Drops the files that were not used for as long as the plan keeps files.
    pub(crate) fn gc_derived(&self, plan: &GcPlan) -> Result<()> {
        for file in self.list::<BlobDigest>(FOLDER)? {
            if !plan.dry_run && !plan.is_young_file(&file.meta) {
                self.remove(&file.path)?;
            }
        }
        Ok(())
    }
}
