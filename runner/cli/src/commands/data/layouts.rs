//! `runner data layouts`.

use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use clap::Args;
use datasets::layout::{Table, known, nearest, yaml_of};
use runner_engine::Failure;
use serde_json::json;
use std::fmt::Write as _;

/// List the known layouts of vendors' files, or show one as YAML.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner data layouts
  runner data layouts optionsdx > my_vendor.yaml   # then `layout: ./my_vendor.yaml` in a stage")]
pub(crate) struct LayoutsArgs {
    /// A layout's name.
    #[arg(add = completed(candidates::layouts))]
    pub name: Option<String>,
}

pub(crate) fn layouts(session: &Session, args: &LayoutsArgs) -> Result<(), Failure> {
    let all = || Table::ALL.iter().copied().flat_map(known);
    if let Some(name) = &args.name {
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
    let width = all().map(|layout| layout.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for &table in Table::ALL {
        let _ = writeln!(out, "{} ({})", table.name(), table.stage_kind());
        for layout in known(table) {
            let _ = writeln!(out, "  {:width$}  {}", layout.name, layout.about);
        }
    }
    output::print(&out)
}
