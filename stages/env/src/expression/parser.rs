//! The parser: from text to a postfix program.

use super::{Mistake, Named, Names, Op};
use datasets::layout::nearest;

/// The most levels of parentheses, functions and signs.
const LEVELS: usize = 200;
/// The most names that a hint lists.
const LISTED: usize = 40;

/// The functions, with the number of their arguments.
const FUNCTIONS: [(&str, usize, Op); 11] = [
    ("min", 2, Op::Min),
    ("max", 2, Op::Max),
    ("abs", 1, Op::Abs),
    ("exp", 1, Op::Exp),
    ("log", 1, Op::Log),
    ("sqrt", 1, Op::Sqrt),
    ("sign", 1, Op::Sign),
    ("round", 1, Op::Round),
    ("mod", 2, Op::Mod),
    ("clip", 3, Op::Clip),
    ("if", 3, Op::If),
];
/// The functions that look back, with their kinds of slots, which are numbered later.
const LOOKING_BACK: [(&str, usize, Op); 3] = [
    ("previous", 1, Op::Previous(0)),
    ("steps_since", 1, Op::StepsSince(0)),
    ("ema", 2, Op::Ema(0)),
];

/// Binary operators with how tightly they bind; a longer one stands before its beginning.
const OPERATORS: [(&str, u8, Op); 13] = [
    ("or", 1, Op::Or),
    ("and", 2, Op::And),
    ("<=", COMPARISON, Op::LessEqual),
    (">=", COMPARISON, Op::GreaterEqual),
    ("==", COMPARISON, Op::Equal),
    ("!=", COMPARISON, Op::NotEqual),
    ("<", COMPARISON, Op::Less),
    (">", COMPARISON, Op::Greater),
    ("+", 5, Op::Add),
    ("-", 5, Op::Subtract),
    ("*", 6, Op::Multiply),
    ("/", 6, Op::Divide),
    ("^", 8, Op::Power),
];
/// The binding powers of `not`, of comparisons and of a unary minus.
const NOT: u8 = 3;
const COMPARISON: u8 = 4;
const UNARY: u8 = 7;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Number,
    Condition,
    /// Of a name that is known later.
    Any,
}

pub(super) struct Parser<'a, Known: ?Sized> {
    text: &'a str,
    /// The byte that is next.
    at: usize,
    names: &'a Known,
    ops: &'a mut Vec<Op>,
    /// The number of slots that are taken.
    slots: &'a mut usize,
    level: usize,
}

impl<'a, Known: Names + ?Sized> Parser<'a, Known> {
    pub(super) fn new(text: &'a str, names: &'a Known, ops: &'a mut Vec<Op>, slots: &'a mut usize) -> Self {
        Self {
            text,
            at: 0,
            names,
            ops,
            slots,
            level: 0,
        }
    }

    /// The whole text as an expression.
    pub(super) fn whole(&mut self) -> Result<Kind, Mistake> {
        let kind = self.expression(0)?;
        match self.rest().chars().next() {
            Some(next) => Err(self.mistake(format!("unexpected `{next}`"))),
            None => Ok(kind),
        }
    }

    /// The text that is left, after spaces.
    fn rest(&mut self) -> &'a str {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        rest
    }

    fn mistake_at(&self, at: usize, message: impl Into<String>) -> Mistake {
        Mistake {
            at: self.text[..at].chars().count() + 1,
            message: message.into(),
            hint: None,
        }
    }

    fn mistake(&self, message: impl Into<String>) -> Mistake {
        self.mistake_at(self.at, message)
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn take_word(&mut self, wanted: &str) -> bool {
        let found = word(self.rest()) == wanted;
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    fn due(&mut self, token: &str) -> Result<(), Mistake> {
        if self.take(token) {
            return Ok(());
        }
        let found = match self.rest().chars().next() {
            Some(next) => format!("`{next}`"),
            None => "the end".to_owned(),
        };
        Err(self.mistake(format!("expected `{token}`, found {found}")))
    }

    pub(super) fn expect(&self, found: Kind, wanted: Kind, at: usize, what: &str) -> Result<(), Mistake> {
        let (is, hint) = match (found, wanted) {
            (Kind::Condition, Kind::Number) => (
                "a condition, not a number",
                "`if(condition, a, b)` makes a number of it",
            ),
            (Kind::Number, Kind::Condition) => {
                ("a number, not a condition", "compare it with something: `x > 0`")
            }
            _ => return Ok(()),
        };
        Err(Mistake {
            hint: Some(hint.to_owned()),
            ..self.mistake_at(at, format!("{what} is {is}"))
        })
    }

    /// The binary operator that is next: its text, how tightly it binds, and what it does.
    fn operator(&mut self) -> Option<(&'a str, u8, Op)> {
        let rest = self.rest();
        let first = word(rest);
        if first == "crosses" && self.names.remembers() {
            let after = rest[first.len()..].trim_start();
            let direction = word(after);
            let op = match direction {
                "above" => Op::CrossesAbove(0),
                "below" => Op::CrossesBelow(0),
                _ => return None,
            };
            let length = rest.len() - after.len() + direction.len();
            return Some((&rest[..length], COMPARISON, op));
        }
        OPERATORS.into_iter().find(|(token, ..)| match first.is_empty() {
            true => rest.starts_with(token),
            false => first == *token,
        })
    }

    /// Adds an operation; one that looks back gets the next slot.
    fn push(&mut self, op: Op) {
        let slot = *self.slots;
        *self.slots += 1;
        self.ops.push(match op {
            Op::Previous(_) => Op::Previous(slot),
            Op::Held(_) => Op::Held(slot),
            Op::StepsSince(_) => Op::StepsSince(slot),
            Op::Ema(_) => Op::Ema(slot),
            Op::CrossesAbove(_) => Op::CrossesAbove(slot),
            Op::CrossesBelow(_) => Op::CrossesBelow(slot),
            other => {
                *self.slots -= 1;
                other
            }
        });
    }

    /// An expression of operators that bind no looser than `least`.
    fn expression(&mut self, least: u8) -> Result<Kind, Mistake> {
        self.level += 1;
        if self.level > LEVELS {
            return Err(self.mistake(format!("it has more than {LEVELS} levels")));
        }
        self.rest();
        let start = self.at;
        let mut left = if self.take("-") {
            let kind = self.expression(UNARY)?;
            self.expect(kind, Kind::Number, start + 1, "what `-` negates")?;
            self.push(Op::Negate);
            Kind::Number
        } else if least <= NOT && self.take_word("not") {
            let kind = self.expression(NOT)?;
            self.expect(kind, Kind::Condition, start + 3, "what `not` negates")?;
            self.push(Op::Not);
            Kind::Condition
        } else {
            self.operand()?
        };
        while let Some((token, binds, op)) = self.operator().filter(|(_, binds, _)| *binds >= least) {
            let at = self.at;
            self.at += token.len();
            // An exponent is taken from the right.
            let right = self.expression(if op == Op::Power { UNARY } else { binds + 1 })?;
            let wanted = match op {
                Op::And | Op::Or => Kind::Condition,
                _ => Kind::Number,
            };
            self.expect(left, wanted, at, &format!("what stands before `{token}`"))?;
            self.expect(right, wanted, at, &format!("what stands after `{token}`"))?;
            match (op, self.ops.last()) {
                (Op::Power, Some(Op::Constant(2.0))) => {
                    self.ops.pop();
                    self.push(Op::Square);
                }
                _ => self.push(op),
            }
            left = if binds <= COMPARISON {
                Kind::Condition
            } else {
                Kind::Number
            };
            if binds == COMPARISON && self.operator().is_some_and(|(_, binds, _)| binds == COMPARISON) {
                return Err(Mistake {
                    hint: Some("join two comparisons by `and`".to_owned()),
                    ..self.mistake("a comparison of a comparison")
                });
            }
        }
        self.level -= 1;
        Ok(left)
    }

    fn operand(&mut self) -> Result<Kind, Mistake> {
        let rest = self.rest();
        if let Some(quoted) = rest.strip_prefix('`') {
            let Some((name, _)) = quoted.split_once('`') else {
                return Err(self.mistake("a name begins with a backtick and has no end"));
            };
            let start = self.at;
            self.at += name.len() + 2;
            return self.quantity(name, start);
        }
        let name = word(rest);
        if !name.is_empty() {
            let start = self.at;
            self.at += name.len();
            return match self.take("(") {
                true => self.call(name, start),
                false => self.quantity(name, start),
            };
        }
        if self.take("(") {
            let kind = self.expression(0)?;
            self.due(")")?;
            return Ok(kind);
        }
        let digits = number(rest);
        match digits.parse::<f64>() {
            Ok(value) if value.is_finite() => {
                self.at += digits.len();
                self.push(Op::Constant(value));
                Ok(Kind::Number)
            }
            _ => Err(match rest.chars().next() {
                None => self.mistake("expected a number, a name or `(`, found the end"),
                Some(next) => self.mistake(format!("expected a number, a name or `(`, found `{next}`")),
            }),
        }
    }

    /// The functions that may be called.
    fn functions(&self) -> impl Iterator<Item = (&'static str, usize, Op)> + Clone {
        let looking_back = self.names.remembers().then_some(LOOKING_BACK);
        FUNCTIONS.into_iter().chain(looking_back.into_iter().flatten())
    }

    /// A quantity by its name.
    fn quantity(&mut self, name: &str, start: usize) -> Result<Kind, Mistake> {
        match self.names.find(name) {
            Ok(Named::Quantity(which)) => {
                self.push(Op::Value(which));
                Ok(Kind::Number)
            }
            Ok(Named::Later) => {
                self.push(Op::Constant(0.0));
                Ok(Kind::Any)
            }
            Ok(Named::Expression(text)) => {
                let mut inner = Parser::new(&text, self.names, self.ops, self.slots);
                // A name that stands for itself ends at the limit of levels.
                inner.level = self.level + 1;
                inner.whole().map_err(|mistake| Mistake {
                    at: self.text[..start].chars().count() + 1,
                    message: format!("`{name}` stands for `{text}`: {}", mistake.message),
                    ..mistake
                })
            }
            Err(_) if self.functions().any(|(function, ..)| function == name) => {
                Err(self.mistake_at(start, format!("the function `{name}` has no arguments")))
            }
            Err((message, hint)) => Err(Mistake {
                hint: Some(hint),
                ..self.mistake_at(start, message)
            }),
        }
    }

    /// A call of a function, after its opening parenthesis.
    fn call(&mut self, name: &str, start: usize) -> Result<Kind, Mistake> {
        let Some((_, arity, op)) = self.functions().find(|(function, ..)| *function == name) else {
            return Err(Mistake {
                hint: Some(hint(name, self.functions().map(|(function, ..)| function))),
                ..self.mistake_at(start, format!("unknown function `{name}`"))
            });
        };
        let mut arguments = 0;
        let mut kind = Kind::Number;
        if !self.rest().starts_with(')') {
            loop {
                self.rest();
                let at = self.at;
                kind = self.expression(0)?;
                let wanted = match (op, arguments) {
                    (Op::If, 0) | (Op::StepsSince(_), _) => Kind::Condition,
                    (Op::Previous(_), _) => kind,
                    _ => Kind::Number,
                };
                arguments += 1;
                self.expect(kind, wanted, at, &format!("argument {arguments} of `{name}`"))?;
                if !self.take(",") {
                    break;
                }
            }
        }
        if arguments != arity {
            let plural = if arity == 1 { "" } else { "s" };
            return Err(self.mistake_at(
                start,
                format!("`{name}` takes {arity} argument{plural}, not {arguments}"),
            ));
        }
        self.due(")")?;
        let result = match op {
            Op::Previous(_) => kind,
            _ => Kind::Number,
        };
        self.push(match result {
            Kind::Condition => Op::Held(0),
            _ => op,
        });
        Ok(result)
    }
}

/// The name that a text begins with; empty if it begins with none.
fn word(text: &str) -> &str {
    if text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '[' | ']')) {
        return "";
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']');
    &text[..text.find(|c: char| !is_part(c)).unwrap_or(text.len())]
}

/// The unsigned number that a text begins with.
fn number(text: &str) -> &str {
    let bytes = text.as_bytes();
    let mut end = 0;
    while let Some(&byte) = bytes.get(end) {
        let sign = matches!(byte, b'+' | b'-') && end > 0 && matches!(bytes[end - 1], b'e' | b'E');
        if !(byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E') || sign) {
            break;
        }
        end += 1;
    }
    &text[..end]
}

/// The nearest known name as a hint, or one that begins so, and all of them, or the first ones.
pub fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let mut listed: Vec<&str> = Vec::new();
    for other in known.clone() {
        if listed.len() > LISTED {
            break;
        }
        if !listed.contains(&other) {
            listed.push(other);
        }
    }
    let more = if listed.len() > LISTED { ", …" } else { "" };
    listed.truncate(LISTED);
    let all = listed.join(", ") + more;
    let begins = |other: &&str| name.len() > 1 && other.starts_with(name);
    match nearest(name, known.clone()).or_else(|| known.clone().find(begins)) {
        Some(near) => format!("did you mean `{near}`? There are {all}"),
        None => format!("there are {all}"),
    }
}
