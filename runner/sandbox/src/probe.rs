//! The isolation that a system supports, and the reason why it supports no more.

use super::client::{Client, this_program};
use super::isolated_by::Isolated;
use super::protocol::{Said, Spec, Surroundings};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The maximum duration of the probe.
const LONGEST: Duration = Duration::from_secs(10);

impl Probed {
    /// A system that supports nothing, for this reason.
    pub fn refused(reason: &str) -> Self {
        Self {
            namespaces: Err(reason.to_owned()),
            landlock: Err(reason.to_owned()),
            seatbelt: Err(reason.to_owned()),
            limits: Err(reason.to_owned()),
        }
    }

    /// The strongest isolation available to programs without a container.
    pub fn strongest(&self) -> Isolated {
        match () {
            () if self.namespaces.is_ok() => Isolated::Namespaces,
            () if self.landlock.is_ok() => Isolated::Landlock,
            () if self.seatbelt.is_ok() => Isolated::Seatbelt,
            () => Isolated::None,
        }
    }

    /// True if isolated programs without `network: true` cannot open a TCP connection.
    pub fn refuses_network(&self) -> bool {
        /// The first version of Landlock that refuses TCP.
        const NETWORK: u32 = 4;
        self.namespaces.is_ok()
            || self.seatbelt.is_ok()
            || self.landlock.as_ref().is_ok_and(|version| *version >= NETWORK)
    }
}

/// The isolation and the limits that a system supports.
pub struct Probed {
    /// The reason and a hint, if programs cannot be isolated.
    pub namespaces: Result<(), String>,
    /// The version of Landlock; the reason, if it is unavailable.
    pub landlock: Result<u32, String>,
    /// The reason, if programs cannot be limited by a profile of macOS.
    pub seatbelt: Result<(), String>,
    /// The control group in which the groups of programs are created; the reason and a hint, if there is
    /// none.
    pub limits: Result<PathBuf, String>,
}

/// Tries to isolate a program, and to limit its memory and processes.
pub fn probe() -> Probed {
    let tried = || -> Result<Probed, String> {
        let dir = tempfile::tempdir().map_err(|err| format!("cannot create a temporary directory: {err}"))?;
        let started = this_program().and_then(|program| Client::start(&program, dir.path()));
        let started = started.map_err(|err| format!("`runner sandbox` cannot start: {err}"))?;
        Ok(Probed::with(&started, dir.path()))
    };
    tried().unwrap_or_else(|reason| Probed::refused(&reason))
}

impl Probed {
    /// Probes as [`probe`] does, with a server that is already running and an empty directory.
    #[cfg(target_os = "linux")]
    pub fn with(client: &Client, dir: &Path) -> Self {
        let mut limits = super::group::parent();
        let mut namespaces = try_namespaces(client, dir, limits.clone().ok());
        if let (Err(reason), Ok(_)) = (&namespaces, &limits) {
            let without = try_namespaces(client, dir, None);
            // The control group was what the system refused.
            if without.is_ok() {
                limits = Err(reason.clone());
            }
            namespaces = without;
        }
        let namespaces = namespaces.map_err(|reason| match remedy() {
            Some(remedy) => format!("{reason}; {remedy}"),
            None => reason,
        });
        Self {
            namespaces,
            landlock: super::landlock::version(),
            seatbelt: Err("only macOS has profiles".to_owned()),
            limits,
        }
    }

    /// Probes as [`probe`] does, with a server that is already running and an empty directory.
    #[cfg(not(target_os = "linux"))]
    pub fn with(client: &Client, dir: &Path) -> Self {
        let seatbelt = try_seatbelt(client, dir);
        Self {
            namespaces: Err(match &seatbelt {
                Ok(()) => "only Linux has namespaces".to_owned(),
                Err(reason) => {
                    format!("only Linux has namespaces, and `sandbox-exec` does not work: {reason}")
                }
            }),
            landlock: Err("only Linux has Landlock".to_owned()),
            seatbelt,
            limits: Err("only Linux has control groups".to_owned()),
        }
    }
}

#[cfg(target_os = "linux")]
fn try_namespaces(client: &Client, dir: &Path, group: Option<PathBuf>) -> Result<(), String> {
    let spec = Spec {
        surroundings: Surroundings {
            isolated: Isolated::Namespaces,
            group,
            ..Surroundings::default()
        },
        program: "/".into(),
        directory: "/stage/work".into(),
        ..Spec::default()
    };
    match attempt(client, dir, spec)? {
        // Everything else succeeded: a directory cannot be executed.
        Said::Failed { message } if message.starts_with("execute") => Ok(()),
        Said::Failed { message } | Said::Unprepared { message } => Err(message),
        Said::Ended { status, .. } => Err(format!("init ended with status {status}")),
        Said::Started { .. } => Err("it started a directory".to_owned()),
    }
}

/// Runs a shell that may write to its directory, and must not write beside it.
#[cfg(not(target_os = "linux"))]
fn try_seatbelt(client: &Client, dir: &Path) -> Result<(), String> {
    let script = "echo > inside; ! echo > ../beside";
    let spec = Spec {
        surroundings: Surroundings {
            isolated: Isolated::Seatbelt,
            ..Surroundings::default()
        },
        program: "/bin/sh".into(),
        arguments: ["sh", "-ec", script].map(str::to_owned).into(),
        directory: dir.join("stage/work"),
        ..Spec::default()
    };
    match attempt(client, dir, spec)? {
        Said::Ended { status: 0, .. } => Ok(()),
        Said::Ended { status, .. } => Err(format!("its shell ended with status {status}")),
        Said::Failed { message } | Said::Unprepared { message } => Err(message),
        Said::Started { .. } => Err("its shell did not end".to_owned()),
    }
}

/// Runs a program in `dir`, and returns the last message about it.
fn attempt(client: &Client, dir: &Path, mut spec: Spec) -> Result<Said, String> {
    let failed = |err: io::Error| format!("cannot try: {err}");
    spec.stage = dir.join("stage");
    for name in ["work", "tmp"] {
        fs::create_dir_all(spec.stage.join(name)).map_err(failed)?;
    }
    let log = fs::File::create(dir.join("log")).map_err(failed)?;
    let mut running = client.run(&spec, &log.into()).map_err(failed)?;
    let until = Instant::now() + LONGEST;
    while Instant::now() < until {
        match running.said(Duration::from_secs(1)).map_err(failed)? {
            Some(Said::Started { .. }) | None => {}
            Some(said) => return Ok(said),
        }
    }
    Err("the attempt took too long".to_owned())
}

/// The setting that forbids user namespaces, if it is one of the usual settings.
#[cfg(target_os = "linux")]
fn remedy() -> Option<String> {
    let setting = |name: &str| fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/")));
    let is = |name: &str, value: &str| setting(name).is_ok_and(|text| text.trim() == value);
    let remedies = [
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("user.max_user_namespaces", "0", "15000"),
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ];
    if let Some((name, _, value)) = remedies.into_iter().find(|(name, bad, _)| is(name, bad)) {
        return Some(format!("`sysctl {name}={value}` allows user namespaces"));
    }
    let in_container = ["/.dockerenv", "/run/.containerenv"]
        .iter()
        .any(|file| Path::new(file).exists());
    in_container.then(|| {
        "this is a container: its seccomp profile has to allow `unshare` and `mount` (`--security-opt \
        seccomp=unconfined`, or `--privileged`)"
            .to_owned()
    })
}
