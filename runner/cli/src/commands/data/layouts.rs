//! `runner data layouts`.

use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use clap::Args;
use datasets::layout::{Layout, Table, known, nearest, yaml_of};
use runner_engine::Failure;
use serde_json::json;
use std::fmt::Write as _;

/// List the known layouts of vendors' files, or show one as YAML.
///
/// A text that is no layout's name lists those that have it in their names or descriptions.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner data layouts
  runner data layouts coin                         # those with `coin` in their description
  runner data layouts optionsdx > my_vendor.yaml   # then `layout: ./my_vendor.yaml` in a stage")]
pub(crate) struct LayoutsArgs {
    /// A layout's name, or a part of names and descriptions.
    #[arg(add = completed(candidates::layouts))]
    pub name: Option<String>,
}

pub(crate) fn layouts(session: &Session, args: &LayoutsArgs) -> Result<(), Failure> {
    let all = || Table::ALL.iter().copied().flat_map(known);
    let part = args
        .name
        .as_deref()
        .filter(|name| yaml_of(name).is_none())
        .unwrap_or_default()
        .to_lowercase();
    let is_listed =
        |layout: &&Layout| layout.name.contains(&part) || layout.about.to_lowercase().contains(&part);
    if let Some(name) = args
        .name
        .as_ref()
        .filter(|_| part.is_empty() || !all().any(|layout| is_listed(&layout)))
    {
        let Some(yaml) = yaml_of(name) else {
            let near = nearest(name, all().map(|layout| layout.name.as_str()));
            return Err(Failure::usage(format!("there is no layout `{name}`")).hint(match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`runner data layouts` lists them".to_owned(),
            }));
        };
        if session.json {
            return output::print_json(&json!({ "name": name, "yaml": yaml }));
        }
        return output::print_document(yaml);
    }
    if session.json {
        let list: Vec<_> = all()
            .filter(is_listed)
            .map(|layout| {
                json!({
                    "name": layout.name, "table": layout.table,
                    "about": layout.about, "source": layout.source,
                    "recognise": layout.recognise,
                })
            })
            .collect();
        return output::print_json(&list);
    }
    let width = all()
        .filter(is_listed)
        .map(|layout| layout.name.len())
        .max()
        .unwrap_or(0);
    let mut out = String::new();
    for &table in Table::ALL {
        let mut listed = known(table).iter().filter(is_listed).peekable();
        if listed.peek().is_some() {
            let _ = writeln!(out, "{} ({})", table.name(), table.stage_kind());
        }
        for layout in listed {
            let _ = writeln!(out, "  {:width$}  {}", layout.name, layout.about);
        }
    }
    output::print(&out)
}
