//! The programs that make faults.

use std::process::{Command, Stdio};
use std::sync::LazyLock;

fn works(program: &str, args: &[&str]) -> bool {
    let run = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    run.is_ok_and(|status| status.success())
}

/// True if `strace` can trace system calls and inject errors into them.
pub(crate) static STRACE: LazyLock<bool> = LazyLock::new(|| {
    works(
        "strace",
        &["-f", "-o", "/dev/null", "-e", "inject=link:error=EPERM", "true"],
    )
});

/// True if a file system can be mounted in a private namespace.
pub(crate) static MOUNT: LazyLock<bool> = LazyLock::new(|| {
    works(
        "unshare",
        &[
            "-rm",
            "sh",
            "-c",
            "mount -t tmpfs -o size=64k none /tmp && mount -o remount,ro /tmp",
        ],
    )
});

/// True if a library can be compiled that sets the clock of a program.
pub(crate) static CC: LazyLock<bool> =
    LazyLock::new(|| cfg!(target_os = "linux") && works("cc", &["--version"]));

/// True if programs can be isolated in namespaces.
pub(crate) static NAMESPACES: LazyLock<bool> = LazyLock::new(|| {
    let found = runner_testkit::Project::new("").run(&["doctor", "--json"]).stdout;
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    let mut findings = found["findings"].as_array().unwrap().iter();
    findings.any(|finding| finding["what"] == "isolation" && finding["value"] == "namespaces")
});

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0)
}

/// True if commands can run as other users.
pub(crate) static USERS: LazyLock<bool> = LazyLock::new(|| is_root() && works("setpriv", &["--version"]));

/// True if a file system can be mounted whose requests are answered by the test.
pub(crate) static HUNG: LazyLock<bool> = LazyLock::new(|| {
    let device = std::fs::File::options().read(true).write(true).open("/dev/fuse");
    is_root() && device.is_ok() && works("unshare", &["-m", "true"])
});

/// True if a disk of the test's own can be mounted, with an ext4 on it.
pub(crate) static POWER: LazyLock<bool> = LazyLock::new(|| {
    *HUNG && works("mkfs.ext4", &["-V"]) && std::path::Path::new("/dev/loop-control").exists()
});

pub(crate) const NO_USERS: &str = "not root, or no `setpriv`";
pub(crate) const NO_HUNG: &str = "not root, or no `/dev/fuse`";
pub(crate) const NO_POWER: &str = "not root, or no `/dev/fuse`, no loop device or no `mkfs.ext4`";
pub(crate) const NO_CC: &str = "there is no `cc`";
pub(crate) const NO_STRACE: &str = "`strace` is not installed, or may not trace";
pub(crate) const NO_MOUNT: &str = "`unshare -rm` may not mount here";

/// `strace` with these expressions, of all processes that a program starts.
pub(crate) fn strace(expressions: &[&str]) -> Command {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "--seccomp-bpf", "-o", "/dev/null"]);
    for expression in expressions {
        command.args(["-e", expression]);
    }
    command
}
