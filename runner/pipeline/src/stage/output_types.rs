//! The entries of `outputs:`: a path, or `{ path: …, type: … }` for an output that a port of that type
//! accepts. In a Python stage, a type alone is a table whose file the engine chooses, and `{ path: … }` is a
//! file of bytes or text.

use crate::stage::written::Output;
use crate::text::{Key, Problems, Tree, Value, list, nearest, suggest};
use stages_core::{PortType, typed_output};

/// Reads the entries. The output of an entry with an error exists: commands and needs may name it.
pub(crate) fn read(entries: Vec<(Key, Tree)>, is_python: bool, problems: &mut Problems) -> Vec<Output> {
    let mut outputs = Vec::new();
    for (key, tree) in entries {
        let (path, ty) = match &tree.value {
            Value::Map(fields) => {
                let path = tree.entry("path").map(|(_, path)| path.clone());
                let is_file = is_python && fields.len() == 1 && path.is_some();
                let ty = if is_file { None } else { type_of(&key, &tree, problems) };
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
        outputs.push(Output { key, path, ty });
    }
    outputs
}

/// Checks the fields of an output, and reads its type.
fn type_of(key: &Key, tree: &Tree, problems: &mut Problems) -> Option<PortType> {
    let name = &key.name;
    let is_known = |name: &str| ["path", "type"].contains(&name);
    for (field, _) in tree.entries().iter().filter(|(field, _)| !is_known(&field.name)) {
        let other = &field.name;
        let message = format!("unknown key `{other}` in the output `{name}`");
        problems.add(field.spot, message, suggest(other, "keys", ["path", "type"]));
    }
    if tree.entry("path").is_none() {
        let hint = format!("write `{name}: {{ path: {name}.parquet, type: features }}`");
        problems.add(key.spot, format!("the output `{name}` has no `path`"), hint);
    }
    let Some((_, ty)) = tree.entry("type") else {
        let hint = format!(
            "the types are {}; a file without a type is written as its path alone: `{name}: {name}.csv`",
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
