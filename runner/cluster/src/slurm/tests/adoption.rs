//! The remains of a run that was killed.

use super::super::files::{self, NewJob};
use super::*;
use runner_engine::executor::{Done, Executor as _, Message, beside};
use stages_core::StageError;
use std::process::Command;

/// The files of a job that a killed run has written.
fn leave(home: &Home, batch: &str, job: &Job) -> (std::path::PathBuf, String) {
    let dir = home.store.root().join("jobs").join(batch);
    let mut old = job.clone();
    // Another run's log is elsewhere.
    old.log = "/another/run".into();
    let json = serde_json::to_vec(&old).unwrap();
    let new = NewJob {
        key: job.key,
        fresh: job.fresh,
        json: &json,
    };
    let members = files::write(&dir, &[vec![new]], "/bin/true".as_ref()).unwrap();
    (dir, members[0].file.clone())
}

/// Submits it, as the killed run did.
fn submit(slurm: &Simulation, dir: &std::path::Path) -> u64 {
    let name = dir.file_name().unwrap().to_str().unwrap();
    let output = Command::new(slurm.programs().join("sbatch"))
        .args(["--array=0-0", &format!("--comment=runner:{name}")])
        .arg(dir.join("script"))
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

fn result(dir: &std::path::Path, file: &str, message: &Message) {
    std::fs::write(beside(&dir.join(file), "result"), message.to_line()).unwrap();
}

/// Runs the job, and returns its job id, what was told, and the number of submissions in all.
fn run(home: &Home, slurm: &Simulation, job: &Job) -> (String, String, usize) {
    let executor = home.executor(slurm, &settings());
    let events = Arc::new(Events::default());
    let sink: Arc<dyn EventSink> = events.clone();
    let done = executor.run(job, &sink, &limits()).unwrap();
    assert_eq!(done.outputs["x"], home.output);
    (done.place.unwrap().job, events.text(), slurm.submissions().len())
}

fn world(longest: u64) -> World {
    World {
        slots: 10,
        longest: Duration::from_millis(longest),
        faults: 0.0,
        age: Duration::from_secs(60),
    }
}

#[test]
fn a_result_is_collected() {
    let home = Home::new();
    let slurm = home.slurm(world(50));
    let job = home.job("a");
    let (dir, file) = leave(&home, "0001-1-1", &job);
    let mut done = Done {
        outputs: [("x".to_owned(), home.output)].into(),
        ..Done::default()
    };
    result(&dir, &file, &Message::Done(done.clone()));
    std::fs::write(dir.join("submitted"), "17\n").unwrap();
    let (id, told, submissions) = run(&home, &slurm, &job);
    assert_eq!((id.as_str(), submissions), ("17_0", 0), "{told}");
    // Not for a job that computes from scratch.
    let fresh = Job {
        fresh: true,
        ..job.clone()
    };
    let (id, _, submissions) = run(&home, &slurm, &fresh);
    assert_eq!((id.as_str(), submissions), ("1_0", 1));
    // Nor where its outputs are gone.
    let job = home.job("b");
    let (dir, file) = leave(&home, "0002-1-1", &job);
    done.outputs.insert("x".to_owned(), "ab".repeat(32).parse().unwrap());
    result(&dir, &file, &Message::Done(done));
    assert_eq!(run(&home, &slurm, &job).2, 2);
    // Nor a failure.
    let job = home.job("c");
    let (dir, file) = leave(&home, "0003-1-1", &job);
    result(&dir, &file, &Message::Failed(StageError::new("failed")));
    assert_eq!(run(&home, &slurm, &job).2, 3);
}

#[test]
fn a_job_in_the_queue_is_followed() {
    let home = Home::new();
    let slurm = home.slurm(world(1000));
    for (name, writes_id) in [("by its id", true), ("by its comment", false)] {
        let job = home.job(name);
        let (dir, _) = leave(&home, &format!("0001-{}", name.len()), &job);
        let before = slurm.submissions().len();
        let array = submit(&slurm, &dir);
        if writes_id {
            std::fs::write(dir.join("submitted"), format!("{array}\n")).unwrap();
        }
        let (id, told, submissions) = run(&home, &slurm, &job);
        assert_eq!((id, submissions), (format!("{array}_0"), before + 1), "{told}");
        assert!(told.contains("follows job") && told.contains("loss"), "{told}");
    }
}

#[test]
fn a_job_that_never_reached_the_queue_is_submitted_and_its_late_twin_cancelled() {
    let home = Home::new();
    let slurm = home.slurm(world(1500));
    let job = home.job("a");
    let (dir, _) = leave(&home, "0001-1-1", &job);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&home, &slurm, &job));
        while slurm.submissions().is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        // The `sbatch` of the killed run has outlived it.
        let late = submit(&slurm, &dir);
        let (id, told, _) = running.join().unwrap();
        assert_eq!(id, "1_0", "{told}");
        assert!(
            slurm.cancellations().contains(&vec![late.to_string()]),
            "{:?}",
            slurm.cancellations()
        );
    });
    assert_eq!(slurm.in_queue(), 0);
}
