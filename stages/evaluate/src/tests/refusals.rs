//! Policies that do not fit the environment, and configurations that say nothing, are refused.

use super::*;
use crate::config::Block;
use stages_env::classic::{Classic, ClassicConfig, Id};
use stages_env::options::SlateConfig;
use stages_env::{Actions, Bounds};

fn refusal(workplace: &Workplace) -> StageError {
    workplace.backtest(&BacktestConfig::default()).unwrap_err()
}

#[test]
fn a_policy_of_another_environment_names_the_first_difference() {
    let mut workplace = options_workplace(100, &OptionsConfig::default());
    let own = workplace.env().spec().clone();

    let mut other = own.clone();
    other.observation[3] = "slate.30d_call_0.1.beauty".to_owned();
    workplace.connect_policy(&other);
    let err = refusal(&workplace);
    assert!(
        err.message
            .contains("its observation 3 is `slate.30d_call_0.1.beauty`, here it is `slate.30d_call_0.1."),
        "{err}"
    );
    assert!(err.hint.is_some());

    let mut other = own.clone();
    other.action_space = ActionSpace::discrete(["hold", "close_all", "close_oldest", "calendar"]);
    workplace.connect_policy(&other);
    let err = refusal(&workplace);
    assert!(
        err.message
            .contains("its action 3 is `calendar`, here it is `long_straddle`"),
        "{err}"
    );

    // The same policy again, on a market with a smaller slate.
    workplace.connect_policy(&own);
    workplace.backtest(&BacktestConfig::default()).unwrap();
    let small = OptionsConfig {
        slate: SlateConfig {
            maturities: vec![30],
            ..SlateConfig::default()
        },
        ..OptionsConfig::default()
    };
    workplace.connect_options(100, 5, &small);
    // Opening shows observations in the policy's normalisation, which has another length.
    assert!(refusal(&workplace).hint.is_some());
}

#[test]
fn discrete_and_continuous_policies_are_told_apart() {
    let mut workplace = Workplace::new();
    workplace.connect_env(Classic, &ClassicConfig { id: Id::Pendulum });
    let pendulum = workplace.env().spec().clone();
    let mut discrete = pendulum.clone();
    discrete.action_space = ActionSpace::discrete(["torque"]);
    workplace.connect_policy(&discrete);
    let err = refusal(&workplace);
    assert!(
        err.message
            .contains("its actions are discrete, here they are continuous"),
        "{err}"
    );

    let mut wider = pendulum.clone();
    wider.action_space = ActionSpace::Continuous {
        names: vec!["torque".to_owned()],
        bounds: Bounds {
            low: vec![-3.0],
            high: vec![3.0],
        },
    };
    workplace.connect_policy(&wider);
    assert!(refusal(&workplace).message.contains("ranges"));

    workplace.connect_policy(&pendulum);
    let (summary, table) = workplace.results(&BacktestConfig::default());
    assert_eq!(table.num_rows(), 20);
    assert_eq!(summary["episodic_length"].as_f64(), Some(200.0));

    // A policy has its environment's kind of actions, and an environment refuses actions of another.
    let mut multi = pendulum;
    multi.action_space = ActionSpace::MultiDiscrete {
        names: vec!["size".to_owned(), "side".to_owned()],
        choices: vec![3, 2],
        masked: false,
    };
    let architecture = Architecture {
        obs_dim: 3,
        head: ActionHead::Discrete(5),
        activation: Activation::Tanh,
        lstm: None,
        transformer: None,
        pi: vec![4],
        vf: vec![4],
    };
    let params = initial(&architecture, true, 1);
    assert!(Policy::new("test", &multi, &architecture, None, params).is_err());
    let mut env = workplace.env();
    let mut out = stages_env::Step::new(env.spec(), 1);
    env.reset(out.buffers());
    let before = env.save();
    assert!(env.step(Actions::MultiDiscrete(&[1]), out.buffers()).is_err());
    assert!(env.save() == before, "a refused step changes nothing");
}

#[test]
fn empty_configurations_are_refused() {
    let config = |change: &dyn Fn(&mut BacktestConfig)| {
        let mut config = BacktestConfig::default();
        change(&mut config);
        config.validate()
    };
    assert!(config(&|_| {}).is_ok());
    assert_eq!(config(&|c| c.episodes = 0).unwrap_err().field, "episodes");
    assert_eq!(config(&|c| c.random_paths = 0).unwrap_err().field, "random_paths");
    assert_eq!(config(&|c| c.bootstrap_draws = 0).unwrap_err().field, "bootstrap_draws");
    for block in [0.5, f64::NAN] {
        assert_eq!(
            config(&|c| c.bootstrap_block = Block::Steps(block)).unwrap_err().field,
            "bootstrap_block"
        );
    }
}
