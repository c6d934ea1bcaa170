//! The installed packages of an interpreter, identified by the records that installers write:
//! `NAME-VERSION.dist-info`, `NAME-VERSION.egg-info`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The package directories below the prefixes of an interpreter, such as a virtual environment or `/usr`.
pub fn site_directories(prefixes: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for lib in prefixes.iter().map(|prefix| prefix.join("lib")) {
        let Ok(entries) = fs::read_dir(&lib) else { continue };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with("python3") {
                let dir = entry.path();
                found.extend(["site-packages", "dist-packages"].map(|name| dir.join(name)));
            }
        }
    }
    found.retain(|dir| dir.is_dir());
    found.sort();
    found.dedup();
    found
}

/// The records of the packages in the given directories: package, version, path of the record.
pub(super) fn records(sites: &[PathBuf]) -> impl Iterator<Item = (String, String, PathBuf)> {
    let entries = sites
        .iter()
        .filter_map(|site| fs::read_dir(site).ok())
        .flatten()
        .flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name();
        let name = name.to_str()?;
        let stem = name
            .strip_suffix(".dist-info")
            .or_else(|| name.strip_suffix(".egg-info"))?;
        let (package, version) = stem.split_once('-').unwrap_or((stem, ""));
        let package = package.replace('_', "-").to_lowercase();
        Some((package, version.to_owned(), entry.path()))
    })
}

/// The versions of the packages in the given directories, by package name.
pub fn installed_packages(sites: &[PathBuf]) -> BTreeMap<String, String> {
    records(sites).map(|(package, version, _)| (package, version)).collect()
}

/// For each package in the given directories, the file that names its version and dependencies, by the name
/// of its record (`numpy-2.4.6.dist-info`), in order.
pub fn package_records(sites: &[PathBuf]) -> BTreeMap<String, PathBuf> {
    let file = |record: PathBuf| {
        let inner = ["METADATA", "PKG-INFO"].map(|name| record.join(name));
        inner.into_iter().chain([record]).find(|path| path.is_file())
    };
    let named = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    records(sites)
        .filter_map(|(.., record)| Some((named(&record)?, file(record)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_known_by_their_records() {
        let dir = tempfile::tempdir().unwrap();
        let site = dir.path().join("lib/python3.11/site-packages");
        for record in [
            "numpy-2.4.6.dist-info",
            "Farama_Notifications-0.0.6.dist-info",
            "old-1.0.egg-info",
        ] {
            fs::create_dir_all(site.join(record)).unwrap();
        }
        fs::write(site.join("numpy-2.4.6.dist-info/METADATA"), "Name: numpy\n").unwrap();
        fs::write(site.join("single-3.egg-info"), "Name: single\n").unwrap();
        fs::create_dir_all(dir.path().join("lib/other")).unwrap();
        let sites = site_directories(&[dir.path().to_owned()]);
        assert_eq!(sites, std::slice::from_ref(&site));
        let packages: Vec<(String, String)> = installed_packages(&sites).into_iter().collect();
        let expected = [
            ("farama-notifications", "0.0.6"),
            ("numpy", "2.4.6"),
            ("old", "1.0"),
            ("single", "3"),
        ];
        assert_eq!(
            packages,
            expected.map(|(name, version)| (name.to_owned(), version.to_owned()))
        );
        let records = package_records(&sites);
        assert_eq!(
            records.keys().collect::<Vec<_>>(),
            ["numpy-2.4.6.dist-info", "single-3.egg-info"]
        );
        assert_eq!(
            records["numpy-2.4.6.dist-info"],
            site.join("numpy-2.4.6.dist-info/METADATA")
        );
    }
}
