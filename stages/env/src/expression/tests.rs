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
    let program = Program::condition("excess > 0.5 or turnover < 0", &NAMES[..], &mut 0).unwrap();
    assert_eq!(program.evaluate(&[0.6, 0.0, 0.0, 0.0]), 1.0);
    assert_eq!(program.evaluate(&[0.4, 0.0, 0.0, 0.0]), 0.0);
    let mistake = Program::condition("excess - 1", &NAMES[..], &mut 0).unwrap_err();
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

/// Quantities of which an expression may look back.
struct Remembering;

impl Names for Remembering {
    fn find(&self, name: &str) -> Result<Named, (String, String)> {
        match name {
            "twice_x" => Ok(Named::Expression("2 * x".to_owned())),
            "rising" => Ok(Named::Expression("x > previous(x)".to_owned())),
            "later" => Ok(Named::Later),
            "endless" => Ok(Named::Expression("1 + endless".to_owned())),
            _ => ["x", "y", "slate.30d_call_0.25.iv", "BTC-USD.weight"][..].find(name),
        }
    }

    fn remembers(&self) -> bool {
        true
    }
}

/// The values of a program over the steps `[T][B]` of quantities of four names; `starts` says where a row's
/// episode begins.
fn played(
    program: &Program,
    slots: usize,
    steps: &[Vec<f32>],
    starts: impl Fn(usize, usize) -> bool,
) -> Vec<Vec<f64>> {
    let rows = steps[0].len() / 4;
    let mut state = vec![0.0; rows * (1 + slots)];
    let of_step = |(t, quantities): (usize, &Vec<f32>)| {
        for (row, state) in state.chunks_exact_mut(1 + slots).enumerate() {
            if starts(t, row) {
                state.fill(0.0);
            }
        }
        let mut memory = Memory::new(&mut state, slots);
        let mut out = vec![0.0; rows];
        program.evaluate_rows((quantities, 4), &mut memory, &mut out);
        memory.begin();
        out
    };
    steps.iter().enumerate().map(of_step).collect()
}

/// The rows of a batch are those of as many single evaluations, whatever their number.
#[test]
fn rows_are_evaluated_as_one_is() {
    let names = ["x", "y", "z", "w"];
    let text = "if(not (x > y) and mod(z, 3) >= 1 or w != w, round(10 * x) / 10 - y^2, -clip(x / y, -1, z))";
    let program = Program::compile(text, &names).unwrap();
    let mut random = Random::new(&[3]);
    for rows in [0, 1, 15, 16, 17, 256] {
        let quantities: Vec<f32> = (0..rows * 4).map(|_| 4.0 * random.normal() as f32).collect();
        let mut out = vec![0.0; rows];
        program.evaluate_rows((&quantities, 4), &mut Memory::new(&mut [], 0), &mut out);
        for (row, value) in quantities.chunks_exact(4).zip(&out) {
            let [x, y, z, w] = [0, 1, 2, 3].map(|i| f64::from(row[i]));
            let holds = x <= y && z.rem_euclid(3.0) >= 1.0 || w.is_nan();
            let expected = match holds {
                true => (10.0 * x).round() / 10.0 - y * y,
                false => -(x / y).max(-1.0).min(z),
            };
            assert!(
                (value - expected).abs() <= 1e-12 * (1.0 + expected.abs()),
                "{value} {expected}"
            );
            let single: Vec<f64> = row.iter().map(|x| f64::from(*x)).collect();
            assert_eq!(program.evaluate(&single).to_bits(), value.to_bits());
        }
    }
}

/// Against their definitions over whole episodes, which begin at other steps in other rows.
#[test]
fn what_looks_back_is_as_defined() {
    let (rows, length) = (37, 60);
    let mut random = Random::new(&[5]);
    let steps: Vec<Vec<f32>> = (0..length)
        .map(|_| (0..rows * 4).map(|_| random.below(5) as f32 - 2.0).collect())
        .collect();
    let starts = |t: usize, row: usize| (t + row).is_multiple_of(13) || t == 0;
    let x = |t: usize, row: usize| f64::from(steps[t][row * 4]);
    let y = |t: usize, row: usize| f64::from(steps[t][row * 4 + 1]);
    type Definition<'a> = &'a dyn Fn(usize, usize) -> f64;
    let before = |t: usize, row: usize| (!starts(t, row)).then(|| t - 1);
    let number = |holds: bool| f64::from(u8::from(holds));
    let since = |t: usize, row: usize| {
        let mut at = t;
        loop {
            if x(at, row) > 0.0 {
                return (t - at) as f64;
            }
            match before(at, row) {
                Some(earlier) => at = earlier,
                None => return (t - at + 1) as f64,
            }
        }
    };
    let cases: [(&str, bool, Definition<'_>); 9] = [
        ("previous(x)", false, &|t, row| {
            before(t, row).map_or(f64::NAN, |t| x(t, row))
        }),
        ("previous(previous(x))", false, &|t, row| {
            let earlier = before(t, row).and_then(|t| before(t, row));
            earlier.map_or(f64::NAN, |t| x(t, row))
        }),
        ("previous(x > y)", true, &|t, row| {
            number(before(t, row).is_some_and(|t| x(t, row) > y(t, row)))
        }),
        ("x crosses above y", true, &|t, row| {
            let was = before(t, row).is_some_and(|t| x(t, row) <= y(t, row));
            number(was && x(t, row) > y(t, row))
        }),
        ("x crosses  below 0 or y crosses below x", true, &|t, row| {
            let one = before(t, row).is_some_and(|t| x(t, row) >= 0.0) && x(t, row) < 0.0;
            let two = before(t, row).is_some_and(|t| y(t, row) >= x(t, row)) && y(t, row) < x(t, row);
            number(one || two)
        }),
        ("steps_since(x > 0)", false, &|t, row| since(t, row)),
        ("steps_since(1 < 0) - 1", false, &|t, row| {
            (0..).take_while(|back| !starts(t - back, row)).count() as f64
        }),
        ("ema(x, 3 + 0 * y)", false, &|t, row| {
            // Weights that halve with each step back; the first has what is left.
            let back = (0..)
                .take_while(|back| *back == 0 || !starts(t - (back - 1), row))
                .count();
            let weight = |k: usize| 0.5_f64.powi(k as i32 + i32::from(k + 1 < back));
            (0..back).map(|k| weight(k) * x(t - k, row)).sum()
        }),
        ("rising and not previous(rising) and twice_x >= 0", true, &|t, row| {
            let rising = |t: usize| before(t, row).is_some_and(|before| x(t, row) > x(before, row));
            number(rising(t) && !before(t, row).is_some_and(rising) && x(t, row) >= 0.0)
        }),
    ];
    for (text, is_condition, definition) in cases {
        let mut slots = 0;
        let program = match is_condition {
            true => Program::condition(text, &Remembering, &mut slots),
            false => Program::number(text, &Remembering, &mut slots),
        };
        let found = played(&program.unwrap(), slots, &steps, starts);
        for (t, found) in found.iter().enumerate() {
            for (row, found) in found.iter().enumerate() {
                let expected = definition(t, row);
                assert!(
                    *found == expected || found.is_nan() && expected.is_nan(),
                    "{text} at {t} of {row}: {found} {expected}"
                );
            }
        }
    }
}

#[test]
fn names_of_other_characters_and_their_mistakes() {
    let refused = |text: &str| Program::number(text, &Remembering, &mut 0).unwrap_err();
    let program = Program::number(
        "slate.30d_call_0.25.iv + `BTC-USD.weight` + later",
        &Remembering,
        &mut 0,
    );
    assert!(program.is_ok(), "{program:?}");
    for (text, at, message) in [
        ("`BTC-USD.weight", 1, "a name begins with a backtick and has no end"),
        ("x + `BTC-EUR.weight`", 5, "unknown name `BTC-EUR.weight`"),
        ("BTC-USD.weight", 1, "unknown name `BTC`"),
        ("1 + (x crosses y)", 8, "expected `)`, found `c`"),
        (
            "steps_since(x)",
            13,
            "argument 1 of `steps_since` is a number, not a condition",
        ),
        ("previous()", 1, "`previous` takes 1 argument, not 0"),
        ("not x > 0", 1, "the expression is a condition, not a number"),
        ("if(not x, 1, 2)", 7, "what `not` negates is a number, not a condition"),
        ("1 + rising", 3, "what stands after `+` is a condition, not a number"),
    ] {
        let mistake = refused(text);
        assert_eq!((mistake.at, mistake.message.as_str()), (at, message), "{text}");
    }
    assert!(refused("endless").message.contains("it has more than 200 levels"));
    // A reward has no memory.
    let reward = |text: &str| Program::compile(text, &NAMES).unwrap_err().message;
    assert_eq!(reward("previous(excess)"), "unknown function `previous`");
    assert_eq!(reward("excess crosses above 0"), "unexpected `c`");
}
