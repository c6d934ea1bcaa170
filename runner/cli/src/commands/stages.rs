//! `runner stages`, `runner schema` and `runner graph`.

use crate::complete::{candidates, completed};
use crate::output;
use crate::packages::Import;
use crate::project::Settings;
use crate::registry;
use crate::session::Session;
use clap::{Args, ValueEnum};
use runner_engine::Failure;
use runner_history::ResolvedPipeline;
use runner_pipeline::{
    Packages, Prefix, describe_kind, describe_kinds, describe_python, describe_type, graph as draw,
    kind_json, kinds_json, python_json, suggest, type_json, types,
};
use stages_core::AnyStage;
use std::path::PathBuf;

/// Print the task graph of a pipeline.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner graph pipelines/rppo_options.yaml
  runner graph p.yaml --format svg > graph.svg")]
pub(crate) struct GraphArgs {
    /// The pipeline file.
    #[arg(add = completed(candidates::pipelines))]
    pub pipeline: PathBuf,
    /// The output format.
    #[arg(long, value_enum, default_value_t = GraphFormat::Text)]
    pub format: GraphFormat,
    #[command(flatten)]
    pub settings: Settings,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Indented text.
    Text,
    /// A Mermaid flowchart.
    Mermaid,
    /// Graphviz.
    Dot,
    /// A self-contained SVG image.
    Svg,
}

/// List the stage kinds, or describe one: ports and configuration.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner stages
  runner stages train/recurrent_ppo")]
pub(crate) struct StagesArgs {
    /// A stage kind, such as `greeks/analytic`.
    #[arg(add = completed(candidates::kinds))]
    pub kind: Option<String>,
    /// Print the requirements of a program's output of this type, such as `features` or `table`: columns, key
    /// and checks.
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "kind", add = completed(candidates::types))]
    pub of_type: Option<String>,
}

/// The name of `uses:` for functions, beside those of the stage kinds.
const PYTHON: &str = "python";

pub(crate) fn stages(session: &Session, args: &StagesArgs) -> Result<(), Failure> {
    if let Some(name) = &args.of_type {
        return type_text(session, name);
    }
    let Some(name) = &args.kind else {
        return list(session);
    };
    if name == PYTHON {
        return match session.json {
            true => output::print_json(&python_json()),
            false => output::print(describe_python()),
        };
    }
    let (prefix, of_kind) = name.split_once('/').unwrap_or((name, ""));
    let mut found = registry::find(name);
    if found.is_none() {
        let options = session.reading_kinds(Import::Allowed)?;
        let packages = Packages::new(&options);
        if packages.prefixes().iter().any(|declared| declared.name == prefix) {
            let kinds = packages.kinds(prefix);
            let kinds = kinds.map_err(|(message, hint)| Failure::usage(message).hint(hint))?;
            let kinds: Vec<&dyn AnyStage> = kinds.iter().map(AsRef::as_ref).collect();
            if of_kind.is_empty() {
                return match session.json {
                    true => output::print_json(&kinds_json(&kinds)),
                    false => output::print(&ended(describe_kinds(&kinds))),
                };
            }
            found = kinds.iter().find(|kind| kind.name() == name).copied();
            if found.is_none() {
                let names = kinds.iter().map(|kind| kind.name());
                return Err(Failure::usage(format!("there is no stage kind `{name}`")).hint(suggest(
                    name,
                    "kinds of the package",
                    names,
                )));
            }
        }
    }
    let Some(kind) = found else {
        let known = registry::kinds().iter().map(|kind| kind.name()).chain([PYTHON]);
        let nearest = known
            .map(|kind| (strsim::jaro_winkler(kind, name), kind))
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .filter(|(score, _)| *score > 0.8);
        return Err(
            Failure::usage(format!("there is no stage kind `{name}`")).hint(match nearest {
                Some((_, kind)) => format!("did you mean `{kind}`?"),
                None => "`runner stages` lists them".to_owned(),
            }),
        );
    };
    if session.json {
        output::print_json(&kind_json(kind))
    } else {
        output::print(&ended(describe_kind(kind)))
    }
}

/// Prints the kinds of this program, and those of packages that have been imported before; of other packages
/// the prefix.
fn list(session: &Session) -> Result<(), Failure> {
    let options = session.reading_kinds(Import::Never)?;
    let packages = Packages::new(&options);
    let mut kinds = registry::each();
    let mut others = String::new();
    for prefix in packages.prefixes() {
        let Prefix { name, package, wrong } = prefix;
        match (wrong, packages.kinds(&name)) {
            (Some(wrong), _) => output::warn(&wrong),
            (None, Ok(known)) => kinds.extend(known.iter().map(AsRef::as_ref)),
            (None, Err(_)) => {
                others += &format!("the package {package} has kinds `{name}/…`: `runner stages {name}`\n");
            }
        }
    }
    if session.json {
        return output::print_json(&kinds_json(&kinds));
    }
    let python =
        format!("in addition, `uses: {PYTHON}` calls a function of your own: `runner stages {PYTHON}`\n");
    output::print(&(ended(describe_kinds(&kinds)) + &others + &python))
}

/// Prints what a program's output of a type must hold.
fn type_text(session: &Session, name: &str) -> Result<(), Failure> {
    let Some(ty) = types().into_iter().find(|ty| ty.name() == name) else {
        let known = types().map(|ty| format!("`{}`", ty.name())).join(", ");
        return Err(Failure::usage(format!("no program can write the type `{name}`"))
            .hint(format!("the types are {known}")));
    };
    if session.json {
        output::print_json(&type_json(ty))
    } else {
        output::print(&ended(describe_type(ty)))
    }
}

/// Prints the schema of pipeline files, with the kinds of the packages that the default interpreter has.
pub(crate) fn schema(session: &Session) -> Result<(), Failure> {
    let options = session.reading_kinds(Import::Allowed)?;
    let packages = Packages::new(&options);
    let mut kinds = registry::each();
    for prefix in packages.prefixes() {
        let of_package = match prefix.wrong {
            Some(wrong) => Err(wrong),
            None => packages.kinds(&prefix.name).map_err(|(message, _)| message),
        };
        match of_package {
            Ok(known) => kinds.extend(known.iter().map(AsRef::as_ref)),
            Err(wrong) => output::warn(&wrong),
        }
    }
    output::print_json(&runner_pipeline::schema(&kinds))
}

pub(crate) fn graph(session: &Session, args: &GraphArgs) -> Result<(), Failure> {
    let pipeline = session.load(&args.pipeline, &args.settings)?;
    if session.json {
        let all: Vec<usize> = (0..pipeline.nodes.len()).collect();
        return output::print_json(&ResolvedPipeline::new(&pipeline, &all));
    }
    output::print(&ended(match args.format {
        GraphFormat::Text => draw::text(&pipeline),
        GraphFormat::Mermaid => draw::mermaid(&pipeline),
        GraphFormat::Dot => draw::dot(&pipeline),
        GraphFormat::Svg => draw::svg(&pipeline),
    }))
}

/// The text with exactly one trailing newline.
fn ended(text: String) -> String {
    text.trim_end().to_owned() + "\n"
}
