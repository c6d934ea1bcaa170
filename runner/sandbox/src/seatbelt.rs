//! The limits of a program on macOS, by a profile of `sandbox-exec(1)`.
//!
//! | path | access |
//! | --- | --- |
//! | `work`, `home` and `tmp` of the stage, the usual devices | all |
//! | homes, other volumes and temporary files, except `visible`, `needs` and `tools` | names and metadata alone |
//! | everything else | reading, executing |
//!
//! The network is refused, sockets of files included. Other processes stay visible, as do the services of the
//! system. The rule that matches last decides. What a profile leaves open is open: one that begins by denying
//! everything breaks programs from one version of the system to the next.

use super::protocol::Spec;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The program that applies a profile. Deprecated since macOS 10.13, and in every version since.
const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// The places of users' files. Links are resolved before rules apply: `/tmp` and `/var` are links.
const PRIVATE: [&str; 7] = [
    "/Users",
    "/Volumes",
    "/private/tmp",
    "/private/var/folders",
    "/private/var/root",
    "/private/var/tmp",
    "/Network",
];

/// The devices that programs write to: bash opens `/dev/fd/63` for `>(…)`, and the dynamic linker the helper.
const DEVICES: [&str; 8] = ["null", "zero", "full", "random", "urandom", "tty", "fd", "dtracehelper"];

/// The system's bash writes here-documents to files of this name, in `/var/tmp` or `/tmp`.
const HERE_DOCUMENTS: &str = r##"(regex #"^/private(/var)?/tmp/sh-thd")"##;

/// The program and the arguments that run a program under its profile.
pub(super) fn command(spec: &Spec) -> (PathBuf, Vec<String>) {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let visible: Vec<PathBuf> = spec.surroundings.visible.iter().map(|path| real(path)).collect();
    let profile = profile(&real(&spec.stage), &visible, spec.surroundings.network);
    let mut arguments = vec!["sandbox-exec".to_owned(), "-p".to_owned(), profile];
    arguments.push(spec.program.display().to_string());
    arguments.extend(spec.arguments.iter().skip(1).cloned());
    (PROGRAM.into(), arguments)
}

/// The profile of a program. No path may have a link in it.
fn profile(stage: &Path, visible: &[PathBuf], network: bool) -> String {
    let mut text = "(version 1)\n(allow default)\n(deny file-write*)\n".to_owned();
    let mut rule = |what: &str, places: &[String]| {
        let _ = writeln!(text, "({what}\n  {})", places.join("\n  "));
    };
    let below = |path: &Path| format!("(subpath {})", quoted(path));
    let of_stage =
        |names: &[&str]| -> Vec<String> { names.iter().map(|name| below(&stage.join(name))).collect() };
    let mut writable = of_stage(&["work", "home", "tmp"]);
    writable.extend(DEVICES.map(|name| below(&Path::new("/dev").join(name))));
    writable.push(HERE_DOCUMENTS.to_owned());
    let mut readable = of_stage(&["work", "home", "tmp", "needs", "tools"]);
    readable.extend(visible.iter().map(|path| below(path)));
    readable.push(HERE_DOCUMENTS.to_owned());
    rule("allow file-write*", &writable);
    rule("deny file-read-data", &PRIVATE.map(|path| below(Path::new(path))));
    rule("allow file-read-data", &readable);
    // A second name of a file would have the rules of its place; another program would have none. Operations
    // that a version of the system does not know would make it refuse the whole profile.
    for operation in ["file-link", "file-clone", "lsopen", "appleevent-send"] {
        let _ = writeln!(text, "(when (defined? '{operation}) (deny {operation}))");
    }
    if !network {
        text.push_str("(deny network*)\n");
    }
    text
}

/// A path as a string of a profile, which is Scheme.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Surroundings;

    #[test]
    fn a_profile() {
        let visible = ["/Users/desk/env".into(), "/opt/a \"b\"".into()];
        let text = profile(Path::new("/Users/desk/.runner/tmp/run-a/stage"), &visible, false);
        insta::assert_snapshot!(text, @r##"
        (version 1)
        (allow default)
        (deny file-write*)
        (allow file-write*
          (subpath "/Users/desk/.runner/tmp/run-a/stage/work")
          (subpath "/Users/desk/.runner/tmp/run-a/stage/home")
          (subpath "/Users/desk/.runner/tmp/run-a/stage/tmp")
          (subpath "/dev/null")
          (subpath "/dev/zero")
          (subpath "/dev/full")
          (subpath "/dev/random")
          (subpath "/dev/urandom")
          (subpath "/dev/tty")
          (subpath "/dev/fd")
          (subpath "/dev/dtracehelper")
          (regex #"^/private(/var)?/tmp/sh-thd"))
        (deny file-read-data
          (subpath "/Users")
          (subpath "/Volumes")
          (subpath "/private/tmp")
          (subpath "/private/var/folders")
          (subpath "/private/var/root")
          (subpath "/private/var/tmp")
          (subpath "/Network"))
        (allow file-read-data
          (subpath "/Users/desk/.runner/tmp/run-a/stage/work")
          (subpath "/Users/desk/.runner/tmp/run-a/stage/home")
          (subpath "/Users/desk/.runner/tmp/run-a/stage/tmp")
          (subpath "/Users/desk/.runner/tmp/run-a/stage/needs")
          (subpath "/Users/desk/.runner/tmp/run-a/stage/tools")
          (subpath "/Users/desk/env")
          (subpath "/opt/a \"b\"")
          (regex #"^/private(/var)?/tmp/sh-thd"))
        (when (defined? 'file-link) (deny file-link))
        (when (defined? 'file-clone) (deny file-clone))
        (when (defined? 'lsopen) (deny lsopen))
        (when (defined? 'appleevent-send) (deny appleevent-send))
        (deny network*)
        "##);
        let open = profile(Path::new("/stage"), &[], true);
        assert!(!open.contains("network"), "{open}");
    }

    #[test]
    fn links_are_resolved_and_the_programs_arguments_follow() {
        let dir = tempfile::tempdir().unwrap();
        let stage = dir.path().canonicalize().unwrap().join("stage");
        std::fs::create_dir(&stage).unwrap();
        std::os::unix::fs::symlink(&stage, dir.path().join("link")).unwrap();
        let spec = Spec {
            surroundings: Surroundings {
                visible: vec![dir.path().join("link")],
                ..Surroundings::default()
            },
            stage: dir.path().join("link"),
            program: "/bin/bash".into(),
            arguments: ["bash", "-c", "true"].map(str::to_owned).into(),
            ..Spec::default()
        };
        let (program, arguments) = command(&spec);
        assert_eq!(program, Path::new(PROGRAM));
        assert_eq!(arguments[..2], ["sandbox-exec", "-p"]);
        let link = dir.path().join("link").display().to_string();
        assert!(!arguments[2].contains(&link), "{}", arguments[2]);
        assert!(
            arguments[2].contains(&format!("(subpath {})", quoted(&stage))),
            "a visible path"
        );
        assert_eq!(arguments[3..], ["/bin/bash", "-c", "true"]);
    }
}
