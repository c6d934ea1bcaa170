//! Interpolations: `${params.X}`, `${matrix.X}`, `${env.X}`, `${schedule.X}`, `${policies.NAME.tried}`, and
//! inside `run:` also `${needs.X}` and `${outputs.X}`. A date may be moved by days: `${params.X - 30d}`.

use crate::matrix::folds;
use crate::schedule::NightDates;
use crate::stage::earlier::{FindTried, NotFound};
use crate::text::{
    Block, Problems, Spot, Texts, Tree, Value, follow, nearest, plain_words, spell, steps, suggest, tree,
    yaml,
};
use datasets::Date;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};

/// The variables of interpolations.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// The parameters; `None` if they are not available (in `params:` itself).
    pub params: Option<&'a BTreeMap<String, Tree>>,
    /// The point of the matrix; `None` if it is not available (in `matrix:` itself).
    pub matrix: Option<&'a BTreeMap<String, Json>>,
    /// The environment.
    pub env: &'a BTreeMap<String, String>,
    /// Counts the policies that were tried under a name; `None` if the registry of policies is not available.
    pub tried: Option<&'a FindTried>,
    /// The dates of the night that is run; `None` if no scheduled night is run.
    pub night: Option<NightDates>,
    /// The variables that some stage lists in `secrets:`: interpolating them is an error.
    pub secrets: &'a BTreeSet<String>,
    /// If set, interpolations that differ between points, and those of parameters that are not in `params`,
    /// are kept, so that the result can be loaded again.
    pub verbatim: bool,
}

impl Block {
    /// Reads the block with its interpolations replaced; `None` if it has errors, all of which are reported.
    pub(crate) fn fill<T: DeserializeOwned>(
        &self,
        tree: &Tree,
        scope: &Scope,
        problems: &mut Problems,
    ) -> Option<T> {
        let before = problems.count();
        let filled = fill(tree, scope, problems);
        (problems.count() == before).then(|| self.read(tree, &filled, problems))?
    }

    /// Reads a list of such blocks; blocks with errors are omitted.
    pub(crate) fn list<T: DeserializeOwned>(
        &self,
        tree: Option<&Tree>,
        scope: &Scope,
        problems: &mut Problems,
    ) -> Vec<T> {
        let Some(tree) = tree else { return Vec::new() };
        let Value::List(items) = &tree.value else {
            let message = format!("`{}` is {}, not a list", self.key, tree.describe());
            problems.add(tree.spot, message, self.hint(&[], "").unwrap_or_default());
            return Vec::new();
        };
        items
            .iter()
            .filter_map(|item| self.fill(item, scope, problems))
            .collect()
    }
}

/// The offset of the next `${`. For short texts, a naive search is faster than a prepared one.
fn opening(text: &str) -> Option<usize> {
    text.as_bytes().windows(2).position(|pair| pair == b"${")
}

/// Replaces the interpolations of a text that `replace` accepts: it is given the text between `${` and `}`
/// (`None` if the brace is not closed), and appends the replacement. `$${` becomes `escape`.
fn replace_all(
    text: &str,
    escape: &str,
    mut replace: impl FnMut(Option<&str>, &mut String) -> bool,
) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = opening(rest) {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        rest = after;
        if let Some(before) = before.strip_suffix('$') {
            out.push_str(before);
            out.push_str(escape);
            continue;
        }
        out.push_str(before);
        let end = after.find('}');
        match replace(end.map(|end| &after[..end]), &mut out) {
            true => rest = end.map_or(after, |end| &after[end + 1..]),
            false => out.push_str("${"),
        }
    }
    out.push_str(rest);
    out
}

const FORMS: &str = "write `${params.NAME}`, `${matrix.NAME}` or `${env.NAME}`; `$${` stands for `${` itself";

/// Returns a copy of `tree` with all interpolations in its texts replaced. Keys are unchanged.
pub(crate) fn fill(tree: &Tree, scope: &Scope, problems: &mut Problems) -> Tree {
    tree.map_texts(&mut |tree, text| match opening(text) {
        Some(_) => fill_text(text, tree.spot, scope, problems),
        None => tree.clone(),
    })
}

fn fill_text(text: &str, spot: Spot, scope: &Scope, problems: &mut Problems) -> Tree {
    let whole = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    if let Some(inner) = whole.filter(|inner| !inner.contains('}')) {
        let Some((value, note)) = look_up(inner, spot, scope, problems) else {
            return Tree::scalar(spot, Json::Null);
        };
        // A value from the command line keeps its position there, for errors.
        let set = problems.texts.is_argument(value.spot.text);
        return Tree {
            spot: if set { value.spot } else { spot },
            note: Some(if set {
                format!("read as `{text}` in {}", problems.texts.line(spot, 0))
            } else {
                note
            }),
            value: value.value,
        };
    }
    let mut notes = Vec::new();
    let out = replace_all(text, if scope.verbatim { "$${" } else { "${" }, |inner, out| {
        match inner {
            Some(inner) => notes.extend(splice(inner, spot, scope, out, problems)),
            None => problems.add(problems.texts.locate(spot, "${"), "`${` is not closed", FORMS),
        }
        true
    });
    Tree {
        note: (!notes.is_empty()).then(|| notes.join(", ")),
        ..Tree::scalar(spot, Json::String(out))
    }
}

/// Appends the value of an interpolation to a text, and returns the note of its origin.
fn splice(
    inner: &str,
    spot: Spot,
    scope: &Scope,
    out: &mut String,
    problems: &mut Problems,
) -> Option<String> {
    let (value, note) = look_up(inner, spot, scope, problems)?;
    let text = match &value.value {
        Value::Scalar(value) => spell(value),
        Value::List(_) | Value::Map(_) => None,
    };
    let Some(text) = text else {
        return problems.fail(
            problems.texts.locate(spot, &format!("${{{inner}}}")),
            format!("`${{{inner}}}` is {} and cannot be part of a string", value.describe()),
            "let it be the whole value, or use a string or a number",
        );
    };
    out.push_str(&text);
    Some(note)
}

/// The value of an interpolation, and a note of its origin.
fn look_up(inner: &str, spot: Spot, scope: &Scope, problems: &mut Problems) -> Option<(Tree, String)> {
    let (base, days) = moved(inner);
    let is_kept_param = base.strip_prefix("params.").is_some_and(|name| {
        let name = name.split('.').next().unwrap_or_default();
        scope.params.is_some_and(|params| !params.contains_key(name))
    });
    if scope.verbatim && (inner.starts_with("matrix.") || is_kept_param) {
        let kept = Tree::scalar(spot, Json::String(format!("${{{inner}}}")));
        return Some((kept, String::new()));
    }
    let found = read(base, spot, scope, &problems.texts);
    let found = match days {
        None => found,
        Some(days) => found.and_then(|(value, _)| move_date(inner, &value, days, spot)),
    };
    match found {
        Ok((value, note)) if scope.verbatim => Some((value.escaped(), note)),
        Ok(found) => Some(found),
        Err((message, hint)) => {
            let spot = problems.texts.locate(spot, &format!("${{{inner}}}"));
            problems.fail(spot, message, hint)
        }
    }
}

/// A value and the note of its origin, or an error and its hint.
type Found = Result<(Tree, String), (String, String)>;

fn wrong(message: impl Into<String>, hint: impl Into<String>) -> Found {
    Err((message.into(), hint.into()))
}

/// The interpolation of a date, and the days by which `X - 30d` or `X + 30d` moves it.
fn moved(inner: &str) -> (&str, Option<i32>) {
    let parts = [(" - ", -1), (" + ", 1)].into_iter().find_map(|(sign, factor)| {
        let (base, days) = inner.split_once(sign)?;
        let days = days.strip_suffix('d')?.parse::<u16>().ok()?;
        Some((base, factor * i32::from(days)))
    });
    parts.map_or((inner, None), |(base, days)| (base, Some(days)))
}

fn move_date(inner: &str, value: &Tree, days: i32, spot: Spot) -> Found {
    let whole = format!("${{{inner}}}");
    match value.text().and_then(|text| text.parse::<Date>().ok()) {
        Some(date) => {
            let note = format!("`{whole}` is {days:+} days from {date}");
            Ok((Tree::scalar(spot, Json::String(date.plus(days).to_string())), note))
        }
        None => wrong(
            format!("`{whole}` moves {}, which is not a date", value.describe()),
            "days are added to a date such as 2026-11-25",
        ),
    }
}

fn read(inner: &str, spot: Spot, scope: &Scope, texts: &Texts) -> Found {
    let whole = format!("${{{inner}}}");
    let (space, name) = inner.split_once('.').unwrap_or((inner, ""));
    let trimmed = inner.trim();
    if trimmed.len() < inner.len() {
        return wrong(format!("spaces inside `{whole}`"), format!("write `${{{trimmed}}}`"));
    }
    let scalar = |value: Json| {
        let note = format!("`{whole}` is {}", tree::describe(&value));
        Ok((Tree::scalar(spot, value), note))
    };
    match (space, scope.params, scope.matrix) {
        ("params", Some(params), _) => {
            let (first, rest) = name.split_once('.').unwrap_or((name, ""));
            let Some(param) = params.get(first) else {
                return wrong(
                    format!("unknown parameter `{first}` in `{whole}`"),
                    suggest(first, "parameters", params.keys().map(String::as_str)),
                );
            };
            let path = if name.contains('.') { steps(rest) } else { Vec::new() };
            let found = follow(param, &path);
            if !found.complete {
                let keys = found.value.entries().iter().map(|(key, _)| key.name.as_str());
                return wrong(
                    format!("the parameter `{first}` has no `{rest}`"),
                    suggest(rest, "keys", keys),
                );
            }
            let from = found.value.spot;
            let from = match texts.is_argument(from.text) {
                true => format!(", from `--set {}`", texts.content(from.text)),
                false => format!(", from {}", texts.line(from, spot.text)),
            };
            let note = format!("`{whole}` is {}{from}", found.value.describe());
            Ok((found.value.clone(), note))
        }
        ("params", None, _) => wrong(
            "a parameter cannot refer to another one",
            "write the value out, or refer to both where they are used",
        ),
        ("matrix", _, Some(point)) => match point.get(name) {
            Some(value) => scalar(value.clone()),
            None if let Some((axis, part)) = name.split_once('.')
                && let Some(Json::String(fold)) = point.get(axis) =>
            {
                let dates = folds::part(fold, part, spot);
                let dates = dates.map(|dates| (dates, format!("`{whole}` is of the fold {fold}")));
                dates.ok_or_else(|| (format!("the axis `{axis}` has no `{part}`"), folds::unknown(part)))
            }
            None => wrong(
                format!("unknown axis `{name}` in `{whole}`"),
                match point.is_empty() {
                    true => format!("this stage has no matrix: add `matrix: {{ {name}: [1, 2] }}`"),
                    false => suggest(name, "axes", point.keys().map(String::as_str)),
                },
            ),
        },
        ("matrix", _, None) => wrong(
            "the matrix cannot be read here",
            "use `${matrix.X}` in `with:`, `run:`, `env:`, `files:`, `outputs:`, `resources:`, \
                `retries:` or `timeout:`",
        ),
        ("env", ..) if scope.secrets.contains(name) => wrong(
            format!("`{name}` is a secret, and this would write its value into keys and histories"),
            "let a `run:` stage that names it in `secrets:` read it from its environment",
        ),
        ("env", ..) if is_secret(name) => wrong(
            format!("`{name}` looks like a secret, and this would write its value into keys and histories"),
            format!("let a `run:` stage with `secrets: [{name}]` read it from its environment"),
        ),
        ("env", ..) => match scope.env.get(name) {
            // Variables are untyped: a text that looks like a number is parsed as one.
            Some(text) => scalar(match text.as_str() {
                "" => Json::String(String::new()),
                text => yaml::scalar(text).unwrap_or_else(|_| Json::String(text.to_owned())),
            }),
            None => wrong(
                format!("the environment has no variable `{name}`"),
                match nearest(name, scope.env.keys().map(String::as_str)) {
                    Some(near) => format!("set it (`{name}=… runner …`); there is `{near}`"),
                    None => format!("set it: `{name}=… runner …`"),
                },
            ),
        },
        ("schedule", ..) if !NightDates::NAMES.contains(&name) => {
            let hint = suggest(name, "dates of a night", NightDates::NAMES);
            wrong(format!("unknown date `{name}` in `{whole}`"), hint)
        }
        ("schedule", ..) => match scope.night.and_then(|night| night.get(name)) {
            Some(value) => scalar(value),
            None => wrong(
                format!("`{whole}` is known only in a night of the schedule"),
                "name the night, such as `--night 2026-11-25`, or read a parameter here that `schedule: \
                { params: … }` sets",
            ),
        },
        ("policies", ..) => {
            let Some(policy) = name.strip_suffix(".tried").filter(|policy| !policy.is_empty()) else {
                return wrong(
                    format!("unknown number of policies `{whole}`"),
                    "`${policies.NAME.tried}` is the number of policies that were tried under a name so far",
                );
            };
            match scope.tried {
                Some(tried) => scalar(
                    tried(policy)
                        .map_err(|NotFound { message, hint }| (message, hint))?
                        .into(),
                ),
                None => wrong("the registry of policies is not known here", "write the number"),
            }
        }
        ("needs" | "outputs", ..) => wrong(
            format!("`{whole}` is known only inside `run:`"),
            "a stage kind reads its inputs through its ports: see `needs:`",
        ),
        _ => {
            let near = nearest(space, ["params", "matrix", "env", "schedule", "policies"]);
            let hint = match near {
                Some(near) if !name.is_empty() => format!("did you mean `${{{near}.{name}}}`?"),
                _ => match scope.params.filter(|params| params.contains_key(inner)) {
                    Some(_) => format!("did you mean `${{params.{inner}}}`?"),
                    None => FORMS.to_owned(),
                },
            };
            wrong(format!("unknown interpolation `{whole}`"), hint)
        }
    }
}

/// The text of a `run:` stage with parameters, axes and variables replaced. `${needs.X}` and `${outputs.X}`
/// are checked and kept, as are `$${` and shell syntax.
pub(crate) fn fill_command(
    run: &Tree,
    scope: &Scope,
    needs: &[&str],
    outputs: &[&str],
    problems: &mut Problems,
) -> String {
    replace_all(run.text().unwrap_or_default(), "$${", |inner, out| {
        let Some((inner, (space, name))) = inner.and_then(|inner| Some((inner, inner.split_once('.')?)))
        else {
            return false;
        };
        let known = match space {
            "needs" => needs,
            "outputs" => outputs,
            "params" | "matrix" | "env" | "schedule" | "policies" => {
                let mut text = String::new();
                splice(inner, run.spot, scope, &mut text, problems);
                // Interpolated values are not interpolated again.
                out.push_str(&match scope.verbatim {
                    true => text,
                    false => text.replace("${", "$${"),
                });
                return true;
            }
            _ => return false,
        };
        if !known.contains(&name) {
            problems.add(
                problems.texts.locate(run.spot, &format!("${{{inner}}}")),
                format!("`${{{inner}}}` is not defined in `{space}:`"),
                suggest(name, space, known.iter().copied()),
            );
        }
        // What is not replaced is kept.
        false
    })
}

/// True if a variable's name suggests that its value is secret.
pub(crate) fn is_secret(name: &str) -> bool {
    const WORDS: &str = "APIKEY KEY TOKEN SECRET SECRETS PASSWORD PASSWD CREDENTIAL CREDENTIALS";
    let is_word = |word: &str| WORDS.split(' ').any(|known| word.eq_ignore_ascii_case(known));
    name.split('_').any(is_word)
}

/// The text passed to the shell: in [`super::Command::command`], `${needs.X}` and `${outputs.X}` are replaced
/// by the result of `value` for (`needs`, `X`), and `$${` by `${`. The result of `value` is one plain path
/// ([`plain`](crate::text::plain)) or several separated by spaces; any other character in it is replaced by
/// `_`, since none is safe in every kind of quotes.
pub fn command_text(command: &str, value: impl Fn(&str, &str) -> Option<String>) -> String {
    replace_all(command, "${", |inner, out| {
        let reference = inner.and_then(|inner| inner.split_once('.'));
        let known = reference.filter(|(space, _)| matches!(*space, "needs" | "outputs"));
        let text = known.and_then(|(space, name)| value(space, name));
        text.map(|text| out.push_str(&plain_words(&text))).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::source::Texts;
    use serde_json::json;

    fn filled(text: &str) -> Result<Json, String> {
        let params = BTreeMap::from([
            ("seed".to_owned(), Tree::scalar(Spot::default(), json!(7))),
            ("lr".to_owned(), Tree::scalar(Spot::default(), json!(3e-4))),
            ("on".to_owned(), Tree::scalar(Spot::default(), json!(true))),
            ("none".to_owned(), Tree::scalar(Spot::default(), Json::Null)),
            ("day".to_owned(), Tree::scalar(Spot::default(), json!("2024-03-01"))),
            (
                "window".to_owned(),
                yaml::parse("{ from: 2019-01-02, to: [1, 2] }", 0).unwrap(),
            ),
        ]);
        let point = BTreeMap::from([("axis".to_owned(), json!("a"))]);
        let env = [("HOME", "/h"), ("N", "12"), ("E", "")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        let env = BTreeMap::from(env);
        let scope = Scope {
            params: Some(&params),
            matrix: Some(&point),
            env: &env,
            tried: None,
            night: None,
            secrets: &BTreeSet::new(),
            verbatim: false,
        };
        let mut texts = Texts::default();
        texts.push("p.yaml".into(), text.to_owned());
        let mut problems = Problems::new(texts);
        let tree = fill(&Tree::scalar(Spot::start(0), json!(text)), &scope, &mut problems);
        if problems.any() {
            let error = problems.finish().0.remove(0);
            return Err(format!(
                "{}: {} | {}",
                error.place.column,
                error.message,
                error.hint.unwrap()
            ));
        }
        Ok(tree.to_json())
    }

    #[test]
    fn the_type_is_kept_where_it_is_the_whole_value() {
        assert_eq!(filled("${params.seed}"), Ok(json!(7)));
        assert_eq!(filled("${params.lr}"), Ok(json!(3e-4)));
        assert_eq!(filled("${params.on}"), Ok(json!(true)));
        assert_eq!(
            filled("${params.window}"),
            Ok(json!({"from": "2019-01-02", "to": [1, 2]}))
        );
        assert_eq!(filled("${params.window.to[1]}"), Ok(json!(2)));
        assert_eq!(filled("${matrix.axis}"), Ok(json!("a")));
        assert_eq!(filled("${env.N}"), Ok(json!(12)));
        assert_eq!(filled("${env.E}"), Ok(json!("")));
    }

    #[test]
    fn dates_move_by_days() {
        assert_eq!(filled("${params.day - 1d}"), Ok(json!("2024-02-29")));
        assert_eq!(filled("q/${params.day + 306d}.csv"), Ok(json!("q/2025-01-01.csv")));
        assert_eq!(filled("${params.window.from - 1d}"), Ok(json!("2019-01-01")));
    }

    #[test]
    fn otherwise_it_is_spliced() {
        assert_eq!(
            filled("${env.HOME}/s${params.seed}-${params.lr}.csv"),
            Ok(json!("/h/s7-0.0003.csv"))
        );
        assert_eq!(filled("$${params.seed} $5 $ {x}"), Ok(json!("${params.seed} $5 $ {x}")));
        assert_eq!(filled("x$$${params.seed}"), Ok(json!("x$${params.seed}")));
        assert_eq!(filled("ü${params.seed}ü"), Ok(json!("ü7ü")));
    }

    #[test]
    fn mistakes() {
        let mut text = String::new();
        for case in [
            "${params.sed}",
            "x ${parms.seed}",
            "${seed}",
            "${x}",
            "a ${params.window} b",
            "a ${params.none} b",
            "${params.window.form}",
            "${matrix.axes}",
            "${env.HOMES}",
            "${needs.x}",
            "${ params.seed }",
            "abc ${params.seed",
            "${}",
            "${params.}",
            "${params.seed - 3d}",
            "${params.day - 3 d}",
            "${params.dya + 3d}",
        ] {
            text.push_str(&format!("{case:22} {}\n", filled(case).unwrap_err()));
        }
        insta::assert_snapshot!(text, @r"
        ${params.sed}          1: unknown parameter `sed` in `${params.sed}` | did you mean `seed`?
        x ${parms.seed}        3: unknown interpolation `${parms.seed}` | did you mean `${params.seed}`?
        ${seed}                1: unknown interpolation `${seed}` | did you mean `${params.seed}`?
        ${x}                   1: unknown interpolation `${x}` | write `${params.NAME}`, `${matrix.NAME}` or `${env.NAME}`; `$${` stands for `${` itself
        a ${params.window} b   3: `${params.window}` is a map and cannot be part of a string | let it be the whole value, or use a string or a number
        a ${params.none} b     3: `${params.none}` is null and cannot be part of a string | let it be the whole value, or use a string or a number
        ${params.window.form}  1: the parameter `window` has no `form` | did you mean `from`?
        ${matrix.axes}         1: unknown axis `axes` in `${matrix.axes}` | did you mean `axis`?
        ${env.HOMES}           1: the environment has no variable `HOMES` | set it (`HOMES=… runner …`); there is `HOME`
        ${needs.x}             1: `${needs.x}` is known only inside `run:` | a stage kind reads its inputs through its ports: see `needs:`
        ${ params.seed }       1: spaces inside `${ params.seed }` | write `${params.seed}`
        abc ${params.seed      5: `${` is not closed | write `${params.NAME}`, `${matrix.NAME}` or `${env.NAME}`; `$${` stands for `${` itself
        ${}                    1: unknown interpolation `${}` | write `${params.NAME}`, `${matrix.NAME}` or `${env.NAME}`; `$${` stands for `${` itself
        ${params.}             1: unknown parameter `` in `${params.}` | the parameters are `day`, `lr`, `none`, `on`, `seed`, `window`
        ${params.seed - 3d}    1: `${params.seed - 3d}` moves the number 7, which is not a date | days are added to a date such as 2026-11-25
        ${params.day - 3 d}    1: unknown parameter `day - 3 d` in `${params.day - 3 d}` | did you mean `day`?
        ${params.dya + 3d}     1: unknown parameter `dya` in `${params.dya}` | did you mean `day`?
        ");
    }

    #[test]
    fn commands_keep_what_is_the_shells() {
        let none = BTreeMap::new();
        let scope = Scope {
            params: Some(&BTreeMap::from([(
                "x".to_owned(),
                Tree::scalar(Spot::default(), json!("${needs.a}")),
            )])),
            matrix: Some(&BTreeMap::new()),
            env: &none,
            tried: None,
            night: None,
            secrets: &BTreeSet::new(),
            verbatim: false,
        };
        let text = "f ${needs.a} ${HOME:-x} $${params.x} '${params.x}' ${outputs.b} ${open";
        let mut problems = Problems::new(Texts::default());
        let run_text = |text: &str| Tree::scalar(Spot::default(), json!(text));
        let command = fill_command(&run_text(text), &scope, &["a"], &["b"], &mut problems);
        assert!(!problems.any());
        assert_eq!(
            command,
            "f ${needs.a} ${HOME:-x} $${params.x} '$${needs.a}' ${outputs.b} ${open"
        );
        let run = command_text(&command, |space, name| Some(format!("/{space}/{name}")));
        assert_eq!(run, "f /needs/a ${HOME:-x} ${params.x} '${needs.a}' /outputs/b ${open");
        fill_command(&run_text("${needs.c} ${params.y}"), &scope, &["a"], &[], &mut problems);
        assert_eq!(problems.count(), 2);
    }
}
