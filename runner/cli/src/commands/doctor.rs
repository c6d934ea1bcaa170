//! `runner doctor`: properties and problems of this machine.

use crate::output;
use crate::registry;
use crate::session::{PROGRAM, Session};
use cache::Store;
use clap::Args;
use runner_engine::{Failure, exit, text};
use runner_sandbox::{Isolated, machine_cores, machine_memory, probe};
use serde_json::json;
use std::path::{Path, PathBuf};

mod on_executor;

struct Finding {
    what: &'static str,
    value: String,
    /// The problem and its solution.
    problem: Option<String>,
}

/// Show versions, devices and limits of this machine, and problems.
///
/// Also the instruction sets for which there are kernels. With `--executor`, runs one trivial job on it, and
/// shows what is wrong there.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Examples:
  runner doctor
  runner doctor --executor hpc")]
pub(crate) struct DoctorArgs {
    /// The executor of `config.yaml` to run a trivial job on.
    #[arg(long, value_name = "NAME")]
    pub executor: Option<String>,
}

pub(crate) fn doctor(session: &Session, args: &DoctorArgs) -> Result<u8, Failure> {
    if let Some(name) = &args.executor {
        let findings = on_executor::findings(session, name)?;
        show(session, &findings)?;
        let is_wrong = findings.iter().any(|finding| finding.problem.is_some());
        return Ok(if is_wrong { exit::STAGE_FAILED } else { exit::DONE });
    }
    let mut findings = Vec::new();
    let mut add = |what, value: String, problem: Option<String>| {
        findings.push(Finding { what, value, problem });
    };
    add("program", PROGRAM.to_owned(), None);
    let system = rustix::system::uname();
    let system = [system.sysname(), system.release(), system.machine()]
        .map(|part| part.to_string_lossy().into_owned());
    add("system", system.join(" "), None);
    let debug = cfg!(debug_assertions)
        .then(|| "a debug build is many times slower: build with `--release`".to_owned());
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    add("build", build.to_owned(), debug);
    let absent = absent();
    let names = absent.iter().map(|(path, _)| format!("no `{}`", path.display()));
    let names = names.reduce(|all, name| format!("{all}, {name}"));
    let remedies = absent.iter().map(|(_, remedy)| (*remedy).to_owned());
    let remedies = remedies.reduce(|all, remedy| format!("{all}; {remedy}"));
    let problem = remedies.map(|remedies| format!("runs need it: {remedies}"));
    add("root directory", names.unwrap_or("complete".to_owned()), problem);
    // If true, nothing can run.
    let mut fatal = absent.iter().any(|(path, _)| path.starts_with("/proc"));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = match machine_cores() {
        fast if fast < cores => format!("{fast} of {cores}: threads keep to the performance cores"),
        _ => cores.to_string(),
    };
    add("cores", cores, None);
    let set = stages_numerics::dispatch::InstructionSet::detect();
    add("instruction set", set.name().to_owned(), None);
    add("numerics class", stages_numerics::class::numerics_class(), None);
    let devices = stages_policy::Device::ALL.map(|device| match device.open() {
        Ok(_) => device.name().to_owned(),
        Err(why) => format!("{device}: {why}"),
    });
    add("devices", devices.join("; "), None);
    let unknown = || "unknown".to_owned();
    let memory = machine_memory();
    let low = memory.filter(|bytes| *bytes < 2 << 30);
    let low = low.map(|_| "less than 2 GiB: large stages may be killed".to_owned());
    add("memory", memory.map_or_else(unknown, text::size), low);
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let low = limit
        .is_some_and(|limit| limit < 1024)
        .then(|| "large data sets need more: raise it with `ulimit -n 4096`".to_owned());
    let limit = limit.map_or("unlimited".to_owned(), |limit| limit.to_string());
    add("open files", limit, low);
    let shells = ["bash", "sh"].map(|shell| {
        let status = std::process::Command::new(shell).args(["-c", "exit 0"]).status();
        (shell, status.is_ok_and(|status| status.success()))
    });
    let missing = shells.iter().find(|(_, found)| !found);
    let missing = missing.map(|(shell, _)| match *shell {
        "bash" => "`run:` stages need `bash`, unless they have `shell: sh`".to_owned(),
        other => format!("`run:` stages with `shell: {other}` need it"),
    });
    let found: Vec<&str> = shells
        .iter()
        .filter(|(_, found)| *found)
        .map(|(shell, _)| *shell)
        .collect();
    let shells = if found.is_empty() {
        "none".to_owned()
    } else {
        found.join(", ")
    };
    add("shell", shells, missing);
    let probed = probe();
    let isolated = probed.strongest();
    let problem = probed.namespaces.as_ref().err().map(|reason| match isolated {
        Isolated::Landlock => format!("`run:` stages are limited by Landlock alone: {reason}"),
        Isolated::Seatbelt => format!("`run:` stages are limited by `sandbox-exec` alone: {reason}"),
        _ => format!("`run:` stages are not isolated from this machine: {reason}"),
    });
    add("isolation", isolated.name().to_owned(), problem);
    // No problem: `resources: { memory: … }` then tells the scheduler alone.
    let limits = match probed.limits {
        Ok(group) => format!("memory and processes of `run:` stages, in {}", group.display()),
        Err(reason) => format!("none enforced on `run:` stages: {reason}"),
    };
    add("limits", limits, None);
    add("stage kinds", registry::kinds().len().to_string(), None);
    let home = session.home(None);
    let made = if home.is_dir() { "" } else { " (does not exist yet)" };
    add("home", format!("{}{made}", home.display()), None);
    let existing = home.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("/"));
    let free = free(existing);
    let low = free.filter(|bytes| *bytes < 5 << 30).map(|_| {
        "less than 5 GiB: free some (`runner cache gc`), or set RUNNER_HOME to another disk".to_owned()
    });
    add("free disk", free.map_or_else(unknown, text::size), low);
    if home.is_dir() {
        let (value, problem) = match writable(&home) {
            Ok(()) => ("can be written".to_owned(), None),
            Err(failure) => ("cannot be used".to_owned(), Some(failure.to_string())),
        };
        fatal |= problem.is_some();
        add("store", value, problem);
    }
    show(session, &findings)?;
    Ok(if fatal { exit::MACHINE_FAILED } else { exit::DONE })
}

fn show(session: &Session, findings: &[Finding]) -> Result<(), Failure> {
    if session.json {
        let all: Vec<_> = findings
            .iter()
            .map(
                |finding| json!({ "what": finding.what, "value": finding.value, "problem": finding.problem }),
            )
            .collect();
        output::print_json(
            &json!({ "findings": all, "ok": findings.iter().all(|finding| finding.problem.is_none()) }),
        )
    } else {
        let mut out = String::new();
        for Finding { what, value, problem } in findings {
            out.push_str(&format!("{what:>16}  {value}\n"));
            if let Some(problem) = problem {
                out.push_str(&format!("{:>16}  ^ {problem}\n", ""));
            }
        }
        output::print(&out)
    }
}

/// Paths that runs need and a bare root directory lacks, and how to add them.
fn absent() -> Vec<(PathBuf, &'static str)> {
    let mut needed = vec![(std::env::temp_dir(), "create it, or set TMPDIR to another directory")];
    if cfg!(target_os = "linux") {
        needed.push(("/proc/self/exe".into(), "`mount -t proc proc /proc`"));
        needed.push(("/dev/null".into(), "`mknod -m 666 /dev/null c 1 3`"));
    }
    needed.retain(|(path, _)| !path.exists());
    needed
}

/// The free bytes on the disk of a directory for users other than root.
fn free(dir: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(dir).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Writes a blob, reads it and maps it into memory.
fn writable(home: &Path) -> Result<(), Failure> {
    let store = Store::open(home)?;
    let blob = store.put(b"runner doctor")?;
    store.blob(blob.blob)?;
    Ok(())
}
