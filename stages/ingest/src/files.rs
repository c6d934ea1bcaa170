//! The files that a stage reads, given as paths, directories and globs.

use cache::{BlobDigest, RemoteFile};
use datasets::layout::nearest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use stages_core::{ConfigProblem, Source, StageError};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// One path or a list of them: files, directories (all tables below them), globs (`data/*.csv.gz`), or files
/// on servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths(Vec<Location>);

/// The extensions by which tables are found in a directory.
pub const ENDINGS: &[&str] = &[
    "csv", "txt", "tsv", "parquet", "json", "jsonl", "ndjson", "gz", "zst", "zip",
];

/// The depth to which a directory is searched.
const DEPTH: usize = 16;

impl Paths {
    /// A single path or URL.
    pub fn one(text: impl Into<String>) -> Self {
        Self(vec![Location::Text(text.into())])
    }

    /// Returns whether no path is given.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|location| location.text().trim().is_empty())
    }

    /// The files found by [`Paths::find`]; none if no path is given.
    pub fn find_any(&self, field: &str, base: &Path) -> Result<Vec<Source>, ConfigProblem> {
        match self.is_empty() {
            true => Ok(Vec::new()),
            false => self.find(field, base),
        }
    }

    /// The files, sorted by name. A name is relative to the file's directory, to the directory searched, or
    /// to the part of a glob before its first wildcard, so that moving the data changes no key. With several
    /// paths, the name begins with the path's number.
    pub fn find(&self, field: &str, base: &Path) -> Result<Vec<Source>, ConfigProblem> {
        ConfigProblem::new(field, "no file is given")
            .hint(format!(
                "write `{field}: data/file.csv`; directories, globs and lists are taken too"
            ))
            .when(self.is_empty())?;
        let mut sources = Vec::new();
        for (i, location) in self.0.iter().enumerate() {
            let place = if self.0.len() == 1 {
                field.to_owned()
            } else {
                format!("{field}[{i}]")
            };
            let found = match location.remote(&place)? {
                Some(file) => vec![Source::remote(file)],
                None => {
                    let files = find(&place, location.text(), base)?.into_iter();
                    files.map(|(name, path)| Source::new(name, path)).collect()
                }
            };
            for mut source in found {
                if self.0.len() > 1 {
                    source.name = format!("{i}/{}", source.name);
                }
                sources.push(source);
            }
        }
        sources.sort_by(|a, b| (&a.name, &a.path).cmp(&(&b.name, &b.path)));
        Ok(sources)
    }
}

fn find(field: &str, text: &str, base: &Path) -> Result<Vec<(String, PathBuf)>, ConfigProblem> {
    let path = base.join(text);
    if path.is_file() {
        return Ok(vec![(name_of(path.file_name().unwrap_or_default()), path)]);
    }
    let mut found = Vec::new();
    if path.is_dir() {
        walk(&path, DEPTH, &mut found)
            .map_err(|err| ConfigProblem::new(field, format!("cannot read `{text}`: {err}")))?;
        ConfigProblem::new(field, format!("the directory `{text}` holds no table"))
            .hint(format!("it is searched for files ending in {}", ENDINGS.join(", ")))
            .when(found.is_empty())?;
        return Ok(relative(&path, found));
    }
    if text.contains(['*', '?', '[']) {
        let pattern = path.to_string_lossy();
        let paths = glob::glob(&pattern)
            .map_err(|err| ConfigProblem::new(field, format!("`{text}` is not a glob: {}", err.msg)))?;
        found.extend(paths.filter_map(Result::ok).filter(|path| path.is_file()));
        ConfigProblem::new(field, format!("no file matches `{text}`"))
            .hint(format!("it is looked for below `{}`", fixed_part(&path).display()))
            .when(found.is_empty())?;
        return Ok(relative(&fixed_part(&path), found));
    }
    ConfigProblem::new(field, format!("`{text}` is not a regular file"))
        .hint("write what it yields to a file first: a source is hashed before it is read")
        .when(path.exists())?;
    Err(missing(field, text, &path))
}

fn walk(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        let path = entry.path();
        if path.is_dir() {
            if depth > 0 {
                walk(&path, depth - 1, found)?;
            }
        } else if has_ending(&path) {
            found.push(path);
        }
    }
    Ok(())
}

fn has_ending(path: &Path) -> bool {
    path.extension()
        .is_some_and(|end| ENDINGS.iter().any(|known| end.eq_ignore_ascii_case(known)))
}

/// Returns whether a directory search includes the file at this relative path: it must have a table's
/// extension and no hidden component.
pub fn is_table(path: &str) -> bool {
    has_ending(Path::new(path)) && !path.split('/').any(|part| part.starts_with('.'))
}

/// The part of a glob before its first wildcard.
fn fixed_part(path: &Path) -> PathBuf {
    path.components()
        .take_while(|part| !part.as_os_str().to_string_lossy().contains(['*', '?', '[']))
        .collect()
}

fn relative(root: &Path, paths: Vec<PathBuf>) -> Vec<(String, PathBuf)> {
    paths
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(root).unwrap_or(&path);
            let parts: Vec<_> = name.iter().map(name_of).collect();
            (parts.join("/"), path)
        })
        .collect()
}

/// A file name as text. Bytes that are not UTF-8 are written as `\xB1`, so different names stay different.
pub fn name_of(name: &OsStr) -> String {
    let mut text = String::new();
    for chunk in name.as_encoded_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02X}"));
        }
    }
    text
}

/// The problem of a path that does not exist, with the most similar name that does.
fn missing(field: &str, text: &str, path: &Path) -> ConfigProblem {
    let problem = ConfigProblem::new(field, format!("there is no file or directory `{text}`"));
    let mut wanted = path;
    while let (Some(parent), Some(name)) = (wanted.parent(), wanted.file_name()) {
        if parent.is_dir() {
            let mut names: Vec<String> = std::fs::read_dir(parent)
                .into_iter()
                .flatten()
                .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
                .collect();
            names.sort();
            let near = nearest(&name.to_string_lossy(), names.iter().map(String::as_str));
            return problem.hint(match near {
                Some(near) => format!("`{}` is there: did you mean `{near}`?", parent.display()),
                None => format!(
                    "`{}` is there, and nothing in it has a name like that",
                    parent.display()
                ),
            });
        }
        wanted = parent;
    }
    problem
}

impl Serialize for Paths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [] => serializer.serialize_str(""),
            [one] => one.serialize(serializer),
            many => many.serialize(serializer),
        }
    }
}

datasets::as_forms! {
    Paths, "a path, a URL, or a list of them";
    schema(generator) "A file, directory, glob or URL, or a list of them.":
        [
            generator.subschema_for::<Location>(),
            { "type": "array", "items": generator.subschema_for::<Location>() }
        ];
    text => |text: &str| match text {
        "" => Paths::default(),
        text => Paths::one(text),
    };
    map as Location => |one| Paths(vec![one]);
    list as Vec<Location> => Paths;
}

/// The error for a file that cannot be read.
pub fn unreadable(path: &Path, err: &std::io::Error) -> StageError {
    StageError::new(format!("cannot read `{}`: {err}", path.display()))
}
/// A local path, directory or glob, or a URL, which may be pinned to a digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
enum Location {
    Text(String),
    Pinned(Pinned),
}

/// A pinned file, as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Pinned {
    /// The URL: `https://…`, `http://…` or `s3://bucket/key`.
    url: String,
    /// The BLAKE3 digest of its bytes, in hex: what `b3sum` prints. Nothing else is ever read.
    #[schemars(with = "String")]
    blake3: BlobDigest,
}

impl Location {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Pinned(pinned) => &pinned.url,
        }
    }

    /// The file on a server; `None` for a path.
    fn remote(&self, field: &str) -> Result<Option<RemoteFile>, ConfigProblem> {
        let pinned = match self {
            Self::Text(_) => None,
            Self::Pinned(pinned) => Some(pinned.blake3),
        };
        match RemoteFile::parse(self.text()) {
            Ok(Some(file)) => Ok(Some(RemoteFile { pinned, ..file })),
            Ok(None) if pinned.is_some() => Err(ConfigProblem::new(
                field,
                format!("`{}` is not the URL of a file on a server", self.text()),
            )
            .hint(
                "write `url: https://…` beside `blake3:`; the contents of local files are in the key anyway",
            )),
            Ok(None) => Ok(None),
            Err((reason, hint)) => Err(ConfigProblem::new(field, reason).hint(hint)),
        }
    }
}

datasets::as_forms! {
    Location, "a path, a URL, or `{ url: …, blake3: … }`";
    schema(generator) "A path, directory or glob, a URL (https, http, s3), or a URL with the digest of its \
        bytes.":
        [{ "type": "string" }, generator.subschema_for::<Pinned>()];
    text => |text: &str| Location::Text(text.to_owned());
    map as Pinned => Location::Pinned;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_directories_and_globs() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path();
        std::fs::create_dir_all(base.join("data/2019")).unwrap();
        for name in ["data/b.csv", "data/2019/a.csv.gz", "data/readme.md", "data/.hidden.csv"] {
            std::fs::write(base.join(name), "x").unwrap();
        }
        let names = |paths: &[&str]| -> Result<Vec<String>, ConfigProblem> {
            let paths = Paths(paths.iter().map(|path| Location::Text((*path).to_owned())).collect());
            Ok(paths
                .find("path", base)?
                .into_iter()
                .map(|source| source.name)
                .collect())
        };
        assert_eq!(names(&["data"]).unwrap(), ["2019/a.csv.gz", "b.csv"]);
        assert_eq!(names(&["data/b.csv"]).unwrap(), ["b.csv"]);
        assert_eq!(names(&["data/*/*.gz"]).unwrap(), ["2019/a.csv.gz"]);
        assert_eq!(names(&["data/b.csv", "data/2019"]).unwrap(), ["0/b.csv", "1/a.csv.gz"]);

        let problem = names(&["data/c.csv"]).unwrap_err();
        assert!(problem.hint.unwrap().contains("did you mean `b.csv`"));
        assert!(names(&["dta/b.csv"]).unwrap_err().hint.unwrap().contains("`data`"));
        assert!(names(&["data/*.zip"]).is_err());
        assert_eq!(names(&[]).unwrap_err().field, "path");
        assert_eq!(names(&["data", "nothing"]).unwrap_err().field, "path[1]");
    }

    #[test]
    fn files_on_servers() {
        let paths =
            |given: serde_json::Value| serde_json::from_value::<Paths>(given).map_err(|err| err.to_string());
        let found = |given| paths(given).unwrap().find("path", Path::new("/nowhere"));
        let digest = "5".repeat(64);
        let one = found(serde_json::json!("https://host/SPX%20eod.csv?x=1")).unwrap();
        assert_eq!(one[0].name, "SPX eod.csv");
        assert_eq!((one[0].remote.as_ref().unwrap().pinned, one[0].digest), (None, None));
        let pinned = serde_json::json!([{ "url": "s3://b/k/a.csv", "blake3": digest }, "https://host/b.csv"]);
        let two = found(pinned.clone()).unwrap();
        assert_eq!((two[0].name.as_str(), two[1].name.as_str()), ("0/a.csv", "1/b.csv"));
        assert_eq!(two[0].digest.unwrap().to_hex(), digest);
        assert_eq!(serde_json::to_value(paths(pinned.clone()).unwrap()).unwrap(), pinned);

        let problem = found(serde_json::json!(["a.csv", "https://me:pass@host/b.csv"])).unwrap_err();
        assert_eq!(problem.field, "path[0]");
        let problem = found(serde_json::json!(["https://me:pass@host/b.csv"])).unwrap_err();
        assert_eq!(problem.message, "the URL holds a name or a password");
        let problem = found(serde_json::json!({ "url": "a.csv", "blake3": digest })).unwrap_err();
        assert_eq!(problem.message, "`a.csv` is not the URL of a file on a server");
        assert!(
            paths(serde_json::json!({ "url": "https://host/a.csv", "sha": "5" }))
                .unwrap_err()
                .contains("blake3")
        );
        assert!(paths(serde_json::json!({ "url": "https://host/a.csv", "blake3": "5" })).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn different_names_stay_different() {
        use std::os::unix::ffi::OsStrExt as _;
        let names: [&[u8]; 6] = [
            "上证50.csv".as_bytes(),
            "沪深300.csv".as_bytes(),
            "é".as_bytes(),
            "e\u{301}".as_bytes(),
            b"\xb1",
            b"\xb2",
        ];
        let found = names.map(|name| name_of(OsStr::from_bytes(name)));
        assert_eq!(found, ["上证50.csv", "沪深300.csv", "é", "e\u{301}", "\\xB1", "\\xB2"]);
    }
}
