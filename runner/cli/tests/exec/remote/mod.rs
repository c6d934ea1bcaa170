//! Remote stores: several homes that stand for several machines.

mod accounts;
mod directory;
mod http;
mod policies;
mod s3;
#[expect(dead_code, reason = "the tests of the crate use more of its answers")]
#[path = "../../../../../cache/remote/tests/remote/server.rs"]
mod server;

use crate::{Ended, Project, files};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A large file, what is made of it, and what is made of that.
const CHAIN: &str = "\
version: 1
name: chain
params: { words: one }
stages:
  big: { run: 'head -c 3000000 /dev/zero > ${outputs.x}; echo made', outputs: { x: x.bin } }
  mid: \
{ run: '(echo ${params.words}; wc -c < ${needs.x}) > ${outputs.x}', needs: { x: big }, outputs: { x: y.txt } }
  end: { run: 'wc -l < ${needs.x} > ${outputs.x}', needs: { x: mid }, outputs: { x: z.txt } }
";

/// The length of the output of `big`.
const BIG: u64 = 3_000_000;

/// A project with several homes and a directory that is their remote store.
struct Site {
    project: Project,
}

impl Site {
    fn new(pipeline: impl std::fmt::Display) -> Self {
        Self {
            project: Project::new(pipeline),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.project.path(name)
    }

    /// The remote store as a directory.
    fn folder(&self) -> PathBuf {
        self.path("remote")
    }

    /// A command with the folder as its remote, whose records need no signature unless the home is configured
    /// otherwise.
    fn command(&self, home: &str, args: &[&str]) -> Command {
        if !self.path(home).join("config.yaml").exists() {
            self.configure(home, "remote: { trust: unsigned }\n");
        }
        let mut command = self.project.command(args);
        command
            .env("RUNNER_HOME", self.path(home))
            .env("RUNNER_REMOTE", self.folder());
        command
    }

    fn run(&self, home: &str, args: &[&str]) -> Ended {
        end(&mut self.command(home, args))
    }

    fn exec(&self, home: &str, args: &[&str]) -> Ended {
        self.run(home, &[&["exec", "p.yaml", "--json", "--jobs", "1"], args].concat())
    }

    /// Runs with a configuration file instead of the environment.
    fn configure(&self, home: &str, config: &str) {
        self.project.write(&format!("{home}/config.yaml"), config);
    }

    fn configured(&self, home: &str, args: &[&str]) -> Ended {
        end(self.command(home, args).env_remove("RUNNER_REMOTE"))
    }

    fn exec_configured(&self, home: &str, args: &[&str]) -> Ended {
        self.configured(home, &[&["exec", "p.yaml", "--json", "--jobs", "1"], args].concat())
    }

    /// The lengths of the blobs in a home, or in the directory that is the remote.
    fn blobs(&self, home: &str) -> Vec<u64> {
        let folder = self.path(home).join("blobs");
        if !folder.exists() {
            return Vec::new();
        }
        let mut sizes: Vec<u64> = files(&folder)
            .iter()
            .map(|path| path.metadata().unwrap().len())
            .collect();
        sizes.sort();
        sizes
    }

    fn has_big(&self, home: &str) -> bool {
        self.blobs(home).contains(&BIG)
    }

    /// The file of the large blob in the directory that is the remote.
    fn big(&self) -> PathBuf {
        let found = files(&self.folder().join("blobs"));
        found
            .into_iter()
            .find(|path| path.metadata().unwrap().len() == BIG)
            .unwrap()
    }

    /// A first machine that has computed all, and uploaded it.
    fn filled() -> Self {
        let site = Self::new(CHAIN);
        let first = site.exec("first", &[]);
        assert_eq!(first.code, 0, "{}", first.stderr);
        assert_eq!(first.log(), "ran big\nran mid\nran end");
        assert_eq!(first.stderr.matches("warning").count(), 0, "{}", first.stderr);
        site
    }
}

fn end(command: &mut Command) -> Ended {
    command.output().unwrap().into()
}

/// The only document on standard output.
fn document(ended: &Ended) -> Value {
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

/// Replaces a file that may be read-only.
fn replace(path: &Path, bytes: &[u8]) {
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, bytes).unwrap();
}
