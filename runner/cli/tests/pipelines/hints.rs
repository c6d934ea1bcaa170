//! Hints, executed: what a hint says is applied to the file at the place of its error, and the error is gone.

use runner_pipeline::{LoadOptions, PipelineError, load_text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

fn errors(text: &str) -> Vec<PipelineError> {
    let options = LoadOptions::new(runner::registry::kinds());
    match load_text(Path::new("p.yaml"), text.as_bytes(), &options) {
        Ok(_) => Vec::new(),
        // No data are there.
        Err(errors) => errors
            .0
            .into_iter()
            .filter(|error| !error.message.contains("there is no file"))
            .collect(),
    }
}

/// The first text in backticks.
fn backticked(text: &str) -> Option<&str> {
    text.split('`').nth(1)
}

/// The text that a hint says to write at the place of its error; `None` for advice that is no such text.
fn replacement(hint: &str) -> Option<String> {
    // Names in capitals and dots stand for what the author knows.
    let is_template = |text: &str| {
        text.contains('…')
            || [
                "NAME", "STAGE", "AXIS", "KEY", "VALUE", "KIND", "COMMAND", "VARIABLE", "OUTPUT", "RUN",
            ]
            .iter()
            .any(|word| text.contains(word) && !text.contains("\"NULL\""))
    };
    let plain = |text: &str| Some(text.to_owned()).filter(|text| !is_template(text));
    if let Some((_, rest)) = hint.split_once("put it in quotes: ") {
        return backticked(rest).and_then(plain);
    }
    if let Some(rest) = hint.strip_prefix("did you mean ") {
        return backticked(rest).and_then(plain);
    }
    if let Some(rest) = hint.strip_prefix("write a list: ") {
        return backticked(rest).and_then(plain);
    }
    if let Some(rest) = hint.strip_prefix("the values are ") {
        return backticked(rest).and_then(plain);
    }
    let rest = hint.strip_prefix("write ")?;
    if rest.starts_with('`') {
        return backticked(rest).and_then(plain);
    }
    if let Some(quoted) = rest.strip_prefix('"') {
        return quoted.split_once('"').map(|(text, _)| format!("\"{text}\""));
    }
    if let Some((text, _)) = rest.split_once(" without quotes") {
        return plain(text);
    }
    rest.parse::<f64>().is_ok().then(|| rest.to_owned())
}

/// The number of characters of the value that begins `rest`: brackets up to their end, else `width`.
fn value_width(rest: &[char], width: usize) -> usize {
    let mut depth = 0;
    for (at, c) in rest.iter().enumerate() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            _ if at == 0 => return width,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    width
}

/// The file with the hint of an error applied; `None` where the hint is not a text to write.
fn followed(text: &str, error: &PipelineError) -> Option<String> {
    let new = replacement(error.hint.as_deref()?)?;
    let mut lines: Vec<Vec<char>> = text.split('\n').map(|line| line.chars().collect()).collect();
    let line = lines.get_mut(error.place.line - 1)?;
    let mut from = error.place.column - 1;
    let mut width = value_width(line.get(from..)?, error.width);
    // `key: value` replaces the key, too, where the place is its value, and stands where it is the key.
    if let Some((key, _)) = new.split_once(": ")
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    {
        let before: String = line[..from].iter().collect();
        let label = format!("{key}: ");
        if before.ends_with(&label) {
            from -= label.chars().count();
            width += label.chars().count();
        } else {
            let here: String = line[from..].iter().collect();
            // A whole block is replaced by hand.
            if !here.starts_with(&label) {
                return None;
            }
            let at = from + label.chars().count();
            width = label.chars().count() + value_width(&line[at..], line.len() - at);
        }
    }
    let to = (from + width).min(line.len());
    line.splice(from..to, new.chars());
    let lines: Vec<String> = lines.into_iter().map(|line| line.into_iter().collect()).collect();
    Some(lines.join("\n"))
}

#[derive(Default)]
struct Tally {
    tried: usize,
    advice: usize,
    wrong: Vec<String>,
}

impl Tally {
    /// Follows the hints of the errors that `is_meant` selects, one at a time.
    fn follow(&mut self, name: &str, text: &str, is_meant: impl Fn(&PipelineError) -> bool) {
        for error in errors(text).iter().filter(|error| is_meant(error)) {
            let Some(changed) = followed(text, error) else {
                self.advice += 1;
                continue;
            };
            self.tried += 1;
            let same = |other: &PipelineError| other.place == error.place && other.message == error.message;
            if errors(&changed).iter().any(same) || changed == text {
                self.wrong.push(format!("{name}: {error}\n--- followed:\n{changed}\n"));
            }
        }
    }

    fn finish(self, what: &str, least: usize) {
        let Self { tried, advice, wrong } = self;
        eprintln!(
            "{what}: tried {tried}, told {tried}, right {}, silent 0; \
            advice without a text to write {advice}",
            tried - wrong.len()
        );
        assert!(
            wrong.is_empty(),
            "{} hints do not help:\n{}",
            wrong.len(),
            wrong.join("\n")
        );
        assert!(tried >= least, "{tried}");
    }
}

/// Scalars that YAML reads as something else than they look like, and others.
const VALUES: [&str; 24] = [
    "TRUE",
    "1E5",
    "0700",
    "NA",
    "NULL",
    "~",
    "yes",
    "off",
    "1_000",
    "0x10",
    "2023-01-01",
    "1:30",
    ".5",
    "+1",
    "-3",
    "2.0",
    "\"7\"",
    "'2.5'",
    "text",
    "\"two words\"",
    "[1]",
    "[]",
    "{ a: 1 }",
    "\"\"",
];

#[test]
fn hints_of_the_malformed_files_help() {
    let mut tally = Tally::default();
    for file in crate::files("../pipeline/tests/bad") {
        let text = std::fs::read_to_string(&file).unwrap();
        tally.follow(&file.display().to_string(), &text, |_| true);
    }
    tally.finish("hints of malformed files", 30);
}

/// Every key of every kind with every value.
#[test]
fn hints_of_settings_help() {
    let mut tally = Tally::default();
    for kind in runner::registry::kinds() {
        let schema = kind.schema();
        let Some(Value::Object(keys)) = schema.get("properties") else {
            continue;
        };
        for key in keys.keys() {
            for value in VALUES {
                let head = format!(
                    "version: 1\nname: hint\nstages:\n  x:\n    uses: {}\n    with:\n",
                    kind.name()
                );
                let text = format!("{head}      {key}: {value}\n");
                // Errors about what else is missing are at other places.
                tally.follow(kind.name(), &text, |error| error.place.line == 7);
                // As an item, too.
                let text = format!("{head}      {key}: [{value}]\n");
                tally.follow(kind.name(), &text, |error| error.place.line == 7);
            }
        }
    }
    tally.finish("hints of settings", 1000);
}

/// A symbol is quoted as the file has it, so that what is followed names the row that was meant.
#[test]
fn symbols_are_quoted_as_they_are_written() {
    let pipeline = |symbols: &str| {
        format!(
            "version: 1\nname: symbols\nstages:\n\x20 \
            bars: {{ uses: ingest/bars, with: {{ path: bars.csv, symbols: {symbols} }} }}\n"
        )
    };
    let mut tried = 0;
    let told: BTreeMap<&str, String> = [
        "TRUE", "True", "false", "1E5", "1e5", "0700", "0050", "7203", "NULL", "Null", "null", "0x10", ".5",
        "+1", "-1", "1.", "1.50", "600519", "1e-3", "0o17", "2.0", "007", "1E-05",
    ]
    .into_iter()
    .map(|symbol| {
        let text = pipeline(&format!("[{symbol}]"));
        let found = errors(&text);
        assert_eq!(found.len(), 1, "{symbol}: {found:?}");
        let changed = followed(&text, &found[0]).unwrap_or_else(|| panic!("{}", found[0]));
        assert_eq!(changed, pipeline(&format!("[\"{symbol}\"]")));
        assert!(errors(&changed).is_empty(), "{symbol}");
        tried += 1;
        (symbol, changed)
    })
    .collect();
    assert_eq!(told.len(), tried);
    // These are texts.
    for symbol in [
        "NA",
        "yes",
        "no",
        "on",
        "Y",
        "1_000",
        "2023-01-01",
        "1:30",
        "BRK.B",
        "^SPX",
        "nan",
    ] {
        assert!(errors(&pipeline(&format!("[{symbol}]"))).is_empty(), "{symbol}");
        let text = pipeline(symbol);
        let found = errors(&text);
        let changed = followed(&text, &found[0]).unwrap_or_else(|| panic!("{}", found[0]));
        assert_eq!(changed, pipeline(&format!("[{symbol}]")));
        tried += 1;
    }
    eprintln!("symbols that YAML reads otherwise: tried {tried}, told {tried}, right {tried}, silent 0");
}

/// Settings that contradict one another are refused before anything runs, and what a hint names is read.
#[test]
fn small_contradictions() {
    let stage = |stage: &str| {
        format!(
            "version: 1\nname: small\nstages:\n\x20 \
            env: {{ uses: env/classic, with: {{ id: CartPole-v1 }} }}\n  x: {{ {stage} }}\n"
        )
    };
    let said = |text: &str| {
        errors(text)
            .into_iter()
            .map(|error| error.message)
            .collect::<Vec<_>>()
            .join("; ")
    };
    for values in [
        "[1, 1.0]",
        "[1.0, 1]",
        "[1e3, 1000]",
        "[1_000, 1000]",
        "[0.5, 5e-1]",
        "[-2, -2.0]",
        "[2, 3, 2.0]",
    ] {
        let text = stage(&format!(
            "run: \"echo ${{matrix.v}} > ${{outputs.o}}\", outputs: {{ o: o.txt }}, matrix: {{ v: {values} }}"
        ));
        assert!(
            said(&text).contains("the axis `v` has the value"),
            "{values}: {}",
            said(&text)
        );
    }
    let points = stage(
        "run: \"echo ${matrix.v} > ${outputs.o}\", outputs: { o: o.txt }, \
        matrix: { points: [{ v: 1, w: a }, { v: 1.0, w: a }] }",
    );
    assert!(said(&points).contains("this point is given twice"), "{}", said(&points));
    let distinct = stage(
        "run: \"echo ${matrix.v} > ${outputs.o}\", outputs: { o: o.txt }, \
        matrix: { v: [1, 1.5, 2, x, \"y\"] }",
    );
    assert_eq!(said(&distinct), "");
    let action = |ratio: &str| {
        stage(&format!(
            "uses: ingest/corporate_actions, with: {{ \
            actions: [{{ symbol: A, date: 2014-06-09, ratio: {ratio} }}] }}"
        ))
    };
    for ratio in ["7", "0.125", "\"7:1\"", "7.0", "\"7\"", "3-for-2", "1.5"] {
        assert_eq!(said(&action(ratio)), "", "{ratio}");
    }
    for ratio in ["0", "-7", "\"7:0\"", "seven"] {
        assert!(
            said(&action(ratio)).contains("is not a ratio"),
            "{ratio}: {}",
            said(&action(ratio))
        );
    }
    for (kind, starts, total) in [
        ("dqn", "50000", "1000"),
        ("sac", "1000", "1000"),
        ("td3", "2000", "1500"),
        ("dqn", "2_000", "1_900"),
    ] {
        let text = stage(&format!(
            "uses: train/{kind}, needs: {{ env: env }}, with: {{ total_timesteps: {total}, \
            learning_starts: {starts} }}"
        ));
        assert!(
            said(&text).contains("nothing would be learned"),
            "{kind}: {}",
            said(&text)
        );
        let text = stage(&format!(
            "uses: train/{kind}, needs: {{ env: env }}, with: {{ total_timesteps: 3_000, \
            learning_starts: {starts} }}"
        ));
        assert_eq!(said(&text).is_empty(), starts != "50000", "{kind}: {}", said(&text));
    }
    for total in ["300_000", "300000", "3_00000", "\"300_000\""] {
        let text = stage(&format!(
            "uses: train/ppo, needs: {{ env: env }}, with: {{ total_timesteps: {total} }}"
        ));
        assert_eq!(said(&text), "", "{total}");
    }
    for total in ["_300000", "300000_", "300__000", "3_00.5", "0"] {
        let text = stage(&format!(
            "uses: train/ppo, needs: {{ env: env }}, with: {{ total_timesteps: {total} }}"
        ));
        assert_ne!(said(&text), "", "{total}");
    }
}
