//! Ports: the named, typed inputs and outputs of a stage kind.

use crate::error::ConfigProblem;
use datasets::calendar::CalendarName;
use datasets::contract::Exercise;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

datasets::words! {
    /// The type of a port. An artifact's `type` is its name.
    PortType {
        /// Data set, [`datasets::schema::BARS`].
        Bars = "bars",
        /// Data set, [`datasets::schema::OPTION_CHAIN`], perhaps with
        /// [`datasets::schema::IMPLIED_VOLATILITY`].
        OptionChain = "option_chain",
        /// Data set, [`datasets::schema::RATES`].
        Rates = "rates",
        /// Data set, [`datasets::schema::CORPORATE_ACTIONS`].
        CorporateActions = "corporate_actions",
        /// Data set, [`datasets::schema::GREEKS`].
        Greeks = "greeks",
        /// Data set, [`datasets::schema::FEATURES`] and a column for each feature.
        Features = "features",
        /// Data set, [`datasets::schema::TABLE`] and a column of numbers for each of the user's; with
        /// [`datasets::schema::SNAPSHOT`] where it has several rows a day.
        Table = "table",
        /// A knowledge base: facts, rules and queries, and perhaps what follows from them.
        Knowledge = "knowledge",
        /// The tables of an environment and its specification.
        Env = "env",
        /// A trained policy: safetensors.
        Policy = "policy",
        /// Metrics, as JSON lines.
        Metrics = "metrics",
        /// The steps of an evaluation.
        Trajectory = "trajectory",
        /// A file or directory that a `run:` stage made. It fits no typed port; an input of this type takes a
        /// [`PortType::Table`] too.
        File = "file",
    }
}

impl PortType {
    /// Returns whether an input of this type accepts artifacts of type `other`: a file input also takes
    /// tables.
    pub fn takes(self, other: Self) -> bool {
        self == other || self == Self::File && other == Self::Table
    }
}

/// An input of a stage kind.
#[derive(Clone, Copy, Debug)]
pub struct InputPort {
    /// The port's name.
    pub name: &'static str,
    /// The type the port takes.
    pub ty: PortType,
    /// True if the port may be left unconnected.
    pub optional: bool,
    /// True if the port takes several artifacts, in the order in which the pipeline names them.
    pub list: bool,
    /// True if the port stands for any number of lists, at least one, each under a name of the author's
    /// choosing, which is in the key. The port's own name then says what such a name stands for.
    pub named: bool,
    /// The port's purpose.
    pub doc: &'static str,
}

impl InputPort {
    /// An input that takes one artifact.
    pub const fn one(name: &'static str, ty: PortType) -> Self {
        let (optional, list, named, doc) = (false, false, false, "");
        Self {
            name,
            ty,
            optional,
            list,
            named,
            doc,
        }
    }

    /// An input that takes one artifact and may be left unconnected.
    pub const fn optional(name: &'static str, ty: PortType) -> Self {
        Self {
            optional: true,
            ..Self::one(name, ty)
        }
    }

    /// An input that takes several artifacts.
    pub const fn list(name: &'static str, ty: PortType) -> Self {
        Self {
            list: true,
            ..Self::one(name, ty)
        }
    }

    /// An input that takes several artifacts and may be left unconnected.
    pub const fn optional_list(name: &'static str, ty: PortType) -> Self {
        Self {
            optional: true,
            ..Self::list(name, ty)
        }
    }

    /// An input that takes lists under names of the author's choosing: one for each agent, say.
    pub const fn named_lists(name: &'static str, ty: PortType) -> Self {
        Self {
            named: true,
            ..Self::list(name, ty)
        }
    }

    /// Sets the description of the port's purpose.
    #[must_use]
    pub const fn doc(self, doc: &'static str) -> Self {
        Self { doc, ..self }
    }
}

/// An output of a stage kind.
#[derive(Clone, Copy, Debug)]
pub struct OutputPort {
    /// The port's name.
    pub name: &'static str,
    /// The type of the artifact.
    pub ty: PortType,
    /// The contents of the artifact.
    pub doc: &'static str,
}

impl OutputPort {
    /// An output of the given type.
    pub const fn new(name: &'static str, ty: PortType) -> Self {
        Self { name, ty, doc: "" }
    }

    /// Sets the description of the artifact's contents.
    #[must_use]
    pub const fn doc(self, doc: &'static str) -> Self {
        Self { doc, ..self }
    }
}

/// The ports of a stage kind.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    /// The inputs.
    pub inputs: &'static [InputPort],
    /// The outputs.
    pub outputs: &'static [OutputPort],
}

impl Ports {
    /// The input that takes what a pipeline connects under `name`.
    pub fn input(&self, name: &str) -> Option<&'static InputPort> {
        let named = || self.inputs.iter().find(|port| port.named);
        self.inputs
            .iter()
            .find(|port| !port.named && port.name == name)
            .or_else(named)
    }

    /// The outputs by port, with nothing known of their contents but the type.
    pub fn provided(&self) -> BTreeMap<String, Provided> {
        let outputs = self.outputs.iter();
        outputs
            .map(|port| (port.name.to_owned(), Provided::unknown(port.ty)))
            .collect()
    }
}

/// The contents of a stage's outputs by port, as far as the check of its configuration can tell.
pub type Planned = Result<BTreeMap<String, Provided>, ConfigProblem>;

/// The contents of an output as far as they are known at plan time: enough to refuse a pipeline that cannot
/// work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provided {
    /// The type of the output.
    pub ty: PortType,
    /// The columns that will have values; `None` if they are only known after the run.
    pub columns: Option<BTreeSet<String>>,
    /// The exercise style that a configuration states for all contracts of a chain.
    pub exercise: Option<Exercise>,
    /// The calendar that a configuration states for all contracts of a chain.
    pub calendar: Option<CalendarName>,
    /// The names of the choices of an environment whose actions are one choice; the columns of an environment
    /// are the elements of its observation.
    pub choices: Option<Vec<String>>,
    /// True if an environment holds data out for validation, false if it does not; `None` where it holds
    /// none out but plays other episodes, or where that is only known after the run.
    pub validation: Option<bool>,
}

impl Provided {
    /// An output of the given type with these columns.
    pub fn columns<S: Into<String>>(ty: PortType, columns: impl IntoIterator<Item = S>) -> Self {
        Self {
            columns: Some(columns.into_iter().map(Into::into).collect()),
            ..Self::unknown(ty)
        }
    }

    /// An output of the given type whose columns are only known after the run.
    pub fn unknown(ty: PortType) -> Self {
        Self {
            ty,
            columns: None,
            exercise: None,
            calendar: None,
            choices: None,
            validation: None,
        }
    }

    /// Returns whether the column may have values: false only if it is known to have none.
    pub fn may_have(&self, column: &str) -> bool {
        self.columns.as_ref().is_none_or(|columns| columns.contains(column))
    }
}

/// The context of a stage kind while the pipeline is planned.
pub struct PlanContext<'a> {
    /// The pipeline file's directory: relative paths in a configuration are relative to it.
    pub base: &'a Path,
    /// The contents of each connected input, by port.
    pub inputs: BTreeMap<String, Vec<Provided>>,
}
