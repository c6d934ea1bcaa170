//! A real Ray cluster of some nodes on this machine, by `ray.cluster_utils.Cluster`.

use crate::Project;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tempfile::TempDir;

/// Starts nodes of two CPUs, of which the first is the head, and does what its input says. Answers each line.
const CLUSTER: &str = r#"
import json, os, signal, sys
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
from ray.cluster_utils import Cluster

def answer(text):
    out.write(text + "\n")
    out.flush()

def pids(node, kind):
    return [info.process.pid for info in node.all_processes.get(kind, [])]

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
nodes = [cluster.head_node] + [cluster.add_node(num_cpus=2) for _ in range(int(sys.argv[1]) - 1)]
cluster.wait_for_nodes()
answer(cluster.address)
for line in sys.stdin:
    what, *rest = line.split()
    if what == "head":
        for kind in ("gcs_server", "raylet"):
            for pid in pids(nodes[0], kind):
                os.kill(pid, signal.SIGKILL)
    elif what == "node":
        node = nodes.pop(1)
        for pid in pids(node, "raylet"):
            os.kill(pid, signal.SIGKILL)
        # Ray itself sweeps up what the node has left.
        cluster.remove_node(node, allow_graceful=False)
        nodes.append(cluster.add_node(num_cpus=2))
    answer("done")
cluster.shutdown()
"#;

/// The interpreter with Ray: `RUNNER_TEST_RAY`.
pub fn ray_python() -> Option<String> {
    std::env::var("RUNNER_TEST_RAY")
        .ok()
        .filter(|python| !python.is_empty())
}

/// The reason why no Ray can be started here.
pub fn missing_ray() -> Option<&'static str> {
    match ray_python() {
        Some(_) => None,
        None => Some("`RUNNER_TEST_RAY` names no Python with Ray"),
    }
}

/// A running cluster, which ends when it is dropped.
pub struct Ray {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    address: String,
    /// The directory of Ray's own files; its path is short, because sockets are in it.
    dir: TempDir,
}

impl Ray {
    /// Starts a cluster of `nodes`, among them its head.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start(nodes: usize) -> Self {
        let dir = tempfile::Builder::new().prefix("ray-").tempdir_in("/tmp").unwrap();
        let mut child = Command::new(ray_python().unwrap())
            .args(["-c", CLUSTER, &nodes.to_string()])
            .env("RAY_TMPDIR", dir.path())
            // A driver of a head that is gone would wait for a minute.
            .env("RAY_gcs_rpc_server_reconnect_timeout_s", "10")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut ray = Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
            address: String::new(),
            dir,
        };
        ray.address = ray.answer();
        assert!(ray.address.contains(':'), "no Ray: {}", ray.address);
        ray
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// The block `executors:` with this cluster as the executor `ray`, and with more settings of it.
    pub fn executors(&self, project: &Project, more: &str) -> String {
        let python = ray_python().unwrap();
        let (address, nodes) = (&self.address, project.path("node"));
        format!(
            "executors:\n  ray: {{ kind: ray, address: \"{address}\", python: {python}, \
             node_dir: {}{more} }}\n",
            nodes.display()
        )
    }

    /// Kills a node that is not the head, and starts another.
    pub fn kill_node(&mut self) {
        self.tell("node");
    }

    /// Kills the head.
    pub fn kill_head(&mut self) {
        self.tell("head");
    }

    fn tell(&mut self, what: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{what}").unwrap();
        assert_eq!(self.answer(), "done");
    }

    /// The directory of Ray's own files.
    pub fn dir(&self) -> &std::path::Path {
        self.dir.path()
    }
}

impl Drop for Ray {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.wait();
    }
}
