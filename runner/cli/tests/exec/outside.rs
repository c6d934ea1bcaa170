//! Symbolic links, pipes, sockets and devices where files are expected: nothing outside a stage's directory
//! is read, nothing outside the destination of an export is written, and nothing blocks for ever.

use crate::Project;
use cache::{Artifact, BlobRef, Entry, Store};
use std::os::unix::fs::symlink;

fn project(command: &str) -> Project {
    let project = Project::new(&format!(
        "\
version: 1
name: outside
stages:
  a:
    run: |
      {command}
    outputs: {{ x: out }}
"
    ));
    project.write("outside/private.txt", "private\n");
    project
}

/// The message about an output, without the directories that change from run to run.
fn refused(command: &str) -> String {
    let project = project(command);
    let outside = project.path("outside").canonicalize().unwrap();
    project.write(
        "p.yaml",
        &std::fs::read_to_string(project.path("p.yaml"))
            .unwrap()
            .replace("OUTSIDE", &outside.display().to_string()),
    );
    // An isolated program does not see what is outside; see the tests of the sandbox.
    let ended = project.exec(&["--isolation", "none"]);
    assert_eq!(ended.code, 1, "{command}: {}{}", ended.stdout, ended.stderr);
    let store = Store::open(&project.home()).unwrap();
    assert!(!store.has(BlobRef::of(b"private\n")), "{command}: it is in the store");
    let tmp: Vec<_> = std::fs::read_dir(project.home().join("tmp")).unwrap().collect();
    assert!(tmp.is_empty(), "{command}: left {tmp:?}");
    let error = ended.error("a").replace(&outside.display().to_string(), "OUTSIDE");
    let (_, rest) = error.split_once("the output `x` cannot be stored: `").unwrap();
    let (path, what) = rest.split_once("` ").unwrap();
    let path = path.split_once("/work/").unwrap().1;
    format!("{path} {}", what.split(" (os error").next().unwrap_or(what))
}

#[test]
fn only_files_of_its_own_are_taken_in() {
    let commands = [
        "ln -s OUTSIDE/private.txt ${outputs.x}",
        "ln -s OUTSIDE ${outputs.x}",
        "ln -s ../../../../../../../../../../../..OUTSIDE/private.txt ${outputs.x}",
        "mkdir ${outputs.x}; ln -s OUTSIDE/private.txt ${outputs.x}/link",
        "mkdir ${outputs.x}; ln -s OUTSIDE ${outputs.x}/link",
        "mkdir ${outputs.x}; ln -s OUTSIDE/private.txt ../first; ln -s ../../first ${outputs.x}/second",
        "mkdir ${outputs.x}; ln -s nothing ${outputs.x}/link",
        "mkdir ${outputs.x}; ln -s link ${outputs.x}/link",
        "mkfifo ${outputs.x}",
        "mkdir ${outputs.x}; mkfifo ${outputs.x}/pipe",
        "mkdir ${outputs.x}; ln -s /dev/zero ${outputs.x}/link",
        "mkdir ${outputs.x}; touch ${outputs.x}/\"$(printf 'a\\nb')\"",
        "mkdir ${outputs.x}; touch ${outputs.x}/\"$(printf 'a\\377b')\"",
        "mkdir ${outputs.x}; touch ${outputs.x}/'a\\b' ",
    ];
    let said: Vec<String> = commands.iter().map(|command| refused(command)).collect();
    insta::assert_snapshot!(said.join("\n"), @r"
    out links to `OUTSIDE/private.txt`, outside the stage's directory
    out links to `OUTSIDE`, outside the stage's directory
    out links to `OUTSIDE/private.txt`, outside the stage's directory
    out/link links to `OUTSIDE/private.txt`, outside the stage's directory
    out/link links to `OUTSIDE`, outside the stage's directory
    out/second links to `OUTSIDE/private.txt`, outside the stage's directory
    out/link cannot be read: No such file or directory
    out/link cannot be read: Too many levels of symbolic links
    out is a named pipe, not a file
    out/pipe is a named pipe, not a file
    out/link links to `/dev/zero`, outside the stage's directory
    out/a\nb has a control character
    out/a�b has a name that is not UTF-8
    out/a\\b has a backslash; the parts of a path are separated by `/`
    ");
}

/// Only some systems let a program create a socket.
#[test]
fn a_socket_is_no_file() {
    let project = project("mv SOCKET ${outputs.x}");
    let socket = project.path("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let pipeline = std::fs::read_to_string(project.path("p.yaml")).unwrap();
    project.write("p.yaml", &pipeline.replace("SOCKET", socket.to_str().unwrap()));
    let ended = project.exec(&["--isolation", "none"]);
    let error = ended.error("a");
    assert_eq!(ended.code, 1, "{error}");
    assert!(error.contains("is a socket, not a file"), "{error}");
}

/// Where no device can be made, the output is missing.
#[test]
fn a_device_is_no_file() {
    let ended = project("mknod ${outputs.x} c 1 5 || exit 0").exec(&[]);
    let error = ended.error("a");
    assert_eq!(ended.code, 1, "{error}");
    assert!(
        error.contains("is a device, not a file") || error.contains("is missing"),
        "{error}"
    );
}

#[test]
fn links_within_the_folder_are_followed() {
    let project = project(
        "mkdir ${outputs.x}; echo model > ${outputs.x}/model-3; ln -s model-3 ${outputs.x}/latest; echo b > \
        b; ln -s ../b ${outputs.x}/b",
    );
    assert_eq!(project.exec(&[]).code, 0);
    assert_eq!(project.output("a.x"), "b\nmodel\nmodel\n");
}

/// Another name of a file elsewhere gives its bytes as they were; what happens to the file later is its own
/// affair.
#[test]
fn another_name_of_a_file_is_copied() {
    let project = project("ln FILE ${outputs.x} 2>/dev/null || cp FILE ${outputs.x}");
    let file = project.path("outside/private.txt").canonicalize().unwrap();
    let text = std::fs::read_to_string(project.path("p.yaml")).unwrap();
    project.write("p.yaml", &text.replace("FILE", &file.display().to_string()));
    assert_eq!(project.exec(&["--isolation", "none"]).code, 0);
    std::fs::write(&file, "changed\n").unwrap();
    assert_eq!(project.output("a.x"), "private\n");
    assert_eq!(project.run(&["cache", "verify"]).code, 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "changed\n");
}

/// A manifest in the store, written by hand.
fn manifest(project: &Project, path: &str) -> String {
    let store = Store::open(&project.home()).unwrap();
    let blob = store.put(b"evil\n").unwrap();
    let text = Artifact {
        kind: "file".to_owned(),
        meta: serde_json::json!({ "folder": true }),
        entries: vec![Entry {
            path: path.to_owned(),
            size: blob.size,
            blob: blob.blob,
        }],
    }
    .canonical();
    store.put(text.as_bytes()).unwrap().blob.to_hex()
}

#[test]
fn a_manifest_cannot_name_what_is_outside() {
    let project = project("echo x > ${outputs.x}");
    assert_eq!(project.exec(&[]).code, 0);
    let absolute = project.path("evil").display().to_string();
    for path in ["../evil", "a/../../evil", absolute.as_str(), "a\nb", ""] {
        let digest = manifest(&project, path);
        for args in [vec!["export", &digest, "dest"], vec!["show", &digest]] {
            let ended = project.run(&args);
            assert_eq!(ended.code, 3, "{path}: {}{}", ended.stdout, ended.stderr);
            assert!(ended.stderr.contains("is not valid: entry"), "{path}: {}", ended.stderr);
        }
        assert!(
            !project.path("evil").exists() && !project.path("dest/evil").exists(),
            "{path}"
        );
    }
}

#[test]
fn an_export_writes_through_no_link() {
    let project = project("mkdir ${outputs.x}; echo x > ${outputs.x}/private.txt");
    assert_eq!(project.exec(&[]).code, 0);
    // What is in the way is refused before anything is written.
    std::fs::create_dir(project.path("dest")).unwrap();
    for target in ["outside/private.txt", "nothing"] {
        symlink(project.path(target), project.path("dest/private.txt")).unwrap();
        let ended = project.run(&["export", "latest/a.x", "dest"]);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        std::fs::remove_file(project.path("dest/private.txt")).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(project.path("outside/private.txt")).unwrap(),
        "private\n"
    );
    assert!(!project.path("nothing").exists());
    assert_eq!(project.run(&["export", "latest/a.x", "dest"]).code, 0);
}
