//! Files that are damaged.

use super::{NOTHING, bar, days, inspect, plain, write};
use crate::{Ended, Project, artifact};
use serde_json::Value;
use stages_core::table;
use std::collections::BTreeSet;

/// Damages of a file, each with its name.
fn damages(text: &str) -> Vec<(&'static str, Vec<u8>)> {
    let lines: Vec<&str> = text.lines().collect();
    let (header, body) = (lines[0], &lines[1..]);
    let joined = |lines: &[&str]| lines.join("\n") + "\n";
    // The text with other cells where `of` gives one.
    let changed = |of: &dyn Fn(usize, usize, &str) -> Option<String>| {
        let rows = lines.iter().enumerate().map(|(row, line)| {
            let cells = line.split(',').enumerate();
            let cells = cells.map(|(at, cell)| of(row, at, cell).unwrap_or_else(|| cell.to_owned()));
            cells.collect::<Vec<_>>().join(",")
        });
        (rows.collect::<Vec<_>>().join("\n") + "\n").into_bytes()
    };
    let bytes = |text: String| text.into_bytes();
    let mut shuffled: Vec<&str> = body.to_vec();
    shuffled.sort_by_key(|line| line.bytes().map(u32::from).sum::<u32>() % 97);
    vec![
        ("as it is", bytes(text.to_owned())),
        ("an empty file", Vec::new()),
        ("a header alone", bytes(joined(&[header]))),
        ("one row", bytes(joined(&lines[..2]))),
        ("cut off", text.as_bytes()[..text.len() * 2 / 3 - 3].to_vec()),
        ("rows out of order", bytes(joined(&[&[header][..], &shuffled].concat()))),
        ("rows twice", bytes(joined(&[&lines[..], body].concat()))),
        (
            "names without meaning",
            changed(&|row, at, _| (row == 0).then(|| format!("x{at}"))),
        ),
        ("no header", bytes(joined(body))),
        ("two headers", bytes(joined(&[&[header, header][..], body].concat()))),
        (
            "a name twice",
            changed(&|row, at, _| matches!((row, at), (0, 2)).then(|| "Open".to_owned())),
        ),
        (
            "an empty name",
            changed(&|row, at, _| matches!((row, at), (0, 1)).then(String::new)),
        ),
        (
            "a text among numbers",
            changed(&|row, at, _| matches!((row, at), (7, 4)).then(|| "n.v.x".to_owned())),
        ),
        (
            "empty cells",
            changed(&|row, at, _| (row % 6 == 3 && at > 0).then(String::new)),
        ),
        (
            "a wrong date",
            changed(&|row, at, _| matches!((row, at), (9, 0)).then(|| "2023-02-31".to_owned())),
        ),
        (
            "dates of one digit",
            changed(&|row, at, cell| matches!((row, at), (1.., 0)).then(|| cell.replace("-0", "-"))),
        ),
        (
            "one separator more",
            changed(&|row, at, cell| matches!((row, at), (1.., 5)).then(|| format!("{cell},"))),
        ),
        (
            "a ragged row",
            changed(&|row, at, cell| matches!((row, at), (5, 5)).then(|| format!("{cell},extra,more"))),
        ),
        (
            "separators of other countries",
            bytes(text.replace(',', ";").replace('.', ",")),
        ),
        ("no separators", bytes(text.replace(',', " "))),
        (
            "line ends of Windows and a mark",
            bytes(format!("\u{feff}{}", text.replace('\n', "\r\n"))),
        ),
        ("line ends of old Macintoshes", bytes(text.replace('\n', "\r"))),
        (
            "UTF-16",
            [
                vec![0xff, 0xfe],
                text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            ]
            .concat(),
        ),
        (
            "bytes of another encoding",
            [b"# K\xe4ufe \xfc\n".to_vec(), text.as_bytes().to_vec()].concat(),
        ),
        ("zeros", [text.as_bytes(), &[0; 64]].concat()),
        ("only numbers", changed(&|row, at, _| Some((row * 10 + at).to_string()))),
        (
            "prices of zero",
            changed(&|row, at, _| matches!((row, at), (1.., 1..)).then(|| "0".to_owned())),
        ),
        (
            "a unit in each cell",
            changed(&|row, at, cell| matches!((row, at), (1.., 1..5)).then(|| format!("{cell} USD"))),
        ),
        (
            "a compressed file of nothing",
            b"\x1f\x8b\x08\x00\x00\x00\x00\x00".to_vec(),
        ),
        ("a workbook's first bytes", b"PK\x03\x04 not a workbook".to_vec()),
    ]
}

/// Whose, date and close of bars that a run has read; the symbol is left out where the file's name gives it.
fn closes(project: &Project, ended: &Ended, has_symbols: bool) -> BTreeSet<String> {
    let (store, made) = artifact(project, ended, "bars.bars");
    let tables = made.entries.iter().filter(|entry| entry.path.ends_with(".parquet"));
    let mut found = BTreeSet::new();
    for entry in tables {
        let rows = table::from_parquet(store.blob(entry.blob).unwrap()).unwrap();
        let (symbols, dates) = (
            table::texts(&rows, "symbol").unwrap(),
            table::dates(&rows, "date").unwrap(),
        );
        let closes = table::floats(&rows, "close").unwrap();
        found.extend(dates.iter().enumerate().map(|(row, date)| {
            let symbol = if has_symbols { symbols.value(row) } else { "" };
            format!("{symbol} {date} {:.2}", closes.value(row))
        }));
    }
    found
}

/// Inspection answers whatever the file is, and what it proposes reads the rows of the undamaged file, or
/// says what is wrong.
#[test]
fn damaged_files_are_answered() {
    let project = Project::new(NOTHING);
    let panel = {
        let rows = days(30).into_iter().enumerate().flat_map(|(i, date)| {
            [("AAA", 50.0), ("BBB", 80.0)].map(|(symbol, base)| {
                let (o, h, l, c, _) = bar(i, base);
                format!("{date},{o:.2},{h:.2},{l:.2},{c:.2},{symbol}\n")
            })
        });
        format!("Date,Open,High,Low,Close,Ticker\n{}", rows.collect::<String>())
    };
    let (mut tried, mut told, mut right) = (0, 0, 0);
    for (file, text) in [("bars", plain(30)), ("panel", panel)] {
        let mut whole = BTreeSet::new();
        for (at, (damage, bytes)) in damages(&text).into_iter().enumerate() {
            let name = format!("{file}_{at}.csv");
            write(&project, &name, &bytes);
            let shown = project.run(&["data", "inspect", &name, "--json"]);
            assert_eq!(shown.code, 0, "{file}, {damage}: {}", shown.stderr);
            let answer: Value = serde_json::from_str(&shown.stdout).unwrap();
            let shown = inspect(&project, &name).stdout;
            assert!(shown.lines().count() > 1, "{file}, {damage}: {shown}");
            tried += 1;
            if !answer["finding"].is_null() {
                assert!(shown.contains("finding: "), "{file}, {damage}: {shown}");
                told += 1;
            } else {
                let stage = answer["stage"].as_str().unwrap();
                project.write("one.yaml", format!("version: 1\nname: one\nstages:\n{stage}"));
                let ended = project.run(&["exec", "one.yaml", "--json"]);
                assert_eq!(ended.code, 0, "{file}, {damage}: {}\n{stage}", ended.stderr);
                if stage.contains("ingest/bars") {
                    let found = closes(&project, &ended, file == "panel");
                    if at == 0 {
                        whole.clone_from(&found);
                        assert_eq!(whole.len(), text.lines().count() - 1, "{file}");
                    }
                    // Rows that the text has no more are missing.
                    let is_short = bytes.len() < text.len() * 9 / 10;
                    let is_right = found == whole || is_short && found.is_subset(&whole);
                    let warns = |line: &str| line.contains("warning") && !line.contains("facts of the bars");
                    let is_told = ended.stderr.lines().any(warns);
                    assert!(is_right || is_told, "{file}, {damage}: {}\n{stage}", ended.stderr);
                    (right, told) = (right + usize::from(is_right), told + usize::from(!is_right));
                } else {
                    // No prices are taken from it.
                    assert!(!stage.contains("close: "), "{file}, {damage}: {stage}");
                    told += 1;
                }
            }
            let pipeline = format!("{file}_{at}.yaml");
            let init = project.run(&["init", &name, "--to", &pipeline]);
            assert_eq!(init.code, 0, "{file}, {damage}: {}", init.stderr);
            assert!(project.path(&pipeline).exists(), "{file}, {damage}");
        }
    }
    println!(
        "damaged files: tried {tried}, told {told}, right {right}, silent {}",
        tried - told - right
    );
    assert!(tried >= 40 && right >= 10, "{tried}, {told}, {right}");
}
