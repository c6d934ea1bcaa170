//! Parses expressions. Every error has a position.

use super::expr::{Expr, FIXED, Fold, Key, Literal, Meaning, Name, Op, Operand, StageName, What};
use super::token::{ParseError, Token, error, tokens};
use chrono::{DateTime, Days, NaiveDate, NaiveDateTime, TimeDelta, Utc};
use runner_pipeline::{duration, suggest};

const FOLDS: [(&str, Fold); 5] = [
    ("mean", Fold::Mean),
    ("sd", Fold::Sd),
    ("min", Fold::Min),
    ("max", Fold::Max),
    ("count", Fold::Count),
];

const STATUSES: [&str; 5] = ["done", "failed", "interrupted", "running", "killed"];

/// The deepest nesting of parentheses and `not`.
const DEEPEST: usize = 100;

/// Parses an expression.
pub(crate) fn expression(text: &str) -> Result<Expr, ParseError> {
    let mut parser = Parser::new(text)?;
    let expr = parser.any(0)?;
    parser.end()?;
    Ok(expr)
}

/// Parses a key: a name, or an aggregate such as `mean(evaluate.sharpe)`.
pub(crate) fn key(text: &str) -> Result<Key, ParseError> {
    let mut parser = Parser::new(text)?;
    let key = parser.key()?;
    parser.end()?;
    Ok(key)
}

/// Parses keys separated by commas.
pub(crate) fn keys(text: &str) -> Result<Vec<Key>, ParseError> {
    let mut parser = Parser::new(text)?;
    let mut keys = vec![parser.key()?];
    while parser.take(&Token::Comma) {
        keys.push(parser.key()?);
    }
    parser.end()?;
    Ok(keys)
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<(usize, Token)>,
    next: usize,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Result<Self, ParseError> {
        Ok(Self {
            text,
            tokens: tokens(text)?,
            next: 0,
        })
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    /// The position of the next token.
    fn at(&self) -> usize {
        let end = || self.text.trim_end().chars().count();
        self.tokens.get(self.next).map_or_else(end, |(at, _)| *at)
    }

    fn take(&mut self, token: &Token) -> bool {
        let is = self.peek() == Some(token);
        self.next += usize::from(is);
        is
    }

    fn word(&mut self, word: &str) -> bool {
        let is = matches!(self.peek(), Some(Token::Word(found)) if found == word);
        self.next += usize::from(is);
        is
    }

    fn wrong<T>(&self, message: impl Into<String>, hint: impl Into<String>) -> Result<T, ParseError> {
        Err(error(self.text, self.at(), message, hint))
    }

    fn end(&self) -> Result<(), ParseError> {
        match self.peek() {
            None => Ok(()),
            Some(Token::Close) => {
                self.wrong("this parenthesis was never opened", "remove it, or add a `(` before it")
            }
            Some(_) => self.wrong(
                "the expression ended before this",
                "join two with `and` or `or`; quote strings that contain spaces",
            ),
        }
    }

    fn any(&mut self, depth: usize) -> Result<Expr, ParseError> {
        let mut parts = vec![self.all(depth)?];
        while self.word("or") {
            parts.push(self.all(depth)?);
        }
        Ok(one_of(parts, Expr::Any))
    }

    fn all(&mut self, depth: usize) -> Result<Expr, ParseError> {
        let mut parts = vec![self.one(depth)?];
        while self.word("and") {
            parts.push(self.one(depth)?);
        }
        Ok(one_of(parts, Expr::All))
    }

    fn one(&mut self, depth: usize) -> Result<Expr, ParseError> {
        if depth > DEEPEST {
            return self.wrong(
                "this is nested too deeply",
                format!("at most {DEEPEST} levels are allowed"),
            );
        }
        if self.word("not") {
            return Ok(Expr::Not(Box::new(self.one(depth + 1)?)));
        }
        if self.peek() == Some(&Token::Open) {
            let open = self.at();
            self.next += 1;
            let inside = self.any(depth + 1)?;
            if self.take(&Token::Close) {
                return Ok(inside);
            }
            return match self.peek() {
                None => Err(error(self.text, open, "this parenthesis is not closed", "add a `)`")),
                Some(_) => self.wrong(
                    "a `)`, `and` or `or` is missing before this",
                    "quote strings that contain spaces",
                ),
            };
        }
        let key = self.key()?;
        let Some(Token::Op(op)) = self.peek() else {
            return Ok(Expr::Has(key));
        };
        let op = *op;
        self.next += 1;
        let operand = self.operand(&key, op)?;
        Ok(Expr::Compare(key, op, operand))
    }

    fn key(&mut self) -> Result<Key, ParseError> {
        let start = self.at();
        let word = self.name_word()?;
        if !self.take(&Token::Open) {
            return self.named(start, word);
        }
        let Some((_, fold)) = FOLDS.iter().find(|(known, _)| *known == word) else {
            let hint = suggest(&word, "figures", FOLDS.iter().map(|(name, _)| *name));
            return Err(error(self.text, start, format!("unknown statistic `{word}`"), hint));
        };
        let inner_at = self.at();
        let inner = self.name_word()?;
        if self.peek() == Some(&Token::Open) {
            return Err(error(
                self.text,
                inner_at,
                "a statistic cannot contain a statistic",
                "give the name of a value",
            ));
        }
        let inner = self.named(inner_at, inner)?;
        if !self.take(&Token::Close) {
            return self.wrong("a `)` is missing here", format!("write `{word}({})`", inner.text));
        }
        Ok(Key {
            text: format!("{word}({})", inner.text),
            fold: Some(*fold),
            name: inner.name,
        })
    }

    fn name_word(&mut self) -> Result<String, ParseError> {
        match self.peek() {
            Some(Token::Word(word)) if !matches!(word.as_str(), "and" | "or" | "not") => {
                let word = word.clone();
                self.next += 1;
                Ok(word)
            }
            Some(Token::Quoted(_)) => self.wrong(
                "expected a name, found a string",
                "the name comes first: `pipeline == \"main\"`",
            ),
            _ => self.wrong(
                "expected a name",
                "such as `status`, `params.seed` or `evaluate.sharpe`",
            ),
        }
    }

    fn named(&self, at: usize, word: String) -> Result<Key, ParseError> {
        let name = name(&word).map_err(|(message, hint)| error(self.text, at, message, hint))?;
        Ok(Key {
            text: word,
            fold: None,
            name,
        })
    }

    fn operand(&mut self, key: &Key, op: Op) -> Result<Operand, ParseError> {
        let at = self.at();
        let (text, quoted) = match self.peek() {
            Some(Token::Quoted(text)) => (text.clone(), true),
            Some(Token::Word(word)) if !matches!(word.as_str(), "and" | "or" | "not") => {
                (word.clone(), false)
            }
            _ => {
                return self.wrong(
                    "expected a value",
                    "a number, a date, a duration, or a string in quotes or of one word",
                );
            }
        };
        let called = matches!(self.tokens.get(self.next + 1), Some((_, Token::Open)));
        let literal = Literal {
            meaning: if quoted { Meaning::Text } else { meaning(&text) },
            text,
        };
        let dotted =
            literal.text.contains('.') && literal.text.starts_with(|c: char| c.is_alphabetic() || c == '_');
        if !quoted && op != Op::Contains && literal.meaning == Meaning::Text && (called || dotted) {
            return self.key().map(Operand::Key);
        }
        self.next += 1;
        match check(key, op, &literal) {
            Ok(()) => Ok(Operand::Literal(literal)),
            Err((message, hint)) => Err(error(self.text, at, message, hint)),
        }
    }
}

fn one_of(mut parts: Vec<Expr>, of: impl Fn(Vec<Expr>) -> Expr) -> Expr {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            of(parts)
        }
    }
}

fn meaning(word: &str) -> Meaning {
    if let Ok(number) = word.parse::<f64>()
        && number.is_finite()
    {
        return Meaning::Number(number);
    }
    if let Some(duration) = duration(word) {
        return Meaning::Number(duration.as_secs_f64());
    }
    span(word).map_or(Meaning::Text, |(from, until)| Meaning::Time(from, until))
}

/// `2026-11-20`, `2026-11-20T21:30` or `2026-11-20T21:30:45`, in UTC.
fn span(word: &str) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
    if let Ok(day) = NaiveDate::parse_from_str(word, "%Y-%m-%d") {
        let next = day.checked_add_days(Days::new(1))?;
        return Some((
            day.and_hms_opt(0, 0, 0)?.and_utc(),
            next.and_hms_opt(0, 0, 0)?.and_utc(),
        ));
    }
    let word = word.strip_suffix('Z').unwrap_or(word);
    [("%Y-%m-%dT%H:%M", 60), ("%Y-%m-%dT%H:%M:%S", 1)]
        .into_iter()
        .find_map(|(format, seconds)| {
            let from = NaiveDateTime::parse_from_str(word, format).ok()?.and_utc();
            Some((from, from.checked_add_signed(TimeDelta::seconds(seconds))?))
        })
}

/// Checks that a fixed name can be compared with a literal.
fn check(key: &Key, op: Op, literal: &Literal) -> Result<(), (String, String)> {
    let wrong = |message: String, hint: &str| Err((message, hint.to_owned()));
    if op == Op::Contains {
        return Ok(());
    }
    match (&key.name, key.fold, &literal.meaning) {
        (Name::Seconds | Name::Age, _, Meaning::Number(_)) | (Name::Started, _, Meaning::Time(..)) => Ok(()),
        (_, Some(_), Meaning::Text | Meaning::Time(..)) => wrong(
            format!("`{}` is a number, but `{}` is not", key.text, literal.text),
            "compare it with a number",
        ),
        (Name::Seconds | Name::Age, None, _) => wrong(
            format!("`{}` is a number of seconds, but `{}` is not", key.text, literal.text),
            "write `90`, `90s`, `15m`, `2h` or `5d`",
        ),
        (Name::Started, None, _) => wrong(
            format!("`started` is a time, but `{}` is not", literal.text),
            "write `2026-11-20` or `2026-11-20T21:30`; `age < 2d` finds what began in the last two days",
        ),
        (Name::Status, None, _) if !STATUSES.contains(&literal.text.as_str()) => {
            let hint = suggest(&literal.text, "statuses", STATUSES);
            Err((format!("no run has the status `{}`", literal.text), hint))
        }
        (Name::Kept, None, _) if !matches!(literal.text.as_str(), "true" | "false") => wrong(
            format!("`kept` is true or false, not `{}`", literal.text),
            "write `kept` or `not kept`",
        ),
        _ => Ok(()),
    }
}

/// Parses a name.
fn name(word: &str) -> Result<Name, (String, String)> {
    if let Some((_, name)) = FIXED.iter().find(|(known, _)| *known == word) {
        return Ok(name.clone());
    }
    let end = word.find(['.', '[']).unwrap_or(word.len());
    let (first, rest) = word.split_at(end);
    if rest.is_empty() {
        let hint = suggest(word, "names", FIXED.iter().map(|(name, _)| *name));
        let hint = match hint.ends_with('?') {
            true => hint,
            false => format!("{hint}; others are `params.NAME`, `STAGE.METRIC` and `STAGE.with.KEY`"),
        };
        return Err((format!("there is no `{word}`"), hint));
    }
    let forms = || {
        "write `STAGE.METRIC`, `STAGE.with.KEY` or `params.NAME`; a point is `STAGE[seed=1].METRIC`"
            .to_owned()
    };
    let none = || (format!("`{word}` is not a name"), forms());
    let (inside, rest) = match rest.strip_prefix('[') {
        Some(tail) => tail.split_once(']').ok_or_else(none)?,
        None => ("", rest),
    };
    let rest = rest
        .strip_prefix('.')
        .filter(|rest| !rest.is_empty() && !first.is_empty());
    let rest = rest.ok_or_else(none)?;
    if first == "params" && inside.is_empty() {
        return Ok(Name::Param(rest.to_owned()));
    }
    let pair = |part: &str| {
        let (axis, value) = part.split_once('=')?;
        Some((axis.trim().to_owned(), value.trim().to_owned()))
    };
    let point: Option<Vec<_>> = match inside {
        "" => Some(Vec::new()),
        _ => inside.split(',').map(pair).collect(),
    };
    let stage = StageName {
        stage: first.to_owned(),
        point: point.ok_or_else(none)?,
    };
    let what = match rest.strip_prefix("with.") {
        Some(path) if !path.is_empty() => What::With(path.to_owned()),
        _ if rest == "status" => What::Status,
        _ if rest == "seconds" => What::Seconds,
        _ => What::Metric(rest.to_owned()),
    };
    Ok(Name::Of(stage, what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(expr: &Expr) -> String {
        let join = |parts: &[Expr], word: &str| parts.iter().map(shown).collect::<Vec<_>>().join(word);
        match expr {
            Expr::All(parts) => format!("({})", join(parts, " and ")),
            Expr::Any(parts) => format!("({})", join(parts, " or ")),
            Expr::Not(part) => format!("!{}", shown(part)),
            Expr::Has(key) => key.text.clone(),
            Expr::Compare(key, op, Operand::Key(right)) => format!("{} {op:?} {}", key.text, right.text),
            Expr::Compare(key, op, Operand::Literal(right)) => match &right.meaning {
                Meaning::Number(number) => format!("{} {op:?} {number}", key.text),
                Meaning::Time(from, until) => {
                    format!("{} {op:?} {}s", key.text, (*until - *from).num_seconds())
                }
                Meaning::Text => format!("{} {op:?} {:?}", key.text, right.text),
            },
        }
    }

    fn read(text: &str) -> String {
        shown(&expression(text).unwrap())
    }

    #[test]
    fn what_is_read() {
        let read: Vec<String> = [
            "status == done and evaluate.sharpe > 1",
            "kept or not (pipeline = \"main job\" and seconds<=1h30m) or tag!=bad",
            "kept and (tag = a or tag = b) and not not name",
            "mean(evaluate.sharpe) >= -1.5e-1",
            "train[seed=1,lr=0.1].charts/episodic_return < evaluate.baseline/cash/sharpe",
            "train.with.policy_kwargs.lstm_hidden_size == 64",
            "started > 2026-11-20 and started < 2026-11-20T21:30 and age < 2d",
            "name ~ v1.2 and id ~ 2026-11-20",
            "params.seed == '1 \\' \\\\'",
            "train.status = failed and train.seconds > max(train.seconds)",
        ]
        .map(read)
        .into();
        insta::assert_snapshot!(read.join("\n"), @r#"
        (status Equal "done" and evaluate.sharpe Greater 1)
        (kept or !(pipeline Equal "main job" and seconds LessEqual 5400) or tag NotEqual "bad")
        (kept and (tag Equal "a" or tag Equal "b") and !!name)
        mean(evaluate.sharpe) GreaterEqual -0.15
        train[seed=1,lr=0.1].charts/episodic_return Less evaluate.baseline/cash/sharpe
        train.with.policy_kwargs.lstm_hidden_size Equal 64
        (started Greater 86400s and started Less 60s and age Less 172800)
        (name Contains "v1.2" and id Contains 86400s)
        params.seed Equal "1 ' \\"
        (train.status Equal "failed" and train.seconds Greater max(train.seconds))
        "#);
    }

    #[test]
    fn every_mistake_has_a_place() {
        let mistakes: Vec<String> = [
            "",
            "evaluate.sharpe >",
            "evaluate.sharpe > and kept",
            "stats == done",
            "status == finished",
            "(kept",
            "kept)",
            "kept kept",
            "(kept tag)",
            "name == \"open",
            "train[seed=1",
            "kept && tag",
            "!kept",
            "kept # not",
            "started > yesterday",
            "started > 2d",
            "seconds > long",
            "median(evaluate.sharpe)",
            "mean(max(evaluate.sharpe))",
            "mean(evaluate.sharpe) > high",
            "train[seed].x > 1",
            "train. > 1",
            "1 < evaluate.sharpe",
            "\"done\" == status",
            "kept == yes",
        ]
        .map(|text| {
            let err = expression(text).unwrap_err();
            format!("{err}\n    {}", err.hint)
        })
        .into();
        insta::assert_snapshot!(mistakes.join("\n"), @r#"
        expected a name
          | 
          | ^
            such as `status`, `params.seed` or `evaluate.sharpe`
        expected a value
          | evaluate.sharpe >
          |                  ^
            a number, a date, a duration, or a string in quotes or of one word
        expected a value
          | evaluate.sharpe > and kept
          |                   ^
            a number, a date, a duration, or a string in quotes or of one word
        there is no `stats`
          | stats == done
          | ^
            did you mean `status`?
        no run has the status `finished`
          | status == finished
          |           ^
            the statuses are `done`, `failed`, `interrupted`, `running`, `killed`
        this parenthesis is not closed
          | (kept
          | ^
            add a `)`
        this parenthesis was never opened
          | kept)
          |     ^
            remove it, or add a `(` before it
        the expression ended before this
          | kept kept
          |      ^
            join two with `and` or `or`; quote strings that contain spaces
        a `)`, `and` or `or` is missing before this
          | (kept tag)
          |       ^
            quote strings that contain spaces
        this quote is not closed
          | name == "open
          |         ^
            add a " at the text's end
        the `[` of this name is not closed
          | train[seed=1
          | ^
            a point is written `train[seed=1]`
        `&` is written `and` here
          | kept && tag
          |      ^
            as in `status == done and kept`
        write `not` in place of `!`
          | !kept
          | ^
            or `!=` where two values differ
        `#` means nothing here
          | kept # not
          |      ^
            allowed are names, numbers, strings in quotes, comparisons, `and`, `or`, `not` and parentheses
        `started` is a time, but `yesterday` is not
          | started > yesterday
          |           ^
            write `2026-11-20` or `2026-11-20T21:30`; `age < 2d` finds what began in the last two days
        `started` is a time, but `2d` is not
          | started > 2d
          |           ^
            write `2026-11-20` or `2026-11-20T21:30`; `age < 2d` finds what began in the last two days
        `seconds` is a number of seconds, but `long` is not
          | seconds > long
          |           ^
            write `90`, `90s`, `15m`, `2h` or `5d`
        unknown statistic `median`
          | median(evaluate.sharpe)
          | ^
            did you mean `mean`?
        a statistic cannot contain a statistic
          | mean(max(evaluate.sharpe))
          |      ^
            give the name of a value
        `mean(evaluate.sharpe)` is a number, but `high` is not
          | mean(evaluate.sharpe) > high
          |                         ^
            compare it with a number
        `train[seed].x` is not a name
          | train[seed].x > 1
          | ^
            write `STAGE.METRIC`, `STAGE.with.KEY` or `params.NAME`; a point is `STAGE[seed=1].METRIC`
        `train.` is not a name
          | train. > 1
          | ^
            write `STAGE.METRIC`, `STAGE.with.KEY` or `params.NAME`; a point is `STAGE[seed=1].METRIC`
        there is no `1`
          | 1 < evaluate.sharpe
          | ^
            the names are `id`, `status`, `pipeline`, `name`, `tag`, `kept`, `started`, `age`, `duration`, `seconds`; others are `params.NAME`, `STAGE.METRIC` and `STAGE.with.KEY`
        expected a name, found a string
          | "done" == status
          | ^
            the name comes first: `pipeline == "main"`
        `kept` is true or false, not `yes`
          | kept == yes
          |         ^
            write `kept` or `not kept`
        "#);
    }

    #[test]
    fn lists_of_keys() {
        let texts =
            |text: &str| -> Vec<String> { keys(text).unwrap().into_iter().map(|key| key.text).collect() };
        assert_eq!(
            texts("evaluate.sharpe, mean(train[a=1,b=2].x),params.seed"),
            ["evaluate.sharpe", "mean(train[a=1,b=2].x)", "params.seed"]
        );
        assert!(keys("a.b,").is_err() && keys("a.b == 1").is_err() && key("a.b, c.d").is_err());
    }

    #[test]
    fn nothing_is_too_deep_or_too_long() {
        for text in ["(".repeat(100_000), "not ".repeat(100_000), "mean(".repeat(100_000)] {
            assert!(expression(&text).is_err());
        }
        let long = vec!["kept"; 100_000].join(" and ");
        assert_eq!(expression(&long).unwrap().keys().len(), 100_000);
    }

    proptest! {
        #[test]
        fn it_never_panics(text in ".{0,60}") {
            if let Err(err) = expression(&text) {
                prop_assert!(err.at <= text.chars().count());
                let _ = err.to_string();
            }
            let _ = keys(&text);
        }

        #[test]
        fn nor_on_what_looks_like_one(parts in proptest::collection::vec(
            prop_oneof![
                Just("and"), Just("or"), Just("not"), Just("("), Just(")"), Just("=="), Just("!"), Just("<"),
                    Just("~"),
                Just("status"), Just("done"), Just("started"), Just("2026-11-20"), Just("2d"), Just("-1.5"),
                    Just("\""),
                Just("train[seed=1].x"), Just("mean("), Just("params."), Just("[]."), Just("a.b"), Just("é"),
                    Just(","),
            ], 0..12), glue in prop_oneof![Just(""), Just(" ")]
        ) {
            let text = parts.join(glue);
            if let Err(err) = expression(&text) {
                prop_assert!(err.at <= text.chars().count());
            }
        }
    }
}
