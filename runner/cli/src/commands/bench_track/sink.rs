//! A server on the loopback interface that accepts what is written to MLflow, counts it and stores nothing.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Result, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Builder;
use std::time::Duration;

/// The server. It runs as long as the process, so that late clients are answered, too.
pub(super) struct Sink {
    address: SocketAddr,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    requests: AtomicU64,
    metrics: AtomicU64,
}

/// An address on which nothing listens.
pub(super) fn closed() -> Result<String> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    Ok(format!("http://{address}"))
}

impl Sink {
    /// Starts a server that waits before each answer.
    pub(super) fn start(delay: Duration) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let counts = Arc::new(Counts::default());
        let counted = Arc::clone(&counts);
        let accept = move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let counts = Arc::clone(&counted);
                let serve = move || {
                    // A client that disconnects early is not an error of the server.
                    let _ = serve(stream, delay, &counts);
                };
                let _ = Builder::new().name("sink".to_owned()).spawn(serve);
            }
        };
        Builder::new().name("sink".to_owned()).spawn(accept)?;
        Ok(Self { address, counts })
    }

    /// The address of the server, as a URL.
    pub(super) fn uri(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The numbers of requests, and of metric values in them, received so far.
    pub(super) fn counts(&self) -> (u64, u64) {
        let count = |count: &AtomicU64| count.load(Ordering::Acquire);
        (count(&self.counts.requests), count(&self.counts.metrics))
    }
}

/// Answers the requests of a connection.
fn serve(stream: TcpStream, delay: Duration, counts: &Counts) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut length = 0;
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().map_err(|_| ErrorKind::InvalidData)?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        counts.requests.fetch_add(1, Ordering::AcqRel);
        if path.ends_with("/runs/log-batch") {
            let batch: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
            let metrics = batch["metrics"].as_array().map_or(0, Vec::len);
            counts.metrics.fetch_add(metrics as u64, Ordering::AcqRel);
        }
        std::thread::sleep(delay);
        let answer = answer(&path);
        write!(
            writer,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{answer}",
            answer.len()
        )?;
        line.clear();
    }
    Ok(())
}

/// The answer that MLflow would give, as far as clients read it.
fn answer(path: &str) -> &'static str {
    match path.rsplit('/').next().unwrap_or_default().split('?').next() {
        Some("get-by-name") => r#"{"experiment":{"experiment_id":"1"}}"#,
        Some("search") => r#"{"runs":[]}"#,
        Some("create") => r#"{"run":{"info":{"run_id":"r","artifact_uri":"mlflow-artifacts:/1/r"}}}"#,
        _ => "{}",
    }
}
