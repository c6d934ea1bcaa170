//! One location of files: a local path, or the URL of a file on a server.

use cache::{BlobDigest, RemoteFile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use stages_core::ConfigProblem;

/// A local path, directory or glob, or a URL, which may be pinned to a digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    text: String,
    blake3: Option<BlobDigest>,
}

/// A pinned file, as it is written.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Pinned {
    /// The URL: `https://…`, `http://…` or `s3://bucket/key`.
    url: String,
    /// The BLAKE3 digest of its bytes, in hex: what `b3sum` prints. Nothing else is ever read.
    #[schemars(with = "String")]
    blake3: BlobDigest,
}

impl Location {
    /// A location that is not pinned.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            blake3: None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The file on a server; `None` for a path.
    pub(crate) fn remote(&self, field: &str) -> Result<Option<RemoteFile>, ConfigProblem> {
        match RemoteFile::parse(&self.text) {
            Ok(Some(file)) => Ok(Some(RemoteFile {
                pinned: self.blake3,
                ..file
            })),
            Ok(None) if self.blake3.is_some() => Err(ConfigProblem::new(
                field,
                format!("`{}` is not the URL of a file on a server", self.text),
            )
            .hint(
                "write `url: https://…` beside `blake3:`; the contents of local files are in the key anyway",
            )),
            Ok(None) => Ok(None),
            Err((reason, hint)) => Err(ConfigProblem::new(field, reason).hint(hint)),
        }
    }
}

impl Serialize for Location {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.blake3 {
            None => serializer.serialize_str(&self.text),
            Some(blake3) => Pinned {
                url: self.text.clone(),
                blake3,
            }
            .serialize(serializer),
        }
    }
}

datasets::as_forms! {
    Location, "a path, a URL, or `{ url: …, blake3: … }`";
    schema(generator) "A path, directory or glob, a URL (https, http, s3), or a URL with the digest of its \
        bytes.":
        [{ "type": "string" }, generator.subschema_for::<Pinned>()];
    text => |text: &str| Location::new(text);
    map as Pinned => |Pinned { url, blake3 }| Location { text: url, blake3: Some(blake3) };
}
