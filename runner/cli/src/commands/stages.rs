//! `runner stages`, `runner schema` and `runner graph`.

use crate::complete::{candidates, completed};
use crate::output;
use crate::project::Settings;
use crate::registry;
use crate::session::Session;
use clap::{Args, ValueEnum};
use runner_engine::Failure;
use runner_history::ResolvedPipeline;
use runner_pipeline::{
    describe_kind, describe_kinds, describe_python, describe_type, graph as draw, kind_json, kinds_json,
    python_json, type_json, types,
};
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
        return if session.json {
            output::print_json(&kinds_json(registry::kinds()))
        } else {
            let other = format!(
                "besides them `uses: {PYTHON}` calls a function of your own: `runner stages {PYTHON}`\n"
            );
            output::print(&(ended(describe_kinds(registry::kinds())) + &other))
        };
    };
    if name == PYTHON {
        return match session.json {
            true => output::print_json(&python_json()),
            false => output::print(describe_python()),
        };
    }
    let Some(kind) = registry::find(name) else {
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

pub(crate) fn schema() -> Result<(), Failure> {
    output::print_json(&runner_pipeline::schema(registry::kinds()))
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
