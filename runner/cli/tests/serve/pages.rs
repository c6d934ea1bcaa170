//! Each page, of runs that have ended.

use crate::Test;
use crate::http::Server;
use runner_history::paper::{Ledger, Opened, StandIn};
use runner_search::record::Line;
use runner_search::study::Outcome;
use runner_testkit::{PipelineText, Project, SEARCH, pipeline, write_search};

pub(crate) const TESTS: &[Test] = &[
    ("every_page_of_a_run", every_page_of_a_run),
    ("runs_are_filtered_and_compared", runs_are_filtered_and_compared),
    ("hostile_texts_are_shown_as_text", hostile_texts_are_shown_as_text),
    ("a_large_run_is_drawn_by_stage", a_large_run_is_drawn_by_stage),
    ("nights_and_policies_are_shown", nights_and_policies_are_shown),
    ("verdicts_and_equity_are_shown", verdicts_and_equity_are_shown),
    ("searches_are_shown_and_followed", searches_are_shown_and_followed),
    ("a_server_runs_nights", a_server_runs_nights),
    (
        "failed_nights_are_listed_and_run_again",
        failed_nights_are_listed_and_run_again,
    ),
    ("paper_accounts_are_shown", paper_accounts_are_shown),
];

pub(crate) const TRAINED: &str = "\
version: 1
name: cartpole
params: { steps: 512 }
stages:
  env: { uses: env/classic, with: { id: CartPole-v1 } }
  train:
    uses: train/ppo
    needs: { env: env }
    matrix: { seed: [1, 2] }
    with: \
{ total_timesteps: '${params.steps}', n_envs: 2, n_steps: 64, batch_size: 32, seed: '${matrix.seed}' }
  test: { uses: evaluate/backtest, needs: { env: env, policy: train }, with: { episodes: 2 } }
";

fn every_page_of_a_run() {
    let project = Project::new(TRAINED);
    assert_eq!(project.exec(&[]).code, 0);
    let server = Server::new(&project, &[]);
    let runs = server.page("/runs");
    assert!(
        runs.contains("cartpole") && runs.contains("<span class=\"pill done\">done</span>"),
        "{runs}"
    );
    let overview = server.page("/");
    assert!(
        overview.contains("Latest results")
            && overview.contains("href=\"/runs/")
            && overview.contains("return"),
        "{overview}"
    );
    // One of two evaluations is said to be one.
    assert!(
        overview.contains("<p>test[seed=1]: ") && overview.contains("<p>and 1 more evaluation</p>"),
        "{overview}"
    );
    let run = server.page("/runs/latest");
    assert!(
        run.contains("class=\"lead\"") && run.contains("/report\">Report"),
        "{run}"
    );
    assert!(
        run.contains("train[seed=1]") && run.contains("<svg class=\"dag\""),
        "{run}"
    );
    assert!(!run.contains("data-live"), "{run}");
    let stage = server.page("/runs/latest/stages/train%5Bseed%3D1%5D");
    assert!(
        stage.contains("Why it ran") && stage.contains("charts/episodic_return"),
        "{stage}"
    );
    assert!(stage.contains("total_timesteps"), "{stage}");
    let artifact = server.page("/runs/latest/stages/train%5Bseed%3D1%5D/outputs/policy");
    assert!(artifact.contains("policy.safetensors"), "{artifact}");
    assert!(
        server.page("/runs/latest/report").contains("Learning")
            || server.page("/runs/latest/report").contains("Training")
    );
    assert!(server.page("/cache").contains("action records"));
    assert!(server.page("/data").contains("Data"));
    assert_eq!(server.get("/runs/latest/stages/trian").status, 404);
    assert!(
        server.get("/runs/latest/stages/trian").body.contains("hint")
            || server.get("/runs/latest/stages/tets").body.contains("test")
    );
    assert_eq!(server.get("/runs/latest/stages/test/outputs/none").status, 404);
}

fn runs_are_filtered_and_compared() {
    let project = Project::new(TRAINED);
    assert_eq!(project.exec(&["--name", "first"]).code, 0);
    assert_eq!(project.exec(&["--set", "steps=256"]).code, 0);
    let server = Server::new(&project, &[]);
    // The address of the list from when it was the first page.
    let moved = server.get("/?where=params.steps+%3D+256");
    assert_eq!(
        (moved.status, moved.header("location")),
        (308, Some("/runs?where=params.steps+%3d+256"))
    );
    let some = server.page("/runs?where=params.steps+%3D+256");
    assert!(some.contains("params.<wbr>steps"), "{some}");
    // A condition is taken away by its chip, and columns and groups are chosen by the address.
    let chosen = server.page("/runs?where=status+%3D+done&show=train.with.n_steps&group=params.steps");
    for part in [
        "href=\"/runs?group=params.steps&amp;show=train.with.n_steps\"><span class=\"hidden\">Remove",
        "train.<wbr>with.<wbr>n_<wbr>steps</a>",
        "256 <span class=\"dim\">params.steps · 1 run",
        "512 <span class=\"dim\">params.steps · 1 run",
    ] {
        assert!(chosen.contains(part), "{part}: {chosen}");
    }
    let (_, spark) = chosen.split_once("src=\"/spark.svg?").unwrap();
    let spark = server.get(&format!(
        "/spark.svg?{}",
        spark.split('"').next().unwrap().replace("&amp;", "&")
    ));
    assert_eq!(spark.header("content-type"), Some("image/svg+xml"));
    assert!(spark.body.contains(" d=\"M") && spark.header("cache-control").unwrap().contains("immutable"));
    let missing = server.get(&format!("/spark.svg?of={}", "0".repeat(64)));
    assert_eq!(
        (missing.status, missing.header("cache-control")),
        (200, Some("no-store"))
    );
    assert_eq!(some.matches(" name=\"run\"").count(), 1, "{some}");
    assert!(server.page("/runs?where=params.steps+%3D").contains("class=\"error\""));
    assert!(server.page("/runs?where=pipeline+%3D+other").contains("No run matches"));
    let compared = server.page("/compare?run=first&run=latest");
    assert!(
        compared.contains("steps") && compared.contains("512") && compared.contains("256"),
        "{compared}"
    );
    assert_eq!(server.get("/compare").status, 404);
    assert_eq!(server.get("/compare?run=nothing").status, 404);
}

fn hostile_texts_are_shown_as_text() {
    // Names are plain; values of parameters and what programs print are not.
    let project = Project::new(
        pipeline("hostile")
            .param("p", "'\"><img src=x onerror=alert(2)>'")
            .run(
                "a",
                "printf \"<script>alert(3)</script>\\\\033]0;title\\\\007\\\\n\"; exit 3",
            )
            .output("x", "x.txt"),
    );
    let failed = project.exec(&[]);
    let server = Server::new(&project, &[]);
    for path in [
        "/",
        "/runs",
        "/runs/latest",
        "/runs/latest/stages/a",
        "/runs/latest/report",
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, 200, "{path}");
        let mut body = answer.body;
        for script in ["live", "charts"] {
            body = body.replace(&format!("<script src=\"/{script}.js\" defer></script>"), "");
        }
        assert!(!body.contains("<script") && !body.contains("<img"), "{path}: {body}");
        assert!(!body.contains('\u{1b}') && !body.contains('\u{7}'), "{path}");
    }
    assert_eq!(failed.code, 1, "{}", failed.text());
}

fn searches_are_shown_and_followed() {
    let project = Project::new(pipeline("tune").run("a", "echo 1 > ${outputs.x}"));
    assert_eq!(project.exec(&[]).code, 0);
    let server = Server::new(&project, &[]);
    assert!(server.page("/searches").contains("No searches yet"));
    let mut running = write_search(&project.home(), None);
    let address = format!("/searches/{SEARCH}");
    let list = server.page("/searches");
    assert!(
        list.contains(&format!("href=\"{address}\"")) && list.contains(">running<"),
        "{list}"
    );
    let page = server.page(&address);
    assert!(page.contains(&format!("data-live=\"/events{address}\"")), "{page}");
    assert!(page.contains("<h2>Search</h2>") && page.contains("<circle"), "{page}");
    let mut events = server.events(&format!("/events{address}"));
    assert!(events.any(|(_, data)| data.contains("27 trials: 3 running")));
    // The first job of the last rung ends, and then the process.
    let outcome = Outcome {
        objectives: vec![vec![0.2], vec![0.1]],
        seconds: 90.0,
        ..Outcome::default()
    };
    let job = 27 + 9;
    running
        .append(&[Line::Ended { job, outcome }], chrono::Utc::now())
        .unwrap();
    assert!(events.any(|(_, data)| data.contains("27 trials: 2 running") && data.contains("1 done")));
    drop(running);
    assert!(events.any(|(name, _)| name == "end"));
    assert!(!server.page(&address).contains("data-live"));
    assert_eq!(server.get("/searches/nothing").status, 404);
}

fn a_large_run_is_drawn_by_stage() {
    let points: Vec<String> = (0..500).map(|i| i.to_string()).collect();
    let project = Project::new(format!(
        "version: 1\nname: many\nstages:\n  a: \
        {{ uses: env/lookup, matrix: {{ seed: [{}] }}, with: {{ seed: '${{matrix.seed}}', rows: 64, episode_length: 16 }} }}\n",
        points.join(", ")
    ));
    let ran = project.exec(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let server = Server::new(&project, &[]);
    let page = server.page("/runs/latest");
    assert!(
        page.contains("a ×500") && page.contains("200 of 500 stages"),
        "{}",
        &page[..3000.min(page.len())]
    );
    let all = server.page("/runs/latest?stages=all");
    assert!(all.matches("/stages/a%5B").count() >= 500);
}

/// A schedule whose first night was due at midnight.
pub(crate) fn nightly() -> PipelineText {
    pipeline("nightly")
        .block(
            "schedule",
            "{ at: '00:00', from: FROM, params: { as_of: '${schedule.date}' } }",
        )
        .param("as_of", "2020-01-01")
        .uses("env", "env/lookup")
        .with("rows", 64)
        .with("episode_length", 16)
        .uses("train", "train/ppo")
        .needs("env", "env")
        .with("total_timesteps", 128)
        .with("n_envs", 2)
        .with("n_steps", 32)
        .with("batch_size", 32)
        .set("register", "{ policy: desk, alias: challenger }")
}

fn nights_and_policies_are_shown() {
    let project = Project::new(nightly().to_string().replace("FROM", "2024-01-01"));
    let due = project.run(&["schedule", "run-due", "p.yaml", "--now", "2024-01-03T12:00:00Z"]);
    assert_eq!(due.code, 0, "{}", due.text());
    let server = Server::new(&project, &[]);
    let schedule = server.page("/schedule");
    assert!(
        schedule.contains("2024-01-03: done</title>") && schedule.contains("next due"),
        "{schedule}"
    );
    assert!(schedule.contains("3 nights, 3 done"), "{schedule}");
    let policies = server.page("/policies");
    assert!(
        policies.contains("desk") && policies.contains("challenger"),
        "{policies}"
    );
    assert!(
        policies.contains("<td class=\"t\" data-name=\"night\">2024-01-01</td>")
            || policies.contains("2024-01-01"),
        "{policies}"
    );
}

/// Each run trains a policy, and judges it against the champion.
pub(crate) const JUDGED: &str = "\
version: 1
name: judged
params: { seed: 1 }
promote: { policy: desk, stage: verdict }
stages:
  market: \
{ uses: ingest/simulated_market, with: { days: 250, expiries: { weekly: 1, monthly: 1, quarterly_days: 0 } } }
  env:
    uses: env/stocks
    needs: { bars: market.bars, rates: market.rates }
    with: { test_fraction: 0.4, episode_length: 20 }
  train:
    uses: train/ppo
    needs: { env: env }
    with: { total_timesteps: 128, n_envs: 2, n_steps: 32, batch_size: 32, seed: '${params.seed}' }
    register: desk
  challenger: \
{ uses: evaluate/backtest, needs: { env: env, policy: train }, with: { bootstrap_draws: 10, rules: false } }
  champion:
    uses: evaluate/backtest
    needs: { env: env, policy: { policy: desk@champion, or: train } }
    with: { bootstrap_draws: 10, rules: false }
  verdict:
    uses: evaluate/compare
    needs: { agent: challenger.trajectory, against: champion.trajectory }
    with: { bootstrap_draws: 50, verdict: { trials: '${policies.desk.tried}' } }
";

fn verdicts_and_equity_are_shown() {
    let project = Project::new(JUDGED);
    for seed in ["seed=1", "seed=2"] {
        let ended = project.exec(&["--set", seed, "--report"]);
        assert_eq!(ended.code, 0, "{}", ended.text());
    }
    let server = Server::new(&project, &[]);
    let page = server.page("/policies");
    assert!(
        page.contains("<h3>Verdicts</h3>") && page.contains("champion stayed"),
        "{page}"
    );
    assert!(page.contains("equity over the test dates"), "{page}");
    assert!(page.contains("version 1") && page.contains("version 2"), "{page}");
    let report = server.page("/runs/latest/report");
    assert!(report.contains("Verdict: <strong>"), "{report}");
    assert!(report.contains("log return a year"), "{report}");
}

fn today() -> datasets::Date {
    datasets::Date::from(chrono::Utc::now().date_naive())
}

fn a_server_runs_nights() {
    let project = Project::new(nightly().to_string().replace("FROM", &today().to_string()));
    let server = Server::new(&project, &["--schedule", "p.yaml"]);
    runner_testkit::wait_for("the night", || server.page("/schedule").contains(": done</title>"));
}

fn failed_nights_are_listed_and_run_again() {
    let (today, project) = (today(), Project::new(""));
    let text = pipeline("nightly")
        .block("schedule", format!("{{ at: '00:00', from: {} }}", today.plus(-1)))
        .run(
            "a",
            &format!("test -e {} && touch ${{outputs.x}}", project.path("ok").display()),
        )
        .set("isolation", "none")
        .output("x", "x.txt");
    project.write("p.yaml", text.to_string());
    let due = project.run(&["schedule", "run-due", "p.yaml"]);
    assert_eq!(due.code, 1, "{}", due.text());
    let shows = Server::new(&project, &[]);
    let page = shows.page("/schedule");
    for part in [
        "2 nights to run again",
        "a: the command exited with status 1",
        "<code>runner schedule run-due /",
        "failed, killed or late",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("<form"), "{page}");
    let address = "/schedule/nightly/retry";
    assert_eq!(shows.post(address, "secret=guess", &[]).status, 403);
    let runs = Server::new(&project, &["--allow-run"]);
    assert!(runs.page("/schedule").contains(&format!("action=\"{address}\"")));
    project.write("ok", "");
    let secret = format!("secret={}", runs.secret("/schedule"));
    let own = format!("Origin: http://{}", runs.address);
    let headers = [own.as_str(), "Sec-Fetch-Site: same-origin"];
    assert_eq!(runs.post("/schedule/other/retry", &secret, &headers).status, 404);
    let answer = runs.post(address, &secret, &headers);
    assert_eq!(answer.status, 303, "{}", answer.body);
    runner_testkit::wait_for("the nights", || {
        let page = runs.page("/schedule");
        [today.plus(-1), today]
            .iter()
            .all(|night| page.contains(&format!("{night}: done</title>")))
    });
    assert!(!runs.page("/schedule").contains("to run again"));
}

fn paper_accounts_are_shown() {
    let project = Project::new(pipeline("p").run("a", "echo 1 > ${outputs.x}"));
    assert_eq!(project.exec(&[]).code, 0);
    let server = Server::new(&project, &[]);
    assert!(server.page("/paper").contains("No accounts"));
    assert_eq!(server.get("/paper/own").status, 404);
    paper_account(&project);
    let list = server.page("/paper");
    assert!(
        list.contains("href=\"/paper/own\"") && list.contains("running") && list.contains("1,000,000"),
        "{list}"
    );
    let page = server.page("/paper/own");
    assert!(
        page.contains("desk@champion") && page.contains("No night yet"),
        "{page}"
    );
}

/// Opens the account `own`.
pub(crate) fn paper_account(project: &Project) {
    let version = StandIn {
        name: "desk@1".to_owned(),
        digest: cache::ArtifactDigest::from_bytes([1; 32]),
    };
    let opened = Opened {
        name: "own".to_owned(),
        opened: chrono::DateTime::UNIX_EPOCH,
        policy: "desk@champion".to_owned(),
        version,
        capital: 1e6,
        world: None,
        from: "2024-01-02".parse().unwrap(),
        beside: Vec::new(),
        halt: "hold".to_owned(),
        limits: Default::default(),
        promise: Default::default(),
    };
    Ledger::create(&project.home(), opened).unwrap();
}
