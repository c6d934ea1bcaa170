//! The JSON Schema (draft 7) of pipeline files, for editors.

use crate::Occasion;
use crate::schedule::CatchUp;
use crate::stage::command::{Isolation, Shell};
use crate::stage::written::{COMMON, OF_COMMAND, OF_KIND, OF_PYTHON, USES};
use datasets::calendar::CalendarName;
use serde_json::{Map, Value, json};
use stages_core::{AnyStage, PortType, typed_output};

/// The schema of pipeline files with these stage kinds.
pub fn schema(kinds: &[Box<dyn AnyStage>]) -> Value {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).chain([USES]).collect();
    let mut definitions = Map::new();
    definitions.insert(
        "interpolation".to_owned(),
        json!({
            "description": "`${params.X}`, `${matrix.X}`, `${env.X}`, `${schedule.X}` or \
            `${policies.NAME.tried}`; keeps its type where it is the whole value",
            "type": "string",
            "pattern": "\\$\\{(params|matrix|env|schedule|policies)\\.[^}]+\\}",
        }),
    );
    let name = json!({
        "description": "`STAGE`, `STAGE.OUTPUT`, `STAGE[AXIS=VALUE]` or `STAGE[*]`; `RUN/STAGE` of an \
        earlier run; `latest` is the last run of this pipeline; `NAME@ALIAS` of a registered policy",
        "type": "string",
        "pattern": "^([^/\\[]+/|\
        [A-Za-z][A-Za-z0-9_.-]*@)?[A-Za-z0-9_][A-Za-z0-9_-]*(\\[[^\\]]+\\])?(\\.[A-Za-z_][A-Za-z0-9_-]*)?$",
    });
    let axes = json!({ "type": ["string", "array"], "minItems": 1, "items": { "type": "string" } });
    let collect = json!({
        "description": "All points of a stage, or those that differ along some axes.",
        "type": "object",
        "additionalProperties": false,
        "required": ["collect"],
        "properties": { "collect": name, "over": axes },
    });
    let earlier = json!({
        "description": "An output of the last run of a pipeline that has it.",
        "type": "object",
        "additionalProperties": false,
        "required": ["pipeline", "stage"],
        "properties": {
            "pipeline": { "description": "The name of the pipeline, this one or another in the same \
            home.", "type": "string" },
            "file": {
                "description": "Its file, relative to this one; needed where several files have pipelines \
                of that name.",
                "type": "string",
            },
            "stage": { "description": "`STAGE`, `STAGE.OUTPUT` or `STAGE[AXIS=VALUE]`.", "type": "string" },
            "or": { "description": "`none`: without a run that has the output, the input is not \
            connected.", "const": "none" },
        },
    });
    let policy = json!({
        "description": "A registered policy.",
        "type": "object",
        "additionalProperties": false,
        "required": ["policy"],
        "properties": {
            "policy": { "description": "`NAME@ALIAS` or \
            `NAME@VERSION`.", "type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_.-]*@[A-Za-z0-9_.-]+$" },
            "or": { "description": "`none`, where the input is optional, or a stage: what is taken while \
            there is none.", "type": "string" },
        },
    });
    definitions.insert("need".to_owned(), json!({ "anyOf": [name, collect, earlier, policy] }));
    definitions.insert("matrix".to_owned(), matrix());
    let mut rules = Vec::new();
    for kind in kinds {
        definitions.insert(kind.name().to_owned(), configuration(kind.as_ref()));
        rules.push(rule(kind.as_ref()));
    }
    definitions.insert("stage".to_owned(), stage(&names, rules));
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Pipeline",
        "description": "A pipeline of `runner`: stages that depend on one another.",
        "type": "object",
        "required": ["version", "name", "stages"],
        "additionalProperties": false,
        "properties": {
            "version": { "description": "The version of the format.", "const": 1 },
            "name": {
                "description": "A short name, used in runs and reports.",
                "type": "string",
                "pattern": NAME,
            },
            "params": {
                "description": "Parameters, read as `${params.X}`, overridden by `--set X=VALUE`.",
                "type": ["object", "null"],
                "propertyNames": { "pattern": NAME },
            },
            "include": {
                "description": "Files whose parameters, profiles and stages are part of this one.",
                "type": ["string", "array"],
                "items": { "type": "string" },
            },
            "profiles": {
                "description": "Values set together by `--profile NAME`: parameters, or `STAGE.with.KEY`.",
                "type": ["object", "null"],
                "propertyNames": { "pattern": NAME },
                "additionalProperties": { "type": ["object", "null"] },
            },
            "schedule": schedule(),
            "promote": {
                "description": "The alias that a run points to the policy that it registered: where a \
                verdict says that it is better, or where nothing has the alias yet.",
                "type": ["object", "null"],
                "additionalProperties": false,
                "required": ["policy", "stage"],
                "properties": {
                    "policy": { "description": "The name of `register:` of a \
                    training.", "type": "string", "pattern": NAME },
                    "stage": { "description": "A stage `evaluate/compare` with `verdict:`, whose `agent` is \
                    the backtest of that training.", "type": "string", "pattern": NAME },
                    "alias": { "description": "The alias; `champion` by \
                    default.", "type": "string", "pattern": NAME },
                },
            },
            "notify": notify(),
            "track": track(),
            "stages": {
                "description": "The stages, by name, in any order.",
                "type": "object",
                "minProperties": 1,
                "propertyNames": { "pattern": NAME },
                "additionalProperties": { "$ref": "#/definitions/stage" },
            },
        },
        "definitions": definitions,
    })
}

const NAME: &str = "^[A-Za-z_][A-Za-z0-9_-]*$";
const SIZE: &str = "^[0-9.]+ *([KMGT]i?B|kB|B)$";
const VARIABLE: &str = "^[A-Za-z_][A-Za-z0-9_]*$";

fn stage(names: &[&str], rules: Vec<Value>) -> Value {
    let described = |text: &str, schema: Value| {
        let mut schema = schema;
        if let Value::Object(map) = &mut schema {
            map.insert("description".to_owned(), text.into());
        }
        schema
    };
    let of_kind: Vec<&str> = COMMON.into_iter().chain(OF_KIND).collect();
    let of_command: Vec<&str> = COMMON.into_iter().chain(OF_COMMAND).collect();
    let of_python: Vec<&str> = COMMON.into_iter().chain(OF_PYTHON).collect();
    let only = |keys: &[&str]| {
        let keys: Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), json!(true))).collect();
        json!({ "properties": keys, "additionalProperties": false })
    };
    let tool = json!({
        "type": "object",
        "additionalProperties": false,
        "oneOf": [{ "required": ["path"] }, { "required": ["name"] }],
        "properties": {
            "path": { "description": "An executable, or the directory of a virtual \
            environment.", "type": "string" },
            "name": { "description": "A program on PATH.", "type": "string" },
            "version": { "description": "What its `--version` prints: in the key instead of its \
            content.", "type": "string" },
            "lock": { "description": "The file that lists the environment's packages.", "type": "string" },
        },
    });
    let types = typed_output::TYPES.map(PortType::name);
    let mut all = vec![
        json!({
            "if": { "required": ["uses"] },
            "then": {
                "if": { "properties": { "uses": { "const": USES } } },
                "then": { "required": ["call"], "allOf": [only(&of_python)] },
                "else": only(&of_kind),
            },
        }),
        json!({ "if": { "required": ["run"] }, "then": only(&of_command) }),
    ];
    all.extend(rules);
    json!({
        "type": "object",
        "not": { "required": ["uses", "run"] },
        "properties": {
            "uses": { "description": "The stage kind.", "type": "string", "enum": names },
            "with": { "description": "The configuration of the stage kind.", "type": ["object", "null"] },
            "run": { "description": "A command for the shell; reads `${needs.X}` and writes \
            `${outputs.X}`.", "type": "string" },
            "needs": {
                "description": "The artifacts that the stage reads, by input.",
                "type": ["object", "null"],
                "additionalProperties": { "anyOf": [
                    { "$ref": "#/definitions/need" },
                    { "type": "array", "minItems": 1, "items": { "$ref": "#/definitions/need" } },
                ] },
            },
            "matrix": { "$ref": "#/definitions/matrix" },
            "resources": {
                "description": "The resources that the stage requires.",
                "type": ["object", "null"],
                "additionalProperties": false,
                "properties": {
                    "threads": described(
                        "The number of threads; by default the running stages share the cores.",
                        or_interpolation(json!({ "type": "integer", "minimum": 1, "maximum": 4096 })),
                    ),
                    "memory": described(
                        "Memory, such as `4GiB`.",
                        or_interpolation(json!({ "type": "string", "pattern": SIZE })),
                    ),
                },
            },
            "retries": described(
                "The number of retries after a failure.",
                or_interpolation(json!({ "type": "integer", "minimum": 0, "maximum": 100 })),
            ),
            "timeout": described(
                "The time limit: `90s`, `2h`, `5d`.",
                or_interpolation(json!({ "type": "string", "pattern": "^([0-9]+[smhd])+$" })),
            ),
            "register": {
                "description": "The name under which the policy is registered at the end of a run, and an \
                alias that points to the newest.",
                "anyOf": [
                    { "type": "string", "pattern": NAME },
                    {
                        "type": "object",
                        "additionalProperties": false,
                        "required": ["policy"],
                        "properties": { "policy": { "type": "string", "pattern": NAME },
                            "alias": { "type": "string", "pattern": NAME },
                            "max_age": { "description": "The age from which on it may not act: `30d`.",
                            "type": "string", "pattern": "^([0-9]+[smhd])+$" } },
                    },
                ],
            },
            "files": {
                "description": "Files that the command reads, of the pipeline's directory or by URL: part \
                of its key. Patterns and directories are expanded.",
                "type": ["array", "null"],
                "items": { "anyOf": [
                    { "type": "string" },
                    {
                        "type": "object",
                        "properties": { "url": { "type": "string" }, "blake3": { "type": "string" } },
                        "required": ["url", "blake3"],
                        "additionalProperties": false,
                    },
                ] },
            },
            "outputs": {
                "description": "The files that the command writes, by output.",
                "type": ["object", "null"],
                "propertyNames": { "pattern": NAME },
                "additionalProperties": { "anyOf": [
                    { "description": "A file; of a `uses: python` stage, the type of a data \
                        set.", "type": "string" },
                    {
                        "description": "A data set: a file of Parquet or CSV, or a directory of them, \
                        checked against the type.",
                        "type": "object",
                        "required": ["path"],
                        "additionalProperties": false,
                        "properties": {
                            "path": { "type": "string" },
                            "type": { "type": "string", "enum": types },
                        },
                    },
                ] },
            },
            "env": {
                "description": "Variables of the command's environment: part of its key.",
                "type": ["object", "null"],
                "propertyNames": { "pattern": VARIABLE },
                "additionalProperties": { "type": ["string", "number", "boolean"] },
            },
            "secrets": {
                "description": "Environment variables of `runner` that the command inherits: not part of \
                its key.",
                "type": ["array", "null"],
                "items": { "type": "string", "pattern": VARIABLE },
            },
            "tools": {
                "description": "Programs that the command runs besides the system's utilities: part of its \
                key.",
                "type": ["array", "null"],
                "items": { "anyOf": [
                    { "description": "A program on PATH, or the path of an executable or of a virtual \
                        environment.", "type": "string" },
                    tool,
                ] },
            },
            "network": described(
                "Whether the command reaches the network: part of its key.",
                or_interpolation(json!({ "type": "boolean", "default": false })),
            ),
            "shell": described(
                "The shell: `bash -euo pipefail` or `sh -e`. Part of its key.",
                or_interpolation(json!({ "enum": Shell::ALL, "default": Shell::default() })),
            ),
            "isolation": described(
                "The isolation that it asks for; `required` fails without namespaces.",
                or_interpolation(json!({ "enum": Isolation::ALL, "default": Isolation::default() })),
            ),
            "log": described(
                "The size of its log, of which the first and the last half are kept, such as `64MiB`.",
                or_interpolation(json!({ "type": "string", "pattern": SIZE })),
            ),
            "call": {
                "description": "The function of a `uses: python` stage, `MODULE:FUNCTION`: called with a \
                context, the inputs and `with` by name.",
                "type": "string",
            },
            "path": {
                "description": "The directory of the function's modules, relative to the pipeline; the \
                pipeline's own by default.",
                "type": "string",
            },
            "python": {
                "description": "The interpreter: a program on PATH, the path of one, or the directory of an \
                environment; `python3` by default. Part of the key, with its packages.",
                "type": "string",
            },
            "lock": { "description": "The file that lists the environment's packages: part of the \
            key.", "type": "string" },
            "seed": described(
                "The seed of the context: part of the key.",
                or_interpolation(json!({ "type": "integer", "minimum": 0, "default": 0 })),
            ),
            "container": described(
                "The image that it runs in, by podman or docker: part of its key.",
                or_interpolation(json!({ "type": "string",
                    "pattern": "^[A-Za-z0-9][A-Za-z0-9._/:-]*@sha256:[0-9a-f]{64}$" })),
            ),
        },
        "allOf": all,
    })
}

fn or_interpolation(schema: Value) -> Value {
    json!({ "anyOf": [schema, { "$ref": "#/definitions/interpolation" }] })
}

/// The schema of `schedule:`.
fn notify() -> Value {
    let text = |description: &str| json!({ "description": description, "type": "string" });
    let variable =
        |description: &str| json!({ "description": description, "type": "string", "pattern": VARIABLE });
    let secret = || variable("The variable of the environment that holds the address.");
    let url = || or_interpolation(json!({ "type": "string", "pattern": "^https?://" }));
    let occasions: Vec<&str> = Occasion::ALL.iter().map(|occasion| occasion.name()).collect();
    let address = |description: &str, more: Value| {
        let mut properties = json!({ "url": url(), "secret": secret() });
        if let (Value::Object(properties), Value::Object(more)) = (&mut properties, more) {
            properties.extend(more);
        }
        json!({
            "description": description,
            "anyOf": [url(), { "type": "object", "additionalProperties": false, "properties": properties }],
        })
    };
    json!({
        "description": "The messages that are sent when a run has ended. Not part of any key.",
        "type": ["array", "null"],
        "items": {
            "type": "object",
            "additionalProperties": false,
            "oneOf": [{ "required": ["webhook"] }, { "required": ["command"] }, { "required": ["email"] },
                { "required": ["ping"] }],
            "properties": {
                "on": {
                    "description": "The occasions; `failure` by default, of `ping` `success`.",
                    "type": ["string", "array"],
                    "items": { "enum": occasions },
                },
                "webhook": address(
                    "A POST request with a JSON document.",
                    json!({ "shape": { "description": "The shape of the document; `json`, all fields, by \
                        default.", "enum": ["json", "slack", "teams", "discord"] } }),
                ),
                "command": text("A shell command that reads the JSON document from standard input."),
                "email": {
                    "description": "An e-mail by SMTP.",
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["to", "from", "server"],
                    "properties": {
                        "to": { "description": "The addresses that it goes \
                        to.", "type": ["string", "array"], "items": { "type": "string" } },
                        "from": text("The address that it comes from."),
                        "server": text("Host and port: `smtp.example.org:587`."),
                        "tls": { "description": "The encryption: `always` (port 465), `starttls`, the \
                        default, or `never`, for a server on this \
                        machine.", "enum": ["always", "starttls", "never"] },
                        "user": text("The user that logs in."),
                        "password": variable("The variable of the environment that holds the password."),
                    },
                },
                "ping": address("A GET request, by which another service sees that runs succeed.", json!({})),
            },
        },
    })
}

fn track() -> Value {
    let secret = || {
        json!({ "type": "object", "additionalProperties": false, "required": ["secret"],
        "properties": { "secret": { "type": "string", "pattern": VARIABLE } } })
    };
    let address = |description: &str| {
        let url = or_interpolation(json!({ "type": "string", "pattern": "^https?://" }));
        json!({ "description": description, "anyOf": [url, secret()] })
    };
    let variable =
        |description: &str| json!({ "description": description, "type": "string", "pattern": VARIABLE });
    json!({
        "description": "The servers that follow runs. Not part of any key.",
        "type": ["array", "null"],
        "items": {
            "type": "object",
            "additionalProperties": false,
            "minProperties": 1,
            "maxProperties": 1,
            "properties": {
                "mlflow": {
                    "description": "A tracking server of MLflow.",
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["uri"],
                    "properties": {
                        "uri": address("Its address."),
                        "experiment": { "description": "The experiment; the pipeline's name by \
                        default.", "type": "string" },
                        "token": variable("The variable of the environment that holds a bearer token."),
                    },
                },
                "otlp": {
                    "description": "A collector of OpenTelemetry traces, by OTLP over HTTP.",
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["endpoint"],
                    "properties": {
                        "endpoint": address("Its address, without `/v1/traces`."),
                        "headers": variable("The variable of the environment that holds headers: \
                        `name=value,name=value`."),
                    },
                },
            },
        },
    })
}

fn schedule() -> Value {
    let calendars: Vec<&str> = CalendarName::CODES
        .iter()
        .map(|(code, _)| *code)
        .chain(CalendarName::ALL.iter().map(|calendar| calendar.name()))
        .chain(["every_day"])
        .collect();
    let text = |description: &str| json!({ "description": description, "type": "string" });
    let texts = |description: &str| {
        json!({ "description": description, "type": ["string", "array"],
        "items": { "type": "string" } })
    };
    let length = |description: &str| {
        let pattern = json!({ "type": "string", "pattern": "^([0-9]+[smhd])+$" });
        let mut schema = or_interpolation(pattern);
        schema["description"] = description.into();
        schema
    };
    json!({
        "description": "The nights on which `runner schedule` runs the pipeline.",
        "type": ["object", "null"],
        "additionalProperties": false,
        "oneOf": [{ "required": ["at"] }, { "required": ["cron"] }, { "type": "null" }],
        "properties": {
            "at": text("The local time, `18:30`, or a time after the exchange's close, which is earlier on \
            a half day: `close + 2h30m`."),
            "cron": text("Minute, hour, day of the month, month and day of the week: `30 18 * * 1-5`. Only \
            on days of the calendar."),
            "timezone": text("The time zone, an IANA name; by default that of the exchange, or UTC."),
            "calendar": {
                "description": "The days that have a night: the trading days of an exchange by its ISO \
                10383 code or its name here, or every day.",
                "enum": calendars,
                "default": "every_day",
            },
            "from": text("The date of the first night; by default, the latest that is due when the schedule \
            is first run."),
            "wait_for": {
                "description": "The data that a night waits for.",
                "type": "object",
                "additionalProperties": false,
                "required": ["until"],
                "properties": {
                    "sources": texts("Stages: each of them has a source file that was written on the \
                    night's date or later."),
                    "files": texts("Paths of files, such as `quotes/${schedule.date}.csv`, relative to the \
                    pipeline."),
                    "until": text("The local time after which the night is late; a time before the due time \
                    is one of the next day."),
                    "stable_for": length("The time for which the size and the modification time of each \
                    file must have been unchanged."),
                },
            },
            "catch_up": {
                "description": "What happens to missed nights: all are made up for in order, the latest is, \
                or none.",
                "enum": CatchUp::ALL.map(|(name, _)| name),
                "default": CatchUp::default().name(),
            },
            "params": {
                "description": "Values set in a night, as by `--set`: parameters, or `STAGE.with.KEY`; \
                `${schedule.date}` and `${schedule.previous}` are its dates.",
                "type": ["object", "null"],
            },
            "timeout": length("The longest time that the run of a night takes."),
            "keep": {
                "description": "What the history keeps.",
                "type": "object",
                "additionalProperties": false,
                "required": ["runs"],
                "properties": { "runs": { "description": "The number of the schedule's latest \
                runs.", "type": "integer", "minimum": 1 } },
            },
            "then": {
                "description": "The decision of a registered policy once a night's run is done, as by \
                `runner policy act`.",
                "type": "object",
                "additionalProperties": false,
                "required": ["act", "data"],
                "properties": {
                    "act": text("The policy: `NAME@ALIAS`, such as `desk@champion`, or `NAME@VERSION`."),
                    "data": texts("The files of the night's data, as by `--data`, relative to the pipeline."),
                    "replace": { "description": "Read the files in place of the stages' own \
                    ones.", "type": "boolean" },
                    "positions": text("The positions that are held: a file, relative to the pipeline, \
                    `none` (default) or `played`."),
                },
            },
        },
    })
}

/// The schema of `matrix:`.
fn matrix() -> Value {
    let value = json!({ "type": ["number", "string", "boolean"] });
    let values = json!({ "type": "array", "minItems": 1, "uniqueItems": true, "items": value });
    let number = or_interpolation(json!({ "type": "number" }));
    let whole = or_interpolation(json!({ "type": "integer", "minimum": 0 }));
    let range = json!({
        "description": "A range that includes both bounds.",
        "type": "object",
        "additionalProperties": false,
        "required": ["from", "to"],
        "properties": { "from": number, "to": number, "step": number, "count": whole,
            "spacing": { "enum": ["linear", "log"] } },
    });
    let length = or_interpolation(json!({ "type": "string", "pattern": "^[0-9]+(y|mo|w|d)$" }));
    let date = or_interpolation(json!({ "type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$" }));
    let folds = json!({
        "description": "The folds of a walk-forward; `${matrix.NAME.train}` and `${matrix.NAME.test}` are \
        the dates of each.",
        "type": "object",
        "additionalProperties": false,
        "required": ["from", "to", "train", "test"],
        "properties": {
            "from": date, "to": date, "train": length, "test": length, "embargo": length,
            "mode": { "enum": ["rolling", "expanding"] },
        },
    });
    let ends = json!({ "type": "array", "minItems": 2, "maxItems": 2, "items": number });
    let draws = json!({
        "description": "Values drawn at random: an axis of `samples` values, or drawn with others where the \
        matrix has `samples`.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "uniform": ends, "log_uniform": ends, "integer": ends, "choice": values, "samples": whole,
                "seed": whole,
        },
        "oneOf": [
            { "required": ["uniform"] },
            { "required": ["log_uniform"] },
            { "required": ["integer"] },
            { "required": ["choice"] },
        ],
    });
    let samples = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["count"],
        "properties": { "count": whole, "seed": whole },
    });
    let exclude = json!({ "type": "object", "additionalProperties": { "anyOf": [value, values] } });
    json!({
        "description": "Axes of values; the stage is run at each point of their product.",
        "type": ["object", "null"],
        "propertyNames": { "pattern": NAME },
        "properties": {
            "points": {
                "description": "Axes that vary together, as a list of points.",
                "type": "array",
                "minItems": 1,
                "items": { "type": "object", "minProperties": 1, "additionalProperties": value },
            },
            "exclude": {
                "description": "Points to leave out: those that have one of the values at every axis named.",
                "anyOf": [exclude, { "type": "array", "items": exclude }],
            },
            "samples": { "description": "The number of points drawn for the axes without their own \
            `samples`.", "anyOf": [whole, samples] },
        },
        "additionalProperties": { "anyOf": [values, range, folds, draws,
            { "$ref": "#/definitions/interpolation" }] },
    })
}

/// The constraints of `uses: KIND` on the other keys.
fn rule(kind: &dyn AnyStage) -> Value {
    let ports = kind.ports();
    let mut needs = Map::new();
    for port in ports.inputs {
        let one = json!({ "$ref": "#/definitions/need" });
        let schema = if port.list {
            json!({
                "description": port.doc,
                "anyOf": [one, { "type": "array", "minItems": 1, "items": one }],
            })
        } else {
            json!({ "description": port.doc, "allOf": [one] })
        };
        needs.insert(port.name.to_owned(), schema);
    }
    let required: Vec<&str> = ports
        .inputs
        .iter()
        .filter(|port| !port.optional)
        .map(|port| port.name)
        .collect();
    let mut then = json!({
        "properties": {
            "uses": { "description": kind.about() },
            "with": { "anyOf": [{ "$ref": pointer(kind.name()) }, { "type": "null" }] },
            "needs": {
                "type": if required.is_empty() { json!(["object", "null"]) } else { json!("object") },
                "properties": needs,
                "additionalProperties": false,
                "required": required,
            },
        },
    });
    if !required.is_empty() {
        then["required"] = json!(["needs"]);
    }
    json!({
        "if": { "required": ["uses"], "properties": { "uses": { "const": kind.name() } } },
        "then": then,
    })
}

fn pointer(kind: &str) -> String {
    format!("#/definitions/{}", kind.replace('~', "~0").replace('/', "~1"))
}

/// The schema of a kind's configuration, as a definition: references rebased, and an interpolation allowed
/// for every value.
fn configuration(kind: &dyn AnyStage) -> Value {
    let mut schema = kind.schema();
    if let Value::Object(map) = &mut schema {
        map.remove("$schema");
        map.remove("title");
        map.insert("description".to_owned(), kind.about().into());
    }
    rebase(&mut schema, &pointer(kind.name()));
    loosen(&mut schema);
    schema
}

fn rebase(schema: &mut Value, base: &str) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(target) if key == "$ref" => {
                        if let Some(rest) = target.strip_prefix('#') {
                            *target = format!("{base}{rest}");
                        }
                    }
                    value => rebase(value, base),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rebase(item, base)),
        _ => {}
    }
}

/// Allows an interpolation in place of any value.
fn loosen(schema: &mut Value) {
    let Value::Object(map) = schema else {
        return;
    };
    for (key, value) in map.iter_mut() {
        match (key.as_str(), value) {
            ("properties", Value::Object(fields)) => fields.values_mut().for_each(allow),
            ("items" | "additionalProperties", value @ Value::Object(_)) => allow(value),
            ("items", Value::Array(items)) => items.iter_mut().for_each(allow),
            ("definitions", Value::Object(inner)) => inner.values_mut().for_each(loosen),
            ("anyOf" | "oneOf" | "allOf", Value::Array(items)) => items.iter_mut().for_each(loosen),
            _ => {}
        }
    }
}

fn allow(schema: &mut Value) {
    loosen(schema);
    let mut outer = Map::new();
    if let Value::Object(map) = schema {
        for key in ["description", "default"] {
            if let Some(value) = map.remove(key) {
                outer.insert(key.to_owned(), value);
            }
        }
    }
    let inner = schema.take();
    outer.insert(
        "anyOf".to_owned(),
        json!([inner, { "$ref": "#/definitions/interpolation" }]),
    );
    *schema = Value::Object(outer);
}
