//! Redaction of credentials in messages.

/// Words that occur in the names of environment variables with secret values.
const SECRET_WORDS: [&str; 9] = [
    "SECRET",
    "TOKEN",
    "PASSWORD",
    "PASSWD",
    "KEY",
    "SAS",
    "CREDENTIAL",
    "SIGNATURE",
    "CONNECTION_STRING",
];

/// The minimum length of a value that is searched for: a shorter value occurs in ordinary words.
const MIN_LEN: usize = 6;

/// The maximum length of a message that is shown, in characters.
const MAX_LEN: usize = 300;

/// Removes secret values from messages.
pub(crate) struct Redactor {
    secrets: Vec<String>,
}

impl Redactor {
    /// Collects the values of environment variables whose names look secret.
    pub(crate) fn new() -> Self {
        Self::of(
            std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
        )
    }

    fn of(vars: impl Iterator<Item = (String, String)>) -> Self {
        let secret = |name: &str| {
            let name = name.to_ascii_uppercase();
            SECRET_WORDS.iter().any(|word| name.contains(word))
        };
        let mut secrets: Vec<String> = vars
            .filter(|(name, value)| secret(name) && value.trim().len() >= MIN_LEN)
            .map(|(_, value)| value.trim().to_owned())
            .collect();
        // A value that contains another value is replaced first.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self { secrets }
    }

    /// Returns a message on one line, without the body of a server's answer and without credentials.
    pub(crate) fn clean(&self, message: &str) -> String {
        let mut text = without_body(message);
        for secret in &self.secrets {
            text = text.replace(secret.as_str(), "…");
        }
        let words: Vec<String> = text.split_whitespace().map(bare).collect();
        // A server determines the text of its errors.
        let mut text = cache::plain_text(&words.join(" "));
        if let Some((end, _)) = text.char_indices().nth(MAX_LEN) {
            text.truncate(end);
            text.push('…');
        }
        text
    }
}

/// Removes the body of a server's answer from a message, except for its error code: the body may quote signed
/// headers.
fn without_body(message: &str) -> String {
    let Some(start) = message.find(['<', '{']) else {
        return message.to_owned();
    };
    let code = message[start..]
        .split_once("<Code>")
        .and_then(|(_, rest)| rest.split_once("</Code>"))
        .map(|(code, _)| code)
        .filter(|code| code.len() < 60 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    let start = message[..start].trim_end_matches([' ', ':']);
    code.map_or_else(|| start.to_owned(), |code| format!("{start}: {code}"))
}

/// Cuts a URL to its scheme, host and path; other words are unchanged.
fn bare(word: &str) -> String {
    let Some((before, rest)) = word.split_once("://") else {
        return word.to_owned();
    };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    format!("{before}://{}{path}", authority.rsplit('@').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(message: &str) -> String {
        let vars = [
            ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI"),
            ("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE"),
            ("AZURE_STORAGE_SAS_TOKEN", "sv=2026&sig=abcdef"),
            ("HOME", "/home/somebody"),
            ("SHORT_KEY", "abc"),
        ];
        let vars = vars
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Redactor::of(vars).clean(message)
    }

    #[test]
    fn credentials_are_not_shown() {
        insta::assert_snapshot!(clean("key wJalrXUtnFEMI of AKIAEXAMPLE, abc, in \
            /home/somebody"), @"key … \
            of …, abc, in /home/somebody");
        insta::assert_snapshot!(clean("GET https://me:hunter22@host/a?X-Amz-Signature=123&x=y \
            failed"), @"GET https://host/a failed");
        insta::assert_snapshot!(clean("azure said sv=2026&sig=abcdef is over"), @"azure said … is over");
    }

    #[test]
    fn answers_are_not_quoted() {
        let answer = "status 403 Forbidden: \
            <?xml?><Error><Code>SignatureDoesNotMatch</Code><StringToSign>AWS4 AKIA…</StringToSign></Error>";
        insta::assert_snapshot!(clean(answer), @"status 403 Forbidden: SignatureDoesNotMatch");
        insta::assert_snapshot!(clean("status 401: {\"error\": {\"token\": \"ya29.x\"}}"), @"status 401");
        assert!(clean(&"x".repeat(5000)).len() < 400);
        insta::assert_snapshot!(clean("\x1b]0;\
            title\x07\x1b[2J \u{9b}31m\u{202e}"), @r"\u{1b}]0;title\u{7}\u{1b}[2J \u{9b}31m\u{202e}");
    }
}
