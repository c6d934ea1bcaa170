//! Remote files, as a store fetches them.

use crate::artifact::check_path;
use crate::fetched_file::RemoteFile;
use crate::store::{FetchFiles, Store};
use std::sync::Arc;

impl Store {
    /// Returns the store with a fetcher of remote files.
    #[must_use]
    pub fn with_files(mut self, files: Arc<dyn FetchFiles>) -> Self {
        self.files = Some(files);
        self
    }

    /// The fetcher of remote files.
    pub fn files(&self) -> Option<&dyn FetchFiles> {
        self.files.as_deref()
    }
}

/// The reason why a URL is refused, and a hint on how to fix it. Neither repeats the URL.
pub(crate) type Refusal = (&'static str, &'static str);

/// Words in the names of parameters that hold credentials.
const SECRET_WORDS: [&str; 9] = [
    "token",
    "secret",
    "passw",
    "credential",
    "signature",
    "apikey",
    "api_key",
    "api-key",
    "accesskey",
];

/// Names of parameters that hold credentials.
const SECRET_NAMES: [&str; 6] = ["key", "sig", "auth", "pwd", "code", "authorization"];

const CREDENTIALS: &str = "credentials would be in histories and reports: those of S3 come from the \
                           environment (AWS_ACCESS_KEY_ID, …); \
                           other files fetch in a `run:` stage with `network: true` and `secrets:`, whose \
                           output is the input `table`";

impl RemoteFile {
    /// Parses a URL; `None` if the text is a path.
    ///
    /// # Errors
    /// When the URL contains credentials or a pattern, or does not denote a file.
    pub fn parse(text: &str) -> Result<Option<Self>, Refusal> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(None);
        };
        let scheme = scheme.to_ascii_lowercase();
        if !matches!(scheme.as_str(), "http" | "https" | "s3") {
            return Err((
                "the scheme of the URL is not supported",
                "use https://, http:// or s3://bucket/key",
            ));
        }
        let is_plain = |c: char| !c.is_control() && !c.is_whitespace() && !"\"<>\\^`{|}".contains(c);
        if !rest.chars().all(is_plain) {
            return Err((
                "the URL has a character that is not allowed there",
                "encode it, such as a space as %20",
            ));
        }
        let (place, query) = match rest.split_once('?') {
            Some((place, query)) => (place, Some(query)),
            None => (rest, None),
        };
        let (host, path) = place.split_once('/').unwrap_or((place, ""));
        if host.contains('@') {
            return Err(("the URL holds a name or a password", CREDENTIALS));
        }
        if query.is_some_and(|query| query.split('&').any(is_secret)) {
            return Err(("a parameter of the URL looks like a credential", CREDENTIALS));
        }
        if rest.contains('#') {
            return Err(("the URL has a fragment (`#`)", "leave it out: servers are not sent it"));
        }
        if host.is_empty() || !host.is_ascii() {
            return Err((
                "the URL names no host or bucket in ASCII",
                "write https://host/path/file.csv or s3://bucket/key",
            ));
        }
        if path.contains(['*', '[']) || scheme == "s3" && query.is_some() {
            return Err((
                "patterns are not supported on servers",
                "list the files: `path: [URL, URL]`",
            ));
        }
        if path.is_empty() || path.ends_with('/') {
            return Err((
                "the URL names no file",
                "directories and prefixes of servers are not searched; list the files: `path: [URL, URL]`",
            ));
        }
        if path.split('/').any(|part| matches!(part, "." | "..")) {
            return Err((
                "the path of the URL has a part `.` or `..`",
                "write the path that it leads to",
            ));
        }
        Ok(Some(Self {
            url: format!("{scheme}://{rest}"),
            pinned: None,
        }))
    }

    /// The last component of the URL's path, decoded: the name from which layouts derive meaning.
    pub fn file_name(&self) -> String {
        let path = self.url.split('?').next().unwrap_or_default();
        let name = decoded(path.rsplit('/').next().unwrap_or_default());
        let name: String = name.chars().map(|c| if c == '/' { '_' } else { c }).collect();
        match check_path(&name) {
            Ok(()) => name,
            // Of a name that the store refuses, only the extension is kept.
            Err(_) => {
                let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
                format!(
                    "file_{}",
                    name.chars().map(plain).collect::<String>().trim_start_matches('.')
                )
            }
        }
    }
}

/// True if the name of a parameter (`NAME=VALUE`) looks like that of a credential.
fn is_secret(parameter: &str) -> bool {
    let name = decoded(parameter.split('=').next().unwrap_or_default()).to_ascii_lowercase();
    SECRET_NAMES.contains(&name.as_str()) || SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// Decodes percent-encoding such as `%41`. A text that is not UTF-8 once decoded is returned unchanged.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(value) if byte == b'%' => {
                bytes.push(value);
                rest = &after[2..];
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> String {
        match RemoteFile::parse(text) {
            Ok(None) => "a path".to_owned(),
            Ok(Some(file)) => format!("{} {}", file.url, file.file_name()),
            Err((reason, _)) => reason.to_owned(),
        }
    }

    #[test]
    fn urls() {
        for (text, expected) in [
            ("data/SPX.csv", "a path"),
            ("https://host/data/SPX.csv", "https://host/data/SPX.csv SPX.csv"),
            (
                "HTTP://host:8080/a%20b.csv.gz?x=1",
                "http://host:8080/a%20b.csv.gz?x=1 a b.csv.gz",
            ),
            (
                "s3://bucket/2024/SPX.parquet",
                "s3://bucket/2024/SPX.parquet SPX.parquet",
            ),
            (
                "https://host/%2e%2e%2fx%00.csv",
                "https://host/%2e%2e%2fx%00.csv file__x_.csv",
            ),
            ("https://me:pass@host/x.csv", "the URL holds a name or a password"),
            (
                "https://host/x.csv?a=1&apikey=2",
                "a parameter of the URL looks like a credential",
            ),
            (
                "https://host/x.csv?X-Amz-Signature=2",
                "a parameter of the URL looks like a credential",
            ),
            (
                "https://host/x.csv?%74oken=2",
                "a parameter of the URL looks like a credential",
            ),
            ("gs://bucket/x.csv", "the scheme of the URL is not supported"),
            ("https://host/", "the URL names no file"),
            ("s3://bucket", "the URL names no file"),
            ("s3://bucket/prefix/", "the URL names no file"),
            ("s3://bucket/*.csv", "patterns are not supported on servers"),
            ("https:///x.csv", "the URL names no host or bucket in ASCII"),
            ("https://höst/x.csv", "the URL names no host or bucket in ASCII"),
            ("https://host/a/../x.csv", "the path of the URL has a part `.` or `..`"),
            (
                "https://host/a b.csv",
                "the URL has a character that is not allowed there",
            ),
        ] {
            assert_eq!(parsed(text), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_file_a_path_or_refused(text in "(https://|s3://|h)?.{0,40}") {
            if let Ok(Some(file)) = RemoteFile::parse(&text) {
                proptest::prop_assert!(check_path(&file.file_name()).is_ok(), "{}", file.file_name());
            }
        }
    }
}
