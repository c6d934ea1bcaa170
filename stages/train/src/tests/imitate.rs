//! Imitation: its objective against finite differences, and students of every network that do as their
//! teachers do.

use super::learning::evaluate;
use super::*;
use crate::imitate::algorithm::{Divergence, KL, VALUE};
use crate::{Imitate, ImitateConfig, Ppo, RecurrentPpo};
use stages_core::StageError;
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::random::Random;
use stages_policy::categorical::Softmax;
use stages_policy::{Objective as _, PolicyOutputs, Sums};

/// Trains a teacher and connects it.
fn teach<S: StageKind>(stage: S, config: &S::Config, context: &mut Context) -> Vec<u8> {
    let digest = stage.run(config, context).unwrap()["policy"];
    let artifact = context.store.artifact(digest).unwrap();
    let blob = artifact.entry("policy.safetensors").unwrap().blob;
    context
        .inputs
        .insert("teacher".to_owned(), vec![Input { digest, artifact }]);
    context.store.blob(blob).unwrap().to_vec()
}

fn config(settings: serde_json::Value) -> ImitateConfig {
    let mut all = json!({
        "total_timesteps": 8192, "n_envs": 8, "n_steps": 64, "batch_size": 128, "learning_rate": 3e-3,
        "checkpoint_interval": 1e-9,
    });
    for (field, value) in settings.as_object().unwrap() {
        all[field] = value.clone();
    }
    serde_json::from_value(all).unwrap()
}

/// The values of a metric, first to last.
fn curve(metrics: &[u8], name: &str) -> Vec<f64> {
    let lines = std::str::from_utf8(metrics).unwrap().lines();
    let lines = lines.map(|line| serde_json::from_str::<crate::metrics::Line>(line).unwrap());
    lines.filter(|line| line.name == name).map(|line| line.value).collect()
}

#[test]
fn a_clone_balances_the_pole_as_its_teacher_does() {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "CartPole-v1");
    let teacher = teach(Ppo, &cart_pole(40_000, 1), &mut context);
    let wanted = evaluate(&teacher, &context);
    assert!(wanted > 200.0, "the teacher is worth imitating: {wanted}");
    for teacher_share in [json!(1.0), json!({ "linear": [1.0, 0.0] })] {
        let (student, metrics) =
            outputs(Imitate, &config(json!({ "teacher_share": teacher_share })), &context);
        let found = evaluate(&student, &context);
        assert!(found > 0.9 * wanted, "{teacher_share}: {found}, the teacher {wanted}");
        let kl = curve(&metrics, "losses/kl");
        assert!(kl[kl.len() - 1] < 0.03 && kl[kl.len() - 1] < 0.25 * kl[0], "{kl:?}");
    }
    // One that learns nothing does not: the test can fail.
    let (blind, _) = outputs(Imitate, &config(json!({ "learning_rate": 0.0 })), &context);
    let blind = evaluate(&blind, &context);
    assert!(blind < 0.5 * wanted, "{blind}, the teacher {wanted}");
}

#[test]
fn students_with_a_memory_imitate_teachers_with_one() {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "CartPole-hidden-velocity");
    teach(RecurrentPpo, &hidden_velocity(16_384, 1), &mut context);
    let last = |policy_kwargs: serde_json::Value| {
        let config = config(json!({ "policy_kwargs": policy_kwargs, "total_timesteps": 12_288 }));
        let (_, metrics) = outputs(Imitate, &config, &context);
        let kl = curve(&metrics, "losses/kl");
        let n = kl.len() / 4;
        kl[kl.len() - n..].iter().sum::<f64>() / n as f64
    };
    let net_arch = json!({ "pi": [32], "vf": [32] });
    let lstm = last(json!({ "lstm": { "lstm_hidden_size": 32, "net_arch": net_arch } }));
    let transformer = last(json!({
        "transformer": { "window": 8, "d_model": 32, "n_heads": 2, "n_layers": 1, "d_ff": 32,
            "net_arch": net_arch }
    }));
    let blind = last(json!({ "mlp": { "net_arch": net_arch } }));
    assert!(
        lstm < 0.7 * blind && transformer < 0.7 * blind,
        "{lstm} {transformer} {blind}"
    );
}

#[test]
fn continuous_actions_are_imitated() {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "Pendulum-v1");
    let teacher: PpoConfig = serde_json::from_value(json!({
        "total_timesteps": 8192, "n_envs": 4, "n_steps": 512, "learning_rate": 1e-3, "normalize_obs": true,
    }))
    .unwrap();
    teach(Ppo, &teacher, &mut context);
    let (_, metrics) = outputs(Imitate, &config(json!({ "total_timesteps": 16_384 })), &context);
    let kl = curve(&metrics, "losses/kl");
    assert!(kl[kl.len() - 1] < 0.05 * kl[0], "{kl:?}");
}

#[test]
fn stopped_and_run_again_ends_in_the_same_bytes() {
    let home = tempfile::tempdir().unwrap();
    let mut whole = context(home.path());
    connect(&mut whole, "CartPole-hidden-velocity");
    teach(RecurrentPpo, &hidden_velocity(512, 1), &mut whole);
    let teacher = whole.inputs["teacher"].clone();
    let config = |total: u64| {
        config(json!({
            "total_timesteps": total, "teacher_share": 0.5, "n_steps": 32, "batch_size": 96, "n_epochs": 2,
            "policy_kwargs": { "lstm": { "lstm_hidden_size": 8, "net_arch": { "pi": [8], "vf": [8] } } },
        }))
    };
    let wanted = outputs(Imitate, &config(4096), &whole);

    // A shorter training, and one that is stopped at every event but goes on from its checkpoint.
    let folder = whole.store.root().join("scratch");
    std::fs::remove_dir_all(&folder).unwrap();
    outputs(Imitate, &config(1024), &whole);
    assert_eq!(outputs(Imitate, &config(4096), &whole), wanted);
    std::fs::remove_dir_all(&folder).unwrap();
    let mut stops = 0;
    for left in (5..).step_by(7) {
        let cancel = CancelToken::default();
        let fuse = resume::Fuse::new(left, &cancel);
        let mut stopped = context_with(home.path(), Arc::new(fuse), cancel);
        stopped.inputs = whole.inputs.clone();
        if Imitate.run(&config(4096), &stopped).is_ok() {
            break;
        }
        stops += 1;
    }
    assert!(stops > 2, "{stops}");
    assert_eq!(outputs(Imitate, &config(4096), &whole), wanted);

    // The teacher is part of what a checkpoint depends on.
    assert_eq!(teacher.len(), 1);
    let share = |context: &Context| {
        Imitate
            .cached_share(&config(4096), &context.given())
            .unwrap()
            .unwrap()
            .to_string()
    };
    assert_eq!(share(&whole), "4096 of 4096 steps");
    teach(RecurrentPpo, &hidden_velocity(512, 2), &mut whole);
    assert_eq!(share(&whole), "0 of 4096 steps");
}

#[test]
fn a_teacher_that_does_not_fit_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "CartPole-v1");
    let run = |context: &Context| -> StageError { Imitate.run(&config(json!({})), context).unwrap_err() };
    assert!(run(&context).message.contains("teacher"));
    teach(Ppo, &cart_pole(256, 1), &mut context);
    connect(&mut context, "Pendulum-v1");
    let refused = run(&context);
    assert!(
        refused.message.contains("`CartPole-v1`") && refused.message.contains("`Pendulum-v1`"),
        "{refused}"
    );
}

#[test]
fn the_objective_matches_finite_differences() {
    let (n, a) = (21, 4);
    let random = &mut Random::new(&[3]);
    let mut floats = |len: usize| (0..len).map(|_| random.normal() as f32).collect::<Vec<_>>();
    let (logits, mean, value) = (floats(n * a), floats(n * a), floats(n));
    let (log_std, teacher_log_std, teacher_mean) = (floats(a), floats(a), floats(n * a));
    let teacher_value = floats(n);
    let samples: Vec<u32> = (0..n as u32).rev().collect();
    let mask: Vec<bool> = (0..n * a)
        .map(|i| i % a == i / a % a || random.uniform() < 0.6)
        .collect();
    let mut labels: Vec<f32> = mask
        .iter()
        .map(|&allowed| if allowed { random.uniform() as f32 } else { 0.0 })
        .collect();
    for row in labels.chunks_exact_mut(a) {
        let sum: f32 = row.iter().sum();
        row.iter_mut().for_each(|p| *p /= sum);
    }
    let wide = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    let weight = 1.0 / n as f32;
    let discrete = Divergence {
        mask: &mask,
        labels: &labels,
        log_std: &[],
        value: &teacher_value,
        weight,
        vf_coef: 0.5,
    };
    // From the definitions, in double precision; row k of the outputs is sample `samples[k]`.
    let categorical = |logits: &[f64]| {
        let mut sum = 0.0;
        for (row, &i) in logits.chunks_exact(a).zip(&samples) {
            let at = i as usize * a;
            let normaliser: f64 = (0..a).filter(|&j| mask[at + j]).map(|j| libm::exp(row[j])).sum();
            for j in (0..a).filter(|&j| labels[at + j] > 0.0) {
                let p = f64::from(labels[at + j]);
                sum += p * (libm::log(p) - row[j] + libm::log(normaliser));
            }
        }
        sum / n as f64
    };
    let gaussian = |outputs: &[f64]| {
        let (mean, log_std) = outputs.split_at(n * a);
        let mut sum = 0.0;
        for (row, &i) in mean.chunks_exact(a).zip(&samples) {
            for j in 0..a {
                let (t, s) = (f64::from(teacher_log_std[j]), log_std[j]);
                let distance = row[j] - f64::from(teacher_mean[i as usize * a + j]);
                sum += s - t + (libm::exp(2.0 * t) + distance * distance) / (2.0 * libm::exp(2.0 * s)) - 0.5;
            }
        }
        sum / n as f64
    };
    let squares = |value: &[f64]| {
        let errors = value
            .iter()
            .zip(&samples)
            .map(|(v, &i)| v - f64::from(teacher_value[i as usize]));
        0.5 * errors.map(|error| error * error).sum::<f64>() / n as f64
    };
    for instructions in InstructionSet::available() {
        let near = |found: &[f32], sum: f64, at: &[f32], loss: &dyn Fn(&[f64]) -> f64| {
            let at = wide(at);
            let exact = loss(&at);
            assert!(
                (sum / n as f64 - exact).abs() < 1e-5 * exact.abs().max(1.0),
                "{sum} {exact}"
            );
            for (k, &found) in found.iter().enumerate() {
                let moved = |step: f64| {
                    let mut at = at.clone();
                    at[k] += step;
                    loss(&at)
                };
                let exact = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!(
                    (f64::from(found) - exact).abs() < 1e-5 * exact.abs().max(1.0),
                    "{instructions:?} {k}: {found} {exact}"
                );
            }
        };
        let (mut found, mut sums) = (logits.clone(), Sums::default());
        let outputs = PolicyOutputs::Discrete {
            logits: &mut found,
            choices: &[a as u32],
            softmax: &mut Softmax::default(),
        };
        discrete.policy(instructions, &samples, outputs, &mut sums);
        near(&found, sums[KL], &logits, &categorical);

        let continuous = Divergence {
            labels: &teacher_mean,
            log_std: &teacher_log_std,
            ..discrete
        };
        let (mut found, mut grad_log_std, mut sums) = (mean.clone(), vec![0.0; a], Sums::default());
        let outputs = PolicyOutputs::Continuous {
            mean: &mut found,
            log_std: &log_std,
            grad_log_std: &mut grad_log_std,
        };
        continuous.policy(instructions, &samples, outputs, &mut sums);
        found.extend_from_slice(&grad_log_std);
        near(&found, sums[KL], &[mean.as_slice(), &log_std].concat(), &gaussian);

        let (mut found, mut sums) = (value.clone(), Sums::default());
        discrete.value(instructions, &samples, &mut found, &mut sums);
        near(&found, 0.5 * sums[VALUE], &value, &squares);
    }
}
