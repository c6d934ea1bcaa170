//! No input makes the reader panic.

use crate::{GOOD, read};
use proptest::prelude::*;

/// Pieces that mean something in a pipeline file or in YAML.
const PIECES: [&str; 40] = [
    "\n",
    "  ",
    "\t",
    ": ",
    ":",
    "- ",
    "? ",
    "{",
    "}",
    "[",
    "]",
    ",",
    "\"",
    "'",
    "|",
    ">",
    "|2-\n",
    "&a ",
    "*a",
    "<<: ",
    "!!str ",
    "!x ",
    "---\n",
    "...\n",
    "%YAML 1.2\n",
    "# ",
    "${",
    "$${",
    "${params.seed}",
    "${matrix.seed}",
    "${needs.",
    "}",
    "null",
    "~",
    "1e999",
    "0x",
    "é",
    "\u{1f600}",
    "[*]",
    "[seed=1]",
];

fn mutated() -> impl Strategy<Value = String> {
    let edit = (any::<prop::sample::Index>(), 0..40usize, 0..PIECES.len(), 0..4u8);
    prop::collection::vec(edit, 1..6).prop_map(|edits| {
        let mut text: Vec<char> = GOOD.chars().collect();
        for (at, length, piece, action) in edits {
            let at = at.index(text.len().max(1));
            let end = (at + length).min(text.len());
            match action {
                0 => drop(text.drain(at.min(end)..end)),
                1 => drop(text.splice(at..at, PIECES[piece].chars())),
                2 => drop(text.splice(at.min(end)..end, PIECES[piece].chars())),
                _ => {
                    let copy: Vec<char> = text[at.min(end)..end].to_vec();
                    let to = (at * 7) % text.len().max(1);
                    drop(text.splice(to..to, copy));
                }
            }
        }
        text.into_iter().collect()
    })
}

fn soup() -> impl Strategy<Value = String> {
    prop::collection::vec(0..PIECES.len(), 0..60)
        .prop_map(|pieces| pieces.into_iter().map(|piece| PIECES[piece]).collect())
}

/// Asserts that the text is read or refused: never a panic, always a place and a hint.
fn survives(text: &str, set: &[&str]) {
    if let Err(errors) = read(text, set) {
        assert!(!errors.0.is_empty());
        for error in &errors.0 {
            assert!(error.place.line > 0 && error.place.column > 0);
            assert!(error.hint.as_ref().is_some_and(|hint| !hint.is_empty()));
            assert!(!error.to_string().is_empty());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn mutations_of_a_good_file(text in mutated()) {
        survives(&text, &[]);
    }

    #[test]
    fn pieces_in_any_order(text in soup()) {
        survives(&text, &[]);
        survives(&format!("version: 1\nname: a\nstages:\n  x: {text}"), &[]);
        survives(&format!("version: 1\nname: a\nstages:\n  x:\n    uses: train/ppo\n    with: \
            {{ a: {text}"), &[]);
    }

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        survives(&text, &[]);
        survives(GOOD, &[&text]);
        survives(GOOD, &[&format!("seed={text}"), &format!("train.with.{text}=1"),
            &format!("env.with.slate={text}")]);
    }
}
