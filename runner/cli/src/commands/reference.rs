//! `runner reference`: the reference of the book, from the program itself, so that nothing is written twice.

use crate::arguments;
use crate::output;
use crate::registry;
use crate::session::Session;
use clap::Args;
use datasets::layout::{Evidence, Layout, Table, Unit, known};
use datasets::quality::{self, Action, Remedy, Rule};
use runner_engine::Failure;
use runner_pipeline::{describe_python, describe_type, escaped, kinds_markdown, pipeline_markdown, types};
use runner_report::glossary;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Write the book's reference pages.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Example:
  runner reference docs/reference && mdbook build docs")]
pub(crate) struct ReferenceArgs {
    /// The directory to write to; it is created.
    pub dest: PathBuf,
}

/// The families of stage kinds, in the order of a pipeline's stages.
const FAMILIES: [(&str, &str); 8] = [
    (
        "ingest",
        "read market data, factors, tables, policies and knowledge bases, or simulate them",
    ),
    ("greeks", "compute implied volatilities, prices and Greeks of options"),
    ("features", "compute features of bars and option chains"),
    ("env", "build the environment in which a policy acts"),
    ("train", "train a policy"),
    ("policy", "write a policy as rules, or take its decision for today"),
    ("evaluate", "judge policies"),
    ("reason", "derive facts, and mine rules, from a knowledge base"),
];

pub(crate) fn reference(session: &Session, args: &ReferenceArgs) -> Result<(), Failure> {
    let dest = session.current.join(&args.dest);
    let pages = pages();
    for (name, text) in &pages {
        let path = dest.join(name);
        path.parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|err| {
                Failure::caused(format!("cannot write `{}`", args.dest.join(name).display()), &err)
            })?;
    }
    if session.json {
        return output::print_json(&json!({ "dest": args.dest, "pages": pages.keys().collect::<Vec<_>>() }));
    }
    output::print(&format!("{} pages in {}\n", pages.len(), args.dest.display()))
}

/// The pages by their paths.
fn pages() -> BTreeMap<String, String> {
    let mut pages = BTreeMap::new();
    let mut add = |name: &str, title: &str, reader: &str, text: String| {
        let page = format!("# {title}\n\n*For {reader}*\n\n{}\n", text.trim());
        pages.insert(format!("{name}.md"), page);
    };
    add(
        "command-line",
        "Command line",
        "whoever types a command: what `--help` says of each.",
        command_line(),
    );
    add(
        "schema",
        "Pipeline schema",
        "whoever writes pipeline files: every key. `runner schema` has it for editors.",
        pipeline_markdown(),
    );
    add(
        "quality-rules",
        "Quality rules",
        "whoever has to know what is done about a bad row.",
        quality_rules(),
    );
    add(
        "layouts",
        "Layouts of vendors",
        "whoever has files of a vendor, and wants to know what is read of them.",
        layouts(),
    );
    add(
        "types",
        "Types of outputs",
        "whoever writes tables, policies or metrics from programs of their own: what each must hold.",
        types().iter().fold(String::new(), |text, ty| {
            text + &format!("## {}\n\n{}\n", ty.name(), block(&describe_type(*ty)))
        }),
    );
    add(
        "glossary",
        "Glossary",
        "whoever reads a report, a table of metrics or a page.",
        glossary::TERMS
            .iter()
            .fold("| term | metric | |\n| --- | --- | --- |\n".to_owned(), |text, term| {
                text + &format!("| {} | `{}` | {} |\n", term.title, term.name, escaped(term.meaning))
            }),
    );
    let mut index = "| kind | |\n| --- | --- |\n".to_owned();
    for (family, about) in FAMILIES {
        let mut kinds = registry::each();
        kinds.retain(|kind| kind.name().split('/').next() == Some(family));
        for kind in &kinds {
            let (name, anchor) = (kind.name(), kind.name().replace('/', ""));
            let about = escaped(kind.about());
            let _ = writeln!(index, "| [`{name}`](stages/{family}.md#{anchor}) | {about} |");
        }
        let title = format!("Stage kinds: {family}");
        let reader = format!("whoever configures stages that {about}.");
        add(&format!("stages/{family}"), &title, &reader, kinds_markdown(&kinds));
    }
    let _ = write!(
        index,
        "\nBesides them, `uses: python` calls a function of your own:\n\n{}",
        block(describe_python())
    );
    add(
        "stages",
        "Stage kinds",
        "whoever looks for a stage: each kind in one line. `runner stages KIND` says the rest, too.",
        index,
    );
    pages
}

/// A block that is shown as it is.
fn block(text: &str) -> String {
    format!("```text\n{}\n```\n", text.trim_end())
}

/// The help of every command.
fn command_line() -> String {
    let mut whole = arguments::command().term_width(90);
    let overview = block(&whole.render_long_help().to_string());
    whole.build();
    let (mut contents, mut sections) = (String::new(), String::new());
    for command in whole.get_subcommands().filter(|command| command.get_name() != "help") {
        commands(command, &mut contents, &mut sections);
    }
    format!("{contents}\n## runner\n\n{overview}{sections}")
}

fn commands(command: &clap::Command, contents: &mut String, sections: &mut String) {
    let name = command.get_bin_name().unwrap_or_default();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let indent = "  ".repeat(name.split(' ').count().saturating_sub(2));
    let _ = writeln!(
        contents,
        "{indent}- [`{name}`](#{}): {}",
        name.replace(' ', "-"),
        escaped(&about)
    );
    let own = command.clone().mut_args(|arg| {
        let is_hidden = arg.is_global_set() || arg.get_id() == "help";
        arg.hide(is_hidden)
    });
    let help = own.term_width(90).render_long_help().to_string();
    let _ = writeln!(sections, "\n## {name}\n\n{}", block(&help));
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        commands(sub, contents, sections);
    }
}

/// The rules of each table, with their conditions and defaults.
fn quality_rules() -> String {
    let mut out = String::from(
        "A rule that drops more than its share of a table's rows (`max_dropped:`) fails the stage. \
         `on_bad_rows:` sets another action. [Judge the quality of data](../guides/data-quality.md) says how.\n\n\
         `S` is the underlying, `K` the strike, `T` the years of 365 days to expiry. A usual move is the mean \
         change from close to close in this quarter and the one before.\n\n\
         An action for all rules makes no rule stricter that only counts by default: name it. \
         Rules about days that are missing have no row to drop.\n",
    );
    for (title, rules) in [
        ("Option chains", quality::CHAIN),
        ("Bars", quality::BARS),
        ("Rates", quality::RATES),
        ("Factors of one's own", quality::CONTRACT_FACTORS),
    ] {
        let _ = write!(
            out,
            "\n## {title}\n\n| rule | broken by | default | drops at most |\n| --- | --- | --- | --- |\n"
        );
        for rule in rules {
            let exactly = match rule.formula {
                "" => String::new(),
                formula => format!(". {}.", escaped(formula)),
            };
            let most = match rule.remedy {
                Remedy::Note => "".to_owned(),
                _ => format!("{} %", rule.most_dropped * 100.0),
            };
            let (name, done) = (rule.name, by_default(rule));
            let about = escaped(rule.about);
            let _ = writeln!(out, "| `{name}` | {about}{exactly} | {done} | {most} |");
        }
    }
    out.push_str(
        "\n## Knowledge bases\n\nThese are counted, and dropped only where `duplicates: drop` says so.\n\n",
    );
    out.push_str("| rule | counted are |\n| --- | --- |\n");
    for (name, about) in stages_symbolic::ingest::RULES {
        let _ = writeln!(out, "| `{name}` | {} |", escaped(about));
    }
    out
}

/// The default action, in the words of `on_bad_rows:`.
fn by_default(rule: &Rule) -> &'static str {
    match (rule.action, rule.remedy) {
        (Action::Drop, Remedy::Always) => "always dropped",
        (Action::Drop, Remedy::Value) => "the value is removed or repaired",
        (Action::Drop, _) => "drop",
        (Action::Keep, _) => "keep",
        (Action::Untradable, _) => "untradable",
        (Action::Fail, _) => "fail",
    }
}

/// The layouts of each table.
fn layouts() -> String {
    let mut out = "`runner data inspect FILE` says which layout a file has, and why. \
        `runner data layouts NAME > my.yaml` writes one as the beginning of your own.\n"
        .to_owned();
    for &table in Table::ALL {
        let _ = writeln!(out, "\n## {} (`{}`)", table.name(), table.stage_kind());
        for layout in known(table) {
            let (about, source) = (escaped(&layout.about), escaped(&layout.source));
            let _ = writeln!(out, "\n### {}\n\n{about}. Source: {source}.\n", layout.name);
            let _ = writeln!(out, "- {}\n- {}", recognised(layout), columns(layout));
        }
    }
    out
}

/// The evidence by which a file of a layout is recognised.
fn recognised(layout: &Layout) -> String {
    let code = |names: &[String]| {
        let names: Vec<String> = names
            .iter()
            .map(|name| format!("`{}`", name.replace('|', "` or `")))
            .collect();
        names.join(", ")
    };
    let by = &layout.recognise;
    let both = if by.evidence == Evidence::Weak { " and" } else { ";" };
    let mut evidence = Vec::new();
    if !by.headers.is_empty() {
        evidence.push(format!("the columns {}", code(&by.headers)));
    }
    if !by.row.is_empty() {
        evidence.push(format!("a first row like {}", code(&by.row)));
    }
    if !by.files.is_empty() {
        evidence.push(format!("file names {}", code(&by.files)));
    }
    match evidence.is_empty() {
        true => format!("To be named: `layout: {}`.", layout.name),
        false => format!("Recognised by {}.", evidence.join(&format!("{both} "))),
    }
}

/// The columns of ours that a layout fills, with their sources.
fn columns(layout: &Layout) -> String {
    let mut by_ours: Vec<(&str, Vec<String>)> = Vec::new();
    for mapping in layout.mappings() {
        let unit = match &mapping.unit {
            Unit::AsIs => String::new(),
            Unit::Times(factor) => format!(" times {factor}"),
            Unit::Per(divisor) => format!(" over {divisor}"),
            Unit::DividedBy(column) => format!(" over `{column}`"),
        };
        let theirs = format!("`{}`{unit}", mapping.theirs);
        match by_ours.iter_mut().find(|(ours, _)| *ours == mapping.ours) {
            Some((_, all)) if all.contains(&theirs) => {}
            Some((_, all)) => all.push(theirs),
            None => by_ours.push((&mapping.ours, vec![theirs])),
        }
    }
    let mut all: Vec<String> = by_ours
        .iter()
        .map(|(ours, theirs)| format!("`{ours}` from {}", theirs.join(" or ")))
        .collect();
    if let Some(symbol) = &layout.contract_symbol {
        all.push(format!("the contract from its symbol in `{}`", symbol.column));
    }
    format!("Columns: {}.", all.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_command_rule_and_layout_is_on_a_page() {
        let pages = pages();
        for kind in registry::each() {
            let family = kind.name().split('/').next().unwrap();
            let page = &pages[&format!("stages/{family}.md")];
            assert!(page.contains(&format!("\n## {}\n", kind.name())), "{}", kind.name());
            assert!(
                pages["stages.md"].contains(&format!("[`{}`]", kind.name())),
                "{}",
                kind.name()
            );
        }
        for command in arguments::command().get_subcommands() {
            let heading = format!("\n## runner {}\n", command.get_name());
            assert!(pages["command-line.md"].contains(&heading), "{heading}");
        }
        for rule in [quality::CHAIN, quality::BARS, quality::RATES].into_iter().flatten() {
            assert!(
                pages["quality-rules.md"].contains(&format!("| `{}` |", rule.name)),
                "{}",
                rule.name
            );
        }
        for layout in Table::ALL.iter().copied().flat_map(known) {
            assert!(
                pages["layouts.md"].contains(&format!("\n### {}\n", layout.name)),
                "{}",
                layout.name
            );
        }
    }

    #[test]
    fn every_page_is_in_the_book_and_says_for_whom_it_is() {
        let summary = include_str!("../../../../docs/SUMMARY.md");
        for (name, text) in pages() {
            assert!(summary.contains(&format!("(reference/{name})")), "{name}");
            assert!(text.lines().nth(2).unwrap().starts_with("*For "), "{name}");
        }
    }
}
