//! The files that a stage reads, given as paths, directories and globs.

use cache::{BlobDigest, RemoteFile};
use datasets::layout::nearest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use stages_core::{ConfigProblem, Source, StageError};
use stages_table_file::packing::is_readme;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// One path or a list of them: files, directories (all tables below them), globs (`data/*.csv.gz`), or files
/// on servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths(Vec<Location>);

/// The extensions by which tables are found in a directory.
pub const ENDINGS: &[&str] = &[
    "csv", "txt", "tsv", "parquet", "json", "jsonl", "ndjson", "xlsx", "gz", "zst", "zip",
];

/// The depth to which a directory is searched.
const DEPTH: usize = 16;

/// The characters of a glob.
const WILDCARDS: [char; 3] = ['*', '?', '['];

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
    if path.is_dir() {
        let found = walk(&path, is_wanted)
            .map_err(|err| ConfigProblem::new(field, format!("cannot read `{text}`: {err}")))?;
        ConfigProblem::new(field, format!("the directory `{text}` holds no table"))
            .hint(format!("it is searched for files ending in {}", ENDINGS.join(", ")))
            .when(found.is_empty())?;
        return Ok(relative(&path, found));
    }
    if text.contains(WILDCARDS) {
        let (root, rest) = pattern_of(base, text);
        let found = matching(&root, &rest)
            .map_err(|err| ConfigProblem::new(field, format!("`{text}` is not a glob: {err}")))?;
        ConfigProblem::new(field, format!("no file matches `{text}`"))
            .hint(format!("it is looked for below `{}`", root.display()))
            .when(found.is_empty())?;
        return Ok(relative(&root, found));
    }
    ConfigProblem::new(field, format!("`{text}` is not a regular file"))
        .hint("write what it yields to a file first: a source is hashed before it is read")
        .when(path.exists())?;
    Err(missing(field, text, &path))
}

/// The files below a directory that are wanted, by their paths relative to it. A directory that links lead
/// to is walked once, under its own name where it has one below `root`; hidden ones are not, unless `wanted`.
fn walk(root: &Path, wanted: impl Fn(&Path) -> bool) -> std::io::Result<Vec<PathBuf>> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    let mut folders = vec![(root.to_owned(), DEPTH)];
    let mut links: Vec<(PathBuf, usize)> = Vec::new();
    loop {
        let Some((folder, depth)) = folders.pop() else {
            // In the order of their names, so that it is the same link everywhere.
            links.sort_by(|a, b| b.cmp(a));
            match links.pop() {
                Some(link) => folders.push(link),
                None => return Ok(found),
            }
            continue;
        };
        if !seen.insert(folder.canonicalize()?) {
            continue;
        }
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            if !path.is_dir() {
                if wanted(path.strip_prefix(root).unwrap_or(&path)) {
                    found.push(path);
                }
            } else if depth > 0 && !is_hidden(Path::new(&entry.file_name())) {
                match entry.file_type()?.is_symlink() {
                    true => links.push((path, depth - 1)),
                    false => folders.push((path, depth - 1)),
                }
            }
        }
    }
}

/// Returns whether a component of a relative path begins with a dot.
fn is_hidden(path: &Path) -> bool {
    path.iter().any(|part| part.as_encoded_bytes().starts_with(b"."))
}

/// The files below `root` that match a glob.
fn matching(root: &Path, glob: &str) -> Result<Vec<PathBuf>, String> {
    if glob.split('/').any(|part| part == "**") {
        // The crate `glob` follows links in circles.
        let pattern = glob::Pattern::new(glob).map_err(|err| err.msg.to_owned())?;
        let options = glob::MatchOptions {
            require_literal_separator: true,
            ..glob::MatchOptions::new()
        };
        let root = if root.as_os_str().is_empty() {
            Path::new(".")
        } else {
            root
        };
        let found = walk(root, |path| pattern.matches_path_with(path, options));
        return found.map_err(|err| format!("cannot read `{}`: {err}", root.display()));
    }
    let literal = glob::Pattern::escape(&root.to_string_lossy());
    let pattern = match literal.as_str() {
        "" => glob.to_owned(),
        literal => format!("{}/{glob}", literal.trim_end_matches('/')),
    };
    let paths = glob::glob(&pattern).map_err(|err| err.msg.to_owned())?;
    Ok(paths.filter_map(Result::ok).filter(|path| path.is_file()).collect())
}

fn has_ending(path: &Path) -> bool {
    path.extension()
        .is_some_and(|end| ENDINGS.iter().any(|known| end.eq_ignore_ascii_case(known)))
}

/// Returns whether a directory search includes the file at this relative path: it must have a table's
/// extension and no hidden component, and be no text about the others, such as `README.txt`.
pub fn is_table(path: &str) -> bool {
    is_wanted(Path::new(path))
}

fn is_wanted(path: &Path) -> bool {
    has_ending(path) && !is_hidden(path) && !is_readme(&path.to_string_lossy())
}

/// The files below the directory at `text`, relative to `base`, that a search of it leaves out, but for
/// hidden ones, in order of name; none for other paths.
pub fn left_out(text: &str, base: &Path) -> Vec<PathBuf> {
    let root = base.join(text);
    let is_other = |path: &Path| !is_wanted(path) && !is_hidden(path);
    let mut found = match root.is_dir() {
        true => walk(&root, is_other).unwrap_or_default(),
        false => Vec::new(),
    };
    found.sort();
    found
}

/// The part of a glob before its first wildcard, and the rest. `base` and directories that exist may have
/// brackets in their names.
fn pattern_of(base: &Path, text: &str) -> (PathBuf, String) {
    let path = base.join(text);
    let own = if Path::new(text).is_absolute() {
        0
    } else {
        base.components().count()
    };
    let mut root = PathBuf::new();
    let mut parts = path.components().enumerate().peekable();
    while let Some((_, part)) = parts.next_if(|(at, part)| {
        *at < own || !part.as_os_str().to_string_lossy().contains(WILDCARDS) || root.join(part).is_dir()
    }) {
        root.push(part);
    }
    let rest = parts.map(|(_, part)| part.as_os_str().to_string_lossy().into_owned());
    (root, rest.collect::<Vec<_>>().join("/"))
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
        for name in [
            "data/b.csv",
            "data/2019/a.csv.gz",
            "data/readme.md",
            "data/README.txt",
            "data/2019/License.txt",
            "data/Thumbs.db",
            "data/.DS_Store",
            "data/.hidden.csv",
        ] {
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
        let others = left_out("data", base).into_iter();
        let others: Vec<_> = others.map(|path| path.strip_prefix(base).unwrap().to_owned()).collect();
        let wanted = ["2019/License.txt", "README.txt", "Thumbs.db", "readme.md"];
        assert_eq!(others, wanted.map(|name| Path::new("data").join(name)));
        assert!(left_out("data/b.csv", base).is_empty());
        assert_eq!(names(&["data/b.csv"]).unwrap(), ["b.csv"]);
        // One that is named is read.
        assert_eq!(names(&["data/README.txt"]).unwrap(), ["README.txt"]);
        assert_eq!(names(&["data/*/*.gz"]).unwrap(), ["2019/a.csv.gz"]);
        assert_eq!(names(&["data/b.csv", "data/2019"]).unwrap(), ["0/b.csv", "1/a.csv.gz"]);

        let problem = names(&["data/c.csv"]).unwrap_err();
        assert!(problem.hint.unwrap().contains("did you mean `b.csv`"));
        assert!(names(&["dta/b.csv"]).unwrap_err().hint.unwrap().contains("`data`"));
        assert!(names(&["data/*.zip"]).is_err());
        assert_eq!(names(&[]).unwrap_err().field, "path");
        assert_eq!(names(&["data", "nothing"]).unwrap_err().field, "path[1]");
    }

    /// A name of the project's directory, and of one of the data, may have any characters.
    #[test]
    fn brackets_and_blanks_in_directories() {
        let projects = [
            "project [v2]",
            "[a-z]",
            "what?",
            "50%",
            "a#b",
            "née",
            "ne\u{301}e",
            "{x}",
            "sp ace",
            "*",
        ];
        for project in projects {
            for (data, text) in [
                ("data", "data/*.csv"),
                ("data [raw]", "data [raw]/*.csv"),
                ("data", "d?ta/A*.csv"),
                ("[x] 1/y", "[x] 1/**/*.csv"),
            ] {
                let dir = tempfile::tempdir().unwrap();
                let base = dir.path().join(project);
                std::fs::create_dir_all(base.join(data)).unwrap();
                std::fs::write(base.join(data).join("AAA.csv"), "x").unwrap();
                let absolute = base.join(text).display().to_string();
                for text in [text, &absolute] {
                    let found = Paths::one(text).find("path", &base);
                    let found = found.unwrap_or_else(|err| panic!("{project} {text}: {}", err.message));
                    assert!(
                        found[0].name.ends_with("AAA.csv") && found.len() == 1,
                        "{project}: {found:?}"
                    );
                    assert!(found[0].path.is_file());
                }
                let problem = Paths::one("data/*.zip").find("path", &base).unwrap_err();
                assert!(problem.hint.unwrap().contains(project));
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_in_circles() {
        use std::os::unix::fs::symlink;
        for links in 1..=20 {
            let dir = tempfile::tempdir().unwrap();
            let data = dir.path().join("data");
            std::fs::create_dir_all(data.join("b/c")).unwrap();
            for name in ["AAA.csv", "b/BBB.csv", "b/c/CCC.csv"] {
                std::fs::write(data.join(name), "x").unwrap();
            }
            for i in 0..links {
                let (to, from) = match i % 4 {
                    0 => (".".to_owned(), format!("a{i}")),
                    1 => ("..".to_owned(), format!("b/a{i}")),
                    2 => ("../../b".to_owned(), format!("b/c/a{i}")),
                    _ => (data.display().to_string(), format!("b/z{i}")),
                };
                symlink(to, data.join(from)).unwrap();
            }
            for text in ["data", "data/**/*.csv", "data/*.csv"] {
                let found = Paths::one(text).find("path", dir.path()).unwrap();
                let names: Vec<&str> = found.iter().map(|source| source.name.as_str()).collect();
                let all = ["AAA.csv", "b/BBB.csv", "b/c/CCC.csv"];
                assert_eq!(
                    names,
                    if text == "data/*.csv" { &all[..1] } else { &all },
                    "{links} {text}"
                );
            }
        }
        // A directory elsewhere is read under the link's name, once.
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("far")).unwrap();
        std::fs::create_dir_all(dir.path().join("data")).unwrap();
        std::fs::write(dir.path().join("far/AAA.csv"), "x").unwrap();
        for name in ["one", "two"] {
            symlink("../far", dir.path().join("data").join(name)).unwrap();
        }
        let found = Paths::one("data").find("path", dir.path()).unwrap();
        assert_eq!(
            found.iter().map(|source| &*source.name).collect::<Vec<_>>(),
            ["one/AAA.csv"]
        );
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
