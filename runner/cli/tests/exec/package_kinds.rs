//! Stage kinds of installed packages: the example of docs/guides/own-kinds.md, and packages that mean ill.
//!
//! They need an interpreter with pyarrow and pandas, `RUNNER_TEST_PYTHON`, whose packages are put into an
//! environment of the test's own.

use crate::python_stages::python;
use crate::{Ended, Project};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

const DOCS: &str = include_str!("../../../../docs/guides/own-kinds.md");

/// The first code block of the documentation in a language.
fn documented(language: &str) -> &'static str {
    let (_, block) = DOCS.split_once(&format!("```{language}\n")).unwrap();
    block.split_once("```").unwrap().0
}

/// An environment with the packages that stages and the example need.
struct Machine {
    dir: tempfile::TempDir,
    site: PathBuf,
}

impl Machine {
    fn new(python: &str) -> Self {
        const WHERE: &str = "\
import os, pyarrow, sys
print(os.path.realpath(sys.executable))
print('python%d.%d' % sys.version_info[:2])
print(os.path.dirname(os.path.dirname(pyarrow.__file__)))
";
        let said = std::process::Command::new(python).args(["-c", WHERE]).output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        let [program, version, packages] = said.lines().collect::<Vec<_>>()[..] else {
            panic!("{said}");
        };
        // Beside the compiled tests, files are linked, not copied.
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let env = dir.path().join("env");
        let site = env.join("lib").join(version).join("site-packages");
        fs::create_dir_all(env.join("bin")).unwrap();
        fs::create_dir_all(&site).unwrap();
        let home = Path::new(program).parent().unwrap().display();
        fs::write(env.join("pyvenv.cfg"), format!("home = {home}\nversion = 3\n")).unwrap();
        for name in ["python", "python3"] {
            symlink(program, env.join("bin").join(name)).unwrap();
        }
        for entry in fs::read_dir(packages).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let wanted = [
                "pyarrow",
                "pandas",
                "numpy",
                "dateutil",
                "python_dateutil",
                "six",
                "pytz",
                "tzdata",
            ];
            if wanted.iter().any(|wanted| name.starts_with(wanted)) {
                link(&Path::new(packages).join(&name), &site.join(&name));
            }
        }
        Self { dir, site }
    }

    /// The directory of the environment.
    fn env(&self) -> String {
        self.dir.path().join("env").display().to_string()
    }

    /// Installs a package of one module, as pip does, and returns what removes it.
    fn install(&self, name: &str, point: &str, text: &str) -> impl FnOnce() + use<> {
        let module = name.replace('-', "_");
        let record = self.site.join(format!("{module}-1.0.dist-info"));
        let package = self.site.join(&module);
        fs::create_dir_all(&record).unwrap();
        fs::create_dir_all(&package).unwrap();
        fs::write(package.join("__init__.py"), text).unwrap();
        fs::write(record.join("METADATA"), format!("Name: {name}\nVersion: 1.0\n")).unwrap();
        fs::write(record.join("entry_points.txt"), format!("[runner.stages]\n{point}\n")).unwrap();
        fs::write(record.join("RECORD"), format!("{module}/__init__.py,,\n")).unwrap();
        move || {
            fs::remove_dir_all(record).unwrap();
            fs::remove_dir_all(package).unwrap();
        }
    }
}

/// Links the files of a directory, or copies them to another file system; tests and headers are left out.
fn link(from: &Path, to: &Path) {
    if !from.is_dir() {
        fs::hard_link(from, to)
            .or_else(|_| fs::copy(from, to).map(drop))
            .unwrap();
        return;
    }
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let name = entry.unwrap().file_name();
        if !["tests", "include", "__pycache__"].iter().any(|left| name == *left) {
            link(&from.join(&name), &to.join(&name));
        }
    }
}

const BARS: &str = "\
symbol,date,close
A,2019-12-30,10
A,2019-12-31,8
A,2020-01-02,6
";

/// A project with the pipeline of the documentation.
fn project(machine: &Machine) -> Project {
    let stages = documented("yaml")
        .replace("window: 5", "window: 1, scale: 2")
        .replace("./env", &machine.env());
    let project = Project::new(format!("version: 1\nname: own\n{stages}"));
    project.write("bars.csv", BARS);
    project
}

fn acme(machine: &Machine) -> impl FnOnce() + use<> {
    let toml = documented("toml");
    let point = toml
        .lines()
        .find_map(|line| line.split_once(" = \"acme_runner:stages\""));
    assert_eq!(point.unwrap().0, "acme");
    let (_, module) = documented("python").split_once('\n').unwrap();
    machine.install("acme-runner", "acme = acme_runner:stages", module)
}

fn ok(ended: &Ended) -> &str {
    assert_eq!(ended.code, 0, "{}", ended.text());
    &ended.stdout
}

/// The one test of packages: an environment takes time to make.
#[test]
fn packages_bring_stage_kinds() {
    let Some(python) = python() else { return };
    let machine = Machine::new(&python);
    let remove = acme(&machine);
    the_documented_package_is_a_kind(&machine);
    hostile_packages_fail_alone(&machine);
    remove();
}

fn the_documented_package_is_a_kind(machine: &Machine) {
    let project = project(machine);
    // Nothing is imported to list what there is.
    project.write("home/config.yaml", format!("python: {}\n", machine.env()));
    let listed = project.run(&["stages"]);
    assert!(
        ok(&listed).contains("the package `acme-runner` 1.0 has kinds `acme/…`"),
        "{}",
        listed.text()
    );
    let shown = project.run(&["stages", "acme/momentum"]);
    insta::assert_snapshot!(ok(&shown));
    let listed = project.run(&["stages"]);
    let line = "The change of the close over a number of rows. (acme-runner 1.0)";
    assert!(ok(&listed).contains(line), "{}", listed.text());
    assert!(ok(&project.run(&["stages", "acme"])).starts_with("acme/momentum"));
    assert!(ok(&project.run(&["schema"])).contains("acme/momentum"));
    let wrong = project.run(&["plan", "p.yaml", "--set", "factor.with.window=x"]);
    assert_eq!(wrong.code, 2, "{}", wrong.text());
    assert!(
        wrong.stderr.contains("is the string \"x\", not an integer"),
        "{}",
        wrong.stderr
    );

    let first = project.exec(&[]);
    ok(&first);
    assert_eq!(first.stages("ran"), ["market", "factor"]);
    let show = project.run(&["show", "latest/factor.features"]);
    // 2 (8 / 10 - 1), on the first day that is shown, and 2 (6 / 8 - 1)
    for value in ["-0.400000", "\"rows\": 2"] {
        assert!(ok(&show).contains(value), "{}", show.text());
    }
    assert_eq!(project.exec(&[]).stages("ran"), Vec::<String>::new());
    assert!(ok(&project.run(&["graph", "p.yaml"])).contains("acme/momentum"));

    // The text of the package is in the key, by file.
    let module = machine.site.join("acme_runner/__init__.py");
    let text = fs::read_to_string(&module).unwrap();
    fs::write(
        &module,
        text.replace("settings.scale * change", "settings.scale * change * 2"),
    )
    .unwrap();
    let why = project.run(&["why", "p.yaml", "factor"]);
    assert!(why.text().contains("acme_runner/__init__.py"), "{}", why.text());
    let edited = project.exec(&[]);
    assert_eq!(edited.stages("ran"), ["factor"], "{}", edited.text());
    fs::write(&module, text).unwrap();
}

/// The beginning of a module that would be a package of kinds.
const GOOD: &str = "\
from runner import kind

@kind('x', outputs={'m': 'metrics'})
def x(ctx):
    return {'m': {'a': 1}}

stages = [x]
";

/// Packages that mean ill: the text of the module, and what is said of the package; nothing where it is a
/// package of kinds all the same.
fn hostile(outside: &Path) -> Vec<(String, Option<&'static str>)> {
    let good = |before: &str| format!("{before}\n{GOOD}");
    let outside = outside.display();
    vec![
        (good("print('\\x1b[2J' + 'garbage' * 100000, flush=True)"), None),
        (
            good(&format!("open({:?}, 'w')", format!("{outside}/written"))),
            Some("it raised"),
        ),
        (
            good("import os\nif os.fork() == 0:\n    os.setsid()\n    import time\n    time.sleep(3000)"),
            None,
        ),
        (good("import sys\nsys.exit(0)"), Some("ended the interpreter")),
        (good("import os\nos._exit(0)"), Some("ended the interpreter")),
        (
            good("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"),
            Some("was killed by signal 9"),
        ),
        (good("raise RuntimeError('no \\x1b[31mlicence')"), Some("RuntimeError")),
        (
            good("import socket\nsocket.create_connection(('1.1.1.1', 53), timeout=5)"),
            Some("it raised"),
        ),
        (
            good("import runner_kinds\nrunner_kinds.json.dumps = lambda *a, **k: 'x' * (3 << 20)"),
            Some("more than"),
        ),
        (
            good("import runner_kinds\nrunner_kinds.json.dumps = lambda *a, **k: '{\"kinds\": 3}'"),
            Some("not a description of kinds"),
        ),
        (
            GOOD.replace("kind('x'", "kind('../env/x'"),
            Some("such a name consists of"),
        ),
        (
            GOOD.replace("'metrics'", "'os.system'"),
            Some("is not a type of such a port"),
        ),
        (
            GOOD.replace("[x]", "[print]"),
            Some("is not a function that `@kind` declares"),
        ),
        (
            GOOD.replace("stages = [x]", "stages = 3"),
            Some("not a list of functions"),
        ),
        (good("import time\ntime.sleep(3000)"), Some("time limit of 30")),
        ("import".to_owned(), Some("SyntaxError")),
    ]
}

fn hostile_packages_fail_alone(machine: &Machine) {
    let outside = tempfile::tempdir().unwrap();
    let own = project(machine);
    let before = ok(&own.run(&["plan", "p.yaml"])).to_owned();
    let pipeline = format!(
        "version: 1\nname: evil\nstages:\n  x: {{ uses: evil/x, python: {} }}\n",
        machine.env()
    );
    let project = Project::new(pipeline);
    for (text, said) in hostile(outside.path()) {
        let remove = machine.install("evil-package", "evil = evil_package:stages", &text);
        let ended = project.run_within(Duration::from_secs(50), &["plan", "p.yaml"]);
        match said {
            None => _ = ok(&ended),
            Some(said) => {
                assert_eq!(ended.code, 2, "{text}: {}", ended.text());
                assert!(
                    ended.stderr.contains("the package `evil-package` 1.0"),
                    "{text}: {}",
                    ended.text()
                );
                assert!(ended.stderr.contains(said), "{text}: {}", ended.text());
            }
        }
        assert!(!ended.text().contains('\u{1b}'), "{text}: {}", ended.text());
        assert!(!outside.path().join("written").exists(), "{text}");
        remove();
    }
    // What does not name the prefix does not notice.
    let remove = machine.install("evil-package", "env = evil_package:stages", "raise SystemExit(1)");
    let after = own.run(&["stages", "env/classic"]);
    ok(&after);
    remove();
    assert_eq!(ok(&own.run(&["plan", "p.yaml"])), before);
}
