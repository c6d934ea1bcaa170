//! The entries of `outputs:`: a path, or `{ path: …, type: … }` for an output that a port of that type
//! accepts. In a Python stage, a type alone is a table whose file the engine chooses, and `{ path: … }` is a
//! file of bytes or text.

use crate::text::problems::Problems;
use crate::text::suggest::{list, nearest, suggest};
use crate::text::tree::{Key, Tree, Value};
use stages_core::{PortType, typed_output};
use std::collections::BTreeMap;

/// Reads the paths of outputs, and the types of the outputs that have one. An entry with an error is omitted.
pub(crate) fn read(
    entries: Vec<(Key, Tree)>,
    is_python: bool,
    problems: &mut Problems,
) -> (Vec<(Key, Tree)>, BTreeMap<String, PortType>) {
    let (mut paths, mut types) = (Vec::new(), BTreeMap::new());
    for (key, tree) in entries {
        let (path, ty) = match &tree.value {
            Value::Map(fields) => {
                let path = tree.entry("path").map(|(_, path)| path.clone());
                let is_file = is_python && fields.len() == 1 && path.is_some();
                let ty = if is_file { None } else { type_of(&key, fields, problems) };
                // The output exists, whatever is wrong with its entry: commands and needs may name it.
                (
                    path.unwrap_or_else(|| Tree::scalar(key.spot, key.name.clone().into())),
                    ty,
                )
            }
            Value::Scalar(_) if is_python => {
                let path = Tree::scalar(tree.spot, format!("outputs/{}", key.name).into());
                (path, named(&key.name, &tree, problems))
            }
            _ => (tree, None),
        };
        types.extend(ty.map(|ty| (key.name.clone(), ty)));
        paths.push((key, path));
    }
    (paths, types)
}

/// Checks the fields of an output, and reads its type.
fn type_of(key: &Key, fields: &[(Key, Tree)], problems: &mut Problems) -> Option<PortType> {
    let name = &key.name;
    for (field, _) in fields
        .iter()
        .filter(|(field, _)| !["path", "type"].contains(&field.name.as_str()))
    {
        let other = &field.name;
        let message = format!("unknown key `{other}` in the output `{name}`");
        problems.add(field.spot, message, suggest(other, "keys", ["path", "type"]));
    }
    let field = |wanted: &str| fields.iter().find(|(field, _)| field.name == wanted);
    if field("path").is_none() {
        let hint = format!("write `{name}: {{ path: {name}.parquet, type: features }}`");
        problems.add(key.spot, format!("the output `{name}` has no `path`"), hint);
    }
    let Some((_, ty)) = field("type") else {
        let hint = format!(
            "the types are {}; a file of no type is its path alone: `{name}: {name}.csv`",
            list(typed_output::TYPES.map(PortType::name))
        );
        return problems.fail(key.spot, format!("the output `{name}` has no `type`"), hint);
    };
    named(name, ty, problems)
}

/// The port type with the given name.
fn named(output: &str, ty: &Tree, problems: &mut Problems) -> Option<PortType> {
    let names = typed_output::TYPES.map(PortType::name);
    let of = |name: &str| typed_output::TYPES.into_iter().find(|known| known.name() == name);
    let written = ty.text().unwrap_or_default();
    let found = of(written);
    if found.is_none() {
        let described = ty.describe();
        let message = format!("the type of the output `{output}` is {described}, which no program can write");
        problems.add(ty.spot, message, suggest(written, "types", names));
    }
    // A stage that needs the output is not wrong because the output's type is misspelt.
    found.or_else(|| of(nearest(written, names)?))
}
