//! Programs in containers.

use crate::{Ended, Project, wait_for};
use runner_testkit::{PipelineText, pipeline};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

fn contained(image: &str, command: &str) -> PipelineText {
    pipeline("containers")
        .run("a", "echo data > ${outputs.x}")
        .run("b", command)
        .needs("x", "a.x")
        .output("y", "y.txt")
        .set("env", "{ GREETING: hello }")
        .set("secrets", "[PASSPHRASE]")
        .set("shell", "sh")
        .set("container", image)
}

#[test]
fn without_podman_and_docker_it_is_said() {
    let project = Project::new(contained(&format!("i@{DIGEST}"), "true"));
    let empty = tempfile::tempdir().unwrap();
    let output = project
        .command(&["exec", "p.yaml", "--json"])
        .env("PATH", empty.path())
        .output()
        .unwrap();
    let ended = Ended::from(output);
    assert_eq!(ended.code, 1, "{}", ended.text());
    assert!(
        ended.error("b").contains("neither podman nor docker is installed"),
        "{}",
        ended.text()
    );
}

/// podman with a store of its own, and an image of busybox.
struct Podman {
    dir: tempfile::TempDir,
    image: String,
}

impl Podman {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let find = |name: &str| {
            std::env::split_paths(&path)
                .map(|dir| dir.join(name))
                .find(|path| path.is_file())
        };
        let bin = dir.path().join("root/bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::copy(find("busybox").unwrap(), bin.join("busybox")).unwrap();
        for name in ["cat", "echo", "env", "ls", "sh", "sleep", "touch"] {
            symlink("busybox", bin.join(name)).unwrap();
        }
        // Limits that a container inside another one may set; crun refuses some old hierarchies of control
        // groups.
        let runtime = find("runc").map_or(String::new(), |_| "[engine]\nruntime = \"runc\"\n".to_owned());
        let limits = "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1000:1000\"]\n";
        std::fs::write(dir.path().join("containers.conf"), limits.to_owned() + &runtime).unwrap();
        let storage = format!(
            "[storage]\ndriver = \"vfs\"\ngraphroot = \"{0}/graph\"\nrunroot = \"{0}/run\"\n",
            dir.path().display()
        );
        std::fs::write(dir.path().join("storage.conf"), storage).unwrap();
        let mut podman = Self {
            dir,
            image: String::new(),
        };
        let tar = podman.path("image.tar");
        let mut command = Command::new("tar");
        let packed = command
            .arg("-C")
            .arg(podman.path("root"))
            .arg("-cf")
            .arg(&tar)
            .arg(".")
            .status();
        assert!(packed.unwrap().success());
        podman.run(&["import", tar.to_str().unwrap(), "localhost/runner-test"]);
        let digest = podman.run(&[
            "images",
            "--digests",
            "--format",
            "{{.Digest}}",
            "localhost/runner-test",
        ]);
        podman.image = format!("localhost/runner-test@{}", digest.trim());
        podman
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn here<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .env("CONTAINERS_CONF", self.path("containers.conf"))
            .env("CONTAINERS_STORAGE_CONF", self.path("storage.conf"))
            .env("XDG_RUNTIME_DIR", self.dir.path())
            .env("PASSPHRASE", "open sesame")
    }

    fn run(&self, args: &[&str]) -> String {
        let output = self.here(Command::new("podman").args(args)).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn containers(&self) -> usize {
        self.run(&["ps", "--all", "--quiet"]).lines().count()
    }

    fn exec(&self, project: &Project) -> Ended {
        let mut command = project.command(&["exec", "p.yaml", "--json"]);
        self.here(&mut command).output().unwrap().into()
    }
}

#[test]
#[cfg_attr(not(podman), ignore = "podman or busybox is missing")]
fn a_program_sees_its_inputs_and_writes_its_outputs_in_a_container() {
    let podman = Podman::new();
    let command = "\
echo \"$GREETING $PASSPHRASE $HOME $TMPDIR\"
      cat ${needs.x} > ${outputs.y}
      echo ${needs.x} >> ${outputs.y}
      ls /bin >> ${outputs.y}
      touch $HOME/x $TMPDIR/x
      ! touch ${needs.x}
      ! cat /proc/net/dev | cat /dev/stdin > /dev/null || [ ! -e /sys/class/net/eth0 ]";
    let project = Project::new(contained(&podman.image, command));
    let ended = podman.exec(&project);
    assert_eq!(ended.code, 0, "{}", ended.text());
    let written = project.output("b.y");
    assert_eq!(
        written,
        "data\n/stage/needs/x/x.txt\nbusybox\ncat\necho\nenv\nls\nsh\nsleep\ntouch\n"
    );
    let shown = project.run(&["show", "latest/b"]);
    assert!(shown.stdout.contains("isolation container"), "{}", shown.text());
    assert!(shown.stdout.contains("hello *** /stage/home /tmp"), "{}", shown.text());
    assert_eq!(podman.containers(), 0);
    assert_eq!(podman.exec(&project).stages("cached").len(), 2);
}

#[test]
#[cfg_attr(not(podman), ignore = "podman or busybox is missing")]
fn a_container_ends_with_its_time_limit_and_with_the_engine() {
    let podman = Podman::new();
    let text = contained(&podman.image, "echo started; sleep 1000");
    let project = Project::new(text.clone().set("timeout", "2s"));
    let ended = podman.exec(&project);
    assert!(
        ended.error("b").contains("took longer than its time limit"),
        "{}",
        ended.text()
    );
    assert_eq!(podman.containers(), 0);
    project.write("p.yaml", &text);
    let mut command = project.command(&["exec", "p.yaml", "--json"]);
    let quiet = podman.here(&mut command).stdout(Stdio::null()).stderr(Stdio::null());
    let mut engine = quiet.spawn().unwrap();
    wait_for("the container runs", || podman.containers() == 1);
    engine.kill().unwrap();
    engine.wait().unwrap();
    wait_for("the container is removed", || podman.containers() == 0);
}

/// A client that fails as one without the image does.
#[test]
fn a_container_that_does_not_start_is_told_from_a_program_that_fails() {
    let project = Project::new(contained(&format!("i@{DIGEST}"), "true"));
    let client = |text: &str| {
        project.write("clients/podman", format!("#!/bin/sh\n{text}\n"));
        let path = project.path("clients/podman");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/bin:/bin", Path::new(&path).parent().unwrap().display());
        let output = project
            .command(&["exec", "p.yaml", "--json"])
            .env("PATH", path)
            .output()
            .unwrap();
        Ended::from(output).error("b")
    };
    let error = client("echo 'no such image' >&2; exit 125");
    assert!(
        error.contains("the container could not be started") && error.contains("| no such image"),
        "{error}"
    );
    let error = client("exit 3");
    assert!(error.contains("the command exited with status 3"), "{error}");
}
