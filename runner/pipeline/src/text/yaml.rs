//! YAML to [`Tree`]: the only module that depends on the YAML library.
//!
//! Events of the library are read rather than its serde interface: they carry the position and the style of
//! every key and scalar, and leave the interpretation of values to this module, which implements YAML 1.2's
//! core schema: `true` and `false` are the only booleans, and dates are texts. In addition, duplicate keys
//! are rejected, merge keys (`<<`) are merged, and numbers must be finite and fit 64 bits.

use crate::Place;
use crate::text::problems::Problems;
use crate::text::source::Spot;
use crate::text::tree::{Key, Tree, Value};
use serde_json::Value as Json;
use serde_yaml::granit_parser::{
    ErrorKind, Event, Marker, Options, Parser, ScalarStyle, ScanError, Span, StrInput, Tag,
};
use std::collections::{BTreeSet, HashMap};

/// An error in a text.
#[derive(Debug)]
pub(crate) struct Issue {
    pub spot: Spot,
    pub message: String,
    pub hint: String,
}

impl Issue {
    fn new(spot: Spot, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            spot,
            message: message.into(),
            hint: hint.into(),
        }
    }
}

/// The maximum nesting depth of lists and maps.
const DEEPEST: usize = 48;
/// The maximum number of values of a file, aliases expanded.
const MOST: usize = 500_000;

/// The errors of the YAML library: its names of them, the message and the hint; the last entry is for all
/// others, whose message the library supplies.
const ERRORS: &str = include_str!("yaml_errors.txt");

const EMPTY_HINT: &str = "a pipeline begins with `version: 1`, `name: NAME` and `stages:`";

/// Parses the text at `index`; `None` if it has an error, which is reported.
pub(crate) fn read(index: usize, problems: &mut Problems) -> Option<Tree> {
    let parsed = parse(problems.texts.content(index), index);
    parsed
        .map_err(|issue| problems.add(issue.spot, issue.message, issue.hint))
        .ok()
}

/// Parses a text that holds one YAML document. `text` is the index of the text, for positions.
pub(crate) fn parse(content: &str, text: usize) -> Result<Tree, Issue> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    // The library's own limit is higher than this module's, so that this module reports the error.
    options.flow_nesting_limit = 4 * DEEPEST;
    options.block_nesting_limit = 4 * DEEPEST;
    let mut builder = Builder {
        parser: Parser::new_from_str_with_options(content, options),
        content,
        text,
        anchors: HashMap::new(),
        nodes: 0,
        end: Spot::start(text),
    };
    let mut root = None;
    loop {
        let (event, span) = builder.next()?;
        let spot = builder.spot(&span);
        match event {
            Event::StreamStart | Event::DocumentEnd => {}
            Event::StreamEnd => break,
            Event::DocumentStart(..) if root.is_some() => {
                return Err(Issue::new(
                    spot,
                    "a second document begins",
                    "a file holds one pipeline: remove this `---` and what follows it",
                ));
            }
            Event::DocumentStart(..) => {}
            event => root = Some(builder.node(event, spot, 0)?),
        }
    }
    match root {
        Some(root) if !root.is_null() => Ok(root),
        _ => Err(Issue::new(Spot::start(text), "the file is empty", EMPTY_HINT)),
    }
}

struct Builder<'t> {
    parser: Parser<'t, StrInput<'t>>,
    content: &'t str,
    text: usize,
    /// The tree of each anchor, and the number of values in it.
    anchors: HashMap<usize, (Tree, usize)>,
    nodes: usize,
    end: Spot,
}

impl<'t> Builder<'t> {
    fn next(&mut self) -> Result<(Event<'t>, Span), Issue> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => {
                self.end = self.spot(&span);
                Ok((event, span))
            }
            Some(Err(err)) => Err(self.scan_issue(&err)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn mark(&self, mark: &Marker) -> Place {
        Place {
            line: mark.line().max(1),
            column: mark.col() + 1,
        }
    }

    fn spot(&self, span: &Span) -> Spot {
        let width = if span.start.line() == span.end.line() {
            span.end.col().saturating_sub(span.start.col())
        } else {
            1
        };
        Spot {
            text: self.text,
            place: self.mark(&span.start),
            width: width.max(1),
        }
    }

    fn node(&mut self, event: Event<'t>, spot: Spot, depth: usize) -> Result<Tree, Issue> {
        let issue = |message: &str, hint: &str| Err(Issue::new(spot, message, hint));
        if depth > DEEPEST {
            return Err(too_deep(spot));
        }
        let before = self.nodes;
        self.nodes += 1;
        let (tree, anchor) = match event {
            Event::Alias(id) => {
                let Some((tree, size)) = self.anchors.get(&id) else {
                    return issue(
                        "this alias refers to a value that contains it",
                        "write the value out in one of the two places",
                    );
                };
                self.nodes += size;
                let tree = (self.nodes <= MOST).then(|| tree.clone());
                (tree.unwrap_or_default(), 0)
            }
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && !self.as_text(tag.as_deref(), spot)?;
                let value = if plain {
                    scalar(&text).map_err(|(message, hint)| Issue { spot, message, hint })?
                } else {
                    Json::String(text.into_owned())
                };
                (Tree::scalar(spot, value), anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.as_text(tag.as_deref(), spot)?;
                let mut items = Vec::new();
                loop {
                    let (event, span) = self.next()?;
                    if matches!(event, Event::SequenceEnd | Event::StreamEnd) {
                        break;
                    }
                    let spot = self.spot(&span);
                    items.push(self.node(event, spot, depth + 1)?);
                }
                (Tree::at(spot, Value::List(items)), anchor)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.as_text(tag.as_deref(), spot)?;
                (Tree::map(spot, self.entries(depth)?), anchor)
            }
            _ => return issue("a value is missing here", "write one, or remove the key"),
        };
        if self.nodes > MOST {
            return issue(
                &format!("the file holds more than {MOST} values, aliases followed"),
                "a pipeline file names data, it does not hold them: move them to files that a stage reads",
            );
        }
        if anchor > 0 {
            self.anchors.insert(anchor, (tree.clone(), self.nodes - before));
        }
        Ok(tree)
    }

    fn entries(&mut self, depth: usize) -> Result<Vec<(Key, Tree)>, Issue> {
        let mut entries: Vec<(Key, Tree)> = Vec::new();
        let mut known: HashMap<String, Spot> = HashMap::new();
        let mut merged = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd | Event::StreamEnd) {
                break;
            }
            let spot = self.spot(&span);
            let (name, plain) = self.key(event, spot, depth)?;
            let (event, span) = self.next()?;
            let at = self.spot(&span);
            if plain && name == "<<" {
                merged.push(self.node(event, at, depth + 1)?);
                continue;
            }
            if let Some(known) = known.insert(name.clone(), spot) {
                return Err(Issue::new(
                    spot,
                    format!("the key `{name}` is given twice"),
                    format!(
                        "it is already defined in line {}: remove one of the two",
                        known.place.line
                    ),
                ));
            }
            let value = self.node(event, at, depth + 1)?;
            entries.push((Key { name, spot }, value));
        }
        for tree in merged {
            self.merge(&mut entries, tree)?;
        }
        Ok(entries)
    }

    /// The text of a key, and whether it is written without quotes.
    fn key(&mut self, event: Event<'t>, spot: Spot, depth: usize) -> Result<(String, bool), Issue> {
        let plain = matches!(&event, Event::Scalar(_, ScalarStyle::Plain, ..));
        // The text as written, so that the key `007` is kept as it is.
        let written = match &event {
            Event::Scalar(text, ..) => Some(text.to_string()),
            _ => None,
        };
        let key = self.node(event, spot, depth + 1)?;
        let name = match key.value {
            Value::Scalar(Json::Null) => {
                return Err(Issue::new(spot, "a key is empty", "write `key: value`"));
            }
            Value::Scalar(Json::String(text)) => text,
            Value::Scalar(value) => written.unwrap_or_else(|| value.to_string()),
            Value::List(_) | Value::Map(_) => {
                return Err(Issue::new(
                    spot,
                    format!("a key is {}, not a string", key.describe()),
                    "quote it; an interpolation between braces or brackets needs quotes: \
                        `\"${params.seed}\"`",
                ));
            }
        };
        Ok((name, plain))
    }

    /// `<<: *defaults`: the map's own entries take precedence, then the earlier merged maps.
    fn merge(&mut self, entries: &mut Vec<(Key, Tree)>, tree: Tree) -> Result<(), Issue> {
        match tree.value {
            Value::Map(more) => {
                let known: BTreeSet<String> = entries.iter().map(|(key, _)| key.name.clone()).collect();
                entries.extend(more.into_iter().filter(|(key, _)| !known.contains(&key.name)));
                Ok(())
            }
            Value::List(items) => items.into_iter().try_for_each(|item| self.merge(entries, item)),
            Value::Scalar(_) => Err(Issue::new(
                tree.spot,
                format!("`<<` merges maps, and this is {}", tree.describe()),
                "write `<<: *NAME`, where `&NAME` marks a map above",
            )),
        }
    }

    /// True if a tag marks a plain scalar as a text; other tags are rejected.
    fn as_text(&self, tag: Option<&Tag>, spot: Spot) -> Result<bool, Issue> {
        match tag {
            None => Ok(false),
            Some(tag) if tag.core_suffix() == Some("str") || tag.original() == "!" => Ok(true),
            Some(tag) => Err(Issue::new(
                spot,
                format!("the tag `{}` is not supported", tag.original()),
                "remove it; quotes make a value a string",
            )),
        }
    }

    fn scan_issue(&self, err: &ScanError) -> Issue {
        let mut spot = Spot {
            text: self.text,
            place: self.mark(err.marker()),
            width: 1,
        };
        let line = spot.place.line.saturating_sub(1);
        let line = self.content.lines().nth(line).unwrap_or_default();
        let indent_tab = line.chars().take_while(|c| c.is_whitespace()).position(|c| c == '\t');
        let kind = format!("{:?}", err.kind());
        let name = kind.split(' ').next().unwrap_or_default();
        let (message, hint) = match (err.kind(), indent_tab) {
            (_, Some(tab)) if !name.starts_with("Tab") => {
                spot.place.column = tab + 1;
                ("a tab in the indentation".to_owned(), "indent with spaces")
            }
            (ErrorKind::RecursionLimitExceeded, _) => return too_deep(spot),
            (ErrorKind::UnclosedFlowCollection { open }, _) => {
                (format!("this `{open}` is not closed"), "close it")
            }
            (ErrorKind::MismatchedFlowCollectionEnd { open, close }, _) => (
                format!("`{close}` cannot close `{open}`"),
                "close brackets and braces in the reverse order of their opening",
            ),
            (kind, _) => {
                let said = kind.to_string();
                let said = said.rsplit_once("while ").map_or(said.as_str(), |(_, tail)| {
                    tail.split_once(", ").map_or(tail, |(_, what)| what)
                });
                let lines: Vec<&str> = ERRORS.lines().map(str::trim).collect();
                let mut known = lines.chunks_exact(3);
                let is_known =
                    |entry: &&[&str]| entry[0].split(' ').any(|known| known == name || known == "*");
                let (message, hint) = known.find(is_known).map_or(("{}", ""), |entry| (entry[1], entry[2]));
                (message.replace("{}", said), hint)
            }
        };
        match line.contains("${") && !line.contains("\"${") && line.contains(['{', '[', ',']) {
            true => Issue::new(
                spot,
                message,
                "quote an interpolation between braces or brackets: `{ seed: \"${params.seed}\" }`",
            ),
            false => Issue::new(spot, message, hint),
        }
    }
}

fn too_deep(spot: Spot) -> Issue {
    Issue::new(
        spot,
        format!("lists and maps are nested more than {DEEPEST} deep"),
        "a pipeline file needs a handful of levels: look for a bracket that is not closed",
    )
}

/// The value of a plain scalar (YAML 1.2, core schema).
pub(crate) fn scalar(text: &str) -> Result<Json, (String, String)> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Json::Null,
        "true" | "True" | "TRUE" => Json::Bool(true),
        "false" | "False" | "FALSE" => Json::Bool(false),
        _ => number(text)?.unwrap_or_else(|| Json::String(text.to_owned())),
    })
}

fn number(text: &str) -> Result<Option<Json>, (String, String)> {
    if !text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
        return Ok(None);
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let sign = if text.starts_with('-') { "-" } else { "" };
    let all = |text: &str, valid: fn(&u8) -> bool| !text.is_empty() && text.bytes().all(|byte| valid(&byte));
    let too_large = || {
        (
            format!("the number {text} is too large"),
            "numbers have 64 bits; put it in quotes if it is a name".to_owned(),
        )
    };
    if matches!(digits, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN") {
        return Err((
            format!("`{text}` is not a finite number"),
            "write a number, or put it in quotes if it is a string".to_owned(),
        ));
    }
    for (prefix, radix, valid) in [
        ("0x", 16, u8::is_ascii_hexdigit as fn(&u8) -> bool),
        ("0o", 8, |byte: &u8| (b'0'..=b'7').contains(byte)),
    ] {
        if let Some(digits) = text.strip_prefix(prefix).filter(|digits| all(digits, valid)) {
            return u64::from_str_radix(digits, radix)
                .map(|value| Some(value.into()))
                .map_err(|_| too_large());
        }
    }
    if all(digits, u8::is_ascii_digit) {
        let text = format!("{sign}{digits}");
        let unsigned = text.parse::<u64>().map(Json::from);
        return unsigned
            .or_else(|_| text.parse::<i64>().map(Json::from))
            .map(Some)
            .map_err(|_| too_large());
    }
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    if !all(exponent, u8::is_ascii_digit) || !all(&mantissa.replacen('.', "", 1), u8::is_ascii_digit) {
        return Ok(None);
    }
    // Rust parses every spelling of the core schema: `1.`, `.5`, `1e-3`.
    let value: f64 = format!("{sign}{digits}").parse().map_err(|_| too_large())?;
    match serde_json::Number::from_f64(value) {
        Some(value) => Ok(Some(Json::Number(value))),
        None => Err(too_large()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Json {
        parse(text, 0).unwrap().to_json()
    }

    fn issue(text: &str) -> String {
        let issue = parse(text, 0).unwrap_err();
        let Place { line, column } = issue.spot.place;
        format!("{line}:{column} {} | {}", issue.message, issue.hint)
    }

    #[test]
    fn scalars_of_the_core_schema() {
        assert_eq!(
            read("[1, -2, +3, 007, 0x1F, 0o17, 3e-4, 1., .5, -1.5E+2, true, FALSE, null, ~, '5', \"6\"]"),
            json!([
                1, -2, 3, 7, 31, 15, 3e-4, 1.0, 0.5, -150.0, true, false, null, null, "5", "6"
            ])
        );
        assert_eq!(
            read("[yes, no, on, 1_000, 2019-06-28, e5, ., -x, 1.2.3, 0x, 4GiB, 1e, +]").to_string(),
            json!([
                "yes",
                "no",
                "on",
                "1_000",
                "2019-06-28",
                "e5",
                ".",
                "-x",
                "1.2.3",
                "0x",
                "4GiB",
                "1e",
                "+"
            ])
            .to_string()
        );
        assert_eq!(read("18446744073709551615"), json!(u64::MAX));
        assert_eq!(read("-9223372036854775808"), json!(i64::MIN));
        assert_eq!(read("!!str 5"), json!("5"));
    }

    #[test]
    fn anchors_aliases_and_merges() {
        assert_eq!(
            read("a: &x {p: 1, q: 2}\nb: *x\nc: {<<: *x, p: 3}\nd:\n  <<: [*x, {r: 4, p: 9}]\n"),
            json!({"a": {"p": 1, "q": 2}, "b": {"p": 1, "q": 2}, "c": {"p": 3, "q": 2}, "d": {"p": 1, "q": 2,
                "r": 4}})
        );
    }

    #[test]
    fn places_count_characters_from_one() {
        let tree = parse("a: 1\nö:  { k: 'x' }\n", 0).unwrap();
        let (key, value) = tree.entry("ö").unwrap();
        assert_eq!(key.spot.place, Place { line: 2, column: 1 });
        let (key, value) = value.entry("k").unwrap();
        assert_eq!(key.spot.place, Place { line: 2, column: 7 });
        assert_eq!(value.spot.place, Place { line: 2, column: 10 });
        assert_eq!(value.spot.width, 3);
    }

    #[test]
    fn mistakes() {
        let mut text = String::new();
        for case in [
            "",
            "# only a comment\n",
            "a: 1\nb: 2\na: 3\n",
            "a:\n\tb: 1\n",
            "a: \"x\nb: 1\n",
            "a: {b: 1\n",
            "a: [1, 2\nb: 3\n",
            "a: 1\n b: 2\n",
            "a: b: c\n",
            "a: *x\n",
            "a: &x [*x]\n",
            "a: !!python/object x\n",
            "a: .nan\n",
            "a: 1e999\n",
            "a: 99999999999999999999\n",
            "a: 1\n---\nb: 2\n",
            "{seed: ${params.seed}}\n",
            "? [a, b]\n: 1\n",
            ": 1\n",
            "a: \"\\q\"\n",
            "<<: 3\n",
        ] {
            text.push_str(&format!("{}\n", issue(case)));
        }
        insta::assert_snapshot!(text, @r#"
        1:1 the file is empty | a pipeline begins with `version: 1`, `name: NAME` and `stages:`
        1:1 the file is empty | a pipeline begins with `version: 1`, `name: NAME` and `stages:`
        3:1 the key `a` is given twice | it is already defined in line 1: remove one of the two
        2:2 a tab where only spaces are allowed | indent with spaces
        2:1 a quote is not closed where it should be | close it at the end of its text; inside single quotes, write a single quote twice
        1:4 this `{` is not closed | close it
        2:2 a `:` where no key is allowed | look for a bracket, a brace or a quote that is not closed before it
        2:3 a `:` where no key is allowed | quote values that hold `: `, ` #` or begin with one of `{ [ & * ! | > % @`, and keep the same indentation for the keys of a map
        1:5 a `:` where no key is allowed | quote values that hold `: `, ` #` or begin with one of `{ [ & * ! | > % @`, and keep the same indentation for the keys of a map
        1:4 an alias without an anchor of that name before it | define it with `&NAME` above; quote a value that begins with `*`
        1:8 this alias refers to a value that contains it | write the value out in one of the two places
        1:20 the tag `!!python/object` is not supported | remove it; quotes make a value a string
        1:4 `.nan` is not a finite number | write a number, or put it in quotes if it is a string
        1:4 the number 1e999 is too large | numbers have 64 bits; put it in quotes if it is a name
        1:4 the number 99999999999999999999 is too large | numbers have 64 bits; put it in quotes if it is a name
        2:1 a second document begins | a file holds one pipeline: remove this `---` and what follows it
        1:9 this is not valid YAML: did not find expected ',' or '}' | quote an interpolation between braces or brackets: `{ seed: "${params.seed}" }`
        1:3 a key is a list, not a string | quote it; an interpolation between braces or brackets needs quotes: `"${params.seed}"`
        1:1 a key is empty | write `key: value`
        1:4 an unknown escape inside double quotes | write the backslash twice, or use single quotes
        1:5 `<<` merges maps, and this is the number 3 | write `<<: *NAME`, where `&NAME` marks a map above
        "#);
    }

    #[test]
    fn bombs_and_depth() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for i in 1..30 {
            bomb.push_str(&format!(
                "a{i}: &a{i} [{}]\n",
                vec![format!("*a{}", i - 1); 10].join(", ")
            ));
        }
        assert!(issue(&bomb).contains("more than 500000 values"), "{}", issue(&bomb));
        for depth in [60, 500, 100_000] {
            for open in ["[", "{a: ", "- ", "? ", "a:\n "] {
                assert!(!issue(&open.repeat(depth)).is_empty());
            }
            assert!(issue(&format!("{}{}", "[".repeat(depth), "]".repeat(depth))).contains("deep"));
            assert!(issue(&format!("{}x", "- ".repeat(depth))).contains("deep"));
        }
    }
}
