//! Failing devices and the selection of a device. No test needs a GPU: a model of candle takes its place.

use super::*;
use crate::settings::DeviceChoice;
use crate::trainer::{Job, train};
use crate::{Ppo, device};
use stages_core::StageEvent;
use stages_policy::{
    Architecture, CandleModel, Device, Minibatch, Model, Objective, Observed, Output, Precision, Sums, model,
};
use std::sync::Mutex;

#[derive(Default)]
pub(super) struct Lines(pub Mutex<Vec<String>>);

impl EventSink for Lines {
    fn emit(&self, event: StageEvent) {
        if let StageEvent::Log { line } = event {
            self.0.lock().unwrap().push(line);
        }
    }
}

/// Runs out of memory after this many gradients.
struct Failing(CandleModel, usize);

impl Model for Failing {
    fn architecture(&self) -> &Architecture {
        self.0.architecture()
    }
    fn load(&mut self, params: &[f32]) {
        self.0.load(params);
    }
    fn forward(&mut self, input: &Observed, state: &mut [f32], out: &mut Output) {
        self.0.forward(input, state, out);
    }
    fn backward(&mut self, minibatch: &Minibatch, objective: &dyn Objective, gradient: &mut [f32]) -> Sums {
        self.1 = self.1.saturating_sub(1);
        self.0.backward(minibatch, objective, gradient)
    }
    fn fault(&self) -> Option<&str> {
        (self.1 == 0).then_some("out of memory")
    }
}

#[test]
fn a_failing_device_is_skipped() {
    let home = tempfile::tempdir().unwrap();
    let lines = Arc::new(Lines::default());
    let mut context = context_with(home.path(), lines.clone(), CancelToken::default());
    connect(&mut context, "CartPole-v1");
    let config = cart_pole(4096, 1);
    let settings = config.settings().unwrap();
    let spec = open(&settings, &context).spec().clone();
    let architecture = settings.common.network.architecture(&spec).unwrap();
    let failing = || Box::new(Failing(CandleModel::new(&architecture), 1)) as Box<dyn Model>;
    let available = vec![
        (Device::Cuda, failing()),
        (Device::Cpu, model(&architecture, Precision::F32)),
    ];
    let (chosen, _) =
        device::fastest(&|| Ok(Box::new(Algorithm::new(&settings))), &spec, available, &context).unwrap();
    assert_eq!(chosen, Device::Cpu);
    let log = std::mem::take(&mut *lines.0.lock().unwrap());
    assert_eq!(log[0], "device: cuda is skipped: out of memory");
    assert!(log[1].starts_with("device: cpu would train at "), "{log:?}");
    assert_eq!(log[2], "device: cpu is selected");
    assert!(
        device::fastest(
            &|| Ok(Box::new(Algorithm::new(&settings))),
            &spec,
            vec![(Device::Cuda, failing())],
            &context
        )
        .is_err()
    );
}

#[test]
fn a_device_that_fails_in_training_is_named_and_leaves_the_checkpoint() {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "CartPole-v1");
    let mut config = cart_pole(4096, 1);
    config.training.checkpoint_interval = 1e-9;
    let settings = config.settings().unwrap();
    let env = open(&settings, &context);
    let architecture = settings.common.network.architecture(env.spec()).unwrap();
    let scratch = home.path().join("here");
    std::fs::create_dir(&scratch).unwrap();
    let job = Job {
        stored: None,
        validation: None,
        continuation: None,
        kind: "test",
        env,
        // An update has 20 minibatches: the third one fails.
        model: Box::new(Failing(CandleModel::new(&architecture), 50)),
        init: None,
        scratch: &scratch,
        context: &context,
    };
    let err = train(&mut Algorithm::new(&settings), job).unwrap_err();
    assert_eq!(err.message, "the device failed at step 512 (update 3): out of memory");
    assert_eq!(saved(&scratch).step, 512);
}

#[test]
fn a_device_that_is_asked_for_and_not_there_is_refused() {
    for (choice, device) in [(DeviceChoice::Cuda, Device::Cuda), (DeviceChoice::Metal, Device::Metal)] {
        if device.open().is_ok() {
            continue;
        }
        let home = tempfile::tempdir().unwrap();
        let mut context = context(home.path());
        connect(&mut context, "CartPole-v1");
        let mut config = cart_pole(4096, 1);
        config.training.device = choice;
        let err = Ppo.run(&config, &context).unwrap_err();
        assert!(
            err.message.starts_with(&format!("`device: {device}` cannot be used: ")),
            "{err}"
        );
        assert!(checkpoints(home.path()).is_empty());
    }
}

/// The result of the CPU does not depend on how it was chosen, and names no class but its own.
#[test]
fn the_cpu_chosen_or_named_gives_the_same_bytes() {
    let run = |choice| {
        let home = tempfile::tempdir().unwrap();
        let mut context = context(home.path());
        connect(&mut context, "CartPole-v1");
        let mut config = cart_pole(512, 1);
        config.training.device = choice;
        let bytes = outputs(Ppo, &config, &context);
        (bytes, context.numerics_class.get().cloned())
    };
    let named = run(DeviceChoice::Cpu);
    assert_eq!(named.1, None);
    let chosen = run(DeviceChoice::Auto);
    if chosen.1.is_none() {
        assert_eq!(named, chosen);
    }
}
