//! Summaries of metrics that the tests write.

use super::*;
use crate::figures::shown;
use crate::glossary::TERMS;
use cache::{Artifact, Store};
use stages_core::Input;
use std::collections::BTreeMap;

/// A context over a store of its own.
struct Workplace {
    context: Context,
    _home: tempfile::TempDir,
}

impl Workplace {
    /// A workplace in which these metrics are connected under the agents' names.
    fn new(agents: &[(&str, &[Value])]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let mut context = Context::new(cache::KeyHasher::new("test").action_key(), store);
        let input = |summary: &Value| {
            let meta = json!({ "summary": summary });
            let digest = ArtifactBuilder::new(&context.store, PortType::Metrics.name(), meta)
                .finish()
                .unwrap();
            let artifact = context.store.artifact(digest).unwrap();
            Input { digest, artifact }
        };
        let inputs: BTreeMap<String, Vec<Input>> = agents
            .iter()
            .map(|(name, of)| ((*name).to_owned(), of.iter().map(input).collect()))
            .collect();
        context.inputs = inputs;
        Self { context, _home: home }
    }

    fn run(&self, figures: &[&str], baselines: bool) -> Result<Artifact, StageError> {
        let config = SummaryConfig {
            figures: figures.iter().map(|figure| (*figure).to_owned()).collect(),
            baselines,
        };
        let outputs = Summary.run(&config, &self.context)?;
        Ok(self.context.store.artifact(outputs["metrics"]).unwrap())
    }

    fn file(&self, artifact: &Artifact, name: &str) -> String {
        let blob = self.context.store.blob(artifact.entry(name).unwrap().blob).unwrap();
        String::from_utf8(blob.to_vec()).unwrap()
    }

    fn markdown(&self, figures: &[&str]) -> String {
        self.file(&self.run(figures, true).unwrap(), TABLE)
    }
}

/// A backtest with this return, of which cash and a rule are baselines.
fn backtest(total_return: f64) -> Value {
    json!({
        "total_return": total_return,
        "total_return_low": total_return - 0.1, "total_return_high": total_return + 0.1,
        "sharpe": null,
        "baseline/cash/total_return": 0.02, "baseline/best_rule/total_return": 0.05,
        "versus/cash/utility": total_return - 0.02, "versus/best_rule/utility": total_return - 0.05,
        "versus/cash/utility_p": 0.0001,
    })
}

fn two_agents() -> Workplace {
    Workplace::new(&[
        ("recurrent", &[backtest(0.1), backtest(0.16)]),
        ("feed_forward", &[backtest(-0.0321)]),
    ])
}

/// Several evaluations of an agent are one row; identical baselines are one row each, and so is one with
/// the same figure beside every seed.
#[test]
fn agents_come_first_and_identical_baselines_once() {
    let workplace = two_agents();
    let artifact = workplace.run(&["total_return", "sharpe"], true).unwrap();
    assert_eq!(
        workplace.file(&artifact, TABLE),
        "\
|  | n | total return | sharpe |
| --- | --- | --- | --- |
| feed forward | 1 | −3.21 % [−13.2, 6.8] | – |
| recurrent | 2 | 13.0 ± 4.2 % | – |
| best rule |  | 5.00 % | – |
| cash |  | 2.00 % | – |

Mean ± standard deviation over n evaluations. In brackets: 95 % intervals.
"
    );
    assert_eq!(
        workplace.file(&artifact, "table.csv"),
        "\
name,role,n,total_return,total_return_sd,total_return_low,total_return_high,sharpe
feed_forward,agent,1,-0.0321,,-0.1321,0.06790000000000002,
recurrent,agent,2,0.13,0.042426406871192854,,,
best_rule,baseline,,0.05,,,,
cash,baseline,,0.02,,,,
"
    );
    let summary = &artifact.meta["summary"];
    assert_eq!(summary["recurrent/total_return"], 0.13);
    assert!(summary.get("recurrent/sharpe").is_none(), "{summary}");
    assert_eq!(summary["baseline/cash/total_return"], 0.02);
    let alone = workplace.run(&["total_return"], false).unwrap();
    assert!(!workplace.file(&alone, TABLE).contains("cash"));
}

/// A difference from a baseline belongs to the baseline's row, of which there is then one for each agent.
#[test]
fn differences_stand_beside_their_baselines() {
    assert_eq!(
        two_agents().markdown(&["versus/utility", "versus/utility_p"]),
        "\
|  | n | agent less it: utility | agent less it: utility p |
| --- | --- | --- | --- |
| best rule, feed forward |  | −8.21 % | – |
| best rule, recurrent |  | 8.00 ± 4.24 % | – |
| cash, feed forward |  | −5.21 % | < 0.001 |
| cash, recurrent |  | 11.0 ± 4.2 % | < 0.001 |

Mean ± standard deviation over n evaluations.
"
    );
}

/// A study holds its agents and rules by name; without `figures` there are those that decide.
#[test]
fn a_study_is_its_agents_and_rules() {
    let study = json!({
        "agent/windows/utility": 0.122, "agent/windows/sharpe": 2.2, "rule/filter/utility": 0.174,
        "rule/filter/sharpe": 2.91, "versus/windows/utility": 0.02, "versus/windows/utility_low": 0.003,
        "versus/windows/utility_high": 0.037, "worlds": 120,
    });
    let workplace = Workplace::new(&[("study", &[study])]);
    assert_eq!(
        workplace.markdown(&[]),
        "\
|  | sharpe | utility |
| --- | --- | --- |
| windows | 2.20 | 12.2 % |
| filter | 2.91 | 17.4 % |
"
    );
    let differences = workplace.markdown(&["versus/utility"]);
    assert!(
        differences.contains("| windows | 2.00 % [0.30, 3.70] |"),
        "{differences}"
    );
}

/// A figure that one seed lacks would be the mean of other seeds.
#[test]
fn a_mean_is_of_all_evaluations_or_of_none() {
    let workplace = Workplace::new(&[("a", &[json!({ "accuracy": 0.5 }), json!({ "mrr": 1.0 })])]);
    let table = workplace.markdown(&["accuracy"]);
    assert!(table.contains("| a | 2 | – |"), "{table}");
}

#[test]
fn unknown_figures_are_refused_with_the_nearest_name() {
    let refused = two_agents().run(&["sharp"], true).unwrap_err();
    assert_eq!(refused.message, "`figures`: no agent has a figure `sharp`");
    assert_eq!(refused.hint.as_deref(), Some("did you mean `sharpe`?"));
    let refused = Workplace::new(&[("a", &[json!({ "folds": 3 })])])
        .run(&[], true)
        .unwrap_err();
    assert_eq!(
        refused.hint.as_deref(),
        Some("name the columns in `figures`: the figures are `folds`")
    );
    let twice = SummaryConfig {
        figures: vec!["mrr".to_owned(), "mrr".to_owned()],
        ..SummaryConfig::default()
    };
    let plan = PlanContext {
        base: std::path::Path::new("."),
        inputs: BTreeMap::new(),
    };
    assert_eq!(Summary.check(&twice, &plan).unwrap_err().message, "names `mrr` twice");
    assert!(Summary.reads_test(&SummaryConfig::default()));
}

/// Names come from programs of others.
#[test]
fn names_are_text() {
    let evil = json!({ "a|<script>\"": 1.5 });
    let workplace = Workplace::new(&[("x", &[evil])]);
    let artifact = workplace.run(&["a|<script>\""], true).unwrap();
    assert!(workplace.file(&artifact, TABLE).starts_with("|  | a\\|<script>\" |\n"));
    assert_eq!(
        workplace.file(&artifact, "table.html"),
        "\
<table>
<thead><tr><th scope=\"col\"></th><th scope=\"col\">a|&lt;script&gt;&quot;</th></tr></thead>
<tbody>
<tr><th scope=\"row\">x</th><td>1.50</td></tr>
</tbody>
</table>
"
    );
    let csv = workplace.file(&artifact, "table.csv");
    assert!(csv.starts_with("name,role,n,\"a|<script>\"\"\"\n"), "{csv}");
}

/// Bytes depend on the units of figures, on their texts, and on the order of those that decide. Whoever
/// changes one of them raises `Summary::VERSION`, since other bytes for the same key need another version.
#[test]
fn the_bytes_are_known() {
    assert_eq!(
        DECIDING.join(" "),
        "total_return excess_return volatility sharpe max_drawdown turnover costs utility deflated_sharpe \
        episodic_return accuracy success mrr hits_1 hits_10 auc_pr pbo charts/episodic_return \
        validation/return_greedy charts/SPS seconds"
    );
    for (unit, texts, figures) in [
        (
            Unit::Percent,
            "1.23 % 1,230 %",
            "total_return annual_return excess_return volatility max_drawdown costs utility alpha \
            time_under_water var_95 cvar_95 hit_rate closing_cost matched_excess_return share accuracy success \
            hits_1 hits_3 hits_10 pbo",
        ),
        (
            Unit::Probability,
            "0.012 12.346",
            "deflated_sharpe probabilistic_sharpe p",
        ),
        (
            Unit::Count,
            "0.0123 12.3",
            "longest_under_water liquidations episodic_length steps worlds trials SPS",
        ),
        (Unit::Times, "0.0123× 12.3×", "turnover"),
        (Unit::Seconds, "12 ms 12.3 s", "seconds"),
    ] {
        assert_eq!([0.012346, 12.346].map(|value| shown(value, unit)).join(" "), texts);
        let names = TERMS.iter().map(|term| term.name);
        let of: Vec<&str> = names.filter(|name| Unit::of(name) == unit).collect();
        assert_eq!(of.join(" "), figures);
    }
    let digest = || {
        let workplace = two_agents();
        let config = SummaryConfig {
            figures: ["total_return", "sharpe"].map(str::to_owned).to_vec(),
            ..SummaryConfig::default()
        };
        Summary.run(&config, &workplace.context).unwrap()["metrics"].to_hex()
    };
    assert_eq!(
        digest(),
        "3587a6481c282dd0c2497fefdcf66a64dea3cbf1b045c8b385b4bc18f305f03f"
    );
}
