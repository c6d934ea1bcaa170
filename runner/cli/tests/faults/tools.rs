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
pub static STRACE: LazyLock<bool> = LazyLock::new(|| {
    works(
        "strace",
        &["-f", "-o", "/dev/null", "-e", "inject=link:error=EPERM", "true"],
    )
});

/// True if a file system can be mounted in a private namespace.
pub static MOUNT: LazyLock<bool> = LazyLock::new(|| {
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
pub static CC: LazyLock<bool> = LazyLock::new(|| cfg!(target_os = "linux") && works("cc", &["--version"]));

pub const NO_CC: &str = "there is no `cc`";
pub const NO_STRACE: &str = "`strace` is not installed, or may not trace";
pub const NO_MOUNT: &str = "`unshare -rm` may not mount here";

/// `strace` with these expressions, of all processes that a program starts.
pub fn strace(expressions: &[&str]) -> Command {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "--seccomp-bpf", "-o", "/dev/null"]);
    for expression in expressions {
        command.args(["-e", expression]);
    }
    command
}
