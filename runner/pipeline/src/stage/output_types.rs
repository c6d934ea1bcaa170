//! The entries of `outputs:`: a path, or `{ path: …, type: … }` for what a port of that type takes.

use crate::text::problems::Problems;
use crate::text::suggest::{list, nearest, suggest};
use crate::text::tree::{Key, Tree, Value};
use stages_core::{PortType, typed_output};
use std::collections::BTreeMap;

/// The paths of outputs, and the types of those that have one. An entry with an error is left out.
pub(crate) fn read(
    entries: Vec<(Key, Tree)>,
    problems: &mut Problems,
) -> (Vec<(Key, Tree)>, BTreeMap<String, PortType>) {
    let (mut paths, mut types) = (Vec::new(), BTreeMap::new());
    for (key, tree) in entries {
        match tree.value {
            Value::Map(fields) => {
                let (path, ty) = typed(&key, fields, problems);
                types.extend(ty.map(|ty| (key.name.clone(), ty)));
                // The output exists, whatever is wrong with it: commands and needs may name it.
                let path = path.unwrap_or_else(|| Tree::scalar(key.spot, key.name.clone().into()));
                paths.push((key, path));
            }
            _ => paths.push((key, tree)),
        }
    }
    (paths, types)
}

fn typed(key: &Key, fields: Vec<(Key, Tree)>, problems: &mut Problems) -> (Option<Tree>, Option<PortType>) {
    let (mut path, mut ty) = (None, None);
    let name = &key.name;
    for (field, value) in fields {
        match field.name.as_str() {
            "path" => path = Some(value),
            "type" => ty = Some(value),
            other => problems.add(
                field.spot,
                format!("unknown key `{other}` in the output `{name}`"),
                suggest(other, "keys", ["path", "type"]),
            ),
        }
    }
    if path.is_none() {
        problems.add(
            key.spot,
            format!("the output `{name}` has no `path`"),
            format!("write `{name}: {{ path: {name}.parquet, type: features }}`"),
        );
    }
    let names = typed_output::TYPES.map(PortType::name);
    let Some(ty) = ty else {
        problems.add(
            key.spot,
            format!("the output `{name}` has no `type`"),
            format!(
                "the types are {}; a file of no type is its path alone: `{name}: {name}.csv`",
                list(names)
            ),
        );
        return (path, None);
    };
    let of = |name: &str| typed_output::TYPES.into_iter().find(|known| known.name() == name);
    let written = ty.text().unwrap_or_default();
    let found = of(written);
    if found.is_none() {
        problems.add(
            ty.spot,
            format!(
                "the type of the output `{name}` is {}, which no program can write",
                ty.describe()
            ),
            suggest(written, "types", names),
        );
    }
    // A stage that needs the output is not wrong because its type is misspelt.
    (path, found.or_else(|| of(nearest(written, names)?)))
}
