use super::*;
use crate::{Ppo, RecurrentPpo};
use stages_core::{StageEvent, error::Cause};
use stages_numerics::random::Random;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

/// A small recurrent training with everything that has state: normalisation, separate critic, several
/// minibatches.
fn small(total_timesteps: u64) -> RecurrentPpoConfig {
    let mut config = hidden_velocity(total_timesteps, 5);
    config.training.learning_rate = stages_core::Schedule::Constant(1e-3);
    config.ppo.clip_range = stages_core::Schedule::Constant(0.2);
    config.rollouts.batch_size = 96;
    config.rollouts.n_epochs = 3;
    config.policy_kwargs.lstm_hidden_size = 16;
    config.training.checkpoint_interval = 1e-9;
    config
}

#[test]
fn same_bytes_for_any_number_of_threads() {
    let mut config = small(8192);
    config.training.n_envs = 64;
    config.rollouts.batch_size = 2048;
    config.policy_kwargs.lstm_hidden_size = 48;
    let run = |threads: usize| {
        let home = tempfile::tempdir().unwrap();
        let mut context = context(home.path());
        connect(&mut context, "CartPole-hidden-velocity");
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| outputs(RecurrentPpo, &config, &context))
    };
    let one = run(1);
    assert_eq!(one, run(2));
    assert_eq!(one, run(3));
}

/// Several layers of LSTM go another way than one.
#[test]
fn two_layers_give_the_same_bytes_for_any_number_of_threads_and_after_a_stop() {
    let config = |total: u64| {
        let mut config = small(total);
        (config.training.n_envs, config.rollouts.batch_size) = (16, 256);
        config.policy_kwargs.n_lstm_layers = 2;
        config
    };
    let run = |threads: usize, totals: &[u64]| {
        let home = tempfile::tempdir().unwrap();
        let mut context = context(home.path());
        connect(&mut context, "CartPole-hidden-velocity");
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let train = |&total: &u64| pool.install(|| outputs(RecurrentPpo, &config(total), &context));
        totals.iter().map(train).fold(None, |_, last| Some(last))
    };
    let one = run(1, &[2048]);
    assert!(one == run(2, &[2048]));
    assert!(one == run(3, &[1024, 2048]));
}

/// Asks to stop after a number of events.
pub(super) struct Fuse {
    left: AtomicI64,
    cancel: CancelToken,
}

impl Fuse {
    pub(super) fn new(left: i64, cancel: &CancelToken) -> Self {
        Self {
            left: AtomicI64::new(left),
            cancel: cancel.clone(),
        }
    }
}

impl EventSink for Fuse {
    fn emit(&self, _: StageEvent) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 0 {
            self.cancel.cancel();
        }
    }
}

/// Asks to stop after a time.
fn stop_after(cancel: &CancelToken, micros: u64) -> std::thread::JoinHandle<()> {
    let cancel = cancel.clone();
    std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_micros(micros));
        cancel.cancel();
    })
}

#[test]
fn stopped_anywhere_and_run_again_ends_in_the_same_bytes() {
    let config = small(4096);
    let home = tempfile::tempdir().unwrap();
    let mut undisturbed = context(home.path());
    connect(&mut undisturbed, "CartPole-hidden-velocity");
    let wanted = outputs(RecurrentPpo, &config, &undisturbed);

    let mut random = Random::new(&[3]);
    for round in 0..3 {
        let home = tempfile::tempdir().unwrap();
        let mut stops = 0;
        loop {
            let cancel = CancelToken::default();
            let fuse = Fuse::new(5 + random.below(150) as i64, &cancel);
            let mut context = context_with(home.path(), Arc::new(fuse), cancel.clone());
            connect(&mut context, "CartPole-hidden-velocity");
            let timer = (round > 0).then(|| stop_after(&cancel, 2_000 + random.below(60_000)));
            let result = RecurrentPpo.run(&config, &context);
            if let Some(timer) = timer {
                timer.join().unwrap();
            }
            match result {
                Ok(_) => break,
                Err(err) => assert_eq!(err.cause, Cause::Interrupted, "{err}"),
            }
            stops += 1;
            assert!(stops < 10_000, "no progress between stops");
        }
        let mut context = context(home.path());
        connect(&mut context, "CartPole-hidden-velocity");
        assert_eq!(
            outputs(RecurrentPpo, &config, &context),
            wanted,
            "round {round}, {stops} stops"
        );
    }
}

/// Before the first snapshot is due, the checkpoint that a stop leaves is the start of training.
#[test]
fn stopped_at_once_and_run_again_ends_in_the_same_bytes() {
    let mut config = small(1024);
    config.training.checkpoint_interval = RecurrentPpoConfig::default().training.checkpoint_interval;
    let home = tempfile::tempdir().unwrap();
    let mut undisturbed = context(home.path());
    connect(&mut undisturbed, "CartPole-hidden-velocity");
    let wanted = outputs(RecurrentPpo, &config, &undisturbed);

    let home = tempfile::tempdir().unwrap();
    let cancel = CancelToken::default();
    let mut stopped = context_with(home.path(), Arc::new(Fuse::new(0, &cancel)), cancel.clone());
    connect(&mut stopped, "CartPole-hidden-velocity");
    cancel.cancel();
    assert_eq!(
        RecurrentPpo.run(&config, &stopped).unwrap_err().cause,
        Cause::Interrupted
    );
    assert!(checkpoint(home.path()).exists());
    let mut again = context(home.path());
    connect(&mut again, "CartPole-hidden-velocity");
    assert_eq!(outputs(RecurrentPpo, &config, &again), wanted);
}

/// Takes away a copy of the checkpoint now and then, as a kill at that instant would leave it.
struct Thief {
    home: PathBuf,
    copies: Mutex<Vec<Vec<u8>>>,
}

impl EventSink for Thief {
    fn emit(&self, event: StageEvent) {
        if !matches!(event, StageEvent::Metric { name, .. } if name == "charts/SPS") {
            return;
        }
        let mut copies = self.copies.lock().unwrap();
        // The one offered at the start of this update is mostly still being written.
        for _ in 0..20 {
            let file = checkpoints(&self.home)
                .into_iter()
                .find(|file| file.ends_with("checkpoint.safetensors"));
            if let Some(bytes) = file.map(|file| std::fs::read(file).unwrap())
                && copies.last() != Some(&bytes)
            {
                copies.push(bytes);
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

#[test]
fn goes_on_from_what_a_kill_leaves() {
    let config = small(4096);
    let home = tempfile::tempdir().unwrap();
    let thief = Arc::new(Thief {
        home: home.path().to_owned(),
        copies: Mutex::default(),
    });
    let mut watched = context_with(home.path(), thief.clone(), CancelToken::default());
    connect(&mut watched, "CartPole-hidden-velocity");
    let wanted = outputs(RecurrentPpo, &config, &watched);
    let copies = std::mem::take(&mut *thief.copies.lock().unwrap());
    assert!(copies.len() > 2, "{}", copies.len());

    let log = Arc::new(Log::default());
    let mut context = context_with(home.path(), log.clone(), CancelToken::default());
    connect(&mut context, "CartPole-hidden-velocity");
    let file = checkpoint(home.path());
    for copy in &copies {
        std::fs::write(&file, copy).unwrap();
        assert_eq!(outputs(RecurrentPpo, &config, &context), wanted);
    }
    let steps: Vec<String> = log.0.lock().unwrap().clone();
    assert_eq!(steps.len(), copies.len(), "{steps:?}");
    assert!(
        steps
            .iter()
            .all(|line| line.starts_with("resuming from the checkpoint at step")),
        "{steps:?}"
    );
}

/// Keeps log lines.
#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl EventSink for Log {
    fn emit(&self, event: StageEvent) {
        if let StageEvent::Log { line } = event {
            self.0.lock().unwrap().push(line);
        }
    }
}

#[test]
fn a_longer_training_goes_on_from_the_shorter_one() {
    let fresh = tempfile::tempdir().unwrap();
    let mut whole = context(fresh.path());
    connect(&mut whole, "CartPole-hidden-velocity");
    let wanted = outputs(RecurrentPpo, &small(3000), &whole);

    let home = tempfile::tempdir().unwrap();
    let log = Arc::new(Log::default());
    let mut context = context_with(home.path(), log.clone(), CancelToken::default());
    connect(&mut context, "CartPole-hidden-velocity");
    outputs(RecurrentPpo, &small(1500), &context);
    assert!(log.0.lock().unwrap().is_empty());
    assert_eq!(outputs(RecurrentPpo, &small(3000), &context), wanted);
    assert_eq!(
        log.0.lock().unwrap().as_slice(),
        ["resuming from the checkpoint at step 1536"]
    );

    // The checkpoint of the longer one is past the end of the shorter one, which starts afresh.
    let shorter = outputs(RecurrentPpo, &small(1500), &context);
    let metrics = String::from_utf8(shorter.1).unwrap();
    assert!(wanted.1.starts_with(metrics.as_bytes()));

    // With a schedule over the whole length, nothing is shared.
    let mut scheduled = small(1500);
    scheduled.training.learning_rate = stages_core::Schedule::Linear(1e-3, 0.0);
    outputs(RecurrentPpo, &scheduled, &context);
    assert_eq!(log.0.lock().unwrap().len(), 1);
}

#[test]
fn a_fresh_training_uses_no_checkpoint() {
    let home = tempfile::tempdir().unwrap();
    let log = Arc::new(Log::default());
    let mut context = context_with(home.path(), log.clone(), CancelToken::default());
    connect(&mut context, "CartPole-hidden-velocity");
    let share = |total: u64, context: &Context| {
        let share = RecurrentPpo.cached_share(&small(total), &context.given()).unwrap();
        share.unwrap().to_string()
    };
    assert_eq!(share(1500, &context), "0 of 1500 steps");
    assert!(checkpoints(home.path()).is_empty(), "a look writes nothing");
    let wanted = outputs(RecurrentPpo, &small(1500), &context);
    assert_eq!(share(1500, &context), "1500 of 1500 steps");
    assert_eq!(share(3000, &context), "1536 of 3000 steps");
    assert_eq!(share(1000, &context), "0 of 1000 steps", "it is past the end");
    context.fresh = true;
    assert_eq!(outputs(RecurrentPpo, &small(1500), &context), wanted);
    assert!(log.0.lock().unwrap().is_empty());
    context.fresh = false;
    assert_eq!(outputs(RecurrentPpo, &small(1500), &context), wanted);
    assert_eq!(log.0.lock().unwrap().len(), 1);
}

/// A bit of a counter in the header would lead to another policy.
#[test]
fn a_damaged_checkpoint_is_not_used_and_a_warning_says_so() {
    let home = tempfile::tempdir().unwrap();
    let log = Arc::new(Log::default());
    let mut context = context_with(home.path(), log.clone(), CancelToken::default());
    connect(&mut context, "CartPole-v1");
    let config = cart_pole(512, 1);
    let wanted = outputs(Ppo, &config, &context);
    let file = checkpoint(home.path());
    let intact = std::fs::read(&file).unwrap();
    let at = |name: &str| {
        let mut places = intact.windows(name.len());
        places.position(|part| part == name.as_bytes()).unwrap() + name.len()
    };
    for place in [
        at("\\\"step\\\":"),
        at("\\\"adam_steps\\\":"),
        intact.len() / 2,
        intact.len() - 1,
    ] {
        let mut bytes = intact.clone();
        bytes[place] ^= 1;
        std::fs::write(&file, bytes).unwrap();
        assert_eq!(crate::checkpoint::step(file.parent().unwrap()), None);
        assert_eq!(outputs(Ppo, &config, &context), wanted);
    }
    let lines = log.0.lock().unwrap();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(
        lines
            .iter()
            .all(|line| line.contains("training starts from the beginning")),
        "{lines:?}"
    );
}
