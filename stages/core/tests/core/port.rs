//! Ports.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use stages_core::{
    AnyStage, Context, InputPort, OutputPort, Outputs, PlanContext, PortType, Ports, Provided, StageError,
    StageKind, erase,
};
use std::collections::BTreeMap;
use std::path::Path;

const TYPES: [PortType; 12] = [
    PortType::Bars,
    PortType::OptionChain,
    PortType::Rates,
    PortType::Greeks,
    PortType::Features,
    PortType::Table,
    PortType::Knowledge,
    PortType::Env,
    PortType::Policy,
    PortType::Metrics,
    PortType::Trajectory,
    PortType::File,
];

/// Manifests hold `name`, runs' events what serde writes: one word for both.
#[test]
fn a_type_has_one_name() {
    for ty in TYPES {
        assert_eq!(serde_json::to_value(ty).unwrap(), json!(ty.name()));
        assert_eq!(serde_json::from_value::<PortType>(json!(ty.name())).unwrap(), ty);
    }
}

#[test]
fn a_column_may_be_there_unless_it_is_known_not_to_be() {
    let known = Provided::columns(PortType::Features, ["rsi_14"]);
    assert!(known.may_have("rsi_14"));
    assert!(!known.may_have("adx_14"));
    assert!(Provided::unknown(PortType::Features).may_have("adx_14"));
}

#[derive(Default, Serialize, Deserialize, JsonSchema)]
struct NoSettings {}

struct Double;

impl StageKind for Double {
    type Config = NoSettings;
    const NAME: &'static str = "test/double";
    const VERSION: u32 = 3;
    const ABOUT: &'static str = "Has two outputs.";
    const PORTS: Ports = Ports {
        inputs: &[InputPort::one("bars", PortType::Bars).doc("bars")],
        outputs: &[
            OutputPort {
                name: "chain",
                ty: PortType::OptionChain,
                doc: "a chain",
            },
            OutputPort {
                name: "rates",
                ty: PortType::Rates,
                doc: "rates",
            },
        ],
    };

    fn run(&self, _: &NoSettings, _: &Context) -> Result<Outputs, StageError> {
        Err(StageError::new("not run here"))
    }
}

#[test]
fn an_output_has_its_type_and_promises_nothing_by_default() {
    let stage: Box<dyn AnyStage> = erase(Double);
    assert_eq!((stage.name(), stage.version()), ("test/double", 3));
    let plan = PlanContext {
        base: Path::new("."),
        inputs: BTreeMap::new(),
    };
    let provided = stage.check(&json!(null).into(), &plan);
    let expected = [("chain", PortType::OptionChain), ("rates", PortType::Rates)];
    assert_eq!(
        provided.unwrap(),
        expected
            .map(|(name, ty)| (name.to_owned(), Provided::unknown(ty)))
            .into()
    );
}
