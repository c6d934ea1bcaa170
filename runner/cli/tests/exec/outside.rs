//! Paths that lead outside: nothing outside the destination of an export is written.

use crate::Project;
use cache::{Artifact, Entry, Store};
use runner_testkit::pipeline;
use std::os::unix::fs::symlink;

fn project(command: &str) -> Project {
    let project = Project::new(pipeline("outside").run("a", command).output("x", "out"));
    project.write("outside/private.txt", "private\n");
    project
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
