//! `notify:`, the messages that are sent when a run has ended. Not part of any key.

use crate::stage::interpolate::{Scope, fill};
use crate::text::problems::Problems;
use crate::text::source::Spot;
use crate::text::suggest::suggest;
use crate::text::tree::{Key, Tree, Value};
use crate::text::units::is_variable;

const FORM: &str = "write a list: `notify: [{ webhook: https://…, on: [failure] }]`";

const VARIABLE: &str = "give the name of a variable of the environment, such as `SMTP_PASSWORD`";

/// A message and the occasions on which it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notify {
    /// The occasions, each once; at least one.
    pub on: Vec<Occasion>,
    /// The way it is sent.
    pub channel: Channel,
}

/// An outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl Occasion {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Failure, Self::Success, Self::Promotion, Self::Drift];

    /// Its name in pipelines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Failure => "failure",
            Self::Success => "success",
            Self::Promotion => "promotion",
            Self::Drift => "drift",
        }
    }
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

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Url {
    /// As written.
    Plain(String),
    /// The value of a variable of the environment, for addresses that hold a secret.
    Secret(String),
}

/// The shape of a webhook's document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl Shape {
    const ALL: [(&'static str, Self); 4] = [
        ("json", Self::Json),
        ("slack", Self::Slack),
        ("teams", Self::Teams),
        ("discord", Self::Discord),
    ];

    /// Its name in pipelines.
    pub(crate) fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, known)| *known == self);
        found.map_or("", |(name, _)| name)
    }
}

/// An e-mail by SMTP.
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// From the first byte, as on port 465.
    Always,
    /// After the greeting, as on port 587; without it nothing is sent.
    StartTls,
    /// None, for a server on this machine.
    Never,
}

impl Tls {
    const ALL: [(&'static str, Self); 3] = [
        ("always", Self::Always),
        ("starttls", Self::StartTls),
        ("never", Self::Never),
    ];

    /// Its name in pipelines.
    pub(crate) fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, known)| *known == self);
        found.map_or("", |(name, _)| name)
    }
}

/// Reads `notify:`; entries with errors are left out.
pub(crate) fn read(tree: &Tree, scope: &Scope, problems: &mut Problems) -> Vec<Notify> {
    let Value::List(items) = &tree.value else {
        problems.add(tree.spot, format!("`notify` is {}, not a list", tree.describe()), FORM);
        return Vec::new();
    };
    let mut reader = Reader { scope, problems };
    items.iter().filter_map(|item| reader.entry(item)).collect()
}

/// Reads what is beside the stages: texts, addresses, names of variables.
pub(crate) struct Reader<'a, 's> {
    pub scope: &'a Scope<'s>,
    pub problems: &'a mut Problems,
}

impl Reader<'_, '_> {
    fn entry(&mut self, tree: &Tree) -> Option<Notify> {
        const CHANNELS: [&str; 4] = ["webhook", "command", "email", "ping"];
        let entries = self.map(tree, "an entry of `notify`", FORM)?;
        let (mut on, mut channels, mut is_sound) = (None, Vec::new(), true);
        for (key, value) in entries {
            let name = key.name.as_str();
            let channel = match name {
                "on" => {
                    on = Some(self.occasions(value));
                    continue;
                }
                "webhook" => self.webhook(value),
                "command" => self
                    .text(value, "command", "write a shell command")
                    .map(Channel::Command),
                "email" => self.email(value).map(Channel::Email),
                "ping" => self.url(value, "ping").map(Channel::Ping),
                _ => {
                    self.unknown(
                        key,
                        "an entry of `notify`",
                        &["on", "webhook", "command", "email", "ping"],
                    );
                    None
                }
            };
            is_sound &= channel.is_some();
            channels.extend(channel);
        }
        if channels.len() != 1 && is_sound {
            let message = match channels.len() {
                0 => "an entry of `notify` has no channel".to_owned(),
                _ => "an entry of `notify` has several channels".to_owned(),
            };
            let hint = format!("give one of `{}`", CHANNELS.join("`, `"));
            self.problems.add(tree.spot, message, hint);
            return None;
        }
        let channel = channels.pop()?;
        let on = match (on, &channel) {
            (Some(on), _) => on?,
            (None, Channel::Ping(_)) => vec![Occasion::Success],
            (None, _) => vec![Occasion::Failure],
        };
        is_sound.then_some(Notify { on, channel })
    }

    fn occasions(&mut self, tree: &Tree) -> Option<Vec<Occasion>> {
        let items = match &tree.value {
            Value::List(items) => items.as_slice(),
            _ => std::slice::from_ref(tree),
        };
        let names = Occasion::ALL.map(|occasion| (occasion.name(), occasion));
        let mut found = Vec::new();
        for item in items {
            let occasion = self.one_of(item, "on", &names)?;
            if !found.contains(&occasion) {
                found.push(occasion);
            }
        }
        if found.is_empty() {
            self.problems
                .add(tree.spot, "`on` names no occasion", "write `on: [failure, promotion]`");
            return None;
        }
        Some(found)
    }

    fn webhook(&mut self, tree: &Tree) -> Option<Channel> {
        let mut shape = Shape::Json;
        let is_address = |key: &str| matches!(key, "url" | "secret");
        let url = match &tree.value {
            Value::Map(entries) if entries.iter().any(|(key, _)| !is_address(&key.name)) => {
                let mut address = Vec::new();
                for (key, value) in entries {
                    match key.name.as_str() {
                        "shape" => shape = self.one_of(value, "shape", &Shape::ALL)?,
                        name if is_address(name) => address.push((key.clone(), value.clone())),
                        _ => {
                            self.unknown(key, "`webhook`", &["url", "secret", "shape"]);
                            return None;
                        }
                    }
                }
                let address = Tree {
                    value: Value::Map(address),
                    ..tree.clone()
                };
                self.url(&address, "webhook")?
            }
            _ => self.url(tree, "webhook")?,
        };
        Some(Channel::Webhook { url, shape })
    }

    /// An address, as text, as `{ url: … }`, or as `{ secret: VARIABLE }`.
    pub fn url(&mut self, tree: &Tree, what: &str) -> Option<Url> {
        let hint = format!(
            "write `{what}: https://…`, or `{what}: {{ secret: VARIABLE }}` for an address that is a secret"
        );
        let plain = |reader: &mut Self, value: &Tree| {
            let text = reader.text(value, what, &hint)?;
            if text.starts_with("http://") || text.starts_with("https://") {
                return Some(Url::Plain(text));
            }
            reader
                .problems
                .add(value.spot, format!("`{what}` is no address of HTTP"), hint.clone());
            None
        };
        let Value::Map(entries) = &tree.value else {
            return plain(self, tree);
        };
        match entries.as_slice() {
            [(key, value)] if key.name == "url" => plain(self, value),
            [(key, value)] if key.name == "secret" => self.variable(value, "secret").map(Url::Secret),
            _ => {
                self.problems
                    .add(tree.spot, format!("`{what}` has no address, or several"), hint);
                None
            }
        }
    }

    fn email(&mut self, tree: &Tree) -> Option<Email> {
        const KEYS: [&str; 6] = ["to", "from", "server", "tls", "user", "password"];
        const EMAIL: &str = "write `email: \
            { to: a@example.org, from: b@example.org, server: smtp.example.org:587, user: b, password: SMTP_PASSWORD }`";
        let entries = self.map(tree, "`email`", EMAIL)?;
        let (mut to, mut from, mut server, mut tls, mut user, mut password) =
            (Vec::new(), None, None, None, None, None);
        for (key, value) in entries {
            match key.name.as_str() {
                "to" => {
                    let items = match &value.value {
                        Value::List(items) => items.as_slice(),
                        _ => std::slice::from_ref(value),
                    };
                    for item in items {
                        to.push(self.address(item, "to")?);
                    }
                }
                "from" => from = Some(self.address(value, "from")?),
                "server" => server = Some((value.spot, self.text(value, "server", EMAIL)?)),
                "tls" => tls = Some(self.one_of(value, "tls", &Tls::ALL)?),
                "user" => user = Some(self.text(value, "user", EMAIL)?),
                "password" => password = Some(self.variable(value, "password")?),
                _ => {
                    self.unknown(key, "`email`", &KEYS);
                    return None;
                }
            }
        }
        let missing = [
            ("to", to.is_empty()),
            ("from", from.is_none()),
            ("server", server.is_none()),
        ];
        if let Some((name, _)) = missing.into_iter().find(|(_, is_missing)| *is_missing) {
            self.problems.add(tree.spot, format!("`email` has no `{name}`"), EMAIL);
            return None;
        }
        if user.is_some() != password.is_some() {
            let message = "`email` has one of `user` and `password`";
            self.problems
                .add(tree.spot, message, "give both, or neither for a server without login");
            return None;
        }
        let (spot, server) = server?;
        let (host, port) = self.server(spot, &server, tls)?;
        let tls = tls.unwrap_or(if port == 465 { Tls::Always } else { Tls::StartTls });
        if tls == Tls::Never && password.is_some() {
            let message = "a password would be sent without encryption";
            self.problems
                .add(tree.spot, message, "leave out `tls: never`, or `user` and `password`");
            return None;
        }
        Some(Email {
            to,
            from: from?,
            host,
            port,
            tls,
            user,
            password,
        })
    }

    /// The host and the port; that of submission where none is given.
    fn server(&mut self, spot: Spot, server: &str, tls: Option<Tls>) -> Option<(String, u16)> {
        let default = if tls == Some(Tls::Always) { 465 } else { 587 };
        let (host, port) = match server.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().ok()),
            None => (server, Some(default)),
        };
        let port = port.filter(|&port| port > 0 && !host.is_empty());
        if port.is_none() {
            let message = format!("`server` is `{server}`, not a host and a port");
            self.problems.add(spot, message, "write `server: smtp.example.org:587`");
        }
        Some((host.to_owned(), port?))
    }

    fn address(&mut self, tree: &Tree, what: &str) -> Option<String> {
        let text = self.text(tree, what, "write an address: `desk@example.org`")?;
        let is_address = text
            .split_once('@')
            .is_some_and(|(user, host)| !user.is_empty() && !host.is_empty())
            && !text.contains(|c: char| c.is_whitespace() || c.is_control());
        if !is_address {
            let message = format!("`{what}` has `{text}`, which is no address");
            self.problems
                .add(tree.spot, message, "write an address: `desk@example.org`");
        }
        is_address.then_some(text)
    }

    pub fn variable(&mut self, tree: &Tree, what: &str) -> Option<String> {
        let text = self.text(tree, what, VARIABLE)?;
        if !is_variable(&text) {
            // The value may be the secret itself: it is not shown.
            let message = format!("`{what}` is not the name of a variable");
            self.problems.add(tree.spot, message, VARIABLE);
            return None;
        }
        Some(text)
    }

    pub fn map<'t>(&mut self, tree: &'t Tree, what: &str, hint: &str) -> Option<&'t [(Key, Tree)]> {
        match &tree.value {
            Value::Map(entries) => Some(entries),
            _ => {
                let message = format!("{what} is {}, not a map", tree.describe());
                self.problems.add(tree.spot, message, hint);
                None
            }
        }
    }

    pub fn unknown(&mut self, key: &Key, of: &str, known: &[&str]) {
        let hint = suggest(&key.name, "keys", known.iter().copied());
        self.problems
            .add(key.spot, format!("unknown key `{}` in {of}", key.name), hint);
    }

    pub fn text(&mut self, tree: &Tree, what: &str, hint: &str) -> Option<String> {
        let filled = fill(tree, self.scope, self.problems);
        match filled.text() {
            Some(text) if !text.trim().is_empty() => Some(text.to_owned()),
            _ => {
                let message = format!("`{what}` is {}, not a text", filled.describe());
                self.problems.add(tree.spot, message, hint);
                None
            }
        }
    }

    fn one_of<T: Copy>(&mut self, tree: &Tree, what: &str, all: &[(&str, T)]) -> Option<T> {
        let names = || all.iter().map(|(name, _)| *name);
        let text = self.text(
            tree,
            what,
            &format!("one of {}", names().collect::<Vec<_>>().join(", ")),
        )?;
        let found = all.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
        if found.is_none() {
            let hint = suggest(&text, "values", names());
            self.problems
                .add(tree.spot, format!("`{what}` has no value `{text}`"), hint);
        }
        found
    }
}
