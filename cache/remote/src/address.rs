//! URLs of remotes.

use std::path::{Path, PathBuf};

/// The parsed URL of a remote.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// A directory of this machine or of a mounted file system.
    Directory(PathBuf),
    /// A bucket of an S3-compatible store.
    S3 { bucket: String, prefix: String },
    /// A bucket of Google Cloud Storage.
    Google { bucket: String, prefix: String },
    /// A container of Azure Blob Storage.
    Azure { container: String, prefix: String },
    /// A web server, which is read-only.
    Http(String),
}

impl Address {
    /// Parses a URL, or a path relative to `base`.
    pub fn parse(text: &str, base: &Path) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("it is empty".to_owned());
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(Self::Directory(base.join(text)));
        };
        if rest.contains(['?', '#']) {
            return Err(
                "it has a query; credentials come from the environment, and nothing else belongs there".to_owned(),
            );
        }
        let scheme = scheme.to_ascii_lowercase();
        // Text that is no scheme may be a secret in the wrong place, and is not repeated.
        if scheme.len() > 10 || !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err("the text before its `://` is no scheme".to_owned());
        }
        if scheme != "file" && rest.contains('@') {
            return Err("it holds a name or a password; credentials come from the environment".to_owned());
        }
        if matches!(scheme.as_str(), "http" | "https") {
            if rest.split('/').next().is_none_or(str::is_empty) {
                return Err("it names no host".to_owned());
            }
            return Ok(Self::Http(format!("{scheme}://{}", rest.trim_end_matches('/'))));
        }
        if scheme == "file" {
            return match rest.strip_prefix('/') {
                Some(_) => Ok(Self::Directory(PathBuf::from(rest))),
                None => Err("a `file` URL names an absolute path: `file:///folder`".to_owned()),
            };
        }
        let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if name.is_empty() {
            return Err("it names no bucket".to_owned());
        }
        let prefix: Vec<&str> = prefix.split('/').filter(|part| !part.is_empty()).collect();
        if prefix.iter().any(|part| matches!(*part, "." | "..")) {
            return Err("its path has a part `.` or `..`".to_owned());
        }
        let (name, prefix) = (name.to_owned(), prefix.join("/"));
        match scheme.as_str() {
            "s3" | "s3a" => Ok(Self::S3 { bucket: name, prefix }),
            "gs" => Ok(Self::Google { bucket: name, prefix }),
            "az" | "azure" => Ok(Self::Azure {
                container: name,
                prefix,
            }),
            other => Err(format!(
                "`{other}` is none of the schemes s3, gs, az, file, http, https"
            )),
        }
    }

    /// The URL for messages. `parse` refuses one with a user name or a password.
    pub fn shown(&self) -> String {
        let join = |scheme: &str, name: &str, prefix: &str| {
            let slash = if prefix.is_empty() { "" } else { "/" };
            format!("{scheme}://{name}{slash}{prefix}")
        };
        match self {
            Self::Directory(path) => path.display().to_string(),
            Self::S3 { bucket, prefix } => join("s3", bucket, prefix),
            Self::Google { bucket, prefix } => join("gs", bucket, prefix),
            Self::Azure { container, prefix } => join("az", container, prefix),
            Self::Http(url) => url.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match Address::parse(text, Path::new("/base")) {
            Ok(address) => address.shown(),
            Err(err) => format!("error: {err}"),
        }
    }

    #[test]
    fn addresses() {
        for (text, expected) in [
            ("s3://bucket", "s3://bucket"),
            ("s3://bucket//a/b/", "s3://bucket/a/b"),
            ("gs://bucket/a", "gs://bucket/a"),
            ("az://container/a", "az://container/a"),
            ("file:///dir/a", "/dir/a"),
            ("dir/a", "/base/dir/a"),
            ("/dir/a", "/dir/a"),
            ("https://host/a/", "https://host/a"),
            ("http://host:8080/a", "http://host:8080/a"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
        for wrong in [
            "",
            "s3://",
            "s3:///x",
            "s3://key:secret@bucket/x",
            "https://me:secret@host:8080/a",
            "https://me:p@ss@host",
            "key:secret@s3://bucket",
            "s3://bucket/../x",
            "https://host/a?token=x",
            "https:///a",
            "file://a",
            "ftp://host/a",
        ] {
            assert!(shown(wrong).starts_with("error: "), "{wrong}");
        }
    }

    #[test]
    fn a_refused_url_is_not_repeated() {
        for wrong in [
            "s3://key:secret@bucket/x",
            "https://me:secret@host/a",
            "key:secret@s3://bucket",
        ] {
            assert!(!shown(wrong).contains("secret"), "{wrong}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_an_address_or_none(text in ".{0,40}", scheme in "(s3|gs|az|https?|file)?(://)?") {
            if let Ok(address) = Address::parse(&format!("{scheme}{text}"), Path::new("/base")) {
                let inside = !address.shown().starts_with("s3://") || !address.shown().contains("/../");
                proptest::prop_assert!(inside);
            }
        }
    }
}
