//! `notify:`, the messages that are sent when a run has ended. Not part of any key.

use crate::text::typed::{Several, Text, TextOr, Variable, Written};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A message and the occasions on which it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Entry")]
pub struct Notify {
    /// The occasions, each once; at least one.
    pub on: Vec<Occasion>,
    /// The way it is sent.
    pub channel: Channel,
}

/// An outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Occasion {
    /// The run failed, or a night of a schedule came to no run.
    Failure,
    /// The run is done.
    Success,
    /// A verdict moved an alias to another policy.
    Promotion,
    /// A stage `evaluate/drift` found columns beyond its limits.
    Drift,
}

/// A way to send a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Channel {
    /// A POST request with a JSON document.
    Webhook {
        /// The address.
        url: Url,
        /// The document's shape.
        shape: Shape,
    },
    /// A shell command that reads the JSON document from standard input.
    Command(String),
    /// An e-mail.
    Email(Email),
    /// A GET request, by which another service sees that runs succeed: it tells when they stop.
    Ping(Url),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{ "required": ["webhook"] }, { "required": ["command"] },
    { "required": ["email"] }, { "required": ["ping"] }]))]
pub(crate) struct Entry {
    /// The occasions; `failure` by default, of `ping` `success`.
    on: Option<Several<Occasion>>,
    /// A POST request with a JSON document.
    webhook: Option<Webhook>,
    /// A shell command that reads the JSON document from standard input.
    command: Option<String>,
    /// An e-mail by SMTP.
    email: Option<Email>,
    /// A GET request, by which another service sees that runs succeed.
    ping: Option<Url>,
}

impl TryFrom<Entry> for Notify {
    type Error = &'static str;

    fn try_from(entry: Entry) -> Result<Self, &'static str> {
        let channels = [
            entry
                .webhook
                .map(|Webhook { url, shape }| Channel::Webhook { url, shape }),
            entry.command.map(Channel::Command),
            entry.email.map(Channel::Email),
            entry.ping.map(Channel::Ping),
        ];
        let mut channels = channels.into_iter().flatten();
        let channel = match (channels.next(), channels.next()) {
            (Some(channel), None) => channel,
            (None, _) => return Err(" has no channel\ngive one of `webhook`, `command`, `email`, `ping`"),
            _ => return Err(" has several channels\ngive one of `webhook`, `command`, `email`, `ping`"),
        };
        let mut on = match (entry.on, &channel) {
            (Some(Several(on)), _) => on,
            (None, Channel::Ping(_)) => vec![Occasion::Success],
            (None, _) => vec![Occasion::Failure],
        };
        on.sort_unstable();
        on.dedup();
        Ok(Self { on, channel })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(try_from = "TextOr<Text<Address>, WebhookForm>")]
#[schemars(with = "TextOr<Text<Address>, WebhookForm>")]
struct Webhook {
    url: Url,
    shape: Shape,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WebhookForm {
    url: Option<Text<Address>>,
    /// The variable of the environment that holds the address.
    secret: Option<Variable>,
    /// The shape of the document; `json`, all fields, by default.
    shape: Option<Shape>,
}

impl TryFrom<TextOr<Text<Address>, WebhookForm>> for Webhook {
    type Error = &'static str;

    fn try_from(form: TextOr<Text<Address>, WebhookForm>) -> Result<Self, &'static str> {
        let (form, shape) = match form {
            TextOr::Text(address) => (TextOr::Text(address), None),
            TextOr::Map(WebhookForm { url, secret, shape }) => (TextOr::Map(UrlForm { url, secret }), shape),
        };
        Ok(Self {
            url: form.try_into()?,
            shape: shape.unwrap_or(Shape::Json),
        })
    }
}

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "TextOr<Text<Address>, UrlForm>")]
#[schemars(with = "TextOr<Text<Address>, UrlForm>")]
pub enum Url {
    /// As written.
    Plain(String),
    /// The value of a variable of the environment, for addresses that hold a secret.
    Secret(String),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UrlForm {
    url: Option<Text<Address>>,
    /// The variable of the environment that holds the address.
    secret: Option<Variable>,
}

impl TryFrom<TextOr<Text<Address>, UrlForm>> for Url {
    type Error = &'static str;

    fn try_from(form: TextOr<Text<Address>, UrlForm>) -> Result<Self, &'static str> {
        match form {
            TextOr::Text(Text(Address(url)))
            | TextOr::Map(UrlForm {
                url: Some(Text(Address(url))),
                secret: None,
            }) => Ok(Self::Plain(url)),
            TextOr::Map(UrlForm {
                url: None,
                secret: Some(Variable(name)),
            }) => Ok(Self::Secret(name)),
            TextOr::Map(_) => Err(" has no address, or several\n"),
        }
    }
}

struct Address(String);

impl Written for Address {
    const PATTERN: Option<&'static str> = Some("^https?://");

    fn read(url: &str) -> Result<Self, String> {
        let is_http = url.starts_with("http://") || url.starts_with("https://");
        is_http
            .then(|| Self(url.to_owned()))
            .ok_or_else(|| " is no address of HTTP\n".to_owned())
    }
}

/// The shape of a webhook's document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// All fields of the message.
    Json,
    /// Slack's, which Mattermost takes too.
    Slack,
    /// Microsoft Teams': a message with an adaptive card.
    Teams,
    /// Discord's.
    Discord,
}

/// An e-mail by SMTP.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "EmailForm")]
#[schemars(with = "EmailForm")]
pub struct Email {
    /// The addresses that it goes to.
    pub to: Vec<String>,
    /// The address that it comes from.
    pub from: String,
    /// The server's host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The encryption of the connection.
    pub tls: Tls,
    /// The user that logs in, if any does.
    pub user: Option<String>,
    /// The variable of the environment that holds the password.
    pub password: Option<String>,
}

/// The encryption of a connection to a mail server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tls {
    /// From the first byte, as on port 465.
    Always,
    /// After the greeting, as on port 587; without it nothing is sent.
    StartTls,
    /// None, for a server on this machine.
    Never,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EmailForm {
    /// The addresses that it goes to.
    to: Several<Text<MailAddress>>,
    /// The address that it comes from.
    from: Text<MailAddress>,
    /// Host and port: `smtp.example.org:587`.
    server: Text<MailServer>,
    /// The encryption: `always` (port 465), `starttls`, the default, or `never`, for a server on this
    /// machine.
    tls: Option<Tls>,
    /// The user that logs in.
    user: Option<String>,
    /// The variable of the environment that holds the password.
    password: Option<Variable>,
}

impl TryFrom<EmailForm> for Email {
    type Error = &'static str;

    fn try_from(form: EmailForm) -> Result<Self, &'static str> {
        if form.user.is_some() != form.password.is_some() {
            return Err(" has one of `user` and `password`\n\
                give both, or neither for a server without login");
        }
        if form.tls == Some(Tls::Never) && form.password.is_some() {
            return Err("a password would be sent without encryption\n\
                leave out `tls: never`, or `user` and `password`");
        }
        let Text(MailServer { host, port }) = form.server;
        let port = port.unwrap_or(if form.tls == Some(Tls::Always) { 465 } else { 587 });
        Ok(Self {
            to: form.to.0.into_iter().map(|Text(MailAddress(to))| to).collect(),
            from: form.from.0.0,
            host,
            port,
            tls: form
                .tls
                .unwrap_or(if port == 465 { Tls::Always } else { Tls::StartTls }),
            user: form.user,
            password: form.password.map(|Variable(name)| name),
        })
    }
}

struct MailAddress(String);

impl Written for MailAddress {
    fn read(text: &str) -> Result<Self, String> {
        let parts = text
            .split_once('@')
            .filter(|(user, host)| !user.is_empty() && !host.is_empty());
        match parts.is_none() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            false => Ok(Self(text.to_owned())),
            true => Err(format!(" has `{}`, which is no address\n", text.replace('\n', " "))),
        }
    }
}

struct MailServer {
    host: String,
    port: Option<u16>,
}

impl Written for MailServer {
    fn read(text: &str) -> Result<Self, String> {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().unwrap_or(0))),
            None => (text, None),
        };
        match host.is_empty() || port == Some(0) {
            false => Ok(Self {
                host: host.to_owned(),
                port,
            }),
            true => Err(String::new()),
        }
    }
}
