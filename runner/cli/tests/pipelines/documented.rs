//! The examples of README.md and of the pages in docs/. Every block says what it is by the tag of its fence:
//!
//! | tag | |
//! | --- | --- |
//! | `yaml` | a pipeline, or a part of one (stages, settings of a stage, blocks beside the stages), which is planned in the smallest pipeline that makes it whole; or a layout |
//! | `sh` | commands, whose arguments are parsed |
//! | `python` | compiled, where there is a Python |
//! | `json`, `csv` | read |
//! | `rust` | lines of the crate's examples, which are compiled |
//! | `toml` | a package's project, which the test of packages installs |
//! | `text` | what is not to be run: output, and forms with `…` |

use runner_pipeline::{LoadOptions, PipelineErrors, load};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A block of a page.
struct Example {
    page: String,
    /// The line of its first line.
    line: usize,
    tag: String,
    text: String,
}

impl Example {
    fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }
}

/// The pages below a folder, but those that are written by the program.
fn pages_below(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_written = path.ends_with("docs/reference");
        if path.is_dir() && !is_written {
            pages_below(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}

fn examples() -> Vec<Example> {
    let root = Path::new("../..");
    let mut found = vec![root.join("README.md")];
    pages_below(&root.join("docs"), &mut found);
    let name = |path: PathBuf| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
    let mut pages: Vec<String> = found.into_iter().map(name).collect();
    pages.sort();
    let mut all = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(root.join(&page)).unwrap();
        let mut open: Option<(usize, Example)> = None;
        for (number, line) in text.lines().enumerate() {
            let trimmed = line.trim_start();
            let indent = line.len() - trimmed.len();
            match (trimmed.strip_prefix("```"), &mut open) {
                (Some(tag), None) => {
                    let example = Example {
                        page: page.clone(),
                        line: number + 2,
                        tag: tag.trim().to_owned(),
                        text: String::new(),
                    };
                    open = Some((indent, example));
                }
                (Some(_), Some(_)) => all.extend(open.take().map(|(_, example)| example)),
                (None, Some((indent, example))) => {
                    example.text.push_str(line.get(*indent..).unwrap_or_default());
                    example.text.push('\n');
                }
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{page}: a block is not closed");
    }
    all
}

fn of(tag: &str) -> impl Iterator<Item = Example> {
    examples().into_iter().filter(move |example| example.tag == tag)
}

/// Every block has a tag that says how it is checked; few are not.
#[test]
fn every_example_is_checked_or_says_that_it_is_not() {
    let known = ["yaml", "sh", "python", "json", "csv", "rust", "toml", "text"];
    let mut unchecked = 0;
    for example in examples() {
        assert!(
            known.contains(&example.tag.as_str()),
            "{}: the tag `{}` of this block is not one of {known:?}: \
            a test checks each by its tag; `text` is not run",
            example.place(),
            example.tag
        );
        unchecked += usize::from(example.tag == "text");
    }
    assert!(unchecked <= 8, "{unchecked} blocks are `text`, which no test checks");
}

/// Stages by the names that the examples use, for what an example needs and does not define.
const STAGES: [(&str, &str); 18] = [
    ("market", "{ uses: ingest/simulated_market, with: { days: 652 } }"),
    ("rates", "{ uses: ingest/rates, with: { path: rates.csv } }"),
    ("bars", "{ uses: ingest/bars, with: { path: bars.csv } }"),
    ("quotes", "{ uses: ingest/option_chain, with: { path: quotes.csv } }"),
    (
        "actions",
        "{ uses: ingest/corporate_actions, with: { path: actions.csv } }",
    ),
    (
        "chain",
        "{ uses: greeks/implied_volatility, needs: { chain: market.chain, rates: market.rates } }",
    ),
    ("greeks", "{ uses: greeks/analytic, needs: { chain: chain } }"),
    (
        "surface",
        "{ uses: features/options_surface, needs: { chain: chain, greeks: greeks } }",
    ),
    ("indicators", "{ uses: features/technical, needs: { bars: bars } }"),
    ("features", "{ uses: features/technical, needs: { bars: bars } }"),
    ("turbulence", "{ uses: features/turbulence, needs: { bars: bars } }"),
    ("rows", "{ uses: ingest/table, with: { path: rows.csv } }"),
    ("kb", "{ uses: ingest/knowledge_base, with: { folder: kb } }"),
    ("env", "{ uses: env/options, needs: { chain: chain, greeks: greeks } }"),
    (
        "train",
        "{ uses: train/ppo, needs: { env: env }, with: { total_timesteps: 1000 } }",
    ),
    (
        "agent",
        "{ uses: train/ppo, needs: { env: env }, with: { total_timesteps: 1000 } }",
    ),
    (
        "evaluate",
        "{ uses: evaluate/backtest, needs: { env: env, policy: train } }",
    ),
    (
        "verdict",
        "{ uses: evaluate/backtest, needs: { env: env, policy: train } }",
    ),
];

/// Blocks beside the stages.
const BESIDE: [&str; 7] = [
    "params", "schedule", "notify", "track", "promote", "profiles", "include",
];

/// The top-level keys of a block, with their values' first line.
fn keys(text: &str) -> Vec<(&str, &str)> {
    let lines = text.lines().filter(|line| !line.starts_with([' ', '#', '-']));
    lines
        .filter_map(|line| line.split_once(':').map(|(key, rest)| (key, rest.trim())))
        .collect()
}

/// A file of the documented layout, without which a plan does not look at the layout.
const LAID_OUT: &str = "Trade Day,Last Day,K,CP,Bid Px,Ask Px,Instrument,Session\n\
    02.01.2024,19.01.2024,100000,C,1,2,OPT,F1\n";

/// Plans a pipeline in a directory of its own, which has the modules that it names, and a layout; the data,
/// files and programs that a page speaks of are not there.
fn planned(text: &str, layout: Option<&str>) -> Result<(), PipelineErrors> {
    let dir = tempfile::tempdir().unwrap();
    for (at, _) in text.match_indices("call: ") {
        let call = text[at + 6..].split([' ', '\n', ',', '}']).next().unwrap_or_default();
        if let Some((module, function)) = call.trim_matches('"').split_once(':') {
            let body = format!("def {function}(*args, **kwargs):\n    pass\n");
            std::fs::write(dir.path().join(format!("{module}.py")), body).unwrap();
        }
    }
    if let Some(layout) = layout {
        std::fs::write(dir.path().join("layout.yaml"), layout).unwrap();
        std::fs::write(dir.path().join("x.csv"), LAID_OUT).unwrap();
    }
    let path = dir.path().join("p.yaml");
    std::fs::write(&path, text).unwrap();
    let mut options = LoadOptions::new(runner::registry::kinds());
    options.earlier = Some(Box::new(|_| Ok(None)));
    options.tried = Some(Box::new(|_| Ok(1)));
    let Err(mut errors) = load(&path, &options) else {
        return Ok(());
    };
    let absent = [
        "there is no file or directory",
        "no file matches",
        "there is no folder",
        "No such file or directory",
        "there is no program",
    ];
    errors
        .0
        .retain(|error| !absent.iter().any(|text| error.message.contains(text)));
    if errors.0.is_empty() { Ok(()) } else { Err(errors) }
}

/// The pipeline that makes a block whole: the block's lines, from `first` on, and what it lacks.
fn whole(example: &Example) -> (String, usize) {
    let text = &example.text;
    let has = |key: &str| keys(text).iter().any(|(found, _)| *found == key);
    let indent = |text: &str| -> String { text.lines().map(|line| format!("  {line}\n")).collect() };
    let inner = text
        .lines()
        .find(|line| !line.trim().is_empty())
        .is_some_and(|line| line.starts_with(' '));
    let is_stage = |(_, value): &(&str, &str)| value.is_empty() || value.starts_with("{ uses:");
    let head = "version: 1\nname: documented\n";
    let (mut all, first) = if has("version") {
        (text.clone(), 0)
    } else if inner {
        (format!("{head}stages:\n{text}"), 3)
    } else if has("stages") {
        (format!("{head}{text}"), 2)
    } else if keys(text).iter().all(|(key, _)| BESIDE.contains(key)) {
        (format!("{head}{text}stages:\n"), 2)
    } else if keys(text).iter().all(is_stage) {
        (format!("{head}stages:\n{}", indent(text)), 3)
    } else {
        (String::new(), 0)
    };
    // A night has a time.
    if all.contains("\nschedule:\n") && !all.contains("  at:") {
        all = all.replacen("  then:", "  at: \"18:30\"\n  timezone: UTC\n  then:", 1);
    }
    let mut names: Vec<&str> = Vec::new();
    for (at, _) in text.match_indices("${params.") {
        let name = text[at + 9..].split(['}', '.']).next().unwrap_or_default();
        if !names.contains(&name) && !has("params") {
            names.push(name);
        }
    }
    if !names.is_empty() {
        let params: Vec<String> = names.iter().map(|name| format!("{name}: 2024-01-02")).collect();
        all.push_str(&format!("params: {{ {} }}\n", params.join(", ")));
    }
    (all, first)
}

/// Adds the stages that are missing, until none is.
fn completed(example: &Example, text: &str) -> Result<(), PipelineErrors> {
    let mut added: BTreeSet<&str> = BTreeSet::new();
    loop {
        let (before, after) = match text.split_once("\nstages:\n") {
            Some((before, after)) => (before, after),
            None => (text, ""),
        };
        let mut whole = format!("{before}\nstages:\n{after}");
        // New stages stand last among the stages, before what else follows at the top level.
        let at = {
            let begin = whole.len() - after.len();
            let mut end = begin;
            for line in whole[begin..].split_inclusive('\n') {
                if !(line.starts_with([' ', '#']) || line.trim().is_empty()) {
                    break;
                }
                end += line.len();
            }
            end
        };
        let mut stages = String::new();
        for name in &added {
            let symbolic = example.page.contains("symbolic");
            let stage = match (*name, symbolic) {
                ("env", true) => "{ uses: env/symbolic, needs: { knowledge: kb } }",
                _ => STAGES.iter().find(|(known, _)| known == name).unwrap().1,
            };
            stages.push_str(&format!("  {name}: {stage}\n"));
        }
        if added.is_empty() && after.trim().is_empty() {
            stages.push_str("  market: { uses: ingest/simulated_market }\n");
        }
        whole.insert_str(at, &stages);
        let errors = match planned(&whole, None) {
            Ok(()) => return Ok(()),
            Err(errors) => errors,
        };
        let before = added.len();
        for error in &errors.0 {
            for (name, _) in STAGES {
                let is_missing = error.message.contains("no stage")
                    && (error.message.contains(&format!("`{name}`"))
                        || error.message.contains(&format!("`{name}.")));
                if is_missing {
                    added.insert(name);
                }
            }
        }
        if added.len() == before {
            return Err(errors);
        }
    }
}

/// True if some kind takes the settings: no error is about them.
fn are_settings(example: &Example) -> Result<(), String> {
    let mut nearest: Option<(usize, String)> = None;
    let with: String = example.text.lines().map(|line| format!("      {line}\n")).collect();
    let lines = example.text.lines().count();
    for kind in runner::registry::kinds() {
        let text = format!(
            "version: 1\nname: settings\nstages:\n  x:\n    uses: {}\n    with:\n{with}",
            kind.name()
        );
        let Err(errors) = planned(&text, None) else {
            return Ok(());
        };
        let about: Vec<String> = errors
            .0
            .iter()
            .filter(|error| (7..7 + lines).contains(&error.place.line))
            .map(ToString::to_string)
            .collect();
        if about.is_empty() {
            return Ok(());
        }
        if nearest.as_ref().is_none_or(|(least, _)| about.len() < *least) {
            nearest = Some((about.len(), about.join("\n")));
        }
    }
    Err(nearest.map(|(_, text)| text).unwrap_or_default())
}

#[test]
fn yaml_is_planned() {
    let (mut tried, mut refused) = (0, Vec::new());
    for example in of("yaml") {
        tried += 1;
        let keys = keys(&example.text);
        let has = |key: &str| keys.iter().any(|(found, _)| *found == key);
        // Files of other programs, the machine's own configuration, and the package that has its own test.
        let of_others =
            example.text.starts_with("# config.yaml") || has("plots") || example.text.contains("uses: acme/");
        let problem = if of_others {
            None
        } else if has("table") && has("columns") {
            // A layout stands in a file of its own.
            let text = "version: 1\nname: layout\nstages:\n  x: { uses: ingest/option_chain, \
            with: { path: x.csv, layout: layout.yaml } }\n";
            planned(text, Some(&example.text))
                .err()
                .map(|errors| errors.to_string())
        } else {
            match whole(&example) {
                (text, _) if text.is_empty() => are_settings(&example).err(),
                (text, first) => completed(&example, &text).err().map(|errors| {
                    let at = |line: usize| example.line + line.saturating_sub(first + 1);
                    let texts = errors
                        .0
                        .iter()
                        .map(|error| format!("line {}: {error}", at(error.place.line)));
                    texts.collect::<Vec<_>>().join("\n")
                }),
            }
        };
        if let Some(problem) = problem {
            refused.push(format!("{}: this example is refused:\n{problem}\n", example.place()));
        }
    }
    println!("documented YAML: tried {tried}, right {}", tried - refused.len());
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(tried > 30, "{tried}");
}

/// Every executor that a page defines can be named: a plan reads its settings, and asks no cluster.
#[test]
fn executors_are_read() {
    let mut tried = 0;
    for example in of("yaml").filter(|example| example.text.contains("\nexecutors:")) {
        let project = runner_testkit::Project::new(
            "version: 1\nname: p\nstages:\n  a: { run: 'echo > ${outputs.x}', outputs: { x: x } }\n",
        );
        let url = project.path("remote").display().to_string();
        let signed = example
            .text
            .replace("s3://bucket/prefix", &url)
            .replace("sign_key_file: sign.key", "trust: unsigned");
        project.write("home/config.yaml", signed);
        let (_, block) = example.text.split_once("\nexecutors:\n").unwrap();
        for line in block.lines().take_while(|line| line.starts_with("  ")) {
            let (name, _) = line.trim().split_once(':').unwrap();
            let planned = project.run(&["plan", "p.yaml", "--executor", name]);
            assert_eq!(planned.code, 0, "{}: {}", example.place(), planned.text());
            tried += 1;
        }
    }
    assert!(tried > 1, "{tried}");
}

#[test]
fn rust_stands_in_examples() {
    let files = std::fs::read_dir("examples").unwrap();
    let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let texts: String = texts.collect();
    for example in of("rust") {
        for line in example.text.lines() {
            assert!(texts.contains(line), "{}: no example has `{line}`", example.place());
        }
    }
}

/// Every command is known, with its options: `--help` after them prints the help only if they parse.
#[test]
fn commands_are_known() {
    let dir = tempfile::tempdir().unwrap();
    let (mut tried, mut refused) = (0, Vec::new());
    for example in of("sh") {
        for (i, line) in example.text.lines().enumerate() {
            let command = line.trim();
            if command.is_empty() || command.starts_with('#') {
                continue;
            }
            tried += 1;
            let script = format!(
                "set -e\nrunner() {{ \"$RUNNER\" \"$@\" --help >/dev/null; }}\ncargo() {{ [ \"$1\" = run ] || return 0; \
                 while [ \"$1\" != -- ]; do shift; done; shift; runner \"$@\"; }}\n\
                 # Nothing is installed.\npip() {{ :; }}\nsh() {{ :; }}\n{command}\n"
            );
            let out = Command::new("sh")
                .args(["-c", &script])
                .current_dir(dir.path())
                .env("RUNNER", env!("CARGO_BIN_EXE_runner"))
                .env("RUNNER_HOME", dir.path().join("home"))
                .stdin(Stdio::null())
                .output()
                .unwrap();
            if !out.status.success() {
                let said = String::from_utf8_lossy(&out.stderr).into_owned();
                refused.push(format!("{}:{}: `{command}`\n{said}", example.page, example.line + i));
            }
        }
    }
    println!("documented commands: tried {tried}, right {}", tried - refused.len());
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(tried > 50, "{tried}");
}

#[test]
fn json_and_csv_are_read() {
    for example in of("json") {
        let read: Result<serde_json::Value, _> = serde_json::from_str(&example.text);
        assert!(read.is_ok(), "{}: {read:?}", example.place());
    }
    for example in of("csv") {
        let commas = |line: &str| line.matches(',').count();
        let first = example.text.lines().next().map(commas);
        assert!(
            example.text.lines().all(|line| Some(commas(line)) == first),
            "{}",
            example.place()
        );
    }
}

#[test]
fn python_compiles() {
    let python = std::env::var("RUNNER_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let dir = tempfile::tempdir().unwrap();
    let mut tried = 0;
    for example in of("python") {
        let path = dir.path().join("example.py");
        std::fs::write(&path, &example.text).unwrap();
        let Ok(out) = Command::new(&python).args(["-m", "py_compile"]).arg(&path).output() else {
            println!("skipped: no Python (RUNNER_TEST_PYTHON names one)");
            return;
        };
        assert!(
            out.status.success(),
            "{}: {}",
            example.place(),
            String::from_utf8_lossy(&out.stderr)
        );
        tried += 1;
    }
    println!("documented Python: tried {tried}, right {tried}");
}
