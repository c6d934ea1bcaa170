//! `track:` and `runner track`, against a real server of MLflow (from PyPI: `RUNNER_TEST_MLFLOW` names a
//! Python that has it) and a listener that reads OTLP.

use runner_testkit::Project;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PIPELINE: &str = "version: 1\nname: followed\nparams: { steps: 4096, code: 0 }\nTRACK\nstages:\n  \
    env: { uses: env/classic, with: { id: CartPole-v1 } }\n  train: \
    { uses: train/ppo, needs: { env: env }, with: { total_timesteps: '${params.steps}', n_steps: 256, learning_rate: 0.001 } }\n  last: { run: 'exit ${params.code} > ${outputs.x}', outputs: { x: x } }\n";

fn project(track: &str) -> Project {
    Project::new(PIPELINE.replace("TRACK", track))
}

/// A request by HTTP/1.1: the status line and the body of the answer.
fn request(port: u16, method: &str, path: &str, body: &Value) -> Option<(String, Value)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nContent-Type: \
        application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.lines().next()?.to_owned();
    Some((status, serde_json::from_str(body).unwrap_or_default()))
}

struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// A server with its files in a directory; `None` where there is no MLflow.
    fn start(dir: &Path, port: Option<u16>) -> Option<Self> {
        let Some(python) = std::env::var_os("RUNNER_TEST_MLFLOW") else {
            eprintln!("skipped: RUNNER_TEST_MLFLOW is not set");
            return None;
        };
        let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let port = port.unwrap_or_else(free);
        let process = Command::new(python)
            .args([
                "-m",
                "mlflow",
                "server",
                "--host",
                "127.0.0.1",
                "--workers",
                "1",
                "--port",
                &port.to_string(),
            ])
            .arg("--backend-store-uri")
            .arg(format!("sqlite:///{}", dir.join("mlflow.db").display()))
            .arg("--artifacts-destination")
            .arg(dir.join("artifacts"))
            .current_dir(dir)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { process, port };
        let began = Instant::now();
        while request(port, "GET", "/health", &Value::Null).is_none_or(|(status, _)| !status.contains("200"))
        {
            assert!(began.elapsed() < Duration::from_secs(120), "MLflow does not answer");
            std::thread::sleep(Duration::from_millis(200));
        }
        Some(server)
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = request(self.port, "POST", &format!("/api/2.0/mlflow/{path}"), body).unwrap();
        assert!(status.contains("200"), "{path}: {status} {answer}");
        answer
    }

    fn get(&self, path: &str) -> Value {
        let (status, answer) = request(self.port, "GET", path, &Value::Null).unwrap();
        assert!(status.contains("200"), "{path}: {status} {answer}");
        answer
    }

    /// The runs of the experiment of this name.
    fn runs(&self, experiment: &str) -> Vec<Value> {
        let found = self.get(&format!(
            "/api/2.0/mlflow/experiments/get-by-name?experiment_name={experiment}"
        ));
        let id = &found["experiment"]["experiment_id"];
        let answer = self.post("runs/search", &json!({ "experiment_ids": [id] }));
        answer["runs"].as_array().cloned().unwrap_or_default()
    }

    fn history(&self, run: &Value, metric: &str) -> Vec<(i64, f64)> {
        let id = run["info"]["run_id"].as_str().unwrap();
        let answer = self.get(&format!(
            "/api/2.0/mlflow/metrics/get-history?run_id={id}&metric_key={metric}"
        ));
        let values = answer["metrics"].as_array().cloned().unwrap_or_default();
        let value = |value: &Value| {
            (
                value["step"].as_i64().unwrap_or_default(),
                value["value"].as_f64().unwrap(),
            )
        };
        let mut values: Vec<_> = values.iter().map(value).collect();
        values.sort_by_key(|(step, _)| *step);
        values
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its workers end when it is told to end.
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}

fn map(pairs: &Value) -> std::collections::BTreeMap<String, String> {
    let pairs = pairs.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    pairs
        .iter()
        .map(|pair| (text(&pair["key"]), text(&pair["value"])))
        .collect()
}

#[test]
fn a_run_is_written_to_mlflow_while_it_runs_and_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = Server::start(dir.path(), None) else {
        return;
    };
    let uri = format!("http://127.0.0.1:{}", server.port);
    let project = project(&format!("track: [{{ mlflow: {{ uri: '{uri}' }} }}]"));
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    assert!(!ended.stderr.contains("MLflow"), "{}", ended.stderr);
    let runs = server.runs("followed");
    assert_eq!(runs.len(), 1);
    let run = &runs[0];
    assert_eq!(run["info"]["status"], "FINISHED");
    let (params, tags) = (map(&run["data"]["params"]), map(&run["data"]["tags"]));
    assert_eq!(params["steps"], "4096");
    assert_eq!(params["train.learning_rate"], "0.001");
    assert_eq!(tags["runner.pipeline"], "followed");
    // A value of each rollout, with its step.
    let speed = server.history(run, "train/losses/value_loss");
    let steps: Vec<i64> = speed.iter().map(|(step, _)| *step).collect();
    assert!(
        steps.len() >= 2 && steps.contains(&4096) && steps.windows(2).all(|pair| pair[0] < pair[1]),
        "{steps:?}"
    );
    let id = run["info"]["run_id"].as_str().unwrap();
    let files = server.get(&format!("/api/2.0/mlflow/artifacts/list?run_id={id}"));
    let names: Vec<&str> = files["files"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|file| file["path"].as_str())
        .collect();
    assert!(
        names.contains(&"lineage.json") && names.contains(&"pipeline.json"),
        "{names:?}"
    );

    // Again after it: the same run, the same values.
    let again = project.run(&["track", "latest", "--mlflow", &uri]);
    assert_eq!(again.code, 0, "{}", again.text());
    let runs = server.runs("followed");
    assert_eq!(runs.len(), 1);
    assert_eq!(server.history(&runs[0], "train/losses/value_loss"), speed);

    // A failed one, in an experiment of another name.
    assert_eq!(project.exec(&["--set", "code=3"]).code, 1);
    assert_eq!(server.runs("followed")[0]["info"]["status"], "FAILED");
    assert_eq!(
        project
            .run(&["track", "latest", "--mlflow", &uri, "--experiment", "desk"])
            .code,
        0
    );
    assert_eq!(server.runs("desk").len(), 1);
}

#[test]
fn a_server_that_is_away_gets_the_run_later() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let uri = format!("http://127.0.0.1:{closed}");
    let project = project(&format!("track: [{{ mlflow: {{ uri: '{uri}' }} }}]"));
    let ended = project.exec(&[]);
    assert_eq!(ended.code, 0, "{}", ended.text());
    assert!(ended.stderr.contains("MLflow has not all of run"), "{}", ended.stderr);
    assert!(ended.stderr.contains("writes it later"), "{}", ended.stderr);
    assert_eq!(project.run(&["track", "latest", "--mlflow", &uri]).code, 3);
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = Server::start(dir.path(), Some(closed)) else {
        return;
    };
    assert_eq!(project.run(&["track", "latest", "--mlflow", &uri]).code, 0);
    let runs = server.runs("followed");
    assert!(!server.history(&runs[0], "train/losses/value_loss").is_empty());
}

#[test]
fn a_run_is_a_trace() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/", listener.local_addr().unwrap());
    let collector = std::thread::spawn(move || {
        let mut bodies = Vec::new();
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                reader.read_line(&mut head).unwrap();
            }
            assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
            let length = head.to_lowercase();
            let length = length
                .lines()
                .find_map(|line| line.strip_prefix("content-length:"))
                .unwrap();
            let mut body = vec![0; length.trim().parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
            )
            .unwrap();
            bodies.push(serde_json::from_slice::<Value>(&body).unwrap());
        }
        bodies
    });
    let project = project(&format!("track: [{{ otlp: {{ endpoint: '{endpoint}' }} }}]"));
    assert_eq!(project.exec(&["--set", "code=3"]).code, 1);
    assert_eq!(project.run(&["track", "latest", "--otlp", &endpoint]).code, 0);
    let bodies = collector.join().unwrap();
    // Written again, it is the same trace.
    assert_eq!(bodies[0], bodies[1]);
    let spans = bodies[0]["resourceSpans"][0]["scopeSpans"][0]["spans"]
        .as_array()
        .unwrap();
    let span = |name: &str| spans.iter().find(|span| span["name"] == name).unwrap();
    let (run, train, last) = (span("followed"), span("train"), span("last"));
    assert_eq!(run["status"]["code"], 2);
    assert_eq!(last["status"]["code"], 2);
    assert_eq!(train["status"]["code"], 1);
    assert_eq!(train["parentSpanId"], run["spanId"]);
    assert_eq!(run["traceId"].as_str().unwrap().len(), 32);
    let time = |span: &Value, key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
    assert!(time(train, "startTimeUnixNano") < time(train, "endTimeUnixNano"));
    assert!(time(run, "startTimeUnixNano") <= time(train, "startTimeUnixNano"));
}

#[test]
fn a_server_that_cannot_be_named_is_refused() {
    for (track, message) in [
        ("track: { mlflow: x }", "`track` is a map, not a list"),
        ("track: [{ mlflow: { experiment: x } }]", "`mlflow` has no `uri`"),
        ("track: [{ mlflw: { uri: 'http://a' } }]", "did you mean `mlflow`?"),
        (
            "track: [{ otlp: { endpoint: 'grpc://a' } }]",
            "is not an address of HTTP",
        ),
    ] {
        let ended = project(track).exec(&[]);
        assert_eq!(ended.code, 2, "{track}: {}", ended.text());
        assert!(
            ended.stderr.contains(message) && ended.stderr.contains("p.yaml:4"),
            "{track}: {}",
            ended.stderr
        );
    }
}
