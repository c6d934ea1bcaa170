//! A package's description of its kinds. It comes from a stranger's code: names, ports and types are checked,
//! and texts are kept to one line.

use super::settings;
use crate::stage::python_stage::is_dotted;
use serde::Deserialize;
use serde_json::Value;
use stages_core::{
    AnyStage, ConfigProblem, Context, Given, InputPort, OutputPort, Outputs, Package, PlanContext, Planned,
    PortType, Ports, RelativeCost, Settings, Share, Source, StageError, Tested, typed_output,
};
use std::collections::BTreeSet;
use std::path::Path;

/// The most kinds of a package, and the most inputs and outputs of a kind.
const MOST: usize = 256;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    kinds: Vec<Described>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    name: String,
    version: u32,
    about: String,
    call: String,
    inputs: Vec<Input>,
    outputs: Vec<Output>,
    schema: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    name: String,
    #[serde(rename = "type")]
    ty: String,
    optional: bool,
    list: bool,
    doc: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Output {
    name: String,
    #[serde(rename = "type")]
    ty: String,
    doc: String,
}

/// The kinds that a description has, below a prefix. They live as long as the program.
///
/// # Errors
/// The first thing in it that is no description of kinds.
pub(super) fn kinds(
    bytes: &[u8],
    prefix: &str,
    package: &Package,
) -> Result<&'static [Box<dyn AnyStage>], String> {
    let described: Description =
        serde_json::from_slice(bytes).map_err(|err| format!("it is not a description of kinds: {err}"))?;
    if described.kinds.len() > MOST {
        return Err(format!("it has more than {MOST} kinds"));
    }
    let mut names = BTreeSet::new();
    let mut kinds: Vec<Box<dyn AnyStage>> = Vec::new();
    for one in described.kinds {
        let name = plain(&one.name);
        let kind = one
            .kind(prefix, package)
            .map_err(|what| format!("the kind `{name}`: {what}"))?;
        if !names.insert(name.clone()) {
            return Err(format!("there are two kinds `{name}`"));
        }
        kinds.push(Box::new(kind));
    }
    kinds.sort_by_key(|kind| kind.name());
    Ok(Box::leak(kinds.into_boxed_slice()))
}

impl Described {
    fn kind(self, prefix: &str, package: &Package) -> Result<PackageKind, String> {
        if !is_kind_name(&self.name) {
            return Err(
                "such a name consists of lowercase letters, digits and `_`, without the prefix".to_owned(),
            );
        }
        let call = self.call.split_once(':');
        if call.is_none_or(|(module, function)| !is_dotted(module) || !is_dotted(function)) {
            return Err(
                "its function is not one of a module: define it by `def` at the top level".to_owned(),
            );
        }
        if self.outputs.is_empty() || self.outputs.len().max(self.inputs.len()) > MOST {
            return Err(format!("it has no output, or more than {MOST} inputs or outputs"));
        }
        let inputs = self.inputs.iter().map(|port| &port.name);
        let mut names: BTreeSet<&str> = BTreeSet::from(["ctx", "settings"]);
        for name in inputs {
            if !is_dotted(name) || name.contains('.') || !names.insert(name) {
                return Err(format!(
                    "`{}` cannot be the name of an input: letters, digits and `_`, and each once; `ctx` and \
                    `settings` are taken",
                    plain(name)
                ));
            }
        }
        let mut names = BTreeSet::new();
        for Output { name, .. } in &self.outputs {
            if !is_kind_name(name) || !names.insert(name) {
                return Err(format!(
                    "`{}` cannot be the name of an output: lowercase letters, digits and `_`, and each once",
                    plain(name)
                ));
            }
        }
        let inputs: Vec<InputPort> = self.inputs.iter().map(Input::port).collect::<Result<_, _>>()?;
        let outputs: Vec<OutputPort> = self.outputs.iter().map(Output::port).collect::<Result<_, _>>()?;
        Ok(PackageKind {
            name: kept(&format!("{prefix}/{}", self.name)),
            version: self.version,
            about: kept(&plain(&self.about)),
            ports: Ports {
                inputs: Box::leak(inputs.into_boxed_slice()),
                outputs: Box::leak(outputs.into_boxed_slice()),
            },
            schema: settings::inlined(&self.schema)?,
            package: Package {
                call: self.call,
                ..package.clone()
            },
        })
    }
}

impl Input {
    fn port(&self) -> Result<InputPort, String> {
        let ty = PortType::ALL.iter().find(|ty| ty.name() == self.ty);
        let ty = *ty.ok_or_else(|| unknown(&self.ty, PortType::ALL))?;
        Ok(InputPort {
            optional: self.optional,
            list: self.list,
            doc: kept(&plain(&self.doc)),
            ..InputPort::one(kept(&self.name), ty)
        })
    }
}

impl Output {
    fn port(&self) -> Result<OutputPort, String> {
        let known = [&typed_output::TYPES[..], &[PortType::File]].concat();
        let ty = known.iter().find(|ty| ty.name() == self.ty);
        let ty = ty.ok_or_else(|| unknown(&self.ty, &known))?;
        Ok(OutputPort::new(kept(&self.name), *ty).doc(kept(&plain(&self.doc))))
    }
}

fn unknown(ty: &str, known: &[PortType]) -> String {
    let names: Vec<&str> = known.iter().map(|ty| ty.name()).collect();
    format!(
        "`{}` is not a type of such a port; the types are {}",
        plain(ty),
        names.join(", ")
    )
}

/// A text in one line, without control characters, of bounded length.
pub(super) fn plain(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let plain: String = plain.take(2_000).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// True for the name of a prefix or of a kind below it.
pub(super) fn is_kind_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

fn kept(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

/// A kind of an installed package. A pipeline makes a program of its stages: [`AnyStage::run`] is not called.
struct PackageKind {
    name: &'static str,
    version: u32,
    about: &'static str,
    ports: Ports,
    schema: Value,
    package: Package,
}

impl AnyStage for PackageKind {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn ports(&self) -> Ports {
        self.ports
    }

    fn nondeterministic(&self) -> Option<&'static str> {
        None
    }

    fn work_units(&self, _: &Settings) -> Option<u64> {
        None
    }

    fn until(&self, _: &str) -> Option<&'static str> {
        None
    }

    fn trials(&self) -> Option<&'static str> {
        None
    }

    fn tested(&self, _: &Settings) -> Option<Tested> {
        None
    }

    fn reads_test(&self, _: &Settings) -> bool {
        false
    }

    fn relative_cost(&self, _: &Settings) -> Option<RelativeCost> {
        None
    }

    fn schema(&self) -> Value {
        self.schema.clone()
    }

    fn resolve(&self, with: Value) -> Result<Settings, ConfigProblem> {
        settings::resolve(&self.schema, &with).map(Settings::from)
    }

    fn key_config(&self, resolved: &Settings) -> Value {
        (**resolved).clone()
    }

    fn check(&self, _: &Settings, _: &PlanContext) -> Planned {
        Ok(self.ports.provided())
    }

    fn sources(&self, _: &Settings, _: &Path) -> Result<Vec<Source>, ConfigProblem> {
        Ok(Vec::new())
    }

    fn run(&self, _: &Settings, _: &Context) -> Result<Outputs, StageError> {
        Err(StageError::new(format!("`{}` runs as a program", self.name)))
    }

    fn cached_share(&self, _: &Settings, _: &Given<'_>) -> Result<Option<Share>, StageError> {
        Ok(None)
    }

    fn package(&self) -> Option<&Package> {
        Some(&self.package)
    }
}
