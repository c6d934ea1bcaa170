//! `uses: python` stages: what they resolve to, and what is said where they cannot.

use crate::options;
use runner_pipeline::{Command, LoadOptions, Pipeline, Work, load, load_with_sources, resolved};
use serde_json::json;
use stages_core::PortType;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// A directory with modules, and an environment of Python in `env` that has pyarrow.
struct Machine {
    dir: tempfile::TempDir,
}

const STAGE: &str = "
    call: my_stages:make
    python: ./env
    with: { window: 3, nested: { a: [1, x] } }
    outputs: { factors: features, note: { path: note.txt } }
";

impl Machine {
    fn new() -> Self {
        let machine = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        machine.file("my_stages.py", "import helpers\n");
        machine.file("helpers.py", "");
        machine.file("other.py", "");
        machine.file("env/pyvenv.cfg", "home = /usr/bin\nversion = 3.11.2\n");
        machine.file("env/bin/python", "#!/bin/sh\n");
        let program = fs::Permissions::from_mode(0o755);
        fs::set_permissions(machine.path("env/bin/python"), program).unwrap();
        machine.file("env/lib/python3.11/site-packages/pyarrow-21.0.0.dist-info/METADATA", "");
        machine.file("env/lib/python3.11/site-packages/My_Package-1.2.dist-info/METADATA", "");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join(name)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn pipeline(&self, lines: &str) -> PathBuf {
        let text = format!("version: 1\nname: a\nstages:\n  x:\n    uses: python\n{lines}");
        self.file("p.yaml", &text)
    }

    fn options(&self, set: &[&str]) -> LoadOptions {
        let mut options = options(set);
        let path = self.path("env/bin").display().to_string();
        options.env.insert("PATH".to_owned(), path);
        options
    }

    fn load(&self, lines: &str, set: &[&str]) -> Result<Pipeline, String> {
        load_with_sources(&self.pipeline(lines), &self.options(set)).map_err(|errors| {
            let errors = errors.0.iter().map(|error| {
                let hint = error.hint.as_deref().unwrap_or_default();
                format!("{} | {hint}", error.message)
            });
            let text: Vec<String> = errors.collect();
            text.join("\n").replace(&self.path("").display().to_string(), "/")
        })
    }
}

fn command(pipeline: &Pipeline) -> &Command {
    match &pipeline.nodes[0].work {
        Work::Command(command) => command,
        Work::Kind { .. } => panic!("a stage kind"),
    }
}

#[test]
fn a_call_has_its_modules_its_interpreter_and_its_packages() {
    let machine = Machine::new();
    let pipeline = machine.load(STAGE, &[]).unwrap();
    let command = command(&pipeline);
    let python = command.python.as_ref().unwrap();
    assert_eq!(python.call, "my_stages:make");
    assert_eq!(json!(python.with), json!({ "window": 3, "nested": { "a": [1, "x"] } }));
    let packages = [("my-package", "1.2"), ("pyarrow", "21.0.0")];
    assert_eq!(
        python.packages,
        packages
            .map(|(name, version)| (name.to_owned(), version.to_owned()))
            .into()
    );
    let files: Vec<&str> = command.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(files, ["helpers.py", "my_stages.py"]);
    assert_eq!(command.tools.len(), 1);
    assert_eq!(command.tools[0].version.as_deref(), Some("3.11.2"));
    assert_eq!(command.types, [("factors".to_owned(), PortType::Features)].into());
    assert_eq!(command.outputs["factors"], "outputs/factors");
    assert_eq!(command.outputs["note"], "note.txt");

    // A lock file beside the environment is part of the key; `python3` on PATH is that of its environment.
    machine.file("requirements.txt", "pyarrow==21.0.0\n");
    fs::copy(machine.path("env/bin/python"), machine.path("env/bin/python3")).unwrap();
    let pipeline = machine.load(&STAGE.replace("    python: ./env\n", ""), &[]).unwrap();
    let tool = &self::command(&pipeline).tools[0];
    assert!(tool.is_environment());
    assert_eq!(tool.sources[0].name, "requirements.txt");
}

#[test]
fn settings_are_set_from_outside_and_survive_resolution() {
    let machine = Machine::new();
    let pipeline = machine
        .load(STAGE, &["x.with.window=5", "x.with.nested.b=true"])
        .unwrap();
    let python = command(&pipeline).python.clone().unwrap();
    assert_eq!(
        json!(python.with),
        json!({ "window": 5, "nested": { "a": [1, "x"], "b": true } })
    );
    let text = resolved(&machine.path("p.yaml"), &machine.options(&["x.with.window=5"])).unwrap();
    assert!(text.contains("uses: python"), "{text}");
    machine.file("q.yaml", &text);
    let again = load(&machine.path("q.yaml"), &machine.options(&[]))
        .unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    assert_eq!(json!(command(&again).python.as_ref().unwrap().with["window"]), json!(5));
}

#[test]
fn modules_of_another_directory() {
    let machine = Machine::new();
    machine.file("src/pkg/__init__.py", "");
    machine.file("src/pkg/stages.py", "from . import tools\n");
    machine.file("src/pkg/tools.py", "");
    let lines = STAGE.replace("my_stages:make", "pkg.stages:Maker.make") + "    path: src\n";
    let pipeline = machine.load(&lines, &[]).unwrap();
    let command = command(&pipeline);
    let files: Vec<&str> = command.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(files, ["src/pkg/__init__.py", "src/pkg/stages.py", "src/pkg/tools.py"]);
    assert_eq!(command.python.as_ref().unwrap().root, "src");
}

#[test]
fn what_is_wrong_is_said_before_anything_runs() {
    let machine = Machine::new();
    for (from, to, expected) in [
        (
            "    call: my_stages:make\n",
            "",
            "a Python stage has no `call` | name the function",
        ),
        (
            "my_stages:make",
            "my_stages.make",
            "my_stages.make\", not MODULE:FUNCTION",
        ),
        ("my_stages:make", "my_stage:make", "there is no module `my_stage` in /"),
        (
            "window: 3",
            "win-dow: 3",
            "the setting `win-dow` cannot be the name of an argument",
        ),
        ("./env", "./nowhere", "cannot read the tool `./nowhere`"),
        (
            "    python: ./env\n",
            "    python: nothing\n",
            "there is no program `nothing` on PATH",
        ),
        (
            "    python: ./env\n",
            "    python: ./env\n    seed: -1\n",
            "`seed` is the number -1, not a non-negative integer",
        ),
        (
            "    python: ./env\n",
            "    python: ./env\n    path: ../up\n",
            "not a directory beside the pipeline",
        ),
        (
            "    python: ./env\n",
            "    python: ./env\n    run: 'true'\n",
            "has both `uses` and `run`",
        ),
        (
            "    python: ./env\n",
            "    python: ./env\n    container: x\n",
            "a Python stage runs its function",
        ),
        (
            "features,",
            "feature,",
            "which no program can write | did you mean `features`?",
        ),
    ] {
        let errors = machine.load(&STAGE.replace(from, to), &[]).err().unwrap();
        assert!(errors.contains(expected), "{to}: {errors}");
    }
    fs::remove_dir_all(machine.path("env/lib")).unwrap();
    let errors = machine.load(STAGE, &[]).err().unwrap();
    assert!(errors.contains("has no package `pyarrow`"), "{errors}");
    assert!(errors.contains("env/bin/python -m pip install pyarrow"), "{errors}");
}
