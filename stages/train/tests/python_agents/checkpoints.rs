//! Checkpoints of functions: what is saved comes back, rungs, requests to stop and cancellation.

use super::{EVOLUTION, Lab, children, classic, find};
use serde_json::{Value, json};
use stages_core::CancelToken;
use std::fs;
use std::sync::Arc;

/// A function that is interrupted, and asserts that what comes back is what it saved.
const RESUMED: &str = "\
import os, random
import numpy as np
from runner.trained import Weights

def state_of(i):
    return {
        'step': i, 7: [1, 2.5, None, True, 'ä', b'raw'], 'nested': {'t': (1, (2, 3)), 'big': 2**120, 'nan': float('nan'), 'inf': -float('inf')},
        'f2': np.arange(6, dtype='f2').reshape(2, 3), 'empty': np.zeros((0, 3)), 'zero': np.float64(0.1), 'scalar': np.array(3),
        'bools': np.array([True, False]), 'text': np.array(['ab', 'c']), 'times': np.array(['2020-01-01'], 'M8[D]'),
        'rows': np.array([(1, 2.5)], dtype=[('a', 'i4'), ('b', 'f8', (1,))][:1] + [('c', 'f8')]), 'order': np.arange(3, dtype='>i8'),
        'fortran': np.asfortranarray(np.arange(6).reshape(2, 3)),
    }

def same(a, b):
    assert type(a) is type(b), (a, b)
    if isinstance(a, dict):
        assert list(a) == list(b)
        return all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        return all(map(same, a, b))
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and a.shape == b.shape and b.flags.writeable, (a, b)
        return np.array_equal(a, b)
    assert a == b or a != a, (a, b)
    return True

def train(ctx, env, total_timesteps, stop_at, mark):
    state = ctx.resume()
    if state is None:
        obs, _ = env.reset(seed=ctx.seed)
        total, i = 0.0, 0
    else:
        total, i, obs = state.pop('total'), state['step'], env.observe()
        assert same(state_of(i), state)
        assert ctx.steps == i * env.num_envs
        print('resumed at', i)
    while not ctx.done:
        i += 1
        actions = (np.random.random(env.num_envs) < 0.5 + 0.1 * random.random() * np.sign(obs[:, 2])).astype(int)
        obs, reward, *_ = env.step(actions)
        total += float(obs.sum())
        ctx.log('losses/total', total)
        ctx.checkpoint({**state_of(i), 'total': total})
        if i == stop_at and not os.path.exists(mark):
            open(mark, 'w').close()
            raise RuntimeError('stopped')
    tensors = {'action.weight': np.full((4, 2), total), 'action.bias': np.zeros(2), 'value.weight': np.zeros((4, 1)), 'value.bias': np.zeros(1)}
    return Weights(tensors, {'pi': [], 'vf': []})

def endless(ctx, env, total_timesteps):
    ctx.resume()
    env.reset()
    n = 0
    while True:
        env.step(np.zeros(env.num_envs, int))
        n += 1
        ctx.checkpoint({'n': n})

def stubborn(ctx, env, total_timesteps):
    while True:
        pass
";

#[test]
fn a_checkpoint_gives_back_state_environments_random_numbers_and_metrics() {
    let Some(lab) = Lab::new(RESUMED) else { return };
    // The settings are the same in all trainings: a mark on the disk says whether one is stopped.
    let mark = lab.dir.path().join("mark");
    let with = json!({
        "call": "my_agent:train", "checkpoint_interval": 1e-9, "validation": { "every": 1_000 },
        "kwargs": { "stop_at": 50, "mark": mark },
    });
    fs::write(&mark, "").unwrap();
    let whole = lab.train(2_000, with.clone()).unwrap();
    // The checkpoint of the whole training would be its end.
    fs::remove_dir_all(lab.dir.path().join("home/v1/scratch")).ok();
    let scratch: Vec<_> = find(&lab.dir.path().join("home"), "checkpoint.safetensors");
    scratch
        .iter()
        .for_each(|path| fs::remove_dir_all(path.parent().unwrap()).unwrap());
    fs::remove_file(&mark).unwrap();
    let error = lab.train(2_000, with.clone()).unwrap_err();
    assert!(error.message.contains("RuntimeError: stopped"), "{}", error.message);
    let resumed = lab.train(2_000, with.clone()).unwrap();
    assert!(lab.said.text().contains("resumed at 50"), "{}", lab.said.text());
    assert!(
        lab.said.text().contains("resuming from the checkpoint at step 800"),
        "{}",
        lab.said.text()
    );
    assert_eq!(resumed, whole);
    // A damaged file, and then a damaged checkpoint: from the beginning, to the same.
    for name in [".bin", "checkpoint.safetensors"] {
        fs::remove_file(&mark).unwrap();
        for path in find(&lab.dir.path().join("home"), "checkpoint.safetensors") {
            fs::remove_dir_all(path.parent().unwrap()).unwrap();
        }
        lab.train(2_000, with.clone()).unwrap_err();
        for path in find(&lab.dir.path().join("home"), name)
            .iter()
            .filter(|path| !path.starts_with("blobs"))
        {
            let mut bytes = fs::read(path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(path, bytes).unwrap();
        }
        assert_eq!(lab.train(2_000, with.clone()).unwrap(), whole, "{name}");
        assert!(
            lab.said.text().contains("is damaged or of another version"),
            "{}",
            lab.said.text()
        );
    }
}

/// Stopped at `until`, with and without the directory of the checkpoint, it goes on to the bytes of a
/// function that was never stopped.
#[test]
fn a_function_goes_on_from_its_rungs() {
    let rungs = [json!(3_000), json!(9_000), Value::Null];
    let with = |until: &Value| json!({ "until": until, "validation": { "every": 1_500, "episodes": 4 } });
    let Some(alone) = rungs
        .iter()
        .map(|until| Some(Lab::new(EVOLUTION)?.train(20_000, with(until)).unwrap()))
        .collect::<Option<Vec<_>>>()
    else {
        return;
    };
    assert!(alone[0] != alone[1] && alone[1] != alone[2]);
    for keeps_scratch in [true, false] {
        let lab = Lab::new(EVOLUTION).unwrap();
        for (i, (until, wanted)) in rungs.iter().zip(&alone).enumerate() {
            assert_eq!(lab.train(20_000, with(until)).unwrap(), *wanted, "{until}");
            assert_eq!(lab.said.text().matches("resuming from the checkpoint").count(), i);
            if !keeps_scratch {
                fs::remove_dir_all(lab.dir.path().join("home/scratch")).unwrap();
            }
        }
        // The checkpoint of the longer one is past the end of the shorter one.
        assert_eq!(lab.train(20_000, with(&rungs[0])).unwrap(), alone[0]);
    }
}

const DEAF: &str = "\
import numpy as np
from runner.trained import Weights

def train(ctx, env, total_timesteps):
    env.reset()
    while ctx.steps < total_timesteps:
        env.step(np.zeros(env.num_envs, int))
    tensors = {'action.weight': np.zeros((4, 2)), 'action.bias': np.zeros(2), 'value.weight': np.zeros((4, 1)), 'value.bias': np.zeros(1)}
    return Weights(tensors, {'pi': [], 'vf': []})
";

#[test]
fn a_function_that_does_not_stop_is_told_so() {
    let Some(lab) = Lab::new(DEAF) else { return };
    lab.train(1_600, json!({ "until": 800 })).unwrap();
    let text = lab.said.text();
    assert!(
        text.contains("the function trained for 1600 steps, and `until` is 800"),
        "{text}"
    );
}

#[test]
fn a_cancelled_training_leaves_its_checkpoint() {
    let Some(lab) = Lab::new(RESUMED) else { return };
    let began = std::time::Instant::now();
    for (call, steps) in [("endless", true), ("stubborn", false)] {
        let mut lab = Lab {
            cancel: CancelToken::default(),
            dir: tempfile::tempdir().unwrap(),
            said: Arc::default(),
            ..Lab::new(RESUMED).unwrap()
        };
        fs::write(lab.dir.path().join("my_agent.py"), RESUMED).unwrap();
        lab.env = classic(&lab.context(), "CartPole-v1");
        let cancel = lab.cancel.clone();
        std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_secs(2));
            cancel.cancel();
        });
        let error = lab
            .train(u64::MAX, json!({ "call": format!("my_agent:{call}") }))
            .unwrap_err();
        assert_eq!(error.cause, stages_core::error::Cause::Interrupted, "{}", error.message);
        let written = find(&lab.dir.path().join("home"), "checkpoint.safetensors");
        assert_eq!(written.len(), usize::from(steps), "{call}");
        assert_eq!(children(lab.dir.path()), Vec::<String>::new());
    }
    assert!(began.elapsed().as_secs() < 15);
    drop(lab);
}
