//! Arithmetic over named quantities, compiled once into a postfix program that is evaluated without
//! allocation, for one row of quantities or for many.
//!
//! From the loosest to the tightest: `or`, `and`, `not`, comparisons (`<`, `<=`, `>`, `>=`, `==`, `!=`,
//! `crosses above`, `crosses below`), `+ -`, `* /`, unary `-`, and `^` (to the right, before a minus on its
//! left: `-x^2` is `-(x^2)`). Comparisons make conditions, of which `and`, `or`, `not` and the first argument
//! of `if` are made; all else are numbers. Both branches of an `if` are evaluated, and one is taken. A
//! comparison with NaN holds for `!=` alone. A name with other characters than letters, digits, `_`, `.` and
//! brackets stands between backticks.
//!
//! Where [`Names::remembers`], some look back in an episode; each keeps a number for each row:
//!
//! | | value | at the first step |
//! | --- | --- | --- |
//! | `previous(x)` | x at the step before, in single precision, or whether it held | NaN, or false |
//! | `steps_since(c)` | the steps since c last held, 0 where it holds | 1 where c does not hold |
//! | `ema(x, n)` | its exponential moving average e, in single precision: e + 2 (x - e) / (n + 1) | x |
//! | `x crosses above y` | x > y now, and x <= y at the step before | false |

mod parser;
#[cfg(test)]
mod tests;

pub use parser::hint;
use parser::{Kind, Parser};

/// The most values of a program's stack.
const STACK: usize = 32;
/// The rows that are evaluated together.
const LANES: usize = 16;

/// A mistake in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The character it is at, from 1.
    pub at: usize,
    /// The mistake.
    pub message: String,
    /// The way to mend it.
    pub hint: Option<String>,
}

impl Mistake {
    /// The mistake in its place, for a message.
    pub fn describe(&self, text: &str) -> String {
        format!("{} at character {} of `{text}`", self.message, self.at)
    }
}

/// The meaning of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// The quantity of this number.
    Quantity(usize),
    /// The quantity that this expression computes.
    Expression(String),
    /// Known later only: taken for a number or a condition, whichever is needed. A program with such a name
    /// is not evaluated.
    Later,
}

/// The names that an expression may use.
pub trait Names {
    /// The meaning of a name, or else why it has none, and a hint.
    fn find(&self, name: &str) -> Result<Named, (String, String)>;

    /// True if an expression may look back in its episode.
    fn remembers(&self) -> bool {
        false
    }
}

/// Quantities by name, in order.
impl Names for [&str] {
    fn find(&self, name: &str) -> Result<Named, (String, String)> {
        let known = self.iter().position(|known| *known == name);
        known.map(Named::Quantity).ok_or_else(|| {
            let hint = hint(name, self.iter().copied());
            (format!("unknown name `{name}`"), hint)
        })
    }
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
    Round,
    Not,
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Mod,
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
    /// The former contents of the slot of this number, into which the operand goes.
    Previous(usize),
    /// The same of a condition.
    Held(usize),
    StepsSince(usize),
    Ema(usize),
    CrossesAbove(usize),
    CrossesBelow(usize),
}

impl Op {
    /// The values that it takes from the stack.
    fn arity(self) -> usize {
        use Op::*;
        match self {
            Constant(_) | Value(_) => 0,
            Negate | Square | Abs | Exp | Log | Sqrt | Sign | Round | Not => 1,
            Previous(_) | Held(_) | StepsSince(_) => 1,
            Clip | If => 3,
            _ => 2,
        }
    }

    /// The values of N rows.
    fn apply<const N: usize>(
        self,
        a: &[f64; N],
        b: &[f64; N],
        c: &[f64; N],
        quantity: impl Fn(usize) -> [f64; N],
        memory: &mut Memory<'_>,
    ) -> [f64; N] {
        use Op::*;
        let compared = |holds: fn(&f64, &f64) -> bool| each2(a, b, |a, b| flag(holds(&a, &b)));
        match self {
            Constant(value) => [value; N],
            Value(which) => quantity(which),
            Negate => each(a, |a| -a),
            Square => each(a, |a| a * a),
            Abs => each(a, f64::abs),
            Exp => each(a, libm::exp),
            Log => each(a, libm::log),
            Sqrt => each(a, f64::sqrt),
            Sign => each(a, |a| if a == 0.0 { 0.0 } else { a.signum() }),
            Round => each(a, f64::round),
            Not => each(a, |a| 1.0 - a),
            Add => each2(a, b, |a, b| a + b),
            Subtract => each2(a, b, |a, b| a - b),
            Multiply => each2(a, b, |a, b| a * b),
            Divide => each2(a, b, |a, b| a / b),
            Power => each2(a, b, libm::pow),
            Mod => each2(a, b, |a, b| a - b * (a / b).floor()),
            Min => each2(a, b, f64::min),
            Max => each2(a, b, f64::max),
            Less => each2(a, b, |a, b| flag(a < b)),
            LessEqual => each2(a, b, |a, b| flag(a <= b)),
            Greater => each2(a, b, |a, b| flag(a > b)),
            GreaterEqual => each2(a, b, |a, b| flag(a >= b)),
            Equal => each2(a, b, |a, b| flag(a == b)),
            NotEqual => each2(a, b, |a, b| flag(a != b)),
            And => each2(a, b, |a, b| a * b),
            Or => each2(a, b, f64::max),
            Clip => std::array::from_fn(|i| a[i].max(b[i]).min(c[i])),
            If => std::array::from_fn(|i| if a[i] != 0.0 { b[i] } else { c[i] }),
            Previous(slot) => std::array::from_fn(|i| {
                let before = memory.exchange(i, slot, |_| a[i] as f32);
                before.map_or(f64::NAN, f64::from)
            }),
            Held(slot) => std::array::from_fn(|i| {
                let before = memory.exchange(i, slot, |_| a[i] as f32);
                flag(before == Some(1.0))
            }),
            StepsSince(slot) => std::array::from_fn(|i| {
                let next = |before: Option<f32>| match a[i] == 0.0 {
                    true => before.unwrap_or(0.0) + 1.0,
                    false => 0.0,
                };
                let before = memory.exchange(i, slot, next);
                f64::from(next(before))
            }),
            Ema(slot) => std::array::from_fn(|i| {
                let next = |before: Option<f32>| {
                    let before = before.map_or(a[i], f64::from);
                    (before + 2.0 * (a[i] - before) / (b[i] + 1.0)) as f32
                };
                let before = memory.exchange(i, slot, next);
                f64::from(next(before))
            }),
            CrossesAbove(slot) | CrossesBelow(slot) => {
                let (now, next) = match self {
                    CrossesAbove(_) => (compared(f64::gt), compared(f64::le)),
                    _ => (compared(f64::lt), compared(f64::ge)),
                };
                std::array::from_fn(|i| {
                    let before = memory.exchange(i, slot, |_| next[i] as f32);
                    flag(now[i] != 0.0 && before == Some(1.0))
                })
            }
        }
    }
}

fn flag(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

fn each<const N: usize>(a: &[f64; N], f: impl Fn(f64) -> f64) -> [f64; N] {
    std::array::from_fn(|i| f(a[i]))
}

fn each2<const N: usize>(a: &[f64; N], b: &[f64; N], f: impl Fn(f64, f64) -> f64) -> [f64; N] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

/// The memory of programs for a number of rows `[B, 1 + slots]`: whether the episode has begun, and the
/// slots. Zeros are the memory before an episode.
#[derive(Debug)]
pub struct Memory<'a> {
    rows: &'a mut [f32],
    width: usize,
}

impl<'a> Memory<'a> {
    /// A memory in rows of 1 + `slots` numbers.
    pub fn new(rows: &'a mut [f32], slots: usize) -> Self {
        Self {
            rows,
            width: 1 + slots,
        }
    }

    /// The memory of the rows from `first` on.
    fn from(&mut self, first: usize) -> Memory<'_> {
        Memory {
            rows: self.rows.get_mut(first * self.width..).unwrap_or_default(),
            width: self.width,
        }
    }

    /// Replaces what a slot holds; returns what it held, `None` before the episode's first step.
    fn exchange(&mut self, row: usize, slot: usize, next: impl Fn(Option<f32>) -> f32) -> Option<f32> {
        let row = self.rows.get_mut(row * self.width..)?;
        let begun = *row.first()? != 0.0;
        let held = row.get_mut(1 + slot)?;
        let before = begun.then_some(*held);
        *held = next(before);
        before
    }

    /// Marks the episode of each row as begun: the programs of a step have been evaluated.
    pub fn begin(&mut self) {
        self.rows.iter_mut().step_by(self.width).for_each(|begun| *begun = 1.0);
    }
}

/// A compiled expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    ops: Vec<Op>,
}

impl Program {
    /// Compiles an expression over the quantities of these names.
    pub(crate) fn compile(text: &str, names: &[&str]) -> Result<Self, Mistake> {
        Self::compile_as(text, names, Kind::Number, "the reward", &mut 0)
    }

    /// Compiles a number over these names; `slots` is the number of slots of memory that are taken, to which
    /// its own are added.
    ///
    /// # Errors
    /// The first mistake.
    pub fn number(text: &str, names: &(impl Names + ?Sized), slots: &mut usize) -> Result<Self, Mistake> {
        Self::compile_as(text, names, Kind::Number, "the expression", slots)
    }

    /// Compiles a condition as [`Program::number`] does: its value is 1 where it holds, else 0.
    ///
    /// # Errors
    /// The first mistake.
    pub fn condition(text: &str, names: &(impl Names + ?Sized), slots: &mut usize) -> Result<Self, Mistake> {
        Self::compile_as(text, names, Kind::Condition, "the expression", slots)
    }

    fn compile_as<Known: Names + ?Sized>(
        text: &str,
        names: &Known,
        wanted: Kind,
        what: &str,
        slots: &mut usize,
    ) -> Result<Self, Mistake> {
        let mut ops = Vec::new();
        let mut parser = Parser::new(text, names, &mut ops, slots);
        let kind = parser.whole()?;
        parser.expect(kind, wanted, 0, what)?;
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
        let [value] = self.run(|which| [quantities[which]], &mut Memory::new(&mut [], 0));
        value
    }

    /// The value `[B]` for each row of quantities `[B, D]`, with the memory of the rows.
    pub fn evaluate_rows(
        &self,
        (quantities, width): (&[f32], usize),
        memory: &mut Memory<'_>,
        out: &mut [f64],
    ) {
        let (chunks, rest) = out.as_chunks_mut::<LANES>();
        let whole = chunks.len() * LANES;
        let at = |row: usize, which: usize| f64::from(quantities[row * width + which]);
        for (chunk, out) in chunks.iter_mut().enumerate() {
            let first = chunk * LANES;
            let lanes = |which| std::array::from_fn(|lane| at(first + lane, which));
            *out = self.run(lanes, &mut memory.from(first));
        }
        for (row, out) in (whole..).zip(rest) {
            let [value] = self.run(|which| [at(row, which)], &mut memory.from(row));
            *out = value;
        }
    }

    fn run<const N: usize>(&self, quantity: impl Fn(usize) -> [f64; N], memory: &mut Memory<'_>) -> [f64; N] {
        // Three values more than the stack has, so that all operands are read alike.
        let mut stack = [[0.0; N]; STACK + 3];
        let mut top = 0;
        for &op in &self.ops {
            top -= op.arity();
            let [a, b, c] = [&stack[top], &stack[top + 1], &stack[top + 2]];
            stack[top] = op.apply(a, b, c, &quantity, memory);
            top += 1;
        }
        stack[0]
    }
}
