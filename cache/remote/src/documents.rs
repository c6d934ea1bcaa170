//! Small JSON documents, stored by name beside the records, and signed and checked like them: the registry of
//! policies.

use crate::object_name::{DOCUMENTS, document_hex, object_name};
use crate::remote::Remote;
use crate::signature::{self, sign};
use crate::upload::warn_not_uploaded;
use bytes::Bytes;
use cache::{Error, Result, Upstream as _, checksummed};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A document of the remote.
#[derive(Clone, Debug, PartialEq)]
pub enum Document {
    /// There is no such document, or the remote does not answer.
    Absent,
    /// The contents of a trusted document.
    Trusted(Value),
    /// The document may not be used: it is damaged, or no trusted key signed it. The warnings state the
    /// reason.
    Refused,
}

impl Remote {
    /// Fetches a document by its name.
    pub fn document(&self, name: &str) -> Result<Document> {
        Ok(self
            .document_of(&document_hex(name))?
            .map_or_else(|refused| refused, |(_, value)| Document::Trusted(value)))
    }

    fn document_of(&self, hex: &str) -> Result<std::result::Result<(String, Value), Document>> {
        let client = self.client();
        let is_there = std::cell::Cell::new(false);
        let found = client.record(DOCUMENTS, hex, |bytes| {
            is_there.set(true);
            signature::document(bytes, hex, &client.settings)
        })?;
        Ok(found.ok_or(match is_there.get() {
            true => Document::Refused,
            false => Document::Absent,
        }))
    }

    /// Fetches all documents that may be used, by name; `None` if the remote cannot list them, or does not
    /// answer.
    pub fn documents(&self) -> Result<Option<BTreeMap<String, Value>>> {
        let client = self.client();
        if !client.can_list() {
            return Ok(None);
        }
        let Some(names) = client.list(DOCUMENTS, usize::MAX)? else {
            return Ok(None);
        };
        let mut documents = BTreeMap::new();
        for hex in names {
            if let Ok((name, value)) = self.document_of(&hex)? {
                documents.insert(name, value);
            }
        }
        Ok(client.is_available().then_some(documents))
    }

    /// Writes a document, replacing the document of the same name; returns false if the remote does not
    /// answer. The document is signed with the key of the settings.
    ///
    /// # Errors
    /// When the remote is read-only, or refuses the document.
    pub fn put_document(&self, name: &str, value: &Value) -> Result<bool> {
        let client = self.client();
        let failed = |reason: String| Error::remote(format!("the remote {}", self.name()), reason);
        if client.is_read_only() {
            return Err(failed("it is read-only".to_owned()));
        }
        let hex = document_hex(name);
        let text = checksummed::encode(&json!({ "name": name, "value": value }))
            .map_err(|err| failed(err.to_string()))?;
        let bytes = Bytes::from(sign(text.as_bytes(), DOCUMENTS, &hex, &client.settings));
        let path = object_name(DOCUMENTS, &hex);
        let written = client
            .writable()
            .and_then(|backend| client.writes.call(|| backend.write(&path, bytes.clone(), &|_| true)));
        match written {
            Ok(()) => Ok(true),
            Err(failure) => warn_not_uploaded(client, failure).map(|()| false),
        }
    }
}
