//! Escaping of outside text for display: names, log lines and messages of programs, artifacts, remotes and
//! data can hold escape codes, which a terminal would obey, and marks that reorder the text around them.

use std::borrow::Cow;
use std::fmt::Write as _;

/// True for characters that a terminal obeys or that change how other characters are shown.
fn is_hidden(c: char) -> bool {
    c.is_control()
        // Line separators, and the marks and overrides of bidirectional text.
        || matches!(c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Escapes control characters and directional marks in a text (`\u001b`), except line feeds and tabs. The
/// escapes are those of JSON, so a JSON document keeps its meaning.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_hidden(c) && !matches!(c, '\n' | '\t'))
}

/// Escapes text for display on one line, as [`visible`] does, with line feeds and tabs replaced by spaces.
pub fn visible_line(text: &str) -> Cow<'_, str> {
    match escaped(text, |c| is_hidden(c) && !matches!(c, '\n' | '\t')) {
        line if line.contains(['\n', '\t']) => line.replace(['\n', '\t'], " ").into(),
        line => line,
    }
}

fn escaped(text: &str, is_special: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first) = text.find(&is_special) else {
        return text.into();
    };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        if is_special(c) {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_codes_become_text() {
        for (text, shown) in [
            ("plain ümläut\tand\nmore", "plain ümläut\tand\nmore"),
            ("\u{1b}]0;evil\u{7}", "\\u001b]0;evil\\u0007"),
            ("a\rb\u{7f}\u{9b}31m\0", "a\\u000db\\u007f\\u009b31m\\u0000"),
            ("\u{202e}gpj.exe\u{2066}\u{200f}", "\\u202egpj.exe\\u2066\\u200f"),
        ] {
            assert_eq!(visible(text), shown);
        }
        assert_eq!(visible_line("a\n\u{1b}b\tc"), "a \\u001bb c");
    }

    #[test]
    fn json_stays_the_same_document() {
        let text =
            serde_json::to_string_pretty(&serde_json::json!({ "x": "\u{1b}\u{9b}\u{202e}\n\t" })).unwrap();
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&visible(&text)), value(&text));
    }
}
