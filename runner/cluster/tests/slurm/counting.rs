//! A stage that counts, with a checkpoint.

use cache::{ArtifactBuilder, KeyHasher};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use stages_core::{AnyStage, Context, OutputPort, Outputs, PortType, Ports, StageError, StageKind, erase};
use std::sync::LazyLock;
use std::time::Duration;

pub(crate) fn kinds() -> &'static [Box<dyn AnyStage>] {
    static KINDS: LazyLock<Vec<Box<dyn AnyStage>>> = LazyLock::new(|| vec![erase(Count)]);
    &KINDS
}

/// Settings of the count.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CountConfig {
    /// The number of steps, of 50 ms each.
    pub steps: u64,
    /// The act in place of counting.
    pub act: String,
    /// A name.
    pub name: String,
}

struct Count;

impl StageKind for Count {
    type Config = CountConfig;
    const NAME: &'static str = "test/count";
    const VERSION: u32 = 1;
    const ABOUT: &'static str = "A count.";
    const PORTS: Ports = Ports {
        inputs: &[],
        outputs: &[OutputPort::new("x", PortType::File).doc("the output")],
    };

    fn run(&self, config: &CountConfig, context: &Context) -> Result<Outputs, StageError> {
        match config.act.as_str() {
            "fail" => return Err(StageError::new("row 3 is not a number")),
            "memory" => {
                let bytes = vec![1_u8; 500 << 20];
                std::thread::sleep(Duration::from_secs(5));
                context.log(format!("{}", bytes.iter().map(|&byte| u64::from(byte)).sum::<u64>()));
            }
            _ => {}
        }
        let key = KeyHasher::new("test/count")
            .field(config.steps.to_le_bytes())
            .memo_key();
        let checkpoint = context.store.scratch(key)?.join("step");
        let mut step = std::fs::read_to_string(&checkpoint).map_or(0, |text| text.parse().unwrap_or(0));
        if step > 0 {
            context.warn(format!("goes on from step {step}"), None);
        }
        while step < config.steps {
            if context.cancel.is_cancelled() {
                std::fs::write(&checkpoint, step.to_string())
                    .map_err(|err| StageError::new(err.to_string()))?;
                return Err(StageError::interrupted());
            }
            std::thread::sleep(Duration::from_millis(50));
            step += 1;
            context.metric("step", step, step as f64);
        }
        let mut builder =
            ArtifactBuilder::new(&context.store, PortType::File.name(), json!({ "folder": false }));
        builder.bytes("x.txt", step.to_string().as_bytes())?;
        Ok([("x".to_owned(), builder.finish()?)].into())
    }
}
