//! `track:`, the servers that follow runs. Not part of any key.

use crate::Url;
use crate::text::Variable;
use schemars::JsonSchema;
use serde::Deserialize;

/// A server that follows runs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Entry")]
pub enum Track {
    /// A tracking server of MLflow.
    Mlflow(Mlflow),
    /// A collector of OpenTelemetry traces, by OTLP over HTTP.
    Otlp(Otlp),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub(crate) struct Entry {
    /// A tracking server of MLflow.
    mlflow: Option<Mlflow>,
    /// A collector of OpenTelemetry traces, by OTLP over HTTP.
    otlp: Option<Otlp>,
}

impl TryFrom<Entry> for Track {
    type Error = &'static str;

    fn try_from(entry: Entry) -> Result<Self, &'static str> {
        match (entry.mlflow, entry.otlp) {
            (Some(mlflow), None) => Ok(Self::Mlflow(mlflow)),
            (None, Some(otlp)) => Ok(Self::Otlp(otlp)),
            _ => Err(" has one server\n"),
        }
    }
}

/// A tracking server of MLflow.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mlflow {
    /// Its address.
    pub uri: Url,
    /// The experiment; the pipeline's name by default.
    pub experiment: Option<String>,
    /// The variable of the environment that holds a bearer token.
    pub token: Option<Variable>,
}

/// A collector of OpenTelemetry traces.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Otlp {
    /// Its address, without `/v1/traces`.
    pub endpoint: Url,
    /// The variable of the environment that holds headers: `name=value,name=value`.
    pub headers: Option<Variable>,
}
