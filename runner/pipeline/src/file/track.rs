//! `track:`, the servers that follow runs. Not part of any key.

use crate::file::notify::{Reader, Url};
use crate::stage::interpolate::Scope;
use crate::text::problems::Problems;
use crate::text::tree::{Tree, Value};

const FORM: &str = "write a list: `track: [{ mlflow: { uri: http://…, experiment: NAME } }]`";

/// A server that follows runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Track {
    /// A tracking server of MLflow.
    Mlflow {
        /// Its address.
        uri: Url,
        /// The experiment; the pipeline's name if absent.
        experiment: Option<String>,
        /// The variable of the environment that holds a bearer token.
        token: Option<String>,
    },
    /// A collector of OpenTelemetry traces, by OTLP over HTTP.
    Otlp {
        /// Its address, without `/v1/traces`.
        endpoint: Url,
        /// The variable of the environment that holds headers: `name=value,name=value`, as
        /// `OTEL_EXPORTER_OTLP_HEADERS` does.
        headers: Option<String>,
    },
}

/// Reads `track:`; entries with errors are left out.
pub(crate) fn read(tree: &Tree, scope: &Scope, problems: &mut Problems) -> Vec<Track> {
    let Value::List(items) = &tree.value else {
        problems.add(tree.spot, format!("`track` is {}, not a list", tree.describe()), FORM);
        return Vec::new();
    };
    let mut reader = Reader { scope, problems };
    items.iter().filter_map(|item| entry(&mut reader, item)).collect()
}

fn entry(reader: &mut Reader<'_, '_>, tree: &Tree) -> Option<Track> {
    let entries = reader.map(tree, "an entry of `track`", FORM)?;
    match entries {
        [(key, value)] if key.name == "mlflow" => mlflow(reader, value),
        [(key, value)] if key.name == "otlp" => otlp(reader, value),
        [(key, _)] => {
            reader.unknown(key, "an entry of `track`", &["mlflow", "otlp"]);
            None
        }
        _ => {
            reader
                .problems
                .add(tree.spot, "an entry of `track` has one server", FORM);
            None
        }
    }
}

fn mlflow(reader: &mut Reader<'_, '_>, tree: &Tree) -> Option<Track> {
    let (mut uri, mut experiment, mut token) = (None, None, None);
    for (key, value) in reader.map(tree, "`mlflow`", FORM)? {
        match key.name.as_str() {
            "uri" => uri = Some(reader.url(value, "uri")?),
            "experiment" => experiment = Some(reader.text(value, "experiment", FORM)?),
            "token" => token = Some(reader.variable(value, "token")?),
            _ => {
                reader.unknown(key, "`mlflow`", &["uri", "experiment", "token"]);
                return None;
            }
        }
    }
    if uri.is_none() {
        reader.problems.add(tree.spot, "`mlflow` has no `uri`", FORM);
    }
    Some(Track::Mlflow {
        uri: uri?,
        experiment,
        token,
    })
}

fn otlp(reader: &mut Reader<'_, '_>, tree: &Tree) -> Option<Track> {
    const FORM: &str = "write `otlp: { endpoint: \"http://localhost:4318\" }`";
    let (mut endpoint, mut headers) = (None, None);
    for (key, value) in reader.map(tree, "`otlp`", FORM)? {
        match key.name.as_str() {
            "endpoint" => endpoint = Some(reader.url(value, "endpoint")?),
            "headers" => headers = Some(reader.variable(value, "headers")?),
            _ => {
                reader.unknown(key, "`otlp`", &["endpoint", "headers"]);
                return None;
            }
        }
    }
    if endpoint.is_none() {
        reader.problems.add(tree.spot, "`otlp` has no `endpoint`", FORM);
    }
    Some(Track::Otlp {
        endpoint: endpoint?,
        headers,
    })
}
