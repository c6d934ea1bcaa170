//! Access control: which requests are accepted.
//!
//! On the loopback interface, requests must name that interface as their host, so that a page of another site
//! whose name resolves to it (DNS rebinding) reads nothing. On other interfaces, every request needs the
//! token. Requests that change something must come from a page of this server: they name the server as their
//! origin, and contain a secret that only its pages have.

use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, Uri};
use std::net::IpAddr;

/// The name of the cookie with the token.
const TOKEN_COOKIE: &str = "runner_token";

/// A server's rules of access.
pub(crate) struct Access {
    /// The digest of the token, if a token is required.
    token: Option<blake3::Hash>,
    /// True if the server listens on the loopback interface only.
    is_loopback: bool,
    /// The secret in the forms of this server process.
    pub form_secret: String,
}

/// A refused request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The request names another host.
    Host,
    /// The request has no token, or a wrong token.
    Token,
    /// The request changes something and does not come from a page of this server.
    Origin,
}

impl Refused {
    /// The message for the reader.
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::Host => {
                "This server answers to `localhost` and the addresses of the loopback interface only. Open \
                it by one of them, or start it with `--bind` and a token."
            }
            Self::Token => {
                "A token is needed: open the address that `runner serve` printed, or send the header \
                `Authorization: Bearer TOKEN`."
            }
            Self::Origin => {
                "The request did not come from a page of this server. Reload the page and try again."
            }
        }
    }
}

impl Access {
    /// Creates the rules of a server that listens on `address`.
    pub(crate) fn new(address: IpAddr, token: Option<&str>) -> std::io::Result<Self> {
        Ok(Self {
            token: token.map(|token| blake3::hash(token.as_bytes())),
            is_loopback: address.is_loopback(),
            form_secret: random_text()?,
        })
    }

    /// Checks a request. Returns true if the token is in the URL, where it should be replaced by a cookie.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<bool, Refused> {
        if self.is_loopback && !names_loopback(headers) {
            return Err(Refused::Host);
        }
        let Some(wanted) = &self.token else {
            return Ok(false);
        };
        // Digests are compared in constant time.
        let is_right = |given: &str| blake3::hash(given.as_bytes()) == *wanted;
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        if let Some(given) = query_value(uri, "token") {
            return if is_right(&given) {
                Ok(true)
            } else {
                Err(Refused::Token)
            };
        }
        let bearer = text(AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let cookie = cookies
            .flat_map(|value| value.split(';'))
            .find_map(|pair| pair.trim().strip_prefix(TOKEN_COOKIE)?.strip_prefix('='));
        match [bearer, cookie].into_iter().flatten().any(is_right) {
            true => Ok(false),
            false => Err(Refused::Token),
        }
    }

    /// Checks a request that changes something; `secret` is the secret in its form.
    pub(crate) fn check_form(&self, headers: &HeaderMap, secret: &str) -> Result<(), Refused> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let is_same_site = text("sec-fetch-site").is_none_or(|site| site == "same-origin");
        let host = text(HOST.as_str());
        let is_same_origin =
            text(ORIGIN.as_str()).is_none_or(|origin| origin.split_once("://").map(|(_, host)| host) == host);
        let is_ours = blake3::hash(secret.as_bytes()) == blake3::hash(self.form_secret.as_bytes());
        match is_same_site && is_same_origin && is_ours {
            true => Ok(()),
            false => Err(Refused::Origin),
        }
    }
}

/// The value of the cookie that represents the token in later requests.
pub(crate) fn token_cookie(token: &str) -> String {
    format!("{TOKEN_COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict")
}

/// A random text of 256 bits, in hexadecimal digits.
pub(crate) fn random_text() -> std::io::Result<String> {
    use std::io::Read as _;
    let mut bytes = [0_u8; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A decoded value of the URL's query.
pub(crate) fn query_value(uri: &Uri, name: &str) -> Option<String> {
    let query = uri.query()?;
    let pairs = url::form_urlencoded::parse(query.as_bytes());
    pairs
        .into_iter()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

/// True if the host named by the request is the loopback interface.
fn names_loopback(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (axum::http::HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    #[test]
    fn names_of_other_hosts_are_refused_on_loopback() {
        let access = Access::new("127.0.0.1".parse().unwrap(), None).unwrap();
        for host in ["localhost:80", "127.0.0.1:9", "[::1]:80", "LOCALHOST", "127.8.0.1"] {
            assert_eq!(
                access.check(&uri("/"), &headers(&[("host", host)])),
                Ok(false),
                "{host}"
            );
        }
        for host in [
            "evil.example:80",
            "localhost.evil.example",
            "192.168.0.7",
            "",
            "[fe80::1]",
        ] {
            assert_eq!(
                access.check(&uri("/"), &headers(&[("host", host)])),
                Err(Refused::Host),
                "{host}"
            );
        }
        assert_eq!(access.check(&uri("/"), &headers(&[])), Err(Refused::Host));
    }

    #[test]
    fn elsewhere_a_token_is_needed_with_every_request() {
        let access = Access::new("0.0.0.0".parse().unwrap(), Some("secret")).unwrap();
        let host = ("host", "box:80");
        assert_eq!(access.check(&uri("/"), &headers(&[host])), Err(Refused::Token));
        assert_eq!(access.check(&uri("/?token=secret"), &headers(&[host])), Ok(true));
        assert_eq!(
            access.check(&uri("/?token=wrong"), &headers(&[host])),
            Err(Refused::Token)
        );
        let bearer = headers(&[host, ("authorization", "Bearer secret")]);
        assert_eq!(access.check(&uri("/"), &bearer), Ok(false));
        let cookie = headers(&[host, ("cookie", "a=b; runner_token=secret")]);
        assert_eq!(access.check(&uri("/"), &cookie), Ok(false));
        let wrong = headers(&[host, ("cookie", "runner_token=secre")]);
        assert_eq!(access.check(&uri("/"), &wrong), Err(Refused::Token));
    }

    #[test]
    fn forms_of_other_sites_are_refused() {
        let access = Access::new("127.0.0.1".parse().unwrap(), None).unwrap();
        let secret = access.form_secret.clone();
        let host = ("host", "localhost:80");
        let ours = headers(&[
            host,
            ("origin", "http://localhost:80"),
            ("sec-fetch-site", "same-origin"),
        ]);
        assert_eq!(access.check_form(&ours, &secret), Ok(()));
        assert_eq!(access.check_form(&ours, "guess"), Err(Refused::Origin));
        let other = headers(&[host, ("origin", "http://evil.example")]);
        assert_eq!(access.check_form(&other, &secret), Err(Refused::Origin));
        let cross = headers(&[host, ("sec-fetch-site", "cross-site")]);
        assert_eq!(access.check_form(&cross, &secret), Err(Refused::Origin));
    }
}
