//! `runner compare` on pipelines of small programs, against figures worked out by hand.

use crate::{Project, measures};
use runner_testkit::pipeline;
use serde_json::{Value, json};

fn sweep() -> String {
    // At lr 1: 10, 20, 60, mean 30, sd sqrt(700). At lr 2: 110, 120, 160.
    format!(
        "\
version: 1
name: sweep
params: {{ base: 0 }}
stages:
  train:
    matrix: {{ lr: [1, 2], seed: [10, 20, 60] }}{}",
        measures("(${matrix.seed} + ${params.base} + 100 * (${matrix.lr} - 1))")
    )
}

fn one() -> String {
    format!(
        "version: 1\nname: one\nparams: {{ seed: 1, size: 5 }}\nstages:\n  learn:{}",
        measures("(${params.seed} * ${params.size})")
    )
}

#[test]
fn a_matrix_is_compared_over_its_seeds() {
    let project = Project::new(sweep());
    project.exec("p.yaml --name sweep");
    insta::assert_snapshot!(project.ok("compare latest", &[]), @r"
    run sweep
    #             #1                #2                 #2 less #1
    matrix.lr     2                 1
    matrix.seed   10, 20, 60        10, 20, 60
    train.return  130 ± 26 (n=3) *  30.0 ± 26.5 (n=3)  −100
    mean ± sample standard deviation of n values that differ only in seed
    sorted by train.return, highest first; * is the best
    1 stage setting differs as a consequence; --all shows them
    ");
    insta::assert_snapshot!(project.ok("compare sweep --markdown", &[]), @r"
    | # | #1 | #2 | #2 less #1 |
    | --- | --- | --- | --- |
    | matrix.lr | 2 | 1 |  |
    | matrix.seed | 10, 20, 60 | 10, 20, 60 |  |
    | train.return | 130 ± 26 (n=3) * | 30.0 ± 26.5 (n=3) | −100 |

    - mean ± sample standard deviation of n values that differ only in seed
    - sorted by train.return, highest first; * is the best
    - 1 stage setting differs as a consequence; --all shows them
    ");
    insta::assert_snapshot!(project.ok("compare sweep --csv", &[]), @r"
    group,runs,points,status,matrix.lr,matrix.seed,train.return,train.return.sd,train.return.n
    1,sweep,3,done,2,10 20 60,130,26.457513110645905,3
    2,sweep,3,done,1,10 20 60,30,26.457513110645905,3
    ");
    insta::assert_snapshot!(project.ok("compare sweep/train[lr=1] --each --better lower", &[]), @r"
    run sweep
    #             #1    #2  #3
    matrix.seed   10    20  60
    train.return  10 *  20  60
    sorted by train.return, lowest first; * is the best
    1 stage setting differs as a consequence; --all shows them
    ");
    let all = project.ok("compare sweep[lr=1] --over lr --all", &[]);
    let timeless: Vec<&str> = all.lines().filter(|line| !line.starts_with("train.seconds")).collect();
    assert_eq!(timeless.len() + 1, all.lines().count());
    insta::assert_snapshot!(timeless.join("\n"), @r#"
    run sweep
    #                           #1
    matrix.lr                   1
    matrix.seed                 10, 20, 60
    params.base                 0
    train.kind                  run
    train.version               2
    train.with.command          …e":'$(((10 + 0 + 100 * (1 - 1)) * … and 2 more
    train.with.files            []
    train.with.outputs.metrics  metrics.jsonl
    train.with.secrets          []
    train.return                30.0 ± 26.5 (n=3)
    mean ± sample standard deviation of n values that differ only in seed, lr
    "#);
    let json = project.json("compare sweep", &[]);
    let metric = |group: usize| json["groups"][group]["metrics"]["train.return"].clone();
    assert_eq!(metric(0)["values"], json!([110.0, 120.0, 160.0]));
    assert_eq!(metric(1)["values"], json!([10.0, 20.0, 60.0]));
    for group in [0, 1] {
        assert_eq!((&metric(group)["n"], &metric(group)["of"]), (&json!(3), &json!(3)));
        // Deviations from the mean: -20, -10, 30; squares 400 + 100 + 900, over n - 1.
        let sd = metric(group)["sd"].as_f64().unwrap();
        assert!((sd - 700.0_f64.sqrt()).abs() < 1e-12, "{sd}");
    }
    assert_eq!((&metric(0)["mean"], &metric(1)["mean"]), (&json!(130.0), &json!(30.0)));
    assert_eq!((&metric(0)["best"], &metric(1)["best"]), (&json!(true), &json!(false)));
}

#[test]
fn runs_that_differ_in_a_seed_alone_are_one_group() {
    let project = Project::new(one());
    let first = project.exec("p.yaml");
    let others: Vec<String> = ["seed=2", "seed=6"]
        .map(|set| project.exec(&format!("p.yaml --set {set}")))
        .into();
    let large = project.exec("p.yaml --set size=7");
    // The same again is no further measurement.
    let again = project.exec("p.yaml --set seed=2");
    let all: Vec<&str> = [&first, &others[0], &others[1], &large, &again]
        .map(String::as_str)
        .into();
    let json = project.json("compare", &all);
    let groups = json["groups"].as_array().unwrap();
    let summary: Vec<Value> = groups
        .iter()
        .map(|group| json!([group["metrics"]["learn.return"]["values"], group["runs"]]))
        .collect();
    assert_eq!(
        summary,
        [
            json!([[5.0, 10.0, 30.0], [first, others[0], others[1], again]]),
            json!([[7.0], [large]])
        ]
    );
    // The command differs too, but only as the parameters do.
    assert_eq!(json["parameters"], json!(["params.seed", "params.size"]));
    let each = project.json("compare --each", &all);
    assert_eq!(each["groups"].as_array().unwrap().len(), 5);
}

#[test]
fn what_is_incomplete_or_no_number_is_shown_as_such() {
    let project = Project::new(
        "\
version: 1
name: faulty
stages:
  train:
    matrix: { size: [1, 2], seed: [1, 2, 3] }
    run: |
      value=${matrix.seed}
      [ ${matrix.size}${matrix.seed} = 13 ] && { echo broken >&2; exit 3; }
      [ ${matrix.size}${matrix.seed} = 22 ] && value=null
      echo '{\"name\":\"score\",\"step\":0,\"value\":'$value'}' > ${outputs.metrics}
    outputs: { metrics: metrics.jsonl }
",
    );
    assert_eq!(project.run("exec -q --keep-going p.yaml --name faulty", &[]).code, 1);
    insta::assert_snapshot!(project.ok("compare faulty", &[]), @r"
    run faulty
    #            #1                        #2                      #2 less #1
    matrix.seed  1, 2, 3                   1, 2, 3
    matrix.size  2                         1
    status       done                      2 done, 1 failed
    train.score  2.00 ± 1.41 (n=2 of 3) *  1.50 ± 0.71 (n=2 of 3)  −0.500
    faulty[seed=3,size=1] is not complete: failed (train[seed=3,size=1]: the command exited with status 3)
    mean ± sample standard deviation of n values that differ only in seed
    sorted by train.score, highest first; * is the best
    1 stage setting differs as a consequence; --all shows them
    ");
    let json = project.json("compare faulty --each", &[]);
    let failed = json["groups"].as_array().unwrap().last().unwrap();
    let values: Vec<Value> = json["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| group["points"][0]["metrics"]["train.score"].clone())
        .collect();
    assert_eq!(
        values,
        [json!(3.0), json!(2.0), json!(1.0), json!(1.0), Value::Null, Value::Null]
    );
    assert!(failed["metrics"]["train.score"]["n"] == 0, "{failed}");
    let csv = project.ok("compare faulty --csv", &[]);
    assert!(
        csv.contains("2 done; 1 failed") || csv.contains("\"2 done, 1 failed\""),
        "{csv}"
    );
}

#[test]
fn a_run_that_goes_on_or_was_killed_is_shown_as_such() {
    let project = Project::new(
        pipeline("slow")
            .run(
                "train",
                "[ ${matrix.seed} = 2 ] && sleep 60\n\
                 echo '{\"name\":\"score\",\"step\":0,\"value\":${matrix.seed}}' > ${outputs.metrics}",
            )
            .matrix("seed", "[1, 2]")
            .output("metrics", "metrics.jsonl"),
    );
    let mut exec = project.command("exec -q p.yaml --jobs 2 --name slow").spawn().unwrap();
    let compared = |status: &str| {
        (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let ended = project.run("compare slow", &[]);
            ended.stdout.contains(status)
        })
    };
    let goes_on = compared("1 done, 1 running");
    exec.kill().unwrap();
    exec.wait().unwrap();
    assert!(goes_on && compared("1 done, 1 killed"));
    let text = project.ok("compare slow", &[]);
    assert!(
        text.contains("slow[seed=2] is not complete: killed\n") && text.contains("1 (n=1 of 2)"),
        "{text}"
    );
    assert!(
        project
            .ok("runs --where", &["status = killed and train.score = 1"])
            .contains("slow")
    );
}

#[test]
fn a_run_that_failed_elsewhere_says_so() {
    let project = Project::new(format!("{}  plot: {{ run: exit 1, outputs: {{ x: x }} }}\n", one()));
    assert_eq!(project.run("exec -q --keep-going p.yaml --name half", &[]).code, 1);
    let text = project.ok("compare half", &[]);
    assert!(
        text.contains("run half is not done (failed), but what is compared here is complete"),
        "{text}"
    );
}

#[test]
fn stages_of_other_names_stand_side_by_side() {
    let project = Project::new(format!(
        "version: 1\nname: two\nstages:\n  small:{}  large:{}",
        measures("3"),
        measures("4")
    ));
    project.exec("p.yaml --name two");
    insta::assert_snapshot!(project.ok("compare two/small two/large", &[]), @r#"
    run two
    #             #1                                    #2                                    #2 less #1
    with.command  …ue":'$((4 * step / 20))'}' done > …  …ue":'$((3 * step / 20))'}' done > …
    return        4 *                                   3                                     −1
    sorted by return, highest first; * is the best
    "#);
}

#[test]
fn the_page_is_one_file_with_curves_and_bands() {
    let project = Project::new(sweep());
    project.exec("p.yaml --name sweep");
    assert!(
        project
            .ok("compare sweep --html", &[])
            .ends_with("page: compare.html\n")
    );
    let page = std::fs::read_to_string(project.path("compare.html")).unwrap();
    // The script of the charts names its home in a comment.
    let (content, script) = page.split_once("<script>").unwrap();
    assert_eq!(script.matches("</script>").count(), 1);
    for foreign in ["http:", "https:", "//", "<link", "@import", "url(", "src=", "href="] {
        assert!(!content.contains(foreign), "{foreign} in {page}");
    }
    // A chart of one metric: two groups, each a line and a band.
    let chart = page
        .split("<figure data-chart=")
        .nth(1)
        .unwrap()
        .split("</figure>")
        .next()
        .unwrap();
    assert!(
        chart.contains("train.return") && chart.matches("<title>#").count() == 2,
        "{chart}"
    );
    assert_eq!(chart.matches("<path class=\"band").count(), 2, "{chart}");
    assert!(
        chart.contains("</svg>#1 lr=2</span>") && chart.contains("</svg>#2 lr=1</span>"),
        "{chart}"
    );
    // Parallel coordinates, a scatter for each setting, and the curves.
    assert_eq!(page.matches("<figure>").count(), 3);
    assert_eq!(page.matches("<figure data-chart=").count(), 1);
    assert!(page.contains("130&nbsp;* <span class=\"dim\">±"), "{page}");
    for seed in [10, 20, 60] {
        assert!(page.contains(&format!("sweep[lr=2,seed={seed}]")));
    }
    let named = project.json("compare sweep --html", &["other.html"]);
    assert_eq!(named["page"], "other.html");
    assert!(project.path("other.html").is_file() && !project.path("other.html.new").exists());
}

#[test]
fn what_is_not_there_is_refused_with_the_nearest() {
    let project = Project::new(sweep());
    project.exec("p.yaml --name sweep");
    let refused: Vec<String> = [
        "compare swep",
        "compare sweep/trian",
        "compare sweep/train[seed=11]",
        "compare sweep[lr=3]",
        "compare sweep[lr",
        "compare sweep --metric retrun",
        "compare sweep --over sed",
        "compare --html sweep sweep",
        "compare --where tag=x",
        "compare --where tags=x",
    ]
    .map(|args| project.refused(args, &[]))
    .into();
    insta::assert_snapshot!(refused.concat(), @r"
    error: there is no run `swep` in `DIR/home/runs`
      hint: did you mean `sweep`?
    error: run RUN has no stage `trian`
      hint: did you mean `train`?
    error: `train` of run RUN has no such point
      hint: its points are train[lr=1,seed=10], train[lr=1,seed=20], train[lr=1,seed=60], train[lr=2,seed=10], train[lr=2,seed=20], train[lr=2,seed=60]
    error: run RUN has no such point
      hint: its points are sweep[lr=1,seed=10], sweep[lr=1,seed=20], sweep[lr=1,seed=60], sweep[lr=2,seed=10], sweep[lr=2,seed=20], sweep[lr=2,seed=60]
    error: `sweep[lr` is neither a run nor a point of a run
      hint: write RUN, RUN/STAGE, `RUN[seed=1]` or `RUN/STAGE[seed=1]`; `runner runs` lists the runs
    error: none of these has a metric `retrun`
      hint: did you mean `return`?
    error: none of these has an axis or a parameter `sed`
      hint: did you mean `seed`?
    error: `--html sweep` is not an HTML file
      hint: the file name must end in `.html`; to name a run, put `--html` after the runs
    error: no run matches `tag=x`
      hint: `runner runs` lists the runs
    error: --where: there is no `tags`
      | tags=x
      | ^
      hint: did you mean `tag`?
    ");
}
