//! The decision of a policy as an artifact.

use super::*;
use crate::acting::{act, dates};
use crate::{AccountKind, Decide, DecideConfig, Decided};
use stages_core::PlanContext;
use stages_env::Split;
use stages_env::acting::{Holding, Holdings};
use stages_numerics::class::numerics_class;
use stages_policy::AnyPolicy;
use std::path::Path;

fn decided(
    workplace: &Workplace,
    config: &DecideConfig,
) -> Result<(ArtifactDigest, Decided, String), StageError> {
    let digest = Decide.run(config, &workplace.context)?["decision"];
    let store = &workplace.context.store;
    let artifact = store.artifact(digest).unwrap();
    let orders = store.blob(artifact.entry("orders.csv").unwrap().blob).unwrap();
    let orders = std::str::from_utf8(&orders).unwrap().to_owned();
    Ok((digest, Decided::read(store, &artifact)?, orders))
}

fn config(workplace: &Workplace, account: AccountKind, cash: Option<f64>) -> DecideConfig {
    let env = &workplace.context.inputs["env"][0].artifact;
    let (_, last) = dates(&workplace.context.store, env, Split::Test).unwrap().unwrap();
    DecideConfig {
        at: Some(datasets::SnapshotTime::of_day(last)),
        account,
        holdings: cash.map(|cash| Holdings {
            cash: Some(cash),
            ..Holdings::default()
        }),
        sample: Some(4),
        ..DecideConfig::default()
    }
}

#[test]
fn the_document_is_the_decision_and_its_orders_are_a_table() {
    let workplace = options_workplace(300, &OptionsConfig::default());
    let [env, policy] = ["env", "policy"].map(|port| &workplace.context.inputs[port][0]);
    let accounts = [
        (AccountKind::Played, None),
        (AccountKind::Flat, None),
        (AccountKind::Flat, Some(90_000.5)),
        (AccountKind::Given, Some(90_000.5)),
    ];
    let trained = AnyPolicy::read(&workplace.context.store, &policy.artifact).unwrap();
    for (account, cash) in accounts {
        let config = config(&workplace, account, cash);
        let (digest, found, orders) = decided(&workplace, &config).unwrap();
        let acted = act(&workplace.context.store, &env.artifact, &trained, &config).unwrap();
        // Numbers are read back bit by bit.
        assert_eq!(found.acted, acted);
        assert_eq!((found.policy, found.environment), (policy.digest, env.digest));
        assert_eq!(orders.lines().count(), 1 + acted.orders.orders.len(), "{orders}");
        for (line, order) in orders.lines().skip(1).zip(&acted.orders.orders) {
            let start = format!("option,\"TOY\",{},", order.expiry.unwrap());
            assert!(line.starts_with(&start) || order.expiry.is_none(), "{line}");
        }
        assert_eq!(decided(&workplace, &config).unwrap().0, digest);
    }
    // The last test date is the default.
    let dated = config(&workplace, AccountKind::Flat, None);
    let undated = DecideConfig {
        at: None,
        ..dated.clone()
    };
    assert_eq!(
        decided(&workplace, &undated).unwrap().0,
        decided(&workplace, &dated).unwrap().0
    );
}

#[test]
fn golden() {
    let workplace = options_workplace(300, &OptionsConfig::default());
    let config = DecideConfig {
        account: AccountKind::Played,
        ..DecideConfig::default()
    };
    let found = decided(&workplace, &config).unwrap().0.to_hex();
    match numerics_class().as_ref() {
        "x86_64-avx512-v2" | "x86_64-avx2-v2" => assert_eq!(
            found,
            "6a793ce283209dd028b8d37322314e4f926d793a0708c0ed843d715b203ab64b"
        ),
        other => eprintln!("no digest is pinned for numerics class {other}: {found}"),
    }
}

#[test]
fn accounts_that_contradict_their_holdings_are_refused() {
    let plan = PlanContext {
        base: Path::new("."),
        inputs: Default::default(),
    };
    let position: Holding = serde_json::from_value(json!({ "symbol": "TOY", "quantity": 1.0 })).unwrap();
    let config = |account, positions| DecideConfig {
        account,
        holdings: Some(Holdings {
            positions,
            ..Holdings::default()
        }),
        ..DecideConfig::default()
    };
    for (account, positions, why) in [
        (
            AccountKind::Played,
            Vec::new(),
            "`account: played` has what the policy would hold",
        ),
        (AccountKind::Flat, vec![position.clone()], "has positions"),
    ] {
        let problem = Decide.check(&config(account, positions), &plan).unwrap_err();
        assert_eq!(problem.field, "holdings");
        assert!(problem.message.contains(why), "{problem:?}");
    }
    assert!(Decide.check(&config(AccountKind::Given, vec![position]), &plan).is_ok());
    let workplace = Workplace::new();
    assert!(Decide.run(&DecideConfig::default(), &workplace.context).is_err());
}
