//! Arithmetic over named quantities, compiled once into a postfix program that is evaluated without
//! allocation.
//!
//! From the loosest to the tightest: `or`, `and`, comparisons (`<`, `<=`, `>`, `>=`, `==`, `!=`), `+ -`,
//! `* /`, unary `-`, and `^` (to the right, before a minus on its left: `-x^2` is `-(x^2)`). Comparisons make
//! conditions, of which `and`, `or` and the first argument of `if` are made; all else are numbers. Both
//! branches of an `if` are evaluated, and one is taken.

use datasets::layout::nearest;

/// The most values of a program's stack.
const STACK: usize = 32;
/// The most levels of parentheses, functions and signs.
const LEVELS: usize = 200;

/// A mistake in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// The character it is at, from 1.
    pub at: usize,
    pub message: String,
    pub hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Constant(f64),
    /// The quantity of this number.
    Value(usize),
    Negate,
    Square,
    Abs,
    Exp,
    Log,
    Sqrt,
    Sign,
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Min,
    Max,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    And,
    Or,
    Clip,
    If,
}

/// The functions, with the number of their arguments.
const FUNCTIONS: [(&str, usize, Op); 9] = [
    ("min", 2, Op::Min),
    ("max", 2, Op::Max),
    ("abs", 1, Op::Abs),
    ("exp", 1, Op::Exp),
    ("log", 1, Op::Log),
    ("sqrt", 1, Op::Sqrt),
    ("sign", 1, Op::Sign),
    ("clip", 3, Op::Clip),
    ("if", 3, Op::If),
];

/// Binary operators with how tightly they bind; a longer one stands before its beginning.
const OPERATORS: [(&str, u8, Op); 13] = [
    ("or", 1, Op::Or),
    ("and", 2, Op::And),
    ("<=", 3, Op::LessEqual),
    (">=", 3, Op::GreaterEqual),
    ("==", 3, Op::Equal),
    ("!=", 3, Op::NotEqual),
    ("<", 3, Op::Less),
    (">", 3, Op::Greater),
    ("+", 4, Op::Add),
    ("-", 4, Op::Subtract),
    ("*", 5, Op::Multiply),
    ("/", 5, Op::Divide),
    ("^", 7, Op::Power),
];
/// The binding power of a unary minus.
const UNARY: u8 = 6;

impl Op {
    /// The values that it takes from the stack.
    fn arity(self) -> usize {
        use Op::*;
        match self {
            Constant(_) | Value(_) => 0,
            Negate | Square | Abs | Exp | Log | Sqrt | Sign => 1,
            Clip | If => 3,
            _ => 2,
        }
    }

    fn apply(self, [a, b, c]: [f64; 3]) -> f64 {
        use Op::*;
        let condition = |holds: bool| f64::from(u8::from(holds));
        match self {
            Constant(value) => value,
            Value(_) => f64::NAN,
            Negate => -a,
            Square => a * a,
            Abs => a.abs(),
            Exp => libm::exp(a),
            Log => libm::log(a),
            Sqrt => a.sqrt(),
            Sign if a == 0.0 => 0.0,
            Sign => a.signum(),
            Add => a + b,
            Subtract => a - b,
            Multiply => a * b,
            Divide => a / b,
            Power => libm::pow(a, b),
            Min => a.min(b),
            Max => a.max(b),
            Less => condition(a < b),
            LessEqual => condition(a <= b),
            Greater => condition(a > b),
            GreaterEqual => condition(a >= b),
            Equal => condition(a == b),
            NotEqual => condition(a != b),
            And => a * b,
            Or => a.max(b),
            Clip => a.max(b).min(c),
            If if a != 0.0 => b,
            If => c,
        }
    }
}

/// A compiled expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Program {
    ops: Vec<Op>,
}

impl Program {
    /// Compiles an expression over the quantities of these names.
    pub(crate) fn compile(text: &str, names: &[&str]) -> Result<Self, Mistake> {
        Self::compile_as(text, names, Kind::Number, "the reward")
    }

    /// Compiles a condition as [`Program::compile`] does: its value is 1 where it holds, else 0.
    pub(crate) fn compile_condition(text: &str, names: &[&str]) -> Result<Self, Mistake> {
        Self::compile_as(text, names, Kind::Condition, "the expression")
    }

    fn compile_as(text: &str, names: &[&str], wanted: Kind, what: &str) -> Result<Self, Mistake> {
        let mut parser = Parser {
            text,
            at: 0,
            names,
            ops: Vec::new(),
            level: 0,
        };
        let kind = parser.expression(0)?;
        if let Some(next) = parser.rest().chars().next() {
            return Err(parser.mistake(format!("unexpected `{next}`")));
        }
        parser.expect(kind, wanted, 0, what)?;
        let ops = parser.ops;
        let (mut depth, mut deepest) = (0, 0);
        for op in &ops {
            depth = depth + 1 - op.arity();
            deepest = deepest.max(depth);
        }
        if deepest > STACK {
            return Err(Mistake {
                at: 1,
                message: format!("it needs {deepest} intermediate values, and {STACK} are the most"),
                hint: Some("write sums from left to right, with less in parentheses".to_owned()),
            });
        }
        Ok(Self { ops })
    }

    /// The value for these quantities, in the order of their names.
    pub(crate) fn evaluate(&self, quantities: &[f64]) -> f64 {
        // Three values more than the stack has, so that all operands are read alike.
        let mut stack = [0.0; STACK + 3];
        let mut top = 0;
        for &op in &self.ops {
            top -= op.arity();
            stack[top] = match op {
                Op::Value(i) => quantities[i],
                _ => op.apply([stack[top], stack[top + 1], stack[top + 2]]),
            };
            top += 1;
        }
        stack[0]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Number,
    Condition,
}

struct Parser<'a> {
    text: &'a str,
    /// The byte that is next.
    at: usize,
    names: &'a [&'a str],
    ops: Vec<Op>,
    level: usize,
}

impl<'a> Parser<'a> {
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

    fn expect(&self, found: Kind, wanted: Kind, at: usize, what: &str) -> Result<(), Mistake> {
        let hint = match (found == wanted, wanted) {
            (true, _) => return Ok(()),
            (_, Kind::Number) => "`if(condition, a, b)` makes a number of it",
            (_, Kind::Condition) => "compare it with something: `x > 0`",
        };
        let name = |kind| match kind {
            Kind::Number => "a number",
            Kind::Condition => "a condition",
        };
        Err(Mistake {
            hint: Some(hint.to_owned()),
            ..self.mistake_at(at, format!("{what} is {}, not {}", name(found), name(wanted)))
        })
    }

    /// The binary operator that is next.
    fn operator(&mut self) -> Option<(&'static str, u8, Op)> {
        let rest = self.rest();
        let word = word(rest);
        OPERATORS.into_iter().find(|(token, ..)| match word.is_empty() {
            true => rest.starts_with(token),
            false => word == *token,
        })
    }

    /// An expression of operators that bind no looser than `least`.
    fn expression(&mut self, least: u8) -> Result<Kind, Mistake> {
        self.level += 1;
        if self.level > LEVELS {
            return Err(self.mistake(format!("it has more than {LEVELS} levels")));
        }
        self.rest();
        let start = self.at;
        let mut left = match self.take("-") {
            true => {
                let kind = self.expression(UNARY)?;
                self.expect(kind, Kind::Number, start + 1, "what `-` negates")?;
                self.ops.push(Op::Negate);
                kind
            }
            false => self.operand()?,
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
                    self.ops.push(Op::Square);
                }
                _ => self.ops.push(op),
            }
            left = if binds <= 3 { Kind::Condition } else { Kind::Number };
            if binds == 3 && self.operator().is_some_and(|(_, binds, _)| binds == 3) {
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
        let name = word(rest);
        if !name.is_empty() {
            return self.name(name);
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
                self.ops.push(Op::Constant(value));
                Ok(Kind::Number)
            }
            _ => Err(match rest.chars().next() {
                None => self.mistake("expected a number, a name or `(`, found the end"),
                Some(next) => self.mistake(format!("expected a number, a name or `(`, found `{next}`")),
            }),
        }
    }

    /// A quantity or a call of a function.
    fn name(&mut self, name: &str) -> Result<Kind, Mistake> {
        let start = self.at;
        self.at += name.len();
        if !self.take("(") {
            if let Some(i) = self.names.iter().position(|known| *known == name) {
                self.ops.push(Op::Value(i));
                return Ok(Kind::Number);
            }
            if FUNCTIONS.iter().any(|(function, ..)| *function == name) {
                return Err(self.mistake_at(start, format!("the function `{name}` has no arguments")));
            }
            return Err(Mistake {
                hint: Some(hint(name, self.names.iter().copied())),
                ..self.mistake_at(start, format!("unknown name `{name}`"))
            });
        }
        let Some(&(_, arity, op)) = FUNCTIONS.iter().find(|(function, ..)| *function == name) else {
            return Err(Mistake {
                hint: Some(hint(name, FUNCTIONS.iter().map(|(function, ..)| *function))),
                ..self.mistake_at(start, format!("unknown function `{name}`"))
            });
        };
        let mut arguments = 0;
        if !self.rest().starts_with(')') {
            loop {
                self.rest();
                let at = self.at;
                let kind = self.expression(0)?;
                let wanted = match (op, arguments) {
                    (Op::If, 0) => Kind::Condition,
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
        self.ops.push(op);
        Ok(Kind::Number)
    }
}

/// The name that a text begins with; empty if it begins with none.
fn word(text: &str) -> &str {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return "";
    }
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    &text[..end.unwrap_or(text.len())]
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

/// The nearest known name, and all of them.
fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let all = known.join(", ");
    match nearest(name, known) {
        Some(near) => format!("did you mean `{near}`? There are {all}"),
        None => format!("there are {all}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::random::Random;

    const NAMES: [&str; 4] = ["excess", "turnover", "drawdown_increase", "iffy"];

    type Closure = fn(&[f64]) -> f64;

    #[test]
    fn agrees_with_closures() {
        let cases: [(&str, Closure); 16] = [
            ("excess", |v| v[0]),
            ("1.5e-1 - 2 - 3", |_| 0.15 - 2.0 - 3.0),
            ("-excess^2", |v| -(v[0] * v[0])),
            ("2^-turnover^2", |v| 2.0_f64.powf(-(v[1] * v[1]))),
            ("2 ^ 3 ^ 2 / 4", |_| 128.0),
            (
                "excess - 2 * excess^2 - 0.1 * turnover - 0.5 * max(drawdown_increase, 0)",
                |v| v[0] - 2.0 * v[0] * v[0] - 0.1 * v[1] - 0.5 * v[2].max(0.0),
            ),
            ("(excess + turnover) / (1 + abs(iffy))", |v| {
                (v[0] + v[1]) / (1.0 + v[3].abs())
            }),
            ("exp(excess) + log(1 + turnover^2) - sqrt(abs(iffy))", |v| {
                v[0].exp() + (1.0 + v[1] * v[1]).ln() - v[3].abs().sqrt()
            }),
            ("sign(excess) * min(turnover, iffy)", |v| v[0].signum() * v[1].min(v[3])),
            ("sign(0)", |_| 0.0),
            ("clip(excess, -0.25, 0.5)", |v| v[0].clamp(-0.25, 0.5)),
            ("if(excess > turnover, excess, -turnover)", |v| {
                if v[0] > v[1] { v[0] } else { -v[1] }
            }),
            ("if(excess > 0 and turnover <= 0.5 or iffy != iffy, 1, 2)", |v| {
                if v[0] > 0.0 && v[1] <= 0.5 { 1.0 } else { 2.0 }
            }),
            ("if (excess < 0 or (turnover >= 0 and iffy == iffy), 1, log(-1))", |v| {
                if v[0] < 0.0 || v[1] >= 0.0 { 1.0 } else { f64::NAN }
            }),
            ("excess*--turnover", |v| v[0] * v[1]),
            ("((((excess)))) - (turnover - (iffy - 1))", |v| {
                v[0] - (v[1] - (v[3] - 1.0))
            }),
        ];
        let mut random = Random::new(&[1]);
        for (text, closure) in cases {
            let program = Program::compile(text, &NAMES).unwrap();
            for _ in 0..200 {
                let values: Vec<f64> = (0..4).map(|_| random.normal()).collect();
                let (found, expected) = (program.evaluate(&values), closure(&values));
                assert!(
                    (found - expected).abs() <= 1e-12 * (1.0 + expected.abs())
                        || found.is_nan() && expected.is_nan(),
                    "{text}: {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn conditions_are_1_where_they_hold() {
        let program = Program::compile_condition("excess > 0.5 or turnover < 0", &NAMES).unwrap();
        assert_eq!(program.evaluate(&[0.6, 0.0, 0.0, 0.0]), 1.0);
        assert_eq!(program.evaluate(&[0.4, 0.0, 0.0, 0.0]), 0.0);
        let mistake = Program::compile_condition("excess - 1", &NAMES).unwrap_err();
        assert_eq!(mistake.message, "the expression is a number, not a condition");
    }

    #[test]
    fn mistakes_say_where_and_what() {
        let cases = [
            ("excessx - 1", 1, "unknown name `excessx`", "did you mean `excess`?"),
            (
                "1 + turn_over",
                5,
                "unknown name `turn_over`",
                "did you mean `turnover`?",
            ),
            ("1 + unheard_of", 5, "unknown name `unheard_of`", "there are excess"),
            ("maxi(1, 2)", 1, "unknown function `maxi`", "did you mean `max`?"),
            ("max", 1, "the function `max` has no arguments", ""),
            ("max(1)", 1, "`max` takes 2 arguments, not 1", ""),
            ("abs()", 1, "`abs` takes 1 argument, not 0", ""),
            (
                "if(excess, 1, 2)",
                4,
                "argument 1 of `if` is a number, not a condition",
                "compare it",
            ),
            (
                "excess > 0",
                1,
                "the reward is a condition, not a number",
                "`if(condition",
            ),
            (
                "1 + (excess > 0)",
                3,
                "what stands after `+` is a condition, not a number",
                "`if(condition",
            ),
            (
                "if(excess and turnover > 0, 1, 2)",
                11,
                "what stands before `and` is a number",
                "compare",
            ),
            (
                "if(0 < excess < 1, 1, 2)",
                15,
                "a comparison of a comparison",
                "join two",
            ),
            ("(excess", 8, "expected `)`, found the end", ""),
            ("excess turnover", 8, "unexpected `t`", ""),
            ("1 + ", 5, "expected a number, a name or `(`, found the end", ""),
            ("", 1, "expected a number, a name or `(`, found the end", ""),
            ("1 % 2", 3, "unexpected `%`", ""),
            ("1.2.3", 1, "expected a number", ""),
            ("é", 1, "expected a number, a name or `(`, found `é`", ""),
        ];
        for (text, at, message, hint) in cases {
            let mistake = Program::compile(text, &NAMES).unwrap_err();
            assert_eq!(mistake.at, at, "{text}: {mistake:?}");
            assert!(mistake.message.starts_with(message), "{text}: {mistake:?}");
            assert!(mistake.hint.unwrap_or_default().starts_with(hint), "{text}");
        }
        let deep = format!("{}1{}", "(".repeat(1000), ")".repeat(1000));
        assert!(Program::compile(&deep, &NAMES).unwrap_err().message.contains("levels"));
        let wide = format!("{}1{}", "1 + (".repeat(40), ")".repeat(40));
        assert!(
            Program::compile(&wide, &NAMES)
                .unwrap_err()
                .message
                .contains("intermediate")
        );
    }
}
