//! The entry points that installed packages declare, and the files of a package, read from the records that
//! installers write. No interpreter is started.

use super::packages::records;
use crate::Source;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The largest record that is read, in bytes.
const LARGEST: u64 = 8 << 20;

/// The largest number of files of a package.
const MOST_FILES: usize = 20_000;

/// An entry point of an installed package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPoint {
    /// The name of the package.
    pub package: String,
    /// The version of the package.
    pub version: String,
    /// The name of the entry point.
    pub name: String,
    /// The object that it names, `MODULE:ATTRIBUTE`; unchecked.
    pub value: String,
    /// The directory of the package's record, `NAME-VERSION.dist-info`.
    pub record: PathBuf,
}

/// The entry points of a group that the packages in the given directories declare, in the order of their
/// records.
pub fn entry_points(sites: &[PathBuf], group: &str) -> Vec<EntryPoint> {
    let mut found = Vec::new();
    for (package, version, record) in records(sites) {
        let Some(text) = text(&record.join("entry_points.txt")) else {
            continue;
        };
        let mut is_inside = false;
        for line in text.lines().map(str::trim) {
            if let Some(section) = line.strip_prefix('[') {
                is_inside = section.strip_suffix(']').map(str::trim) == Some(group);
            } else if let Some((name, value)) = line.split_once('=').filter(|_| is_inside)
                && !line.starts_with(['#', ';'])
            {
                found.push(EntryPoint {
                    package: package.clone(),
                    version: version.clone(),
                    name: name.trim().to_owned(),
                    value: value.trim().to_owned(),
                    record: record.clone(),
                });
            }
        }
    }
    found.sort_by(|a, b| (&a.record, &a.name).cmp(&(&b.record, &b.name)));
    found
}

/// The files that the record of a package lists, but for the record itself, compiled modules and what lies
/// outside the package's directory: name relative to that directory, path.
///
/// # Errors
/// When there is no record, or it lists too much.
pub fn package_files(record: &Path) -> Result<Vec<Source>, String> {
    let site = record.parent().unwrap_or(record);
    let list = text(&record.join("RECORD")).ok_or_else(|| format!("`{}` has no RECORD", record.display()))?;
    let mut files = BTreeMap::new();
    for line in list.lines() {
        // A name with a comma is in quotes.
        let name = match line.strip_prefix('"') {
            Some(rest) => rest.split('"').next().unwrap_or_default(),
            None => line.split(',').next().unwrap_or_default(),
        };
        let path = Path::new(name);
        let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
        let is_record = path.components().next().is_some_and(|first| {
            let first = first.as_os_str().as_encoded_bytes();
            first.ends_with(b".dist-info") || first.ends_with(b".egg-info")
        });
        if name.is_empty() || !is_inside || is_record || name.ends_with(".pyc") {
            continue;
        }
        let path = site.join(path);
        if path.is_file() {
            files.insert(name.to_owned(), path);
        }
        if files.len() > MOST_FILES {
            return Err(format!("`{}` lists more than {MOST_FILES} files", record.display()));
        }
    }
    let sources = files.into_iter().map(|(name, path)| Source::program(name, path));
    Ok(sources.collect())
}

/// The text of a regular file; `None` if it cannot be read or is too large.
fn text(path: &Path) -> Option<String> {
    let meta = fs::metadata(path).ok()?;
    if !meta.is_file() || meta.len() > LARGEST {
        return None;
    }
    Some(String::from_utf8_lossy(&fs::read(path).ok()?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_points_and_files_are_read_from_records() {
        let dir = tempfile::tempdir().unwrap();
        let site = dir.path().to_owned();
        let write = |name: &str, text: &str| {
            let path = site.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "acme_runner-1.2.dist-info/entry_points.txt",
            "[console_scripts]\nx = y:z\n\n[runner.stages]\n# none = a:b\nacme = acme_runner:stages\n b=c\n\
            [other]\nd=e\n",
        );
        write("plain-1.dist-info/METADATA", "Name: plain\n");
        fs::create_dir_all(site.join("odd-1.dist-info/entry_points.txt")).unwrap();
        let sites = [site.clone()];
        let found = entry_points(&sites, "runner.stages");
        let short: Vec<(&str, &str, &str, &str)> = found
            .iter()
            .map(|point| (&*point.package, &*point.version, &*point.name, &*point.value))
            .collect();
        assert_eq!(
            short,
            [
                ("acme-runner", "1.2", "acme", "acme_runner:stages"),
                ("acme-runner", "1.2", "b", "c")
            ]
        );
        let record = &found[0].record;
        assert!(package_files(record).unwrap_err().contains("no RECORD"));
        write("acme_runner/__init__.py", "");
        write("acme_runner/a,b.py", "");
        write("outside.py", "");
        write(
            "acme_runner-1.2.dist-info/RECORD",
            "acme_runner/__init__.py,sha256=0,0\n\"acme_runner/a,b.py\",,\nacme_runner/__pycache__/a.pyc,,\n\
            acme_runner/gone.py,,\n../outside.py,,\n/etc/passwd,,\nacme_runner-1.2.dist-info/RECORD,,\n",
        );
        let files = package_files(record).unwrap();
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["acme_runner/__init__.py", "acme_runner/a,b.py"]);
    }
}
