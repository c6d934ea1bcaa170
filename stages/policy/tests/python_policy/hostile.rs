//! Policies that would do what they must not, and artifacts that were changed.

use crate::{World, called, choices, chosen, loaded, module, told};
use cache::{Artifact, ArtifactBuilder};
use serde_json::json;
use stages_policy::AnyPolicy;
use stages_policy::forms::{Form, PythonForm, files_of};
use std::path::Path;
use std::time::{Duration, Instant};

/// Names, places and numbers that no policy has are refused before anything is started.
pub(crate) fn what_no_policy_has_is_refused(python: &str) {
    let world = World::new(python);
    let mark = world.mark();
    let touch = format!("import os; os.system('touch {}')", mark.display());
    // Names outside the project.
    for name in [
        "os:system",
        "builtins:exec",
        "subprocess:run",
        "agent",
        "agent:",
        ":f",
        "../agent:f",
        "agent:a b",
    ] {
        let form = PythonForm {
            load: Some(name.to_owned()),
            ..PythonForm::default()
        };
        let found = world.refused(choices(), form, module("def policy(obs): pass\n"));
        assert!(
            found.contains("no module") || found.contains("is not MODULE:FUNCTION"),
            "{name}: {found}"
        );
    }
    // A module of the project that has the name of one of Python's, and functions of other modules.
    for (name, place) in [
        ("os:system", "project/os.py"),
        ("sys:exit", "project/sys.py"),
        ("agent:os.system", "project/agent.py"),
    ] {
        let form = PythonForm {
            load: Some(name.to_owned()),
            ..PythonForm::default()
        };
        let files = [(place.to_owned(), b"import os\n".to_vec())].into();
        let found = world.refused(choices(), form, files);
        assert!(
            found.contains("is not a module of the policy's project")
                || found.contains("goes through the module"),
            "{name}: {found}"
        );
    }
    // Places outside its directory.
    for place in [
        "../evil.py",
        "/etc/evil",
        "project/../../evil",
        "elsewhere/x",
        "weights/..",
        "project/-x",
        "weights/a\u{0}b",
        "policy.json",
    ] {
        let mut files = module("def policy(obs): pass\n");
        files.insert(place.to_owned(), b"x".to_vec());
        let found = world.refused(choices(), called(), files);
        assert!(
            found.contains("the policy's file") || found.contains("the policy has a file"),
            "{place}: {found}"
        );
    }
    // Numbers that no policy has.
    let with = |change: &dyn Fn(&mut PythonForm)| {
        let mut form = called();
        change(&mut form);
        form
    };
    for form in [
        with(&|form| form.state_len = usize::MAX),
        with(&|form| form.state_len = 1 << 40),
        with(&|form| form.time_limit = f64::NAN),
        with(&|form| form.time_limit = -1.0),
        with(&|form| form.threads = 1 << 40),
        with(&|form| form.load = Some("agent:load".to_owned())),
    ] {
        let found = world.refused(choices(), form, module(&touch));
        assert!(
            found.contains("the policy has `") || found.contains("MODULE:FUNCTION"),
            "{found}"
        );
    }
    assert!(!mark.exists());
}

/// Pickles are refused under any name, in any protocol and wrapping, by whatever reads them.
pub(crate) fn pickles_run_nothing(python: &str) {
    let world = World::new(python);
    let mark = world.mark();
    let evil = format!(
        "
class Evil:
    def __reduce__(self):
        import os
        return os.system, ('touch {}',)
",
        mark.display()
    );
    for (protocol, wrap, open) in [
        (
            0,
            "open(place, 'wb').write(data)",
            "pickle.loads(open(place, 'rb').read())",
        ),
        (2, "open(place, 'wb').write(data)", "pickle.load(open(place, 'rb'))"),
        (
            5,
            "open(place, 'wb').write(b'RIFF' + data)",
            "pickle.loads(open(place, 'rb').read()[4:])",
        ),
        (
            4,
            "gzip.open(place, 'wb').write(data)",
            "pickle.load(gzip.open(place, 'rb'))",
        ),
        (
            4,
            "np.save(open(place, 'wb'), np.array([Evil()], object), allow_pickle=True)",
            "np.load(place, allow_pickle=True)",
        ),
        (4, "open(place, 'wb').write(data)", "pickle._load(open(place, 'rb'))"),
    ] {
        let text = format!(
            "
import gzip, pickle
import numpy as np
{evil}
def load(path, spec):
    place = path / 'numbers.safetensors'
    data = pickle.dumps(Evil(), {protocol})
    {wrap}
    {open}
    return lambda obs: [0] * len(obs)
"
        );
        let found = world.refused(choices(), loaded(), module(&text));
        assert!(found.contains("is a pickle, which names `"), "{open}: {found}");
        assert!(found.contains("trust: pickle"), "{found}");
        assert!(!mark.exists(), "{open}");
    }
}

/// Processes that end, hang, print or fork are errors, or do no harm.
pub(crate) fn processes_that_misbehave(python: &str) {
    let world = World::new(python);
    let quick = || PythonForm {
        time_limit: 0.5,
        ..called()
    };
    for (body, message) in [
        ("while True: pass", "took longer than its time limit of 0.5 s"),
        (
            "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM]); time.sleep(60)",
            "took longer than its time limit",
        ),
        ("import os; os._exit(7)", "ended its process, with status 7"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("import sys; sys.exit('bye')", "SystemExit: bye"),
        (
            "[os.write(fd, b'garbage\\n') for fd in range(3, 40) if is_socket(fd)]; os._exit(1)",
            "with status 1",
        ),
    ] {
        let text = format!(
            "
import os, signal, stat, time
def is_socket(fd):
    try:
        return stat.S_ISSOCK(os.fstat(fd).st_mode)
    except OSError:
        return False
def policy(obs):
    {body}
"
        );
        let since = Instant::now();
        let found = world.refused(choices(), quick(), module(&text));
        assert!(found.contains(message), "{body}: {found}");
        assert!(since.elapsed() < Duration::from_secs(30), "{body}");
    }
    for body in [
        "print('k' * 100_000)",
        "import os; os.write(1, b'kkk\\n')",
        "import os; os.fork()",
    ] {
        let text = format!("def policy(obs):\n    {body}\n    return [0, 2, 1, 0]\n");
        assert_eq!(chosen(&world.policy(choices(), &text), &world.store), [0, 2, 1, 0]);
    }
}

/// An artifact of a stranger's is read, described and stored without being run.
pub(crate) fn reading_runs_nothing(python: &str) {
    let world = World::new(python);
    let mark = world.mark();
    let text = format!(
        "open({:?}, 'w').close()\ndef policy(obs):\n    return [0] * len(obs)\n",
        mark.display().to_string()
    );
    let policy = world.policy(choices(), &text);
    std::fs::remove_file(&mark).unwrap();
    let digest = policy.store(&world.store, json!({})).unwrap();
    let artifact = world.store.artifact(digest).unwrap();
    let again = AnyPolicy::read(&world.store, &artifact).unwrap();
    assert_eq!(
        (again.form(), again.kind(), again.remembers()),
        ("python", "test", false)
    );
    assert_eq!(again.store(&world.store, json!({})).unwrap(), digest);
    assert!(again.into_native("`init`").is_err());
    assert!(!mark.exists());
    chosen(&policy, &world.store);
    assert!(mark.exists());
}

/// The artifact with `from` in its description replaced by `to`.
fn changed(world: &World, artifact: &Artifact, from: &str, to: &str) -> Artifact {
    let mut builder = ArtifactBuilder::new(&world.store, "policy", artifact.meta.clone());
    for entry in &artifact.entries {
        let bytes = world.store.blob(entry.blob).unwrap().to_vec();
        let text = String::from_utf8(bytes).unwrap();
        if entry.path == "policy.json" {
            assert!(text.contains(from), "{text}");
        }
        let text = if entry.path == "policy.json" {
            text.replace(from, to)
        } else {
            text
        };
        builder.bytes(&entry.path, text.as_bytes()).unwrap();
    }
    world.store.artifact(builder.finish().unwrap()).unwrap()
}

pub(crate) fn other_versions_are_refused(python: &str) {
    let world = World::new(python);
    let policy = world.policy(choices(), "def policy(obs):\n    return [0] * len(obs)\n");
    let artifact = world
        .store
        .artifact(policy.store(&world.store, json!({})).unwrap())
        .unwrap();
    let AnyPolicy::Other(other) = &policy else { panic!() };
    let Form::Python(form) = other.form() else { panic!() };
    // An interpreter with these versions was here, and has others now.
    let mut then = form.versions.clone();
    let numpy = then.packages.insert("numpy".to_owned(), "0.0.1".to_owned()).unwrap();
    stages_env::python::remember(&world.store, &then, Path::new(python)).unwrap();
    let old = changed(
        &world,
        &artifact,
        &format!("\"numpy\":\"{numpy}\""),
        "\"numpy\":\"0.0.1\"",
    );
    let start = |artifact: &Artifact| {
        let started =
            AnyPolicy::read(&world.store, artifact).and_then(|policy| policy.start(&world.store, 1));
        told(&started.err().unwrap())
    };
    let found = start(&old);
    assert!(found.contains(&format!("numpy 0.0.1 then, {numpy} now")), "{found}");
    let unknown = changed(&world, &artifact, "\"python\":\"cpython", "\"python\":\"cpython 1.5");
    let found = start(&unknown);
    assert!(
        found.contains("no interpreter on this machine is known to have the packages"),
        "{found}"
    );
    // A description with what no version writes.
    for (from, to) in [
        ("\"call\"", "\"execute\""),
        ("\"time_limit\":60.0", "\"time_limit\":60.0,\"per\":\"year\""),
        ("\"time_limit\":60.0", "\"time_limit\":60.0,\"state_len\":-1"),
        ("\"time_limit\":60.0", "\"time_limit\":60.0,\"trust\":\"everyone\""),
    ] {
        let damaged = changed(&world, &artifact, from, to);
        assert!(
            start(&damaged).contains("cannot read the policy"),
            "{to}: {}",
            start(&damaged)
        );
    }
}

pub(crate) fn saved_files_are_files() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, name).unwrap();
    };
    write("net.npz");
    write("tables/one.json");
    let found = files_of(dir.path(), "weights").unwrap();
    assert_eq!(
        found.keys().collect::<Vec<_>>(),
        ["weights/net.npz", "weights/tables/one.json"]
    );
    write("-rf");
    assert!(files_of(dir.path(), "weights").is_err());
    std::fs::remove_file(dir.path().join("-rf")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("tables/two.json")).unwrap();
    let err = files_of(dir.path(), "weights").unwrap_err();
    assert!(err.message.contains("is not an ordinary file"), "{}", err.message);
}
