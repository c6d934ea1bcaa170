//! Paths that are safe anywhere in a shell command.
//!
//! The paths of `${needs.X}` and `${outputs.X}` are inserted into the text of a command, which may place them
//! between single quotes, double quotes, in a here-document, inside `$(…)`, in a nested `sh -c '…'` or
//! without any quotes. No quoting is right in all of these: what protects a name in one of them is a literal
//! quote, or nothing at all, in another. So inserted paths are not quoted: they consist of characters that
//! every shell takes literally in each of these places. An input file with another name gets its
//! [`plain_path`] in the stage's directory, and an output cannot have another name.

use std::borrow::Cow;

/// The ASCII punctuation that plain paths may contain.
const PUNCTUATION: &str = "/._-+@,:=%^";

fn is_plain_char(c: char) -> bool {
    c.is_alphanumeric() || PUNCTUATION.contains(c)
}

/// True if every shell takes the path literally wherever it stands in a command: the path has only letters,
/// digits and `/._-+@,:=%^`.
pub fn is_plain_path(path: &str) -> bool {
    !path.is_empty() && !path.starts_with('-') && path.chars().all(is_plain_char)
}

/// The path with `_` in place of each character that [`is_plain_path`] refuses. Different paths may become
/// equal: several paths in one directory need a number each.
pub fn plain_path(path: &str) -> Cow<'_, str> {
    if is_plain_path(path) {
        return Cow::Borrowed(path);
    }
    let plain: String = path.chars().map(|c| if is_plain_char(c) { c } else { '_' }).collect();
    match plain.strip_prefix('-') {
        Some(rest) => Cow::Owned(format!("_{rest}")),
        None => Cow::Owned(plain),
    }
}

/// The text that is inserted for a placeholder: one plain path, or several separated by spaces.
pub(crate) fn plain_words(words: &str) -> Cow<'_, str> {
    let is_inserted = |c: char| c == ' ' || is_plain_char(c);
    if words.chars().all(is_inserted) {
        return Cow::Borrowed(words);
    }
    Cow::Owned(words.chars().map(|c| if is_inserted(c) { c } else { '_' }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_text;
    use proptest::prelude::*;
    use std::process::Command;

    /// Commands with a path in every kind of quotes. Each prints it.
    const CONTEXTS: [&str; 9] = [
        "printf %s ${needs.x}",
        "printf %s '${needs.x}'",
        "printf %s \"${needs.x}\"",
        "printf %s \"$(printf %s ${needs.x})\"",
        "printf %s \"$(printf %s \"${needs.x}\")\"",
        "sh -c 'printf %s ${needs.x}'",
        "sh -c \"printf %s '${needs.x}'\"",
        "eval 'printf %s ${needs.x}'",
        "printf %s \"$(cat <<END\n${needs.x}\nEND\n)\"",
    ];

    fn printed(command: &str, path: &str) -> String {
        let text = command_text(command, |_, _| Some(path.to_owned()));
        let output = Command::new("sh").args(["-c", &text]).output().unwrap();
        assert!(output.status.success(), "{text}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn a_plain_path_is_read_as_itself_in_every_kind_of_quotes() {
        for name in [
            "SPX options (2019).csv",
            "a;id",
            "$(id)",
            "`id`",
            "'; id; '",
            "\"; id; \"",
            "a\nid",
            "*",
            "~",
            "a\\b",
            "行情 1.csv",
            "${HOME}",
            "a&b",
            "#x",
            "-rf",
            "seed=1/x.csv",
            "^SPX/%E4.parquet",
        ] {
            let path = format!("/stage/needs/x/{}", plain_path(name));
            assert!(is_plain_path(&path), "{path}");
            for context in CONTEXTS {
                assert_eq!(printed(context, &path), path, "{context}");
            }
        }
        assert_eq!(plain_path("SPX options (2019).csv"), "SPX_options__2019_.csv");
        assert_eq!(plain_path("-rf"), "_rf");
        assert_eq!(plain_path("seed=1/x.csv"), "seed=1/x.csv");
    }

    #[test]
    fn nothing_else_is_inserted() {
        for context in CONTEXTS {
            // Whatever the caller hands over.
            assert_eq!(printed(context, "/x/$(id)`id`';\"&|"), "/x/__id__id______", "{context}");
        }
        assert_eq!(printed("printf '<%s>' ${needs.x}", "/a /b"), "</a></b>");
    }

    proptest! {
        #[test]
        fn any_name_has_a_plain_path(name in ".{0,40}") {
            let plain = plain_path(&name);
            prop_assert!(name.is_empty() || is_plain_path(&plain));
            prop_assert_eq!(plain.chars().count(), name.chars().count());
            prop_assert!(!is_plain_path(&name) || plain == name);
        }
    }
}
