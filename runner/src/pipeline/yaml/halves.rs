//! A long pipeline file in two halves, side by side: reading YAML is a third of what a large pipeline with nothing to do costs.
//!
//! The second half is the rest of `stages:`, from the line of a stage on. Where anything is unusual, neither half counts and the
//! text is read as a whole, so that there is one judge of what is wrong with a text.

use super::super::tree::{Key, Tree, Value};
use super::{MOST, read};
use std::collections::HashSet;

/// What the second half begins with.
const HEAD: &str = "stages:\n";

/// Reads the text in halves; `None` where it has to be read as a whole.
pub(super) fn parse(content: &str, text: usize) -> Option<Tree> {
    let at = middle(content)?;
    let (first, rest) = content.split_at(at);
    let second = format!("{HEAD}{rest}");
    let lines = first.matches('\n').count();
    let (first, second) = std::thread::scope(|scope| {
        let second = scope.spawn(|| read(&second, text, lines - 1));
        (read(first, text, 0), second.join())
    });
    let ((first, few), (second, more)) = (first.ok()?, second.ok()?.ok()?);
    if few + more > MOST {
        return None;
    }
    join(first, second)
}

/// Where the line of a stage begins, about in the middle of the text.
fn middle(content: &str) -> Option<usize> {
    // Merge keys look at the other keys of their map, and directives hold for all of the text.
    if content.starts_with('%') || content.contains("<<") || content.contains('\r') {
        return None;
    }
    let head = if content.starts_with(HEAD) {
        0
    } else {
        content.find("\nstages:\n")? + 1
    };
    let mut at = head + HEAD.len();
    let mut indent = None;
    let mut best = None;
    let mut before = "";
    for line in content[at..].split_inclusive('\n') {
        let word = line.trim_start_matches(' ');
        let blanks = line.len() - word.len();
        if !word.trim().is_empty() && !word.starts_with('#') {
            if blanks == 0 {
                break;
            }
            let is_key = word.starts_with(|c: char| c.is_ascii_alphanumeric()) && word.trim_end().ends_with(':');
            // The first half keeps a stage.
            if is_key && indent == Some(blanks) && is_entry(before, blanks) {
                best = Some(at);
            }
            indent.get_or_insert(blanks);
            before = line;
        }
        at += line.len();
        if best.is_some() && at > content.len() / 2 {
            break;
        }
    }
    best
}

/// Whether a line is `key: value`, deeper than `indent`. What has no value yet has another place where the text ends.
fn is_entry(line: &str, indent: usize) -> bool {
    let word = line.trim_start_matches(' ');
    let value = word.split_once(": ").map_or("", |(_, value)| value);
    let value = value.split(" #").next().unwrap_or_default().trim();
    line.len() - word.len() > indent
        && !word.starts_with(['?', '-'])
        && !value.is_empty()
        && !value.starts_with(['#', '&', '!', '|', '>'])
}

/// The whole from its halves, unless they share a key.
fn join(first: Tree, second: Tree) -> Option<Tree> {
    let (Value::Map(mut entries), Value::Map(mut more)) = (first.value, second.value) else {
        return None;
    };
    let stages = |(key, _): &(Key, Tree)| key.name == "stages";
    let (Value::Map(stages), Value::Map(rest)) = (
        &mut entries.iter_mut().find(|entry| stages(entry))?.1.value,
        more.remove(0).1.value,
    ) else {
        return None;
    };
    stages.extend(rest);
    let differ = all_differ(stages);
    entries.extend(more);
    (differ && all_differ(&entries)).then_some(Tree {
        value: Value::Map(entries),
        ..first
    })
}

fn all_differ(entries: &[(Key, Tree)]) -> bool {
    let mut known = HashSet::with_capacity(entries.len());
    entries.iter().all(|(key, _)| known.insert(key.name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines() -> impl Strategy<Value = Vec<String>> {
        let word = prop::sample::select(vec![
            "stages:",
            "a:",
            "b:",
            "s1:",
            "s2:",
            "s3:",
            "run: x",
            "x: [1,",
            "2]",
            "y: \"q",
            "q\"",
            "t: |",
            "u: >2",
            "# note",
            "- 1",
            "- a: 2",
            "&n",
            "v: &n 1",
            "w: *n",
            "",
            "---",
            "...",
            "z: {",
            "}",
            "'k':",
            "? c",
            "version: 1",
            "plain",
            "\u{e9}:",
            "s1: 2",
            "stages: {}",
        ]);
        let line = (0_usize..5, word).prop_map(|(blanks, word)| format!("{:blanks$}{word}", ""));
        prop::collection::vec(line, 1..24)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn halves_are_the_whole(top in lines(), stages in lines()) {
            for text in [
                format!("{}\nstages:\n{}\n", top.join("\n"), stages.join("\n")),
                format!("version: 1\nstages:\n  s1:\n    run: x\n{}\n  s2:\n{}", top.join("\n"), stages.join("\n")),
            ] {
                if let Some(tree) = parse(&text, 3) {
                    let whole = read(&text, 3, 0);
                    prop_assert!(whole.is_ok(), "{text}\n{tree:?}\n{whole:?}");
                    let whole = whole.unwrap().0;
                    prop_assert_eq!(format!("{tree:?}"), format!("{whole:?}"), "{}", text);
                }
            }
        }
    }

    #[test]
    fn a_pipeline_has_two_halves() {
        let mut text = "version: 1\nname: n\nstages:\n".to_owned();
        for i in 0..40 {
            text.push_str(&format!(
                "  s{i}:\n    run: |\n      echo {i}\n\n      s{i}:\n    env: {{ A: {i} }} # a note\n"
            ));
        }
        text.push_str("params: { a: 1 }\n");
        let tree = parse(&text, 0).expect("halves");
        assert_eq!(format!("{tree:?}"), format!("{:?}", read(&text, 0, 0).unwrap().0));
        assert!(
            parse(&text.replace("  s7:\n", "  s31:\n"), 0).is_none(),
            "a key is given twice"
        );
        assert!(
            parse(&text.replace("name: n", "params: 2"), 0).is_none(),
            "a key is given twice"
        );
    }
}
