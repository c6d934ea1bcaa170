//! Memos of resolved pipelines: they say what reading the files would, or nothing.

use crate::{GOOD, options};
use runner_pipeline::{LoadOptions, Pipeline, Work, load_memo, load_with_memo, memo_name};
use std::fs;
use std::path::{Path, PathBuf};

/// All that a pipeline says of its stages.
fn shown(pipeline: &Pipeline) -> String {
    let mut out = format!(
        "{} {:?} {:?} {:?}\n",
        pipeline.name, pipeline.file, pipeline.base, pipeline.params
    );
    for (i, node) in pipeline.nodes.iter().enumerate() {
        let work = match &node.work {
            Work::Kind { kind, config } => format!("{} {} {config}", kind.name(), kind.version()),
            Work::Command(command) => format!("{command:?}"),
        };
        let needs: Vec<usize> = pipeline.graph.needs(i).collect();
        out.push_str(&format!(
            "{} {} {:?} {work} {:?} {:?} {:?} {} {:?} {:?} {:?} {needs:?}\n",
            node.id,
            node.stage,
            node.point,
            node.needs,
            node.provides,
            node.resources,
            node.retries,
            node.timeout,
            node.base,
            node.place
        ));
    }
    out
}

struct Project {
    dir: tempfile::TempDir,
    file: PathBuf,
}

impl Project {
    fn new(text: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("p.yaml");
        fs::write(&file, text).unwrap();
        Self { dir, file }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The memo that is made now, which must say what the files do.
    fn memo(&self, options: &LoadOptions) -> Vec<u8> {
        let (pipeline, memo) =
            load_with_memo(&self.file, options).unwrap_or_else(|errors| panic!("{errors}"));
        let memo = memo.unwrap();
        let again = load_memo(&memo, &self.file, options).unwrap();
        assert_eq!(shown(&again), shown(&pipeline));
        memo
    }

    fn holds(&self, memo: &[u8], options: &LoadOptions) -> bool {
        load_memo(memo, &self.file, options).is_some()
    }
}

#[test]
fn a_memo_says_what_the_file_does() {
    let project = Project::new(GOOD);
    let memo = project.memo(&options(&["seed=9"]));
    for cut in 0..memo.len() {
        assert!(!project.holds(&memo[..cut], &options(&["seed=9"])), "{cut}");
    }
    for at in (0..memo.len()).step_by(7) {
        let mut damaged = memo.clone();
        damaged[at] ^= 1;
        // Whatever it says, it is said without a panic: a checksum tells that it is damaged.
        let _ = load_memo(&damaged, &project.file, &options(&["seed=9"]));
    }
}

#[test]
fn settings_and_programs_have_memos_of_their_own() {
    let name = |set: &[&str], program| memo_name(Path::new("p.yaml"), &options(set), program);
    let mut with_profile = options(&[]);
    with_profile.profiles.push("a".to_owned());
    let names = [
        name(&[], "a"),
        name(&[], "b"),
        name(&["seed=1"], "a"),
        name(&["seed=1", "seed=2"], "a"),
        name(&["seed=1seed=2"], "a"),
        memo_name(Path::new("./p.yaml"), &options(&[]), "a"),
        memo_name(Path::new("q.yaml"), &options(&[]), "a"),
        memo_name(Path::new("p.yaml"), &with_profile, "a"),
    ];
    let distinct: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
}

#[test]
fn another_file_has_no_memo() {
    let project = Project::new("version: 1\nname: a\ninclude: more.yaml\nstages:\n  x: { run: 'true' }\n");
    fs::create_dir(project.path("deep")).unwrap();
    fs::write(project.path("more.yaml"), "include: deep/last.yaml\n").unwrap();
    fs::write(project.path("deep/last.yaml"), "stages:\n  y: { run: 'true' }\n").unwrap();
    let options = options(&[]);
    let memo = project.memo(&options);
    for name in ["p.yaml", "more.yaml", "deep/last.yaml"] {
        let text = fs::read_to_string(project.path(name)).unwrap();
        fs::write(project.path(name), text.clone() + "# more\n").unwrap();
        assert!(!project.holds(&memo, &options), "{name}");
        fs::remove_file(project.path(name)).unwrap();
        assert!(!project.holds(&memo, &options), "{name}");
        fs::write(project.path(name), text).unwrap();
        assert!(project.holds(&memo, &options), "{name}");
    }
}

#[test]
fn another_environment_has_no_memo() {
    let text = "version: 1\nname: a\nparams: { n: \"${env.COUNT}\" }\nstages:\n  x: \
        { run: 'echo ${env.HOME} ${params.n} $TOKEN', secrets: [TOKEN] }\n";
    let project = Project::new(text);
    let mut options = options(&[]);
    let memo = project.memo(&options);
    // What is not interpolated counts for nothing, secrets above all.
    options.env.insert("OTHER".to_owned(), "1".to_owned());
    options.env.insert("TOKEN".to_owned(), "1".to_owned());
    assert!(project.holds(&memo, &options));
    for name in ["COUNT", "HOME"] {
        let before = options.env.insert(name.to_owned(), "13".to_owned()).unwrap();
        assert!(!project.holds(&memo, &options), "{name}");
        options.env.remove(name);
        assert!(!project.holds(&memo, &options), "{name}");
        options.env.insert(name.to_owned(), before);
        assert!(project.holds(&memo, &options), "{name}");
    }
}

#[test]
fn files_of_programs_are_listed_again() {
    let text = "version: 1\nname: a\nstages:\n  x: { run: 'true', files: ['*.py', folder, one.txt] }\n";
    let project = Project::new(text);
    fs::create_dir(project.path("folder")).unwrap();
    for name in ["a.py", "folder/b", "one.txt"] {
        fs::write(project.path(name), "").unwrap();
    }
    let options = options(&[]);
    let memo = project.memo(&options);
    // Their contents are hashed for the key, whenever a stage is prepared.
    fs::write(project.path("a.py"), "other").unwrap();
    assert!(project.holds(&memo, &options));
    for name in ["b.py", "folder/c"] {
        fs::write(project.path(name), "").unwrap();
        assert!(!project.holds(&memo, &options), "{name}");
        fs::remove_file(project.path(name)).unwrap();
        assert!(project.holds(&memo, &options), "{name}");
    }
    fs::remove_file(project.path("one.txt")).unwrap();
    assert!(!project.holds(&memo, &options));
}

#[test]
fn files_of_stage_kinds_are_looked_for_again() {
    let text = "version: 1\nname: a\nstages:\n  x: { uses: ingest/option_chain, with: { path: data.csv } }\n";
    let project = Project::new(text);
    fs::write(project.path("data.csv"), "").unwrap();
    let options = options(&[]);
    let memo = project.memo(&options);
    fs::remove_file(project.path("data.csv")).unwrap();
    assert!(!project.holds(&memo, &options));
}

#[test]
fn the_types_of_outputs_are_in_a_memo() {
    let text = "\
version: 1
name: typed
stages:
  a: { run: 'echo > ${outputs.x}', outputs: { x: { path: x.csv, type: features }, y: y.csv } }
";
    let project = Project::new(text);
    project.memo(&options(&[]));
    let (pipeline, _) = load_with_memo(&project.file, &options(&[])).unwrap();
    let Work::Command(command) = &pipeline.nodes[0].work else {
        panic!("not a command");
    };
    assert_eq!(format!("{:?}", command.types), r#"{"x": Features}"#);
    assert_eq!(command.outputs["x"], "x.csv");
    let types: Vec<&str> = pipeline.nodes[0]
        .provides
        .values()
        .map(|provided| provided.ty.name())
        .collect();
    assert_eq!(types, ["features", "file"]);
}

#[test]
fn what_the_registry_says_is_asked_each_time() {
    let text = GOOD.replace("timesteps: 8192", "timesteps: ${policies.desk.tried}");
    assert_ne!(text, GOOD);
    let project = Project::new(&text);
    let of = |tried: usize| LoadOptions {
        tried: Some(Box::new(move |name| {
            assert_eq!(name, "desk");
            Ok(tried)
        })),
        ..options(&[])
    };
    for tried in [3, 4] {
        let (pipeline, memo) =
            load_with_memo(&project.file, &of(tried)).unwrap_or_else(|errors| panic!("{errors}"));
        assert!(memo.is_none());
        assert!(
            shown(&pipeline).contains(&format!("\"timesteps\":{tried}")),
            "{}",
            shown(&pipeline)
        );
    }
    let errors = load_with_memo(&project.file, &options(&[])).map(drop).unwrap_err();
    assert!(
        errors
            .to_string()
            .contains("the registry of policies is not known here"),
        "{errors}"
    );
}
