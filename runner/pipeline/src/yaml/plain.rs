//! Plain YAML, which nearly all of every pipeline file is: keys and values in lines of their own, short lists and maps between
//! brackets, comments, quotes without escapes, literal texts. It is read here in one pass, at a fraction of what the library needs,
//! which would be the largest part of a large pipeline that has nothing to do.
//!
//! What is not certain to be plain, or not to be a mistake, is left to the library, so that there is one judge of what YAML means:
//! `None` says that the text is to be read there. What is read here comes out as it would there, places included; the tests compare.

use super::super::source::Spot;
use super::super::tree::{Key, Tree, Value};
use super::{LOOKED_THROUGH, MOST, Place, scalar};
use serde_json::Value as Json;
use std::collections::HashSet;

/// Deeper lists and maps are left to the library, which has a limit of its own.
const DEEPEST: usize = 16;

/// The value of a text, if all of it is plain.
pub(super) fn parse(content: &str, text: usize) -> Option<Tree> {
    // So that bytes are characters. Looked at as a whole, many at a time.
    let is_plain = |byte: u8| (byte == b'\n') | (b' '..=b'~').contains(&byte);
    if !content.bytes().fold(true, |plain, byte| plain & is_plain(byte)) {
        return None;
    }
    let mut reader = Reader {
        content,
        text,
        at: 0,
        line: 1,
        begin: 0,
        end: content.find('\n').unwrap_or(content.len()),
        nodes: 0,
    };
    reader.skip_blank();
    if reader.column() > 0 {
        return None;
    }
    let root = reader.map(0)?;
    reader.here().is_none().then_some(root)
}

struct Reader<'t> {
    content: &'t str,
    text: usize,
    /// The next byte.
    at: usize,
    /// The number of its line.
    line: usize,
    /// Where its line begins.
    begin: usize,
    /// Where its line ends.
    end: usize,
    /// How many values were read, keys included.
    nodes: usize,
}

impl<'t> Reader<'t> {
    fn here(&self) -> Option<u8> {
        self.content.as_bytes().get(self.at).copied()
    }

    /// The rest of the line.
    fn rest(&self) -> &'t str {
        &self.content[self.at..self.end]
    }

    fn column(&self) -> usize {
        self.at - self.begin
    }

    /// From `from` on, in this line, up to what comes next.
    fn spot(&self, from: usize) -> Spot {
        Spot {
            text: self.text,
            place: Place {
                line: self.line,
                column: from - self.begin + 1,
            },
            width: self.at.saturating_sub(from).max(1),
        }
    }

    fn node(&mut self, spot: Spot, value: Value) -> Option<Tree> {
        self.nodes += 1;
        (self.nodes <= MOST).then_some(Tree {
            spot,
            value,
            note: None,
        })
    }

    fn skip_spaces(&mut self) {
        while self.here() == Some(b' ') {
            self.at += 1;
        }
    }

    fn next_line(&mut self) {
        self.at = self.end;
        if self.here().is_some() {
            self.at += 1;
            self.line += 1;
            self.begin = self.at;
            let rest = &self.content[self.at..];
            self.end = self.at + rest.bytes().position(|byte| byte == b'\n').unwrap_or(rest.len());
        }
    }

    /// Goes to the first thing in this line or a later one that is no comment.
    fn skip_blank(&mut self) {
        loop {
            self.skip_spaces();
            if !matches!(self.here(), Some(b'\n' | b'#')) {
                return;
            }
            self.next_line();
        }
    }

    /// Whether all that stands deeper than `indent` is over.
    fn is_back_at(&self, indent: usize) -> bool {
        self.here().is_none() || self.column() <= indent
    }

    /// A key with its colon.
    fn key(&mut self) -> Option<(&'t str, Spot)> {
        let from = self.at;
        let rest = &self.content[from..];
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
        let name = &rest[..rest.bytes().position(|byte| !is_part(byte))?];
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let ends = rest[name.len()..].starts_with(": ") || rest[name.len()..].starts_with(":\n");
        if !begins || !ends || name.eq_ignore_ascii_case("null") {
            return None;
        }
        self.at += name.len();
        let spot = self.spot(from);
        self.at += 1;
        self.nodes += 1;
        Some((name, spot))
    }

    /// A map of keys in lines of their own, all at the column where it begins.
    fn map(&mut self, depth: usize) -> Option<Tree> {
        let indent = self.column();
        let spot = self.spot(self.at);
        let mut entries = Vec::new();
        loop {
            let (name, key) = self.key()?;
            self.skip_spaces();
            let value = match self.here()? {
                b'\n' | b'#' => self.below(indent, depth + 1)?,
                _ => self.value(indent, depth + 1)?,
            };
            let name = name.to_owned();
            entries.push((Key { name, spot: key }, value));
            if self.here().is_none() || self.column() != indent {
                break;
            }
        }
        let sound = self.is_back_at(indent) && all_differ(&entries);
        sound.then(|| self.node(spot, Value::Map(entries)))?
    }

    /// A list of items in lines of their own.
    fn list(&mut self, depth: usize) -> Option<Tree> {
        let indent = self.column();
        let mut items = Vec::new();
        let from = self.at;
        self.at += 1;
        let spot = self.spot(from);
        loop {
            self.skip_spaces();
            let (at, nodes) = (self.at, self.nodes);
            let is_map = self.key().is_some();
            (self.at, self.nodes) = (at, nodes);
            items.push(match is_map {
                true if depth < DEEPEST => self.map(depth + 1)?,
                true => return None,
                false => self.value(indent, depth + 1)?,
            });
            if self.column() != indent || !self.rest().starts_with("- ") {
                break;
            }
            self.at += 1;
        }
        let sound = self.here().is_none() || self.column() < indent;
        sound.then(|| self.node(spot, Value::List(items)))?
    }

    /// The map or list in the lines below a key at `indent`.
    fn below(&mut self, indent: usize, depth: usize) -> Option<Tree> {
        self.skip_blank();
        if self.is_back_at(indent) || depth > DEEPEST {
            None
        } else if self.rest().starts_with("- ") {
            self.list(depth)
        } else {
            self.map(depth)
        }
    }

    /// A value in the line of what it belongs to, which stands at `indent`; and the rest of that line.
    fn value(&mut self, indent: usize, depth: usize) -> Option<Tree> {
        let value = match self.here()? {
            b'|' => self.literal(indent)?,
            b'{' | b'[' => self.ended(|reader| reader.flow(depth))?,
            b'"' | b'\'' => self.ended(Self::quoted)?,
            _ => {
                let line = self.rest();
                let text = line.find(" #").map_or(line, |end| &line[..end]);
                self.ended(|reader| reader.plain(text.trim_end_matches(' ')))?
            }
        };
        self.skip_blank();
        // What stands deeper would belong to the value.
        self.is_back_at(indent).then_some(value)
    }

    /// A value behind which nothing but a comment stands in its line.
    fn ended(&mut self, read: impl FnOnce(&mut Self) -> Option<Tree>) -> Option<Tree> {
        let value = read(self)?;
        let end = self.at;
        self.skip_spaces();
        let ends = match self.here() {
            None | Some(b'\n') => true,
            Some(b'#') => self.at > end,
            Some(_) => false,
        };
        ends.then_some(value)
    }

    /// A value without quotes.
    fn plain(&mut self, text: &str) -> Option<Tree> {
        let begins = match text.as_bytes() {
            [b'-' | b'+' | b'.', next, ..] => next.is_ascii_alphanumeric() || b"./".contains(next),
            [first, ..] => first.is_ascii_alphanumeric() || b"_/$(~<=^;".contains(first),
            [] => false,
        };
        if !begins || text.contains(": ") || text.ends_with(':') {
            return None;
        }
        let from = self.at;
        self.at += text.len();
        self.node(self.spot(from), Value::Scalar(scalar(text).ok()?))
    }

    fn quoted(&mut self) -> Option<Tree> {
        let from = self.at;
        let line = self.rest();
        let quote = if line.starts_with('"') { '"' } else { '\'' };
        let text = &line[1..];
        let text = &text[..text.find(quote)?];
        // An escape: a backslash, or a single quote that is written twice.
        if text.contains('\\') || line[text.len() + 2..].starts_with(quote) {
            return None;
        }
        self.at += text.len() + 2;
        self.node(self.spot(from), Value::Scalar(Json::String(text.to_owned())))
    }

    /// A list or a map between brackets, in one line.
    fn flow(&mut self, depth: usize) -> Option<Tree> {
        if depth > DEEPEST {
            return None;
        }
        let from = self.at;
        let is_map = self.here()? == b'{';
        let close = if is_map { b'}' } else { b']' };
        self.at += 1;
        let spot = self.spot(from);
        // Most have one entry.
        let (mut items, mut entries) = (Vec::new(), Vec::with_capacity(usize::from(is_map)));
        self.skip_spaces();
        while self.here()? != close {
            if !items.is_empty() || !entries.is_empty() {
                if self.here()? != b',' {
                    return None;
                }
                self.at += 1;
                self.skip_spaces();
            }
            let key = if is_map { Some(self.key()?) } else { None };
            self.skip_spaces();
            let value = match self.here()? {
                b'{' | b'[' => self.flow(depth + 1)?,
                b'"' | b'\'' => self.quoted()?,
                _ => {
                    let line = self.rest();
                    let text = &line[..line.find([',', ']', '}'])?];
                    if text.contains(['[', '{', ':', '#', '"', '\'']) {
                        return None;
                    }
                    self.plain(text.trim_end_matches(' '))?
                }
            };
            match key {
                Some((name, spot)) => {
                    let name = name.to_owned();
                    entries.push((Key { name, spot }, value));
                }
                None => items.push(value),
            }
            self.skip_spaces();
        }
        self.at += 1;
        let value = match is_map {
            true if !all_differ(&entries) => return None,
            true => Value::Map(entries),
            false => Value::List(items),
        };
        self.node(spot, value)
    }

    /// `|` or `|-`, and the text in the lines below. Ends at the beginning of a line.
    fn literal(&mut self, parent: usize) -> Option<Tree> {
        let header = self.rest();
        if !matches!(header, "|" | "|-") {
            return None;
        }
        self.next_line();
        let first = self.rest();
        let indent = first.len() - first.trim_start_matches(' ').len();
        if indent <= parent || indent == first.len() {
            return None;
        }
        let spot = self.spot(self.at + indent);
        let mut text = String::new();
        let mut blank = 0;
        while self.here().is_some() {
            let line = self.rest();
            let inside = line.trim_start_matches(' ');
            match line.len() - inside.len() {
                deep if inside.is_empty() && deep > indent => return None,
                _ if inside.is_empty() => blank += 1,
                deep if deep < indent => break,
                _ => {
                    text.extend(std::iter::repeat_n('\n', std::mem::take(&mut blank)));
                    text.push_str(&line[indent..]);
                    text.push('\n');
                }
            }
            self.next_line();
        }
        // Where the file ends without the end of its last line, so does the text.
        if self.here().is_none() && !self.content.ends_with('\n') {
            return None;
        }
        if header == "|-" {
            text.pop();
        }
        self.node(spot, Value::Scalar(Json::String(text)))
    }
}

fn all_differ(entries: &[(Key, Tree)]) -> bool {
    let mut names = entries.iter().map(|(key, _)| key.name.as_str());
    if entries.len() >= LOOKED_THROUGH {
        let mut known = HashSet::with_capacity(entries.len());
        return names.all(|name| known.insert(name));
    }
    names
        .enumerate()
        .all(|(i, name)| entries[..i].iter().all(|(key, _)| key.name != name))
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;
    use proptest::prelude::*;

    /// Whether a text is read here, and then it comes out as the library has it.
    fn agrees(text: &str) -> bool {
        let Some(tree) = parse(text, 3) else { return false };
        let whole = read(text, 3);
        assert!(whole.is_ok(), "{text}\n{tree:?}\n{whole:?}");
        assert_eq!(format!("{tree:?}"), format!("{:?}", whole.unwrap()), "{text}");
        true
    }

    /// What may change what a text means.
    const WORDS: [&str; 58] = [
        "a",
        "b: ",
        "c:",
        "n: null",
        "- ",
        "-",
        "-5",
        "- a: 1",
        "-- x",
        "x y",
        "1e3",
        "~",
        "{",
        "}",
        "[",
        "]",
        "{ a: 1, b: [x, 2] }",
        "{}",
        "[]",
        ", ",
        ",",
        ": ",
        ":",
        "\"q r\"",
        "'s'",
        "\"",
        "'",
        "\\",
        "#",
        " # note",
        " ",
        "  ",
        "    ",
        "\n",
        "\n\n",
        "\n  ",
        "\n    ",
        "|",
        "|-",
        "d: |\n  x\n",
        "e: |-\n      y\n\n   z\n",
        ">",
        "&n ",
        "*n",
        "!t ",
        "? ",
        "<<: ",
        "%",
        "@",
        "`",
        "---",
        "...",
        "$x",
        "${needs.a}",
        "a/b.c",
        "a:b",
        "x#y",
        "\t",
    ];

    const TEXT: &str = "# A pipeline.\nversion: 1\nname: n # of it\n\nparams: { seed: 7, window: { from: 2019-01-02, to: \"x\" } }\nstages:\n  \
                        market:\n    uses: ingest/bars\n    with:\n      root: ../data # here\n      layout: 'a b'\n      list:\n        - 1\n        \
                        - x: 2\n          y: [3, -4e-1]\n  s1:\n    run: |\n      echo 1 > ${outputs.x}\n\n      s2: 3\n\n    # And.\n    outputs: \
                        { x: x.txt }\n    needs: { a: market }\n    secrets: []\n    env:\n      A: |-\n        b\n        c\n";

    /// A text with some of it left out and something else in its place.
    fn edited() -> impl Strategy<Value = String> {
        let edit = (0..TEXT.len(), 0_usize..6, prop::sample::select(WORDS.to_vec()));
        prop::collection::vec(edit, 1..4).prop_map(|edits| {
            let mut text = TEXT.to_owned();
            for (at, length, word) in edits {
                let at = at.min(text.len());
                let end = (at + length).min(text.len());
                text.replace_range(at..end, word);
            }
            text
        })
    }

    /// Words in lines, most of them at a depth that fits.
    fn lines() -> impl Strategy<Value = String> {
        let words = prop::collection::vec(prop::sample::select(WORDS.to_vec()), 1..4);
        let key = prop::sample::select(vec![
            "", "a: ", "b: ", "c:", "d: |", "- ", "e: { f: ", "g: [h, ", "- i: ",
        ]);
        let wild = (key, words).prop_map(|(key, words)| format!("{key}{}", words.concat()));
        let tame = prop::sample::select(
            TEXT.lines()
                .map(|line| line.trim_start().to_owned())
                .collect::<Vec<_>>(),
        );
        let line = (0_usize..4, prop_oneof![1 => wild, 4 => tame]);
        let line = line.prop_map(|(deep, line)| format!("{}{line}", "  ".repeat(deep)));
        (prop::collection::vec(line, 1..10), any::<bool>())
            .prop_map(|(lines, ends)| format!("z: 0\n{}{}", lines.join("\n"), if ends { "\n" } else { "" }))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(20_000) })]
        #[test]
        fn what_is_read_here_is_what_the_library_reads(edited in edited(), lines in lines()) {
            agrees(&edited);
            agrees(&lines);
        }
    }

    #[test]
    fn pipelines_are_plain() {
        assert!(agrees(TEXT));
        for name in ["cartpole", "pendulum", "rppo_options"] {
            let path = format!("{}/../../pipelines/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
            assert!(agrees(&std::fs::read_to_string(path).unwrap()), "{name}");
        }
    }

    #[test]
    fn what_is_not_certain_is_left_to_the_library() {
        for text in [
            "a: 1\na: 2\n",
            "a:\n",
            "a: b: c\n",
            "a: *x\n",
            "a: b\n  c\n",
            "a: \"b\n  c\"\n",
            "a: { b: 1,\n  c: 2 }\n",
            "a: \"\\n\"\n",
            "a: 'b''c'\n",
            "<<: {}\n",
            "null: 1\n",
            "a: .nan\n",
            "a: 1e999\n",
            "- a\n",
            "a: >\n  b\n",
            "---\na: 1\n",
            " a: 1\n",
            "a: \u{fc}\n",
            "a:\n- b\n",
            "a: |\n  b",
            "",
        ] {
            assert!(parse(text, 0).is_none(), "{text}");
        }
        let deep: String = (0..20).map(|i| format!("{}a:\n", " ".repeat(i))).collect();
        assert!(parse(&format!("{deep}{}a: 1\n", " ".repeat(20)), 0).is_none());
    }
}
