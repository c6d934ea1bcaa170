use super::*;
use stages_env::ActionSpace;

fn replay(buffer_size: usize, n_envs: usize) -> Replay {
    let settings = ReplaySettings {
        buffer_size,
        learning_starts: 0,
        batch_size: 1,
        tau: 1.0,
        gamma: 0.5,
        train_freq: 1,
        gradient_steps: 1,
        n_steps: 1,
        memory_map_above: u64::MAX,
    };
    let spec = EnvSpec {
        name: "test".to_owned(),
        observation: vec!["x".to_owned()],
        action_space: ActionSpace::discrete(["a", "b"]),
        normalisation: None,
        encoding: stages_env::ActionEncoding::default(),
    };
    Replay::new(&settings, &spec, n_envs, None).unwrap()
}

/// Transition t of environment i has reward 10 t + i; the episode ends so with it.
fn fill(replay: &mut Replay, steps: u64, end: impl Fn(u64, usize) -> u8) {
    for t in 0..steps {
        for i in 0..replay.n_envs {
            let row = (replay.len % replay.capacity as u64) as usize;
            replay.reward[row] = (10 * t) as f32 + i as f32;
            replay.end[row] = end(t, i);
            replay.len += 1;
        }
    }
}

#[test]
fn outcomes_end_with_the_episode_and_with_the_transitions() {
    let mut replay = replay(8, 2);
    // Steps 2 to 5 are left, those of step 4 in row 0.
    fill(&mut replay, 6, |t, i| match (t, i) {
        (3, 0) => TERMINATED,
        (3, 1) => TRUNCATED,
        _ => RUNNING,
    });
    let outcome = |row: usize, n: usize| {
        let Outcome {
            reward,
            discount,
            last,
        } = replay.outcome(row, n, 0.5);
        (reward, discount, last)
    };
    // Step 2 of environment 0, then step 3, which terminates.
    assert_eq!(outcome(4, 1), (20.0, 0.5, 4));
    assert_eq!(outcome(4, 3), (20.0 + 15.0, 0.0, 6));
    // Of environment 1, which is cut off: the value of its last observation counts.
    assert_eq!(outcome(5, 3), (21.0 + 15.5, 0.25, 7));
    // Step 4, in row 0, and step 5, the newest, beyond which lies step 2.
    assert_eq!(outcome(0, 3), (40.0 + 25.0, 0.25, 2));
    assert_eq!(outcome(3, 3), (51.0, 0.5, 3));
    let mut random = Random::new(&[1]);
    let mut indices = [0; 1000];
    replay.sample(&mut random, &mut indices);
    assert!((0..8).all(|row| indices.contains(&row)) && indices.iter().all(|&row| row < 8));
}

#[test]
fn rows_come_back_from_the_journal_and_files_of_old_ones_go() {
    let folder = tempfile::tempdir().unwrap();
    let row = 1 << 20;
    let mut journal = Journal::new(folder.path());
    for first in 0..64_u64 {
        journal
            .append(first, 1, row, |into| into.extend(std::iter::repeat_n(first as u8, row)))
            .unwrap();
        journal.prune(first.saturating_sub(4));
    }
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    assert!(files() <= 5, "{}", files());
    // A checkpoint of the first 60: what follows is cut off.
    let mut read = Vec::new();
    let mut take = |number: u64, bytes: &[u8]| read.push((number, bytes[0], bytes.len()));
    assert!(journal.read(56, 60, row, &mut take).unwrap());
    assert_eq!(read, (56..60).map(|n| (n, n as u8, row)).collect::<Vec<_>>());
    assert!(!journal.read(58, 62, row, |_, _| ()).unwrap());
}
