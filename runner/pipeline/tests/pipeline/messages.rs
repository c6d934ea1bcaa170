//! A dozen typical messages, whole.

use crate::{GOOD, bad};

fn changed(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    bad(&GOOD.replace(from, to), &[])
}

#[test]
fn a_misspelt_key() {
    insta::assert_snapshot!(changed("needs: { bars: market }", "neds: { bars: market }"), @r"
    p.yaml:23:5: unknown key `neds` in the stage `technical`
       |
    23 |     neds: { bars: market }
       |     ^^^^
       = hint: did you mean `needs`?
    ");
}

#[test]
fn a_misspelt_setting() {
    insta::assert_snapshot!(changed("learning_rate:", "lerning_rate:"), @r"
    p.yaml:44:7: unknown key `lerning_rate` in the configuration of `train` (train/ppo)
       |
    44 |       lerning_rate: ${params.lr}
       |       ^^^^^^^^^^^^
       = hint: did you mean `learning_rate`?
    ");
}

#[test]
fn a_value_of_the_wrong_type() {
    insta::assert_snapshot!(changed("timesteps: 8192", "timesteps: 3e5"), @r"
    p.yaml:45:18: `timesteps` of `train` is the number 300000.0, not a non-negative integer
       |
    45 |       timesteps: 3e5
       |                  ^^^
       = hint: write 300000
    ");
}

#[test]
fn a_value_in_a_list() {
    insta::assert_snapshot!(changed("[0.25, 0.5]", "[0.25, 5]"), @r"
    p.yaml:37:42: `slate.deltas[1]` of `env`: must lie between 0 and 1
       |
    37 |       slate: { count: 20, deltas: [0.25, 5] }
       |                                          ^
       = hint: see `runner stages env/options` for its configuration
    ");
}

#[test]
fn a_value_from_a_parameter() {
    insta::assert_snapshot!(bad(GOOD, &["lr=1e-3", "seed=-1"]), @r"
    --set:1:6: `seed` of `market` is the number -1, not a non-negative integer (read as `${params.seed}` in line 13)
      |
    1 | seed=-1
      |      ^^
      = hint: give 0 or more
    ");
}

#[test]
fn an_unknown_choice() {
    insta::assert_snapshot!(changed("black_scholes_merton", "black_scholes"), @r"
    p.yaml:20:20: `model` of `greeks`: unknown value `black_scholes`
       |
    20 |     with: { model: black_scholes }
       |                    ^^^^^^^^^^^^^
       = hint: did you mean `black_scholes_merton`?
    ");
}

#[test]
fn an_unknown_kind() {
    insta::assert_snapshot!(changed("uses: train/ppo", "uses: train/pop"), @r"
    p.yaml:39:11: there is no stage kind `train/pop`
       |
    39 |     uses: train/pop
       |           ^^^^^^^^^
       = hint: did you mean `train/ppo`?
    ");
}

#[test]
fn an_input_of_another_type() {
    insta::assert_snapshot!(changed("{ env: env, policy: train }", "{ env: env, policy: train.metrics }"), @r"
    p.yaml:51:32: the input `policy` takes `policy`, and `train.metrics` is `metrics`
       |
    51 |     needs: { env: env, policy: train.metrics }
       |                                ^^^^^^^^^^^^^
       = hint: did you mean `train.policy`?
    ");
}

#[test]
fn an_input_not_connected() {
    insta::assert_snapshot!(changed("      greeks: greeks\n", ""), @r"
    p.yaml:30:11: the input `greeks` of `env` is not connected
       |
    30 |     uses: env/options
       |           ^^^^^^^^^^^
       = hint: add `needs: { greeks: STAGE }`; `greeks` is given by `greeks.greeks`
    ");
}

#[test]
fn an_ambiguous_need() {
    insta::assert_snapshot!(changed("metrics: evaluate.metrics", "metrics: evaluate"), @r"
    p.yaml:54:23: `evaluate` (evaluate/backtest) has more than one output that fits
       |
    54 |     needs: { metrics: evaluate }
       |                       ^^^^^^^^
       = hint: write one of `evaluate.metrics`, `evaluate.trajectory`
    ");
}

#[test]
fn a_circle() {
    let text = GOOD.replace(
        "  greeks:\n",
        "  iv2: { uses: greeks/implied_volatility, needs: { chain: iv } }\n  greeks:\n",
    );
    let circle = text.replace("{ chain: market, rates: market.rates }", "{ chain: iv2 }");
    insta::assert_snapshot!(bad(&circle, &[]), @r"
    p.yaml:16:21: the stages form a cycle: `iv` needs `iv2` needs `iv`
       |
    16 |     needs: { chain: iv2 }
       |                     ^^^
       = hint: remove one of these needs
    ");
}

#[test]
fn an_unquoted_interpolation() {
    insta::assert_snapshot!(changed("\"${params.seed}\"", "${params.seed}"), @r#"
    p.yaml:13:31: this is not valid YAML: did not find expected ',' or '}'
       |
    13 |     with: { days: 652, seed: ${params.seed} }
       |                               ^
       = hint: quote an interpolation between braces or brackets: `{ seed: "${params.seed}" }`
    "#);
}

#[test]
fn a_place_inside_a_block() {
    let text = GOOD.replace(
        "run: python plot.py",
        "run: |\n      cd .\n      python ${params.seeds} plot.py",
    );
    insta::assert_snapshot!(bad(&text, &[]), @r"
    p.yaml:55:14: unknown parameter `seeds` in `${params.seeds}`
       |
    55 |       python ${params.seeds} plot.py ${needs.metrics} ${outputs.figure} ${HOME} $${params.seed} s${params.seed}-${matrix
       |              ^^^^^^^^^^^^^^^
       = hint: did you mean `seed`?
    ");
}

#[test]
fn a_tab() {
    insta::assert_snapshot!(changed("      periods:", "\tperiods:"), @r"
    p.yaml:25:2: a tab where only spaces are allowed
       |
    25 | 	periods: [5, 20]
       | 	^
       = hint: indent with spaces
    ");
}

#[test]
fn axes_that_disagree() {
    let text = GOOD.replace("policy: train }\n", "policy: train }\n    matrix: { seed: [1, 2] }\n");
    insta::assert_snapshot!(bad(&text, &[]), @r#"
    p.yaml:52:15: the axis `seed` of `evaluate` is `1`, `2`, `3` in `train`, and `1`, `2` in its own matrix
       |
    52 |     matrix: { seed: [1, 2] }
       |               ^^^^
       = hint: give the axis the same values in both (the other stands in line 51), another name in one, or pick a point: `"STAGE[seed=VALUE]"`
    "#);
}

#[test]
fn a_long_line() {
    let long = format!("periods: [{}, x]", vec!["5"; 200].join(", "));
    insta::assert_snapshot!(changed("periods: [5, 20]", &long), @r#"
    p.yaml:25:617: `periods[200]` of `technical` is the string "x", not an integer from 0 to 4294967295
       |
    25 | 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, x]
       |                                                             ^
       = hint: write a number, such as 10 or 3e-4
    "#);
}

/// Control characters written as escapes in a file never reach a terminal.
#[test]
fn control_characters_are_shown_not_sent() {
    let text = "version: 1\nname: a\nstages:\n  x:\n    uses: \"train/\\e[31mppo\\a\"\n";
    let said = bad(text, &[]);
    assert!(said.contains("train/\\u001b[31mppo\\u0007"), "{said}");
    assert!(!said.contains(|c: char| c.is_control() && c != '\n'), "{said:?}");
}
