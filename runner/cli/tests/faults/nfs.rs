//! File systems of a network: no hard links, calls that fail now and then, answers that are repeated, reads
//! and writes that come in pieces.
//!
//! Without such a file system at hand they are imitated: by errors that `strace` injects into system calls,
//! and by a library between the program and the C library.

use crate::lab::{Chance, Digests, Ended, LONGEST, Lab, QUICK, runner};
use crate::tally::Tally;
use crate::tools::{CC, NO_CC, NO_STRACE, STRACE, strace};
use runner_testkit::within;
use std::path::PathBuf;
use std::process::Command;

/// A call, and the error that it gives once.
const ERRORS: [(&str, &str); 32] = [
    ("openat", "ESTALE"),
    ("openat", "EINTR"),
    ("openat", "EIO"),
    ("openat", "ETIMEDOUT"),
    ("openat", "EMFILE"),
    ("read", "EIO"),
    ("read", "EINTR"),
    ("read", "ESTALE"),
    ("write", "EIO"),
    ("write", "EINTR"),
    ("write", "EDQUOT"),
    ("write", "ENOSPC"),
    ("fsync,fdatasync,syncfs", "EIO"),
    ("fsync,fdatasync,syncfs", "ENOSPC"),
    ("rename,renameat,renameat2", "ESTALE"),
    ("rename,renameat,renameat2", "EIO"),
    ("rename,renameat,renameat2", "EEXIST"),
    ("rename,renameat,renameat2", "EBUSY"),
    ("statx,newfstatat,fstat", "ESTALE"),
    ("statx,newfstatat,fstat", "EIO"),
    ("getdents64", "ESTALE"),
    ("getdents64", "EIO"),
    ("mkdir,mkdirat", "EIO"),
    ("mkdir,mkdirat", "EDQUOT"),
    ("unlink,unlinkat", "EBUSY"),
    ("unlink,unlinkat", "ESTALE"),
    ("fchmod,fchmodat,chmod", "EPERM"),
    ("utimensat", "EPERM"),
    ("ftruncate", "EIO"),
    ("flock", "ENOLCK"),
    ("flock", "EIO"),
    ("mmap", "ENODEV"),
];

/// No hard links, no clones, no exchange of names, as always on such file systems.
const LESS: [&str; 2] = ["link,linkat:error=EPERM", "copy_file_range:error=EXDEV"];

/// Whatever a run came to, it recorded nothing wrong, and the next one ends as if nothing had happened.
fn judge(lab: &Lab, reference: &Digests, ended: &Ended, what: &str) -> Option<&'static str> {
    let outcome = match ended.code {
        0 => {
            assert_eq!(&ended.digests(), reference, "{what}");
            "the same digests"
        }
        1..=3 => {
            assert!(
                ended.text().contains("error") && !ended.text().contains("panicked"),
                "{what}: {}",
                ended.text()
            );
            "reported, exit 1 to 3; then the same digests"
        }
        // The loader of programs met the error, before the program began.
        127 => return None,
        code => panic!("{what}: exit code {code}: {}", ended.text()),
    };
    lab.recorded_nothing_wrong(ended, reference, what);
    lab.settle();
    lab.ends_well(reference, &lab.complete());
    lab.sweep();
    Some(outcome)
}

/// One error in each run, of a random call.
pub(crate) fn errors(times: usize) -> Tally {
    let fault = "a call that fails once, as on NFS, without hard links";
    if !*STRACE {
        return Tally::skipped(fault, NO_STRACE);
    }
    let lab = Lab::new(QUICK);
    let reference = lab.reference();
    let (mut tally, mut chance) = (Tally::new(fault), Chance::new(32));
    let mut next = 0;
    while tally.tried() < times {
        next = (next + 1) % ERRORS.len();
        if chance.below(3) > 0 {
            lab.wipe();
        }
        let (calls, error) = ERRORS[next];
        // The first calls are the loader's.
        let first = if matches!(error, "ESTALE" | "EIO" | "ENODEV" | "ETIMEDOUT") {
            12
        } else {
            1
        };
        let n = first + chance.below(60);
        let injected = format!("inject={calls}:error={error}:when={n}");
        let (a, b) = (format!("inject={}", LESS[0]), format!("inject={}", LESS[1]));
        let trace = format!("trace=link,linkat,copy_file_range,{calls}");
        let mut command = strace(&[&trace, &injected, &a, &b]);
        lab.at_home(&mut command)
            .arg(runner())
            .args(["exec", "p.yaml", "--json"]);
        let ended = within(LONGEST, &mut command);
        if let Some(outcome) = judge(&lab, &reference, &ended, &injected) {
            tally.count(outcome);
        }
    }
    tally
}

/// Reads and writes in pieces and interrupted; renames and removals that are done and answered as if they
/// were not, as a repeated request is; removed files that keep a name (`.nfs…`); flushes that fail.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
static _Thread_local unsigned long long state;
/* True once in n times. */
static int chance(unsigned n) {
    if (!state) {
        const char *seed = getenv("NFS_SEED");
        state = (seed ? strtoull(seed, 0, 10) : 1) * 0x9e3779b97f4a7c15ull + getpid() * 7919ull + (unsigned long long)&state;
    }
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    return state % n == 0;
}
static int has(const char *what) {
    const char *all = getenv("NFS_MANNERS");
    return all && strstr(all, what);
}
static int regular(int fd) {
    struct stat s;
    return fstat(fd, &s) == 0 && S_ISREG(s.st_mode);
}
static size_t part(size_t n) { return has("pieces") && n > 1 && chance(2) ? 1 + (state >> 8) % n : n; }
static int interrupted(void) { if (has("pieces") && chance(10)) { errno = EINTR; return 1; } return 0; }
ssize_t read(int fd, void *b, size_t n) {
    if (regular(fd)) { if (interrupted()) return -1; n = part(n); }
    return syscall(SYS_read, fd, b, n);
}
ssize_t write(int fd, const void *b, size_t n) {
    if (regular(fd)) { if (interrupted()) return -1; n = part(n); }
    return syscall(SYS_write, fd, b, n);
}
ssize_t pread64(int fd, void *b, size_t n, off64_t at) {
    if (interrupted()) return -1;
    return syscall(SYS_pread64, fd, b, part(n), at);
}
ssize_t pwrite64(int fd, const void *b, size_t n, off64_t at) {
    if (interrupted()) return -1;
    return syscall(SYS_pwrite64, fd, b, part(n), at);
}
int link(const char *a, const char *b) { errno = EPERM; return -1; }
int linkat(int d, const char *a, int e, const char *b, int f) { errno = EPERM; return -1; }
int rename(const char *a, const char *b) {
    int r = syscall(SYS_rename, a, b);
    if (r == 0 && has("repeated") && chance(40)) { errno = ENOENT; return -1; }
    return r;
}
static int silly(const char *path) {
    char to[4096], *end;
    struct stat s;
    if (!has("silly") || !chance(3) || lstat(path, &s) || !S_ISREG(s.st_mode) || strlen(path) > 4000) return -1;
    strcpy(to, path);
    end = strrchr(to, '/');
    if (!end) return -1;
    sprintf(end, "/.nfs%08x%08x", (unsigned)state, (unsigned)getpid());
    return syscall(SYS_rename, path, to);
}
int unlink(const char *path) {
    if (silly(path) == 0) return 0;
    int r = syscall(SYS_unlink, path);
    if (r == 0 && has("repeated") && chance(40)) { errno = ENOENT; return -1; }
    return r;
}
int fsync(int fd) { if (has("flush") && chance(3)) { errno = EIO; return -1; } return syscall(SYS_fsync, fd); }
int fdatasync(int fd) { if (has("flush") && chance(3)) { errno = EIO; return -1; } return syscall(SYS_fdatasync, fd); }
int flock(int fd, int how) {
    if (has("locks") && chance(30)) { errno = chance(2) ? ENOLCK : EINTR; return -1; }
    return syscall(SYS_flock, fd, how);
}
"#;

fn shim(lab: &Lab) -> Option<PathBuf> {
    let (source, library) = (lab.path("nfs.c"), lab.path("nfs.so"));
    std::fs::write(&source, SHIM).unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-w", "-o"])
        .args([&library, &source])
        .status();
    built.is_ok_and(|status| status.success()).then_some(library)
}

const MANNERS: [&str; 5] = ["pieces", "repeated", "silly", "flush", "locks"];

/// Each run with some of the manners.
pub(crate) fn pieces(times: usize) -> Tally {
    let fault = "reads and writes in pieces, repeated answers, removed files that stay, as on NFS";
    if !*CC {
        return Tally::skipped(fault, NO_CC);
    }
    let lab = Lab::new(QUICK);
    let Some(shim) = shim(&lab) else {
        return Tally::skipped(fault, NO_CC);
    };
    let reference = lab.reference();
    let (mut tally, mut chance) = (Tally::new(fault), Chance::new(33));
    for i in 0..times {
        if chance.below(3) > 0 {
            lab.wipe();
        }
        let mut manners = vec![MANNERS[i % MANNERS.len()]];
        manners.extend(MANNERS.iter().copied().filter(|_| chance.below(4) == 0));
        let mut command = lab.command(&["exec", "p.yaml", "--json"]);
        command
            .env("LD_PRELOAD", &shim)
            .env("NFS_SEED", (i + 1).to_string())
            .env("NFS_MANNERS", manners.join(","));
        let ended = within(LONGEST, &mut command);
        // The server forgets them once they are closed.
        for path in crate::lab::files(&lab.home()) {
            if path.file_name().unwrap().to_string_lossy().starts_with(".nfs") {
                std::fs::remove_file(path).unwrap();
            }
        }
        let outcome =
            judge(&lab, &reference, &ended, &manners.join(",")).expect("the loader is not affected");
        tally.count(outcome);
    }
    tally
}

pub(crate) fn file_systems_of_a_network() {
    errors(8);
    pieces(6);
}
