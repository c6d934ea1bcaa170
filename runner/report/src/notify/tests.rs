//! Messages against real servers on this machine: HTTP, and SMTP as RFC 5321 has it.

use super::*;
use runner_pipeline::{Email, MailAddress, MailServer, Occasion, Shape, Tls};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

fn sending() -> Sending {
    Sending {
        timeout: Duration::from_secs(5),
        pause: Duration::from_millis(10),
        variable: |name| match name {
            "HOOK_PORT_CLOSED" => Some("http://127.0.0.1:1/secret-path".to_owned()),
            _ => None,
        },
    }
}

fn message() -> Message {
    Message {
        occasions: vec![Occasion::Failure, Occasion::Drift],
        pipeline: "nightly".to_owned(),
        run: Some("20261124T183000-abcd".to_owned()),
        night: Some("2026-11-24".to_owned()),
        status: "failed",
        seconds: 12.5,
        cached: 3,
        ran: 1,
        errors: Vec::new(),
        answers: vec!["The policy earns +4.20 % a year over cash.".to_owned()],
        promotion: None,
        drift: Vec::new(),
        title: "nightly: failed, night 2026-11-24".to_owned(),
        text: "train: <no data> & more\nline two".to_owned(),
    }
}

fn notify(on: &[Occasion], channel: Channel) -> Notify {
    Notify {
        on: on.to_vec(),
        channel,
    }
}

/// A server that answers requests with these statuses, one after another, and returns their lines and bodies.
fn http(statuses: &'static [u16]) -> (String, JoinHandle<Vec<(String, String)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook?key=secret", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let answer = |status: &u16| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut first, mut length) = (String::new(), 0);
            reader.read_line(&mut first).unwrap();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if line.trim().is_empty() {
                    break;
                }
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            write!(
                stream,
                "HTTP/1.1 {status} x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
            .unwrap();
            (first.trim().to_owned(), String::from_utf8(body).unwrap())
        };
        statuses.iter().map(answer).collect()
    });
    (url, server)
}

fn webhook(url: &str, shape: Shape) -> Channel {
    Channel::Webhook {
        url: Url::Plain(url.to_owned()),
        shape,
    }
}

#[test]
fn a_webhook_is_sent_again_until_it_is_taken() {
    let (url, server) = http(&[503, 429, 200]);
    let all = [notify(&[Occasion::Failure], webhook(&url, Shape::Json))];
    assert_eq!(send_by(&all, &message(), &sending()), Vec::<String>::new());
    let requests = server.join().unwrap();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[2].0, "POST /hook?key=secret HTTP/1.1");
    let document: Value = serde_json::from_str(&requests[2].1).unwrap();
    assert_eq!(document["occasions"], json!(["failure", "drift"]));
    assert_eq!(document["night"], "2026-11-24");
    assert_eq!(document["pipeline"], "nightly");
}

#[test]
fn what_is_refused_is_not_sent_again() {
    let (url, server) = http(&[404]);
    let all = [notify(&[Occasion::Failure], webhook(&url, Shape::Slack))];
    let told = send_by(&all, &message(), &sending());
    assert_eq!(
        told,
        ["the message by `webhook` was not sent: the server answered 404 Not Found"]
    );
    let document: Value = serde_json::from_str(&server.join().unwrap()[0].1).unwrap();
    assert_eq!(
        document["text"],
        "*nightly: failed, night 2026-11-24*\ntrain: &lt;no data&gt; &amp; more\nline two"
    );
}

#[test]
fn a_server_that_is_away_is_named_without_its_address() {
    let url = Url::Secret("HOOK_PORT_CLOSED".to_owned());
    let all = [
        notify(&[Occasion::Failure], Channel::Ping(url)),
        notify(&[Occasion::Failure], Channel::Ping(Url::Secret("NOT_SET".to_owned()))),
    ];
    let told = send_by(&all, &message(), &sending());
    assert!(
        told[0].starts_with("the ping was not sent: ") && told[0].ends_with(", 3 times"),
        "{told:?}"
    );
    assert!(!told[0].contains("secret-path"), "{told:?}");
    assert_eq!(told[1], "the ping was not sent: the variable `NOT_SET` is not set");
}

#[test]
fn a_ping_is_for_its_occasions_alone() {
    let (url, server) = http(&[200]);
    let all = [notify(&[Occasion::Success], Channel::Ping(Url::Plain(url)))];
    assert!(send_by(&all, &message(), &sending()).is_empty());
    let success = Message {
        occasions: vec![Occasion::Success],
        ..message()
    };
    assert!(send_by(&all, &success, &sending()).is_empty());
    assert_eq!(
        server.join().unwrap(),
        [("GET /hook?key=secret HTTP/1.1".to_owned(), String::new())]
    );
}

#[test]
fn chat_services_have_their_shapes() {
    let message = Message {
        text: "x".repeat(3000),
        ..message()
    };
    let discord = message.document(Shape::Discord);
    assert_eq!(discord["content"].as_str().unwrap().chars().count(), 2000);
    assert_eq!(discord["allowed_mentions"], json!({ "parse": [] }));
    let teams = message.document(Shape::Teams);
    let card = &teams["attachments"][0];
    assert_eq!(teams["type"], "message");
    assert_eq!(card["contentType"], "application/vnd.microsoft.card.adaptive");
    assert_eq!(card["content"]["body"][0]["text"], "nightly: failed, night 2026-11-24");
}

#[test]
fn a_command_reads_the_document_and_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("told");
    let command = |command: String| [notify(&[Occasion::Drift], Channel::Command(command))];
    let told = send_by(&command(format!("cat > {}", path.display())), &message(), &sending());
    assert!(told.is_empty(), "{told:?}");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(document["title"], "nightly: failed, night 2026-11-24");
    let told = send_by(&command("exit 3".to_owned()), &message(), &sending());
    assert_eq!(
        told,
        ["the message by `command` was not sent: the command ended with exit status: 3"]
    );
    let began = Instant::now();
    let short = Sending {
        timeout: Duration::from_millis(200),
        ..sending()
    };
    let told = send_by(&command("sleep 60 & sleep 60".to_owned()), &message(), &short);
    assert!(
        told[0].ends_with("was ended") && began.elapsed() < Duration::from_secs(30),
        "{told:?}"
    );
}

/// A mail server for some sessions: the lines that clients sent. Recipients at `busy.example` are put off
/// once.
fn smtp(sessions: usize) -> (u16, Receiver<String>, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sent, lines) = channel();
    let server = std::thread::spawn(move || {
        let mut is_busy = true;
        for _ in 0..sessions {
            let (stream, _) = listener.accept().unwrap();
            session(stream, &mut is_busy, &mut |line| sent.send(line).unwrap());
        }
    });
    (port, lines, server)
}

fn session(mut stream: TcpStream, is_busy: &mut bool, line_sent: &mut dyn FnMut(String)) {
    let reader = BufReader::new(stream.try_clone().unwrap());
    write!(stream, "220 mail.example ESMTP\r\n").unwrap();
    let mut is_data = false;
    for line in reader.lines() {
        let Ok(line) = line else { return };
        let answer = match line.split([' ', ':']).next().unwrap_or_default() {
            _ if is_data && line != "." => "",
            _ if is_data => {
                is_data = false;
                "250 taken"
            }
            "EHLO" => "250-mail.example\r\n250 8BITMIME",
            "DATA" => {
                is_data = true;
                "354 go on"
            }
            "RCPT" if line.contains("busy.example") && *is_busy => {
                *is_busy = false;
                "450 later"
            }
            "RCPT" if line.contains("nobody@") => "550 no such user",
            "QUIT" => "221 bye",
            _ => "250 ok",
        };
        line_sent(line);
        if !answer.is_empty() {
            write!(stream, "{answer}\r\n").unwrap();
        }
    }
}

fn email(port: u16, to: &str) -> [Notify; 1] {
    let address = |text: &str| MailAddress(text.to_owned());
    let email = Email {
        to: vec![address(to), address("desk@here.example")],
        from: address("runner@here.example"),
        server: MailServer {
            host: "127.0.0.1".to_owned(),
            port: Some(port),
        },
        tls: Some(Tls::Never),
        user: None,
        password: None,
    };
    [notify(&[Occasion::Failure], Channel::Email(email))]
}

#[test]
fn an_e_mail_is_sent_again_where_it_was_put_off() {
    let (port, lines, server) = smtp(2);
    let told = send_by(&email(port, "a@busy.example"), &message(), &sending());
    assert!(told.is_empty(), "{told:?}");
    server.join().unwrap();
    let lines: Vec<String> = lines.iter().collect();
    let has = |wanted: &str| lines.iter().any(|line| line == wanted);
    assert!(has("Subject: nightly: failed, night 2026-11-24"), "{lines:?}");
    assert!(has("train: <no data> & more") && has("line two"), "{lines:?}");
    assert!(has("RCPT TO:<desk@here.example>"), "{lines:?}");
}

#[test]
fn an_e_mail_that_is_refused_is_told() {
    let (port, _lines, server) = smtp(1);
    let told = send_by(&email(port, "nobody@there.example"), &message(), &sending());
    assert!(
        told[0].starts_with("the e-mail was not sent: ") && told[0].contains("no such user"),
        "{told:?}"
    );
    server.join().unwrap();
}

/// Without encryption on offer, nothing is sent.
#[test]
fn an_e_mail_needs_the_encryption_that_is_asked_for() {
    let (port, lines, server) = smtp(3);
    let mut all = email(port, "a@there.example");
    if let Channel::Email(email) = &mut all[0].channel {
        email.tls = Some(Tls::StartTls);
    }
    let told = send_by(&all, &message(), &sending());
    assert_eq!(told.len(), 1, "{told:?}");
    drop(server);
    assert!(!lines.try_iter().any(|line| line.starts_with("MAIL")));
}
