//! Stage kinds for tests of the engine.

use cache::ArtifactBuilder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stages_core::{
    AnyStage, Context, Given, InputPort, Memo, OutputPort, Outputs, PortType, Ports, RelativeCost, Share,
    StageError, StageKind, erase,
};
use std::sync::LazyLock;
use std::time::Duration;

pub(crate) fn all() -> &'static [Box<dyn AnyStage>] {
    static KINDS: LazyLock<Vec<Box<dyn AnyStage>>> =
        LazyLock::new(|| vec![erase(Squares), erase(Dice), erase(Misbehave), erase(Sum)]);
    &KINDS
}

fn outputs(context: &Context, text: &str) -> Result<Outputs, StageError> {
    let mut builder = ArtifactBuilder::new(&context.store, PortType::File.name(), json!({ "folder": false }));
    builder.bytes("x.txt", text.as_bytes())?;
    Ok([("x".to_owned(), builder.finish()?)].into())
}

const OUTPUT: &[OutputPort] = &[OutputPort::new("x", PortType::File).doc("the output")];

/// Settings of squares.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SquaresConfig {
    /// The number of squares.
    count: u64,
    /// If true, at a hundred times the cost.
    exact: bool,
    /// The device.
    device: String,
}

/// The squares of the first numbers, each of them a memo.
struct Squares;

impl Squares {
    fn memos(config: &SquaresConfig) -> Vec<Memo> {
        let memo = |i: u64| Memo::new("test/squares v1", &[&i.to_le_bytes()], format!("square {i}"));
        (0..config.count).map(memo).collect()
    }
}

impl StageKind for Squares {
    type Config = SquaresConfig;
    const NAME: &'static str = "test/squares";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "The squares of the first numbers.";
    const NOT_IN_KEY: &'static [&'static str] = &["device"];
    const WORK_UNITS: Option<&'static str> = Some("count");
    const PORTS: Ports = Ports {
        inputs: &[InputPort::optional_list("after", PortType::File).doc("the input")],
        outputs: OUTPUT,
    };

    fn relative_cost(&self, config: &SquaresConfig) -> Option<RelativeCost> {
        config.exact.then(|| RelativeCost {
            times: 100.0,
            because: "exact: true".to_owned(),
            cheaper: "write `exact: false`".to_owned(),
        })
    }

    fn run(&self, config: &SquaresConfig, context: &Context) -> Result<Outputs, StageError> {
        let mut squares = Vec::new();
        for (i, memo) in Self::memos(config).iter().enumerate() {
            let blob = context.memo(memo, || Ok((i * i).to_string().into_bytes()))?;
            squares.push(String::from_utf8_lossy(&context.store.blob(blob.blob)?).into_owned());
        }
        outputs(context, &squares.join(" "))
    }

    fn cached_share(&self, config: &SquaresConfig, given: &Given<'_>) -> Result<Option<Share>, StageError> {
        Ok(Some(Share::of_memos("squares", given, &Self::memos(config))?))
    }
}

/// No settings.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NoConfig {}

/// A number that nobody can repeat.
struct Dice;

impl StageKind for Dice {
    type Config = NoConfig;
    const NAME: &'static str = "test/dice";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "A number.";
    const NONDETERMINISTIC: Option<&'static str> = Some("it rolls dice");
    const PORTS: Ports = Ports {
        inputs: &[],
        outputs: OUTPUT,
    };

    fn run(&self, _: &NoConfig, context: &Context) -> Result<Outputs, StageError> {
        outputs(context, "4")
    }
}

/// Settings of a sum.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SumConfig {
    /// The number of parts.
    parts: u64,
}

/// A sum of squares, of which other machines compute the squares; the square of 13 fails.
struct Sum;

impl Sum {
    fn square(context: &Context, n: u64) -> Result<u64, StageError> {
        let memo = Memo::new("square", &[&n.to_le_bytes()], format!("square {n}"));
        let value = context.memo(&memo, || match n {
            13 => Err(StageError::new("13 is unlucky")),
            n => Ok((n * n).to_string().into_bytes()),
        })?;
        let text = context.store.blob(value.blob)?;
        Ok(String::from_utf8_lossy(&text).parse().unwrap())
    }
}

impl StageKind for Sum {
    type Config = SumConfig;
    const NAME: &'static str = "test/sum";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "A sum of squares.";
    const HAS_PARTS: bool = true;
    const PORTS: Ports = Ports {
        inputs: &[],
        outputs: OUTPUT,
    };

    fn run(&self, config: &SumConfig, context: &Context) -> Result<Outputs, StageError> {
        if let Some(parts) = &context.parts {
            parts.run((0..config.parts).map(Value::from).collect())?;
            context.log(format!("{} parts elsewhere", config.parts));
        }
        let squares: Result<Vec<u64>, StageError> =
            (0..config.parts).map(|n| Self::square(context, n)).collect();
        outputs(context, &squares?.iter().sum::<u64>().to_string())
    }

    fn run_part(&self, _: &SumConfig, context: &Context, part: Value) -> Result<(), StageError> {
        Self::square(context, part.as_u64().unwrap()).map(drop)
    }
}

/// Settings of misbehaviour.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct MisbehaveConfig {
    /// The act.
    act: String,
}

/// A stage that does not do what it should.
struct Misbehave;

impl StageKind for Misbehave {
    type Config = MisbehaveConfig;
    const NAME: &'static str = "test/misbehave";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "What a stage should not do.";
    const PORTS: Ports = Ports {
        inputs: &[],
        outputs: OUTPUT,
    };

    fn run(&self, config: &MisbehaveConfig, context: &Context) -> Result<Outputs, StageError> {
        let sleep = || std::thread::sleep(Duration::from_millis(20));
        match config.act.as_str() {
            "panic" => panic!("no such row"),
            "abort" => std::process::abort(),
            "exit" => std::process::exit(7),
            "killed" => {
                let pid = std::process::id().to_string();
                let _ = std::process::Command::new("kill").args(["-9", &pid]).status();
                loop {
                    sleep();
                }
            }
            "fail" => return Err(StageError::new("row 3 is not a number").hint("mend it")),
            "no output" => return Ok(Outputs::new()),
            "print" => {
                use std::io::Write as _;
                let _ = std::io::stdout().write_all(b"this is not a message\n");
            }
            "say" => {
                context.log("first line");
                context.metric("losses/loss", 3, f64::NAN);
                context.progress(1, Some(2), "half of it");
                context.warn("it is late", Some("begin earlier"));
            }
            "obey" => loop {
                context.check_cancelled()?;
                sleep();
            },
            "ignore" => loop {
                sleep();
            },
            _ => {}
        }
        let threads = rayon::current_num_threads();
        outputs(context, &format!("{threads} of {} threads", context.threads))
    }
}
