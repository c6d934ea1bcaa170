//! URLs of remotes.

use object_store::ObjectStoreScheme;
use object_store::path::Path as ObjectPath;
use std::path::{Path, PathBuf};
use url::Url;

/// The parsed URL of a remote.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// A directory of this machine or of a mounted file system.
    Directory(PathBuf),
    /// A bucket, a container or a web server.
    Object {
        scheme: ObjectStoreScheme,
        url: Url,
        /// The directory of the bucket or container.
        prefix: ObjectPath,
    },
}

impl Address {
    /// Parses a URL, or a path relative to `base`.
    ///
    /// URLs have the forms of `object_store` ([`ObjectStoreScheme::parse`]), with checks that it lacks: it
    /// accepts a password, a query and `..`, its errors repeat the URL, and it mistakes some web servers for
    /// buckets.
    pub(crate) fn parse(text: &str, base: &Path) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("it is empty".to_owned());
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(Self::Directory(base.join(text)));
        };
        if rest.contains(['?', '#']) {
            return Err("it has a query; credentials come from the environment".to_owned());
        }
        let scheme = scheme.to_ascii_lowercase();
        // A text that is not a scheme may be a misplaced secret, and is not repeated.
        if scheme.len() > 10 || !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err("the text before `://` is not a URL scheme".to_owned());
        }
        if scheme == "file" {
            return match rest.strip_prefix('/') {
                Some(_) => Ok(Self::Directory(PathBuf::from(rest))),
                None => Err("a `file` URL names an absolute path: `file:///directory`".to_owned()),
            };
        }
        if rest.contains('@') {
            return Err("it holds a name or a password; credentials come from the environment".to_owned());
        }
        let is_web = matches!(scheme.as_str(), "http" | "https");
        let mut parts = rest.trim_end_matches('/').split('/');
        let name = parts.next().unwrap_or_default();
        if name.is_empty() {
            return Err(if is_web {
                "it names no host"
            } else {
                "it names no bucket"
            }
            .to_owned());
        }
        // The URL parser may be built without the tables for other names, and then panics on some of them in
        // a debug build.
        if !name.is_ascii() {
            return Err("the name of its host or bucket is not ASCII".to_owned());
        }
        if parts.any(|part| matches!(part, "" | "." | "..")) {
            return Err("its path has an empty part, or a part `.` or `..`".to_owned());
        }
        let url = Url::parse(text.trim_end_matches('/')).map_err(|err| format!("it is not a URL: {err}"))?;
        let (scheme, prefix) = match ObjectStoreScheme::parse(&url) {
            _ if is_web => (ObjectStoreScheme::Http, ObjectPath::default()),
            Ok((ObjectStoreScheme::Memory | ObjectStoreScheme::Local, _)) | Err(_) => {
                return Err(format!(
                    "the scheme `{scheme}` is not supported; use s3, gs, az, file, http or https"
                ));
            }
            Ok(parsed) => parsed,
        };
        Ok(Self::Object { scheme, url, prefix })
    }

    /// True if the remote is a web server, which is read-only.
    pub(crate) fn is_web_server(&self) -> bool {
        matches!(
            self,
            Self::Object {
                scheme: ObjectStoreScheme::Http,
                ..
            }
        )
    }

    /// The URL for messages. [`Address::parse`] refuses a URL with a user name or a password.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Directory(path) => path.display().to_string(),
            Self::Object { url, .. } => url.as_str().trim_end_matches('/').to_owned(),
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
            ("s3://bucket/a/b/", "s3://bucket/a/b"),
            ("s3a://bucket/a", "s3a://bucket/a"),
            ("https://bucket.s3.amazonaws.com/a", "https://bucket.s3.amazonaws.com/a"),
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
            "s3://bucket//x",
            "memory://x",
            "https://höst/a",
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
