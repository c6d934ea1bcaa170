//! The name that a user probably means by a name of `--set` that names nothing.

use crate::file::document::Document;
use crate::text::{Tree, Value, nearest};

/// Words that lead to parameters and to stages, in the file and in other programs.
const PARAMS: [&str; 4] = ["params", "param", "parameters", "parameter"];
const STAGES: [&str; 2] = ["stages", "stage"];

/// Words for the settings and the inputs of a stage.
const WITH: [&str; 5] = ["with", "config", "configuration", "settings", "setting"];
const NEEDS: [&str; 4] = ["needs", "need", "inputs", "input"];

/// The name of a parameter, `STAGE.with.KEY` or `STAGE.needs.PORT` that is probably meant by a name: written
/// as in the file (`params.seed`, `stages.train.with.gamma`), without `with` (`train.gamma`), of one point of
/// a matrix, or misspelt. `None` if there is nothing near.
pub(super) fn meant(name: &str, document: &Document) -> Option<String> {
    let name = name.trim().trim_start_matches("${").trim_end_matches('}');
    let point = name.find('[').zip(name.rfind(']')).filter(|(from, to)| from < to);
    let whole = point.map_or(name.to_owned(), |(from, to)| {
        format!("{}{}", &name[..from], &name[to + 1..])
    });
    let parts: Vec<&str> = whole
        .split(['.', '/', ':'])
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect();
    let is = |part: &str, words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(part));
    let param = |name: &str| nearest(name, document.params.iter().map(|(key, _)| key.name.as_str()));
    let stage = |name: &str| {
        let found = nearest(name, document.stages.iter().map(|stage| stage.key.name.as_str()))?;
        document.stages.iter().find(|stage| stage.key.name == found)
    };
    match parts.as_slice() {
        [first, name] if is(first, &PARAMS) => param(name).map(str::to_owned),
        [first, rest @ ..] if !rest.is_empty() && is(first, &STAGES) => meant(&rest.join("."), document),
        [name] => match param(name) {
            Some(found) => Some(found.to_owned()),
            None => setting(name, document),
        },
        [first, rest @ ..] => {
            let stage = stage(first)?;
            let name = &stage.key.name;
            match rest {
                [word, rest @ ..]
                    if !rest.is_empty() && (is(word, &WITH) || nearest(word, ["with"]).is_some()) =>
                {
                    Some(format!("{name}.with.{}", rest.join(".")))
                }
                [word, port] if is(word, &NEEDS) => Some(format!("{name}.needs.{port}")),
                [port] if stage.needs.iter().any(|(key, _)| key.name == *port) => {
                    Some(format!("{name}.needs.{port}"))
                }
                [word] if is(word, &WITH) => None,
                [word, ..] if is(word, &NEEDS) => None,
                rest => Some(format!("{name}.with.{}", rest.join("."))),
            }
        }
        [] => None,
    }
}

/// The setting of that name which one stage alone has in the file.
fn setting(name: &str, document: &Document) -> Option<String> {
    let has = |with: &Tree| match &with.value {
        Value::Map(entries) => entries.iter().any(|(key, _)| key.name == name),
        _ => false,
    };
    let mut having = document.stages.iter().filter(|stage| has(&stage.with));
    let (stage, None) = (having.next()?, having.next()) else {
        return None;
    };
    Some(format!("{}.with.{name}", stage.key.name))
}
