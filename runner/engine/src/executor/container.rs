//! The container of a `run:` stage: the command line of podman or docker, and the end of what it started.
//!
//! The container sees the stage's directory where an isolated program does: `/stage/work` and `/stage/home`
//! writable, `/stage/needs` read-only, a private `/tmp`. Its processes belong to conmon or to docker's
//! daemon, so that ending the client is not enough: a [`Watchdog`] removes the container, also when the
//! engine is killed.

use runner_pipeline::{Command, Shell, find_program};
use rustix::process::{getgid, getuid};
use stages_core::StageError;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Stdio};
use std::time::{Duration, Instant};

/// The programs that run containers, in the order of preference.
const CLIENTS: [&str; 2] = ["podman", "docker"];

/// The time that the removal of a container may take.
const REMOVAL: Duration = Duration::from_secs(20);

/// A shell script that waits for the end of its input, and removes the container whose id is in the file
/// `$2`. Removal alone would wait for a program that ignores SIGTERM.
const REMOVE: &str =
    r#"cat; [ -s "$2" ] || exit 0; id=$(cat "$2"); "$1" kill "$id"; exec "$1" rm --force "$id""#;

/// A container to start.
pub(super) struct Container<'a> {
    /// The image, with its digest.
    pub image: &'a str,
    /// The `run:` stage's command.
    pub command: &'a Command,
    /// The text passed to the container's shell.
    pub text: &'a str,
    /// The program's environment. The client receives secrets in its own environment, so that their values
    /// are on no command line.
    pub env: &'a BTreeMap<String, String>,
    /// The container's memory limit in bytes.
    pub memory: Option<u64>,
    /// The stage's directory on the host.
    pub stage: &'a Path,
    /// The file that the client writes the container's id to.
    pub id_file: &'a Path,
}

/// Finds the program that runs containers: the first of podman and docker on `path`.
pub(super) fn client(path: &str) -> Result<PathBuf, StageError> {
    let mut clients = CLIENTS.into_iter().filter_map(|name| find_program(path, name));
    clients.next().ok_or_else(|| {
        StageError::new("the stage runs in a container, and neither podman nor docker is installed")
            .hint("install podman, or remove `container:` and list the programs in `tools:`")
    })
}

impl Container<'_> {
    /// The client's command line, whose first argument is the client's name.
    pub(super) fn arguments(&self, client: &Path) -> Result<Vec<String>, StageError> {
        let stage = self.stage.display().to_string();
        // The options of a mount are separated by commas, and each client quotes them differently.
        if stage.contains([',', '"']) {
            return Err(StageError::new(format!("`{stage}` cannot be mounted in a container"))
                .hint("set `RUNNER_HOME` to a directory without commas and quotes in its path"));
        }
        let name = client.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (user, group) = (getuid().as_raw(), getgid().as_raw());
        let mut arguments = vec![
            name.clone(),
            "run".into(),
            "--rm".into(),
            "--log-driver=none".into(),
            "--cap-drop=all".into(),
            "--security-opt=no-new-privileges".into(),
            // With SELinux, the stage's directory would have to be relabelled.
            "--security-opt=label=disable".into(),
            format!("--cidfile={}", self.id_file.display()),
            format!("--user={user}:{group}"),
            "--workdir=/stage/work".into(),
        ];
        if name == "podman" && user != 0 {
            // Files of the stage belong to the user inside the container too.
            arguments.push("--userns=keep-id".into());
        }
        if !self.command.network {
            arguments.push("--network=none".into());
        }
        arguments.extend(self.memory.map(|bytes| format!("--memory={bytes}b")));
        for (from, to, options) in [
            ("work", "/stage/work", ""),
            ("home", "/stage/home", ""),
            ("needs", "/stage/needs", ",readonly"),
            ("tmp", "/tmp", ""),
        ] {
            arguments.push(format!("--mount=type=bind,source={stage}/{from},target={to}{options}"));
        }
        for (name, value) in self.env {
            arguments.push(match self.command.secrets.contains(name) {
                true => format!("--env={name}"),
                false => format!("--env={name}={value}"),
            });
        }
        arguments.push(format!("--entrypoint={}", self.command.shell.name()));
        arguments.push(self.image.to_owned());
        arguments.extend(
            self.command
                .shell
                .arguments()
                .iter()
                .map(|&argument| argument.to_owned()),
        );
        arguments.push(self.text.to_owned());
        Ok(arguments)
    }
}

/// The reason for an exit status that comes from the client rather than from the program.
pub(super) fn reason(code: i32, shell: Shell) -> Option<(&'static str, &'static str)> {
    match (code, shell) {
        (125, _) => Some((
            "the container could not be started",
            "the last lines say why; `podman pull IMAGE@DIGEST` or `docker pull …` fetches the image",
        )),
        (126 | 127, Shell::Bash) => Some((
            "the image has no `bash`, or a program was not found",
            "write `shell: sh`, or choose an image that has it",
        )),
        _ => None,
    }
}

/// Removes a container when it is dropped, or when the engine exits for any reason.
pub(super) struct Watchdog {
    child: Child,
}

impl Watchdog {
    /// Watches the container whose id will be in `id_file`. `env` is the environment of the client.
    pub(super) fn start(
        client: &Path,
        id_file: &Path,
        env: &BTreeMap<String, String>,
    ) -> Result<Self, StageError> {
        let child = process::Command::new("/bin/sh")
            .args(["-c", REMOVE, "sh"])
            .args([client, id_file])
            .env_clear()
            .envs(env)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C in a terminal reaches only the engine.
            .process_group(0)
            .spawn();
        let child = child.map_err(|err| StageError::new(format!("cannot watch the container: {err}")))?;
        Ok(Self { child })
    }

    /// Ends the watch of a container that has exited.
    pub(super) fn disarm(mut self) -> io::Result<()> {
        self.child.kill()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.child.stdin.take();
        let until = Instant::now() + REMOVAL;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > until {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    fn container<'a>(
        env: &'a BTreeMap<String, String>,
        command: &'a Command,
        stage: &'a Path,
    ) -> Container<'a> {
        Container {
            image: "example.org/i@sha256:0",
            command,
            text: "echo \"$A\"",
            env,
            memory: Some(1 << 20),
            stage,
            id_file: Path::new("/s/id"),
        }
    }

    #[test]
    fn the_command_line_of_a_client() {
        let env = [("A", "1"), ("S", "hidden")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let env = BTreeMap::from(env);
        let mut command = Command {
            secrets: vec!["S".to_owned()],
            ..Command::default()
        };
        let arguments = container(&env, &command, Path::new("/s/stage"));
        let arguments = arguments.arguments(Path::new("/usr/bin/docker")).unwrap().join("\n");
        let arguments = arguments.replace(
            &format!("--user={}:{}", getuid().as_raw(), getgid().as_raw()),
            "--user=U:G",
        );
        insta::assert_snapshot!(arguments, @r#"
        docker
        run
        --rm
        --log-driver=none
        --cap-drop=all
        --security-opt=no-new-privileges
        --security-opt=label=disable
        --cidfile=/s/id
        --user=U:G
        --workdir=/stage/work
        --network=none
        --memory=1048576b
        --mount=type=bind,source=/s/stage/work,target=/stage/work
        --mount=type=bind,source=/s/stage/home,target=/stage/home
        --mount=type=bind,source=/s/stage/needs,target=/stage/needs,readonly
        --mount=type=bind,source=/s/stage/tmp,target=/tmp
        --env=A=1
        --env=S
        --entrypoint=bash
        example.org/i@sha256:0
        -euo
        pipefail
        -c
        echo "$A"
        "#);
        command.network = true;
        let open = Container {
            memory: None,
            ..container(&env, &command, Path::new("/s/stage"))
        };
        let arguments = open.arguments(Path::new("/usr/bin/docker")).unwrap();
        let limits =
            |argument: &String| argument.starts_with("--network") || argument.starts_with("--memory");
        assert!(!arguments.iter().any(limits), "{arguments:?}");
        let comma = Container {
            stage: Path::new("/a,b"),
            ..open
        };
        assert!(comma.arguments(Path::new("/usr/bin/docker")).is_err());
    }

    #[test]
    fn podman_comes_before_docker_and_one_of_them_is_needed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().display().to_string();
        let error = client(&path).unwrap_err();
        assert!(error.hint.is_some_and(|hint| hint.contains("podman")));
        for name in ["docker", "podman"] {
            let program = dir.path().join(name);
            fs::write(&program, "").unwrap();
            assert!(
                client(&path).map_or(true, |found| !found.ends_with(name)),
                "not executable"
            );
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            assert_eq!(client(&path).unwrap(), program);
        }
    }

    /// A client that appends its arguments to a file.
    fn recorder(dir: &Path) -> PathBuf {
        let program = dir.join("docker");
        fs::write(&program, "#!/bin/sh\necho \"$@\" >> \"${0%/*}/calls\"\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    #[test]
    fn a_container_that_has_begun_is_removed_unless_it_has_exited() {
        let dir = tempfile::tempdir().unwrap();
        let (client, id_file) = (recorder(dir.path()), dir.path().join("id"));
        let env = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
        let start = || Watchdog::start(&client, &id_file, &env).unwrap();
        drop(start());
        fs::write(&id_file, "abc").unwrap();
        start().disarm().unwrap();
        assert!(
            !dir.path().join("calls").exists(),
            "no container, or one that has exited"
        );
        drop(start());
        assert_eq!(
            fs::read_to_string(dir.path().join("calls")).unwrap(),
            "kill abc\nrm --force abc\n"
        );
    }
}
