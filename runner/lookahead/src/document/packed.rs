//! Files as tables: one, or an archive of some.

use super::Document;
use crate::moment::Stamp;
use crate::read::{self, Format};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{Cursor, Read as _, Write as _};

/// A file with at least one table that has dates.
pub struct Packed {
    packing: Packing,
    members: Vec<(String, Member)>,
}

enum Packing {
    Plain,
    Gzip,
    Zip,
}

enum Member {
    Dated(Box<Document>),
    /// Without dates: it stays as it is.
    Fixed(Vec<u8>),
}

impl Packed {
    /// Reads a file; `Ok(None)` if it has no dates.
    ///
    /// # Errors
    /// The reason why it cannot be read, or not be written again.
    pub fn read(path: &str, bytes: Vec<u8>) -> Result<Option<Self>, String> {
        let (packing, files) = match Format::of(&bytes) {
            Format::Gzip => {
                let name = path.strip_suffix(".gz").unwrap_or(path).to_owned();
                (Packing::Gzip, vec![(name, read::gunzip(&bytes)?)])
            }
            Format::Zip => (Packing::Zip, unzip(bytes)?),
            _ => (Packing::Plain, vec![(path.to_owned(), bytes)]),
        };
        // An array of dates dates the others of its length.
        let is_arrays =
            matches!(packing, Packing::Zip) && files.iter().all(|(name, _)| name.ends_with(".npy"));
        let dates = if is_arrays {
            read::dates_of_arrays(&files)?
        } else {
            None
        };
        let mut members = Vec::new();
        for (name, bytes) in files {
            let document = match Format::of(&bytes) {
                Format::Npy => Document::array(&name, &bytes, dates.as_deref())?,
                _ => Document::read(&name, &bytes)?,
            };
            let member = document.map_or(Member::Fixed(bytes), |document| Member::Dated(Box::new(document)));
            members.push((name, member));
        }
        let packed = Self { packing, members };
        let is_dated = packed.documents().next().is_some();
        Ok(is_dated.then_some(packed))
    }

    /// The file as part of a data set, to which no symbols or dates are added.
    pub fn of_data_set(mut self) -> Self {
        for (_, member) in &mut self.members {
            if let Member::Dated(document) = member {
                document.may_grow = false;
            }
        }
        self
    }

    /// Its tables that have dates.
    pub fn documents(&self) -> impl Iterator<Item = &Document> {
        self.members.iter().filter_map(|(_, member)| match member {
            Member::Dated(document) => Some(&**document),
            Member::Fixed(_) => None,
        })
    }

    /// The dates of all rows.
    pub fn stamps(&self) -> impl Iterator<Item = Stamp> {
        self.documents().flat_map(|document| document.stamps.iter().copied())
    }

    /// The file with other tables.
    ///
    /// # Errors
    /// When one cannot be written, or the file not be packed.
    pub fn write(
        &self,
        mut table: impl FnMut(&Document) -> Result<Vec<u8>, String>,
    ) -> Result<Vec<u8>, String> {
        let mut files = Vec::new();
        for (name, member) in &self.members {
            let bytes = match member {
                Member::Dated(document) => table(document)?,
                Member::Fixed(bytes) => bytes.clone(),
            };
            files.push((name, bytes));
        }
        let tables = || {
            files
                .iter()
                .flat_map(|(_, bytes)| bytes.iter().copied())
                .collect::<Vec<u8>>()
        };
        match self.packing {
            Packing::Plain => Ok(tables()),
            Packing::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                let written = encoder.write_all(&tables()).and_then(|()| encoder.finish());
                written.map_err(|err| err.to_string())
            }
            Packing::Zip => {
                let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
                let options = zip::write::SimpleFileOptions::default()
                    .compression_method(zip::CompressionMethod::Stored);
                for (name, bytes) in files {
                    writer.start_file(name, options).map_err(|err| err.to_string())?;
                    writer.write_all(&bytes).map_err(|err| err.to_string())?;
                }
                Ok(writer.finish().map_err(|err| err.to_string())?.into_inner())
            }
        }
    }
}

fn unzip(bytes: Vec<u8>) -> Result<Vec<(String, Vec<u8>)>, String> {
    let damaged = |err: zip::result::ZipError| format!("cannot be unpacked: {err}");
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
    let mut files = Vec::new();
    for i in 0..archive.len() {
        let entry = archive.by_index(i).map_err(damaged)?;
        let name = entry.name().map_err(damaged)?.into_owned();
        let mut bytes = Vec::new();
        let mut limited = entry.take(read::UNPACKED_LIMIT);
        limited
            .read_to_end(&mut bytes)
            .map_err(|err| format!("cannot be unpacked: {err}"))?;
        if bytes.len() as u64 == read::UNPACKED_LIMIT {
            return Err("unpacks to more than 4 GiB".to_owned());
        }
        files.push((name, bytes));
    }
    Ok(files)
}
