//! Descriptions of the types that programs can write, for people.

use datasets::schema::{Column, Type};
use serde_json::{Value, json};
use stages_core::PortType;
use stages_core::typed_output::{self, Requirements};
use std::fmt::Write as _;

/// The types that programs can write.
pub fn types() -> [PortType; typed_output::TYPES.len()] {
    typed_output::TYPES
}

fn type_name(ty: Type) -> &'static str {
    match ty {
        Type::Text => "text",
        Type::Date => "date",
        Type::Instant => "instant",
        Type::Float => "number",
        Type::Code => "code",
        Type::Bool => "true | false",
    }
}

/// The contents of a column that may be omitted; `None` for any other column.
fn alternative(of: &Requirements, column: &Column) -> Option<&'static str> {
    let found = of.alternatives.iter().find(|(name, _)| *name == column.name);
    found.map(|(_, contents)| *contents)
}

fn is_required(of: &Requirements, column: &Column) -> bool {
    !column.nullable && alternative(of, column).is_none()
}

/// Describes what an output of a type must hold: form, columns, key and checks. Empty for a type that
/// programs cannot write.
pub fn describe_type(ty: PortType) -> String {
    let Some(of) = typed_output::requirements(ty) else {
        return String::new();
    };
    let name = ty.name();
    let mut out = match of.key {
        "" => format!("{name}: {}\n", of.form),
        key => format!("{name}: a row for each {key}\n\ncolumns\n"),
    };
    let mut rows: Vec<[String; 4]> = of
        .columns
        .iter()
        .map(|column| {
            let need = if is_required(&of, column) {
                "required"
            } else {
                "optional"
            };
            [
                column.name.to_owned(),
                type_name(column.ty).to_owned(),
                need.to_owned(),
                alternative(&of, column).unwrap_or(column.doc).to_owned(),
            ]
        })
        .collect();
    if let Some(others) = of.others {
        rows.push([
            "…".to_owned(),
            "number".to_owned(),
            "required".to_owned(),
            others.to_owned(),
        ]);
    }
    let width = |place: usize| rows.iter().map(|row| row[place].chars().count()).max().unwrap_or(0);
    let [column_width, kind, need] = [width(0), width(1), width(2)];
    for [column, ty, needed, doc] in &rows {
        let _ = writeln!(out, "  {column:column_width$}  {ty:kind$}  {needed:need$}  {doc}");
    }
    out.push_str("\nchecks\n");
    for check in of.checks {
        let _ = writeln!(out, "  {check}");
    }
    let example = match ty {
        PortType::Env => "env: { path: env, type: env }",
        PortType::Policy => "policy: { path: policy.safetensors, type: policy }",
        PortType::Metrics => "metrics: { path: metrics.json, type: metrics }",
        _ => "",
    };
    let _ = match example {
        "" => writeln!(
            out,
            "\n{}: `outputs: {{ rows: {{ path: rows.parquet, type: {name} }} }}`",
            of.form
        ),
        example => writeln!(out, "\n`outputs: {{ {example} }}`"),
    };
    out
}

/// Describes a type as JSON: key, columns and checks. `Null` for a type that programs cannot write.
pub fn type_json(ty: PortType) -> Value {
    let Some(of) = typed_output::requirements(ty) else {
        return Value::Null;
    };
    let columns: Vec<Value> = of
        .columns
        .iter()
        .map(|column| {
            json!({
                "name": column.name, "type": type_name(column.ty), "required": is_required(&of, column),
                "nullable": column.nullable, "about": alternative(&of, column).unwrap_or(column.doc),
            })
        })
        .collect();
    json!({ "type": ty.name(), "key": of.key, "columns": columns, "others": of.others, "checks": of.checks,
        "form": of.form })
}
