//! `notify:`, the messages that are sent when a run has ended. Not part of any key.

use crate::text::{Checked, Several, Text, TextOr, Variable, Written, checked, several, text};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

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
    /// A stage `evaluate/drift` found that a sample begins to drift, or does no longer.
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
        let (url, secret, shape) = match form {
            TextOr::Text(address) => (Some(address), None, None),
            TextOr::Map(WebhookForm { url, secret, shape }) => (url, secret, shape),
        };
        let (url, shape) = (Url::new(url, secret)?, shape.unwrap_or(Shape::Json));
        Ok(Self { url, shape })
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
            TextOr::Text(address) => Self::new(Some(address), None),
            TextOr::Map(UrlForm { url, secret }) => Self::new(url, secret),
        }
    }
}

impl Url {
    fn new(url: Option<Text<Address>>, secret: Option<Variable>) -> Result<Self, &'static str> {
        match (url, secret) {
            (Some(Text(Address(url))), None) => Ok(Self::Plain(url)),
            (None, Some(Variable(name))) => Ok(Self::Secret(name)),
            _ => Err(" has no address, or several\n"),
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
            .ok_or_else(|| " is not an address of HTTP\n".to_owned())
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
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Email {
    /// The addresses that it goes to.
    #[serde(deserialize_with = "several")]
    #[schemars(with = "Several<String>")]
    pub to: Vec<MailAddress>,
    /// The address that it comes from.
    #[schemars(with = "String")]
    pub from: MailAddress,
    /// Host and port: `smtp.example.org:587`.
    #[serde(deserialize_with = "text")]
    #[schemars(with = "String")]
    pub server: MailServer,
    /// The encryption: `always` (port 465), `starttls`, the default, or `never`, for a server on this
    /// machine.
    pub tls: Option<Tls>,
    /// The user that logs in.
    pub user: Option<String>,
    /// The variable of the environment that holds the password.
    pub password: Option<Variable>,
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

checked!(Email);

impl Checked for Email {
    fn check(self) -> Result<Self, &'static str> {
        if self.user.is_some() != self.password.is_some() {
            return Err(" has one of `user` and `password`\n\
                give both, or neither for a server without login");
        }
        if self.tls == Some(Tls::Never) && self.password.is_some() {
            return Err("a password would be sent without encryption\n\
                leave out `tls: never`, or `user` and `password`");
        }
        let (port, tls) = (self.port(), self.tls());
        Ok(Self {
            server: MailServer {
                port: Some(port),
                ..self.server
            },
            tls: Some(tls),
            ..self
        })
    }
}

impl Email {
    /// The server's port; that of the encryption by default.
    pub fn port(&self) -> u16 {
        let default = if self.tls == Some(Tls::Always) { 465 } else { 587 };
        self.server.port.unwrap_or(default)
    }

    /// The encryption of the connection; that of the port by default.
    pub fn tls(&self) -> Tls {
        let default = if self.port() == 465 { Tls::Always } else { Tls::StartTls };
        self.tls.unwrap_or(default)
    }
}

/// The address of a mailbox.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct MailAddress(pub String);

impl TryFrom<String> for MailAddress {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let parts = text.split_once('@');
        let is_whole = parts.is_some_and(|(user, host)| !user.is_empty() && !host.is_empty());
        match is_whole && !text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            true => Ok(Self(text)),
            false => Err(format!(" has `{}`, which is not an address\n", text.replace('\n', " "))),
        }
    }
}

/// The host of a mail server, and its port if it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailServer {
    /// The host.
    pub host: String,
    /// The port.
    pub port: Option<u16>,
}

impl Written for MailServer {
    fn read(text: &str) -> Result<Self, String> {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().unwrap_or(0))),
            None => (text, None),
        };
        let server = Self {
            host: host.to_owned(),
            port,
        };
        let is_valid = !host.is_empty() && port != Some(0);
        is_valid.then_some(server).ok_or_else(String::new)
    }
}
