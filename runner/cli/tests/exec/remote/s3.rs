//! A real S3 server. `RUNNER_TEST_S3_SERVER` is the path of `s3s-fs`; without it these tests are ignored.

use super::{Site, end};
use crate::{Ended, files, wait_for};
use runner_testkit::pipeline;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const ACCESS: &str = "AKIDEXAMPLE0TEST";
const SECRET: &str = "s3cr3t-0f-th3-t3st/wJalrXUtnFEMI";

/// The server, on a port of its own, with one bucket.
struct Server {
    program: PathBuf,
    root: PathBuf,
    port: u16,
    child: Option<Child>,
}

impl Server {
    fn start(site: &Site) -> Self {
        let program = std::env::var_os("RUNNER_TEST_S3_SERVER")
            .expect("RUNNER_TEST_S3_SERVER names an S3 server (s3s-fs)");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Self {
            program: program.into(),
            root: site.path("s3"),
            port,
            child: None,
        };
        std::fs::create_dir_all(server.root.join("bucket")).unwrap();
        server.up();
        server
    }

    fn up(&mut self) {
        let child = Command::new(&self.program)
            .args(["--host", "127.0.0.1", "--port", &self.port.to_string()])
            .args(["--access-key", ACCESS, "--secret-key", SECRET])
            .arg(&self.root)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.child = Some(child);
        wait_for("the S3 server", || TcpStream::connect(("127.0.0.1", self.port)).is_ok());
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    fn configure(&self, site: &Site, home: &str, more: &str) {
        let port = self.port;
        site.configure(
            home,
            &format!(
                "remote:\n  url: s3://bucket/team\n  trust: unsigned\n  endpoint: \
                http://127.0.0.1:{port}\n  allow_http: true\n{more}"
            ),
        );
    }

    /// Parts of an upload that have arrived.
    fn parts(&self) -> usize {
        let of_upload = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().contains(".part-");
        files(&self.root).iter().filter(|path| of_upload(path)).count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn command(site: &Site, home: &str, args: &[&str]) -> Command {
    let mut command = site.command(home, args);
    command
        .env_remove("RUNNER_REMOTE")
        .env("AWS_ACCESS_KEY_ID", ACCESS)
        .env("AWS_SECRET_ACCESS_KEY", SECRET);
    command
}

fn run(site: &Site, home: &str, args: &[&str]) -> Ended {
    end(&mut command(site, home, args))
}

fn exec(site: &Site, home: &str, args: &[&str]) -> Ended {
    run(
        site,
        home,
        &[&["exec", "p.yaml", "--json", "--jobs", "1"], args].concat(),
    )
}

/// No file below a directory and nothing that was said holds the credentials.
fn assert_silent(folders: &[PathBuf], said: &[&Ended]) {
    let holds = |bytes: &[u8]| {
        [ACCESS, SECRET]
            .iter()
            .any(|secret| bytes.windows(secret.len()).any(|window| window == secret.as_bytes()))
    };
    for path in folders.iter().flat_map(|folder| files(folder)) {
        let small = path.metadata().unwrap().len() < 1 << 20;
        assert!(!small || !holds(&std::fs::read(&path).unwrap()), "{}", path.display());
    }
    for ended in said {
        assert!(
            !holds(ended.stdout.as_bytes()) && !holds(ended.stderr.as_bytes()),
            "{}{}",
            ended.stdout,
            ended.stderr
        );
    }
}

#[test]
#[cfg_attr(not(s3_server), ignore = "RUNNER_TEST_S3_SERVER is unset")]
fn two_homes_share_a_bucket() {
    let site = Site::new(super::CHAIN);
    let mut server = Server::start(&site);
    for home in ["first", "second", "third", "fourth"] {
        server.configure(&site, home, "  timeout: 2s\n");
    }
    let first = exec(&site, "first", &[]);
    assert_eq!(first.log(), "ran big\nran mid\nran end", "{}", first.stderr);
    assert!(!first.stderr.contains("warning"), "{}", first.stderr);
    let second = exec(&site, "second", &["-v"]);
    assert_eq!(second.log(), "cached big\ncached mid\ncached end", "{}", second.stderr);
    assert!(site.blobs("second").is_empty());
    let again = exec(&site, "second", &["--force", "mid", "-v"]);
    assert_eq!(again.log(), "cached big\nran mid\ncached end", "{}", again.stderr);
    let pull = run(&site, "third", &["cache", "pull", "--all"]);
    assert_eq!(pull.code, 0, "{}", pull.stderr);
    assert!(pull.stdout.starts_with("3 records here"), "{}", pull.stdout);

    // Wrong credentials are refused by the server, and not repeated by anyone.
    let mut wrong = command(&site, "fourth", &["exec", "p.yaml", "--json", "--jobs", "1"]);
    let wrong = end(wrong.env("AWS_SECRET_ACCESS_KEY", "another-secret-of-the-test"));
    assert_eq!(wrong.log(), "ran big\nran mid\nran end");
    assert!(wrong.stderr.contains("SignatureDoesNotMatch"), "{}", wrong.stderr);
    assert!(!wrong.stderr.contains("another-secret"), "{}", wrong.stderr);

    // A program of a stage is not given them either.
    site.project
        .write("p.yaml", pipeline("env").run("env", "env > ${outputs.x}; env"));
    let env = exec(&site, "first", &["-v"]);
    assert_eq!(env.log(), "ran env", "{}", env.stderr);
    server.kill();
    let homes: Vec<PathBuf> = ["first", "second", "third", "fourth"]
        .iter()
        .map(|home| site.path(home))
        .collect();
    assert_silent(&homes, &[&first, &second, &again, &pull, &wrong, &env]);
    assert_silent(&[site.path("s3/bucket")], &[]);
}

/// Large enough that the server can be killed on the way.
const LARGE: &str = "\
version: 1
name: large
stages:
  large: { run: 'head -c 200000000 /dev/zero | tr \"\\0\" x > ${outputs.x}', outputs: { x: x.bin } }
";

/// Kills the server once `is_under_way`, starts it again, and waits for the command.
fn interrupted(server: &mut Server, mut child: Child, is_under_way: impl Fn(&Server) -> bool) -> Ended {
    let mut killed = false;
    while child.try_wait().unwrap().is_none() {
        if !killed && is_under_way(server) {
            server.kill();
            std::thread::sleep(std::time::Duration::from_millis(300));
            server.up();
            killed = true;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(killed, "it was too quick to be interrupted");
    child.wait_with_output().unwrap().into()
}

fn start(site: &Site, home: &str, args: &[&str]) -> Child {
    command(site, home, args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn sizes_of_tmp(home: &Path) -> u64 {
    let entries = std::fs::read_dir(home.join("tmp")).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.metadata().ok())
        .map(|meta| meta.len())
        .sum()
}

#[test]
#[cfg_attr(not(s3_server), ignore = "RUNNER_TEST_S3_SERVER is unset")]
fn a_server_that_is_killed_during_a_transfer() {
    let site = Site::new(LARGE);
    let mut server = Server::start(&site);
    for home in ["first", "second"] {
        server.configure(&site, home, "");
    }
    let first = exec(&site, "first", &["--no-remote"]);
    assert_eq!(first.log(), "ran large", "{}", first.stderr);
    let push = start(&site, "first", &["cache", "push", "--json"]);
    let push = interrupted(&mut server, push, |server| server.parts() > 0);
    assert_eq!(push.code, 0, "{}", push.stderr);
    assert!(push.stdout.contains("\"bytes\": 200000"), "{}", push.stdout);

    let home = site.path("second");
    std::fs::create_dir_all(home.join("tmp")).unwrap();
    let pull = start(&site, "second", &["cache", "pull", "p.yaml", "--json"]);
    let pull = interrupted(&mut server, pull, |_| sizes_of_tmp(&home) > 1 << 20);
    assert_eq!(pull.code, 0, "{}", pull.stderr);
    let second = exec(&site, "second", &["--no-remote"]);
    assert_eq!(second.log(), "cached large");
    assert_eq!(second.digests(), first.digests());
    assert_eq!(run(&site, "second", &["cache", "verify"]).code, 0);
    assert_silent(&[site.path("first"), site.path("second")], &[&push, &pull]);
}

#[test]
#[cfg_attr(not(s3_server), ignore = "RUNNER_TEST_S3_SERVER is unset")]
fn a_server_that_goes_away_does_not_hold_a_run_up() {
    let site = Site::new(super::CHAIN);
    let mut server = Server::start(&site);
    server.configure(&site, "first", "  timeout: 1s\n");
    assert_eq!(exec(&site, "first", &["big"]).log(), "ran big");
    server.kill();
    let rest = exec(&site, "first", &[]);
    assert_eq!(
        (rest.code, rest.log().as_str()),
        (0, "cached big\nran mid\nran end"),
        "{}",
        rest.stderr
    );
    assert_eq!(rest.stderr.matches("warning").count(), 1, "{}", rest.stderr);
    server.up();
    let push = run(&site, "first", &["cache", "push"]);
    assert_eq!(push.code, 0, "{}", push.stderr);
    assert!(
        push.stdout.starts_with("3 records in s3://bucket/team (1 before)"),
        "{}",
        push.stdout
    );
}
