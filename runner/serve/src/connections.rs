//! Connections: their number, and the time that a client may take.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep, timeout};

/// Limits of what clients take of a server.
#[derive(Clone, Copy, Debug)]
pub struct ClientLimits {
    /// The largest number of open connections; one more is answered that the server is busy.
    pub connections: usize,
    /// The longest time for the head of a request, for its body, and without any progress for its response.
    /// A connection that waits for its next request is closed after it.
    pub patience: Duration,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            connections: 256,
            patience: Duration::from_secs(20),
        }
    }
}

/// The response to a connection too many.
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Type: text/plain\r\n\
    Content-Length: 35\r\nConnection: close\r\n\r\nthe server has too many connections";

/// The largest number of connections that are answered so at a time.
const REFUSALS: usize = 64;

/// The pause after a connection could not be accepted, such as for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves connections for good.
pub(crate) async fn serve(listener: TcpListener, router: Router, limits: ClientLimits) {
    let slots = Arc::new(Semaphore::new(limits.connections));
    let refusals = Arc::new(Semaphore::new(REFUSALS));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.patience);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
            // Beyond these, a connection is closed without an answer: each takes a file descriptor.
            if let Ok(refusal) = Arc::clone(&refusals).try_acquire_owned() {
                tokio::spawn(async move {
                    let _ = timeout(limits.patience, refuse(stream)).await;
                    drop(refusal);
                });
            }
            continue;
        };
        let stream = TokioIo::new(Progressing::new(stream, limits.patience));
        let connection = http.serve_connection(stream, TowerToHyperService::new(router.clone()));
        tokio::spawn(async move {
            // A client that is gone or too slow is no failure of the server.
            let _ = connection.await;
            drop(slot);
        });
    }
}

/// Answers that the server is busy. What the client sends is read, since closing a socket with unread data
/// would drop the response.
async fn refuse(mut stream: TcpStream) -> io::Result<()> {
    stream.write_all(BUSY).await?;
    stream.shutdown().await?;
    while stream.read(&mut [0; 1024]).await? > 0 {}
    Ok(())
}

/// A stream whose writes fail when none makes progress for a time.
struct Progressing {
    stream: TcpStream,
    patience: Duration,
    /// Running while a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Progressing {
    fn new(stream: TcpStream, patience: Duration) -> Self {
        Self {
            stream,
            patience,
            stalled: None,
        }
    }

    fn limited(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = write(Pin::new(&mut self.stream), context) {
            self.stalled = None;
            return Poll::Ready(written);
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Progressing {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Progressing {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.limited(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.limited(context, |stream, context| stream.poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpStream as Client};

    /// Serves one page of `size` bytes, with three connections at most, until the tests end.
    fn server(size: usize, patience: Duration) -> SocketAddr {
        let (sender, address) = std::sync::mpsc::channel();
        let limits = ClientLimits {
            connections: 3,
            patience,
        };
        let router = Router::new().route("/", get(move || async move { "x".repeat(size) }));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                sender.send(listener.local_addr().unwrap()).unwrap();
                serve(listener, router, limits).await;
            });
        });
        address.recv().unwrap()
    }

    fn client(address: SocketAddr, sent: &str) -> Client {
        let mut client = Client::connect(address).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        client.write_all(sent.as_bytes()).unwrap();
        client
    }

    /// Everything that the server sends until it closes the connection.
    fn received(mut client: Client) -> String {
        let mut text = Vec::new();
        let _ = client.read_to_end(&mut text);
        String::from_utf8(text).unwrap()
    }

    const WHOLE: &str = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    const SHORT: Duration = Duration::from_millis(300);

    #[test]
    fn half_a_request_is_closed_and_its_place_is_free_again() {
        let address = server(1, SHORT);
        let half = ["GET / HTTP/1.1\r\nHost: x\r\n", "", "G"];
        for client in half.map(|half| client(address, half)) {
            assert_eq!(received(client), "", "closed, without a response");
        }
        assert!(received(client(address, WHOLE)).ends_with("\r\n\r\nx"));
    }

    #[test]
    fn one_connection_too_many_is_answered() {
        let address = server(1, Duration::from_secs(60));
        let open = [(); 3].map(|()| client(address, "GET"));
        let answer = received(client(address, WHOLE));
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("Content-Length: {}\r\n", body.len())),
            "{answer}"
        );
        drop(open);
        let free = || received(client(address, WHOLE)).starts_with("HTTP/1.1 200 ");
        assert!((0..1000).any(|_| free()), "a place is free when a client has gone");
    }

    #[test]
    fn a_response_that_is_not_read_is_given_up() {
        let address = server(64 << 20, SHORT);
        let mut slow = client(address, WHOLE);
        std::thread::sleep(10 * SHORT);
        let mut rest = Vec::new();
        let _ = slow.read_to_end(&mut rest);
        assert!(rest.len() < 64 << 20, "{}", rest.len());
    }
}
