//! `tools:` and the other settings of `run:` stages: what they resolve to, and what is said where they
//! cannot.

use crate::options;
use runner_pipeline::{
    Command, Isolation, LoadOptions, Shell, Tool, Work, load, load_with_sources, resolved,
};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// A machine: a home with a project, and programs outside it.
struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        for dir in ["home/me/project", "bin"] {
            fs::create_dir_all(machine.path(dir)).unwrap();
        }
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join(name)
    }

    fn program(&self, name: &str) -> PathBuf {
        let path = self.file(name, "#!/bin/sh\n");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// A virtual environment of the project, of the interpreter in `home`.
    fn environment(&self, name: &str, home: &Path) {
        let cfg = format!("home = {}\nversion = 3.11.2\n", home.display());
        self.file(&format!("home/me/project/{name}/pyvenv.cfg"), &cfg);
        self.program(&format!("home/me/project/{name}/bin/python"));
    }

    fn options(&self) -> LoadOptions {
        let mut options = options(&[]);
        let mut set =
            |name: &str, value: PathBuf| options.env.insert(name.to_owned(), value.display().to_string());
        set("PATH", self.path("bin"));
        set("HOME", self.path("home/me"));
        options
    }

    /// The project's pipeline, with these lines in its stage.
    fn pipeline(&self, lines: &str) -> PathBuf {
        let text = format!("version: 1\nname: a\nstages:\n  x:\n    run: 'true'\n    {lines}\n");
        self.file("home/me/project/p.yaml", &text)
    }

    fn tools(&self, tools: &str) -> Result<Vec<Tool>, String> {
        let file = self.pipeline(&format!("tools: [{tools}]"));
        match load_with_sources(&file, &self.options()) {
            Ok(pipeline) => Ok(command(&pipeline.nodes[0].work).tools.clone()),
            Err(errors) => {
                let errors = errors.0.iter().map(|error| {
                    let hint = error.hint.as_deref().unwrap_or_default();
                    format!("{} | {hint}", error.message)
                });
                let text: Vec<String> = errors.collect();
                Err(text.join("\n").replace(&self.path("").display().to_string(), "/"))
            }
        }
    }

    fn tool(&self, tool: &str) -> Tool {
        self.tools(tool).unwrap().remove(0)
    }
}

fn command(work: &Work) -> &Command {
    match work {
        Work::Command(command) => command,
        Work::Kind { .. } => panic!("a stage kind"),
    }
}

fn sources(tool: &Tool) -> Vec<(&str, &Path)> {
    let sources = tool.sources.iter();
    sources
        .map(|source| (source.name.as_str(), source.path.as_path()))
        .collect()
}

#[test]
fn settings_have_defaults_and_may_be_interpolated() {
    let machine = Machine::new();
    let of = |lines: &str| {
        let pipeline =
            load(&machine.pipeline(lines), &machine.options()).unwrap_or_else(|errors| panic!("{errors}"));
        command(&pipeline.nodes[0].work).clone()
    };
    let default = of("outputs: {}");
    assert_eq!(
        (default.shell, default.isolation, default.network),
        (Shell::Bash, None, false)
    );
    assert_eq!((default.log_limit, &default.container), (None, &None));
    let image = format!("example.org:5000/a/b@sha256:{}", "0a".repeat(32));
    let set = of(&format!(
        "matrix: {{ net: [true] }}\n    shell: sh\n    isolation: none\n    network: ${{matrix.net}}\n    \
        log: 2MiB\n    container: {image}"
    ));
    assert_eq!(
        (set.shell, set.isolation, set.network),
        (Shell::Sh, Some(Isolation::None), true)
    );
    assert_eq!((set.log_limit, set.container), (Some(2 << 20), Some(image)));
}

#[test]
fn what_a_stage_or_the_user_requires_is_required() {
    use Isolation::{Auto, None, Required};
    for (user, stage, expected) in [
        (Auto, Option::None, Auto),
        (None, Option::None, None),
        (None, Some(Auto), Auto),
        (Auto, Some(None), None),
        (None, Some(Required), Required),
        (Required, Some(None), Required),
    ] {
        assert_eq!(user.of(stage), expected, "{user:?} {stage:?}");
    }
}

#[test]
fn a_program_is_found_on_path_and_known_by_its_canonical_file() {
    let machine = Machine::new();
    let real = machine.program("opt/python-3.11/bin/python3.11");
    symlink(&real, machine.path("bin/python3")).unwrap();
    let tool = machine.tool("python3");
    assert_eq!((tool.name.as_str(), tool.link()), ("python3", "python3"));
    assert_eq!((&tool.path, &tool.bin), (&real, &real));
    assert_eq!(tool.visible, [machine.path("opt/python-3.11")]);
    assert_eq!(sources(&tool), [("", real.as_path())]);
    assert!(!tool.is_environment());
    let known = machine.tool("{ name: python3, version: \"3.11\" }");
    assert_eq!((known.version.as_deref(), sources(&known)), (Some("3.11"), Vec::new()));
    // The system's own files are visible to every program.
    let system = machine.tool("/bin/sh");
    assert_eq!((system.name.as_str(), system.visible.len()), ("sh", 0));
}

#[test]
fn paths_are_relative_to_the_pipeline_and_absolute_ones_are_not_in_the_key() {
    let machine = Machine::new();
    let script = machine.program("home/me/project/scripts/clean");
    let tool = machine.tool("./scripts/../scripts//clean");
    assert_eq!((tool.link(), &tool.path), ("clean", &script));
    assert_eq!(machine.tool("scripts/clean").name, "scripts/clean");
    assert_eq!(machine.tool("{ path: ./scripts/clean }").name, "scripts/clean");
    let absolute = machine.tool(&script.display().to_string());
    assert_eq!(absolute.name, "clean");
}

#[test]
fn a_home_or_a_shared_directory_is_never_visible_as_a_whole() {
    let machine = Machine::new();
    for (name, expected) in [
        ("home/me/bin/a", "home/me/bin/a"),
        ("home/me/.local/bin/b", "home/me/.local/bin/b"),
        (
            "home/me/.local/share/uv/tools/c/bin/c",
            "home/me/.local/share/uv/tools/c",
        ),
        ("home/me/project/bin/d", "home/me/project/bin/d"),
        ("home/me/apps/e/bin/e", "home/me/apps/e"),
        ("apps/f", "apps/f"),
    ] {
        let path = machine.program(name).display().to_string();
        assert_eq!(machine.tool(&path).visible, [machine.path(expected)], "{name}");
    }
}

#[test]
fn an_environment_is_known_by_its_lock_file_or_its_packages_and_its_interpreter() {
    let machine = Machine::new();
    machine.program("opt/python/bin/python3.11");
    symlink("python3.11", machine.path("opt/python/bin/python3")).unwrap();
    symlink(machine.path("opt/python"), machine.path("opt/current")).unwrap();
    machine.environment("env", &machine.path("opt/current/bin"));
    assert!(sources(&machine.tool("./env")).is_empty(), "it has no packages");
    let site = "home/me/project/env/lib/python3.11/site-packages";
    let records = ["black-25.1.dist-info", "numpy-2.4.6.dist-info"];
    let records = records.map(|name| (name, machine.file(&format!("{site}/{name}/METADATA"), name)));
    assert_eq!(
        sources(&machine.tool("./env")),
        records.each_ref().map(|(name, path)| (*name, path.as_path()))
    );
    // Those of conda are not Python's alone.
    machine.file("home/me/project/conda/conda-meta/history", "");
    machine.program("home/me/project/conda/bin/python");
    let without = machine.tools("./conda").unwrap_err();
    assert!(without.contains("`{ path: ./conda, lock: conda.lock }`"), "{without}");
    let beside = machine.file("home/me/project/requirements.txt", "");
    assert_eq!(
        sources(&machine.tool("./env")),
        [("requirements.txt", beside.as_path())]
    );
    let better = machine.file("home/me/project/env/uv.lock", "");
    let tool = machine.tool("./env");
    assert_eq!(sources(&tool), [("uv.lock", better.as_path())]);
    assert_eq!((tool.name.as_str(), tool.version.as_deref()), ("env", Some("3.11.2")));
    let env = machine.path("home/me/project/env");
    assert_eq!(
        (&tool.path, &tool.bin, tool.is_environment()),
        (&env, &env.join("bin"), true)
    );
    let visible = ["home/me/project/env", "opt/current", "opt/python"].map(|name| machine.path(name));
    assert_eq!(tool.visible, visible);
    let given = machine.file("home/me/project/locks/all.txt", "");
    let tool = machine.tool("{ path: env, lock: locks/all.txt }");
    assert_eq!(
        (tool.name.as_str(), sources(&tool)),
        ("env", vec![("all.txt", given.as_path())])
    );
    assert!(!tool.system_packages);
    machine.file(
        "home/me/project/env/pyvenv.cfg",
        "home = /usr/bin\ninclude-system-site-packages = true\nversion_info = 3.12.1.final.0\n",
    );
    let tool = machine.tool("env/");
    assert_eq!((tool.version.as_deref(), tool.system_packages), (Some("3.12.1"), true));
    assert_eq!(tool.visible, [env]);
}

#[test]
fn executables_come_first_on_path_by_name() {
    let machine = Machine::new();
    for name in ["a", "b"] {
        machine.program(&format!("bin/{name}"));
    }
    machine.environment("env", Path::new("/usr/bin"));
    machine.environment("env-2", Path::new("/usr/bin"));
    machine.file("home/me/project/uv.lock", "");
    let tools = machine.tools("./env-2, b, ./env, a").unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "env-2", "env"]);
}

#[test]
fn what_is_no_tool_is_said_with_what_to_do() {
    let machine = Machine::new();
    machine.program("bin/a");
    machine.program("home/me/project/own/a");
    machine.file("home/me/project/data/x.csv", "");
    machine.program("home/me/.pyenv/shims/python3");
    machine.program("home/me/.pyenv/versions/3.11.9/bin/python3");
    machine.program("home/me/.pyenv/versions/3.12.1/bin/python3");
    machine.file("home/me/.pyenv/version", "3.12.1\n");
    machine.program("home/me/.asdf/shims/node");
    machine.program("home/me/.asdf/installs/nodejs/22.1.0/bin/node");
    symlink(machine.path("home/me/.asdf/shims/node"), machine.path("bin/node")).unwrap();
    symlink(
        machine.path("home/me/.pyenv/shims/python3"),
        machine.path("bin/python3"),
    )
    .unwrap();
    machine.environment("env", Path::new("/usr/bin"));
    machine.file("home/me/project/uv.lock", "");
    machine.program("home/me/project/env/bin/black");
    let cases = [
        "aa",
        "env",
        "./nothing",
        "./data",
        "./data/x.csv",
        "python3",
        "node",
        "./env/bin/python",
        "./env/bin/black",
        "{ name: a, lock: uv.lock }",
        "{ path: ./env, version: \"3\" }",
        "{ path: ./env, lock: nothing.lock }",
        "a, ./own/a",
        "./env, env/",
    ];
    let text: Vec<String> = cases
        .iter()
        .map(|case| format!("{case}: {}", machine.tools(case).unwrap_err()))
        .collect();
    insta::assert_snapshot!(text.join("\n"), @r#"
    aa: there is no program `aa` on PATH | install it, or write its path: `tools: [/…/bin/aa]`
    env: there is no program `env` on PATH | to name what is beside the pipeline, write `./env`
    ./nothing: cannot read the tool `./nothing`: No such file or directory (os error 2) | it is looked for in /home/me/project
    ./data: `./data` is a directory without pyvenv.cfg | name the directory of a virtual environment, or an executable
    ./data/x.csv: `./data/x.csv` is not an executable file | `chmod +x ./data/x.csv`, or list it in `files:` if a program reads it
    python3: `/home/me/.pyenv/shims/python3` is a shim, which starts another program | name the program itself: `/home/me/.pyenv/versions/3.12.1/bin/python3`
    node: `/home/me/.asdf/shims/node` is a shim, which starts another program | name the program itself: `/home/me/.asdf/installs/nodejs/22.1.0/bin/node`
    ./env/bin/python: `./env/bin/python` is part of the virtual environment `/home/me/project/env` | name the environment's directory: its packages are then part of the key
    ./env/bin/black: `./env/bin/black` is part of the virtual environment `/home/me/project/env` | name the environment's directory: its packages are then part of the key
    { name: a, lock: uv.lock }: `a` is an executable, and `lock` is for virtual environments | remove `lock`, or name the environment's directory
    { path: ./env, version: "3" }: `./env` is a directory, and `version` is for executables | remove `version`: a virtual environment is known by its packages
    { path: ./env, lock: nothing.lock }: the lock file `nothing.lock` of `./env` is not there | it is looked for in /home/me/project
    a, ./own/a: there are two tools `a` | remove one of them
    ./env, env/: there are two tools `env` | remove one of them
    "#);
}

#[test]
fn a_tool_is_the_first_program_of_the_path() {
    let machine = Machine::new();
    let first = machine.program("bin/a");
    let file = machine.pipeline("tools: [{ name: a, version: \"1\" }]");
    let mut options = machine.options();
    let found = |options: &LoadOptions| {
        let pipeline = load_with_sources(&file, options).ok()?;
        Some(command(&pipeline.nodes[0].work).tools[0].path.clone())
    };
    assert_eq!(found(&options).as_ref(), Some(&first));
    let other = machine.program("other/a");
    let path = format!("{}:{}", machine.path("other").display(), machine.path("bin").display());
    options.env.insert("PATH".to_owned(), path);
    assert_eq!(found(&options).as_ref(), Some(&other));
    fs::remove_file(other).unwrap();
    assert_eq!(found(&options).as_ref(), Some(&first));
    fs::remove_file(first).unwrap();
    assert_eq!(found(&options), None);
}

#[test]
fn the_resolved_pipeline_has_the_settings() {
    let machine = Machine::new();
    machine.program("bin/a");
    let lines = "tools: [{ name: a, version: \"3.10\" }, ./../project/own]\n    isolation: none\n    shell: \
        sh\n    network: true\n    log: 1MiB";
    machine.program("home/me/project/own");
    let text =
        resolved(&machine.pipeline(lines), &machine.options()).unwrap_or_else(|errors| panic!("{errors}"));
    let settings: Vec<&str> = text.lines().skip_while(|line| !line.contains("tools:")).collect();
    insta::assert_snapshot!(settings.join("\n"), @r#"
    tools: [{ name: a, version: "3.10" }, "./../project/own"]
    shell: sh
    isolation: none
    network: true
    log: "1MiB"
    "#);
    let again = machine.file("home/me/project/q.yaml", &text);
    let [first, second] = [machine.path("home/me/project/p.yaml"), again].map(|file| {
        let pipeline = load_with_sources(&file, &machine.options()).unwrap();
        command(&pipeline.nodes[0].work).clone()
    });
    assert_eq!(first, second);
}
