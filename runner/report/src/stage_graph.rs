//! The drawing of a run's task graph, coloured by status. If there are many stages, the points of a matrix
//! share one box; if there are still more, all stages of a kind do.

use runner_history::{Run, StageRun};
use runner_pipeline::TaskGraph;
use runner_pipeline::svg::{self, SvgNode};
use std::collections::{BTreeMap, HashMap};

/// The maximum number of boxes.
const MOST_DRAWN: usize = 60;

/// The width from which a drawing shrinks with the page.
const BROAD: f64 = 620.0;

/// The second line of a stage's box, below its name and status, and where the box leads.
#[derive(Default)]
pub struct BoxLook {
    /// The second line; that of the stage's kind if there is none.
    pub note: Option<String>,
    /// The address of the stage's page.
    pub href: Option<String>,
}

/// The graph of stages as an inline SVG.
pub fn stage_graph(run: &Run) -> String {
    stage_graph_with(run, &|_| BoxLook::default())
}

/// The graph of stages as an inline SVG, whose boxes of one stage look and link as `look` says.
pub fn stage_graph_with(run: &Run, look: &dyn Fn(&StageRun) -> BoxLook) -> String {
    let by: [fn(&StageRun) -> String; 3] = [
        |stage| stage.id.clone(),
        |stage| stage.stage.clone(),
        |stage| stage.kind.clone(),
    ];
    let mut nodes = boxes(run, by[0]);
    for by in &by[1..] {
        if nodes.names.len() > MOST_DRAWN {
            nodes = boxes(run, *by);
        }
    }
    // Even kinds can be too many, if a pipeline has many programs.
    if nodes.names.len() > MOST_DRAWN {
        return format!("<p class=\"dim\">{} stages, too many to draw.</p>\n", run.stages.len());
    }
    let drawn = nodes.drawn(run, look);
    // The children of an image are not reached by keyboard.
    let role = if drawn.iter().any(|node| node.href.is_some()) {
        "group"
    } else {
        "img"
    };
    let drawing = svg::draw(&drawn, &nodes.graph(run));
    // A broad drawing shrinks no further than its texts can be read; a narrow one keeps its size.
    let size = match drawing.width > BROAD {
        true => " class=\"dag broad\"".to_owned(),
        false => format!(" class=\"dag\" width=\"{}\"", drawing.width),
    };
    format!(
        "<div class=\"wide\" tabindex=\"0\"><svg{size} viewBox=\"0 0 {} {}\" role=\"{role}\" \
        aria-label=\"graph of stages\">{}</svg></div>\n",
        drawing.width, drawing.height, drawing.elements
    )
}

/// The status of a stage, as shown and as used for its CSS class.
pub fn status_of(stage: &StageRun) -> &'static str {
    match stage.status {
        Some(status) => status.name(),
        None if stage.started => "running",
        None => "waiting",
    }
}

/// The boxes of a drawing: their names, and the index of each stage's box.
struct Boxes {
    names: Vec<String>,
    of: Vec<usize>,
}

fn boxes(run: &Run, by: fn(&StageRun) -> String) -> Boxes {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut names = Vec::new();
    let place = |stage: &StageRun| {
        let name = by(stage);
        *places.entry(name.clone()).or_insert_with(|| {
            names.push(name);
            names.len() - 1
        })
    };
    let of = run.stages.iter().map(place).collect();
    Boxes { names, of }
}

impl Boxes {
    fn drawn(&self, run: &Run, look: &dyn Fn(&StageRun) -> BoxLook) -> Vec<SvgNode> {
        let mut within: Vec<Vec<&StageRun>> = vec![Vec::new(); self.names.len()];
        for (stage, &at) in run.stages.iter().zip(&self.of) {
            within[at].push(stage);
        }
        self.names
            .iter()
            .zip(&within)
            .map(|(name, stages)| match stages.as_slice() {
                [stage] => {
                    let look = look(stage);
                    SvgNode {
                        id: stage.id.clone(),
                        note: look.note.unwrap_or_else(|| stage.kind.clone()),
                        class: status_of(stage).to_owned(),
                        href: look.href,
                    }
                }
                _ => SvgNode {
                    id: format!("{name} ×{}", stages.len()),
                    note: counts(stages),
                    class: together(stages).to_owned(),
                    href: None,
                },
            })
            .collect()
    }

    fn graph(&self, run: &Run) -> TaskGraph {
        let places: HashMap<&str, usize> =
            run.stages.iter().map(|stage| stage.id.as_str()).zip(0..).collect();
        // `stage.output`: a matrix point may contain dots, as in `train[learning_rate=0.1].policy`, an output
        // may not.
        let place = |need: &String| places.get(need.rsplit_once('.')?.0).copied();
        let needs = |(i, stage): (usize, &StageRun)| {
            let needs = stage.needs.values().flatten().filter_map(place);
            needs
                .map(|need| (self.of[i], self.of[need]))
                .filter(|(stage, need)| stage != need)
                .collect::<Vec<_>>()
        };
        let pairs: Vec<(usize, usize)> = run.stages.iter().enumerate().flat_map(needs).collect();
        // Boxes of several stages can need each other both ways: later ones are drawn after earlier ones.
        TaskGraph::new(self.names.len(), pairs.into_iter().filter(|(stage, need)| need < stage))
    }
}

/// The number of stages by status.
pub(crate) fn counts(stages: &[&StageRun]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for stage in stages {
        *counts.entry(status_of(stage)).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(status, n)| format!("{n} {status}")).collect();
    counts.join(", ")
}

/// The status that represents several stages: the one that needs attention first.
fn together(stages: &[&StageRun]) -> &'static str {
    ["failed", "running", "waiting", "skipped", "ran", "cached"]
        .into_iter()
        .find(|wanted| stages.iter().any(|stage| status_of(stage) == *wanted))
        .unwrap_or("waiting")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use runner_engine::{RunStatus, StageStatus};
    use runner_history::ResolvedStage;
    use std::sync::Arc;

    /// A run of an environment, and of a training and a test for each point.
    pub(crate) fn run(points: usize) -> Run {
        let stage = |id: String, name: &str, needs: Vec<String>| {
            let mut stage = StageRun::new(Arc::new(ResolvedStage {
                id,
                stage: name.to_owned(),
                kind: format!("kind/{name}"),
                needs: BTreeMap::from([("in".to_owned(), needs)]),
                ..ResolvedStage::default()
            }));
            stage.status = Some(StageStatus::Cached);
            stage
        };
        let mut stages = vec![stage("env".to_owned(), "env", Vec::new())];
        for i in 0..points {
            stages.push(stage(format!("train[seed={i}]"), "train", vec!["env.env".to_owned()]));
            let need = format!("train[seed={i}].policy");
            stages.push(stage(format!("test[seed={i}]"), "test", vec![need]));
        }
        stages[1].status = None;
        stages[1].started = true;
        Run {
            id: "a".to_owned(),
            dir: "a".into(),
            pipeline: "p".to_owned(),
            file: "p.yaml".into(),
            params: BTreeMap::new(),
            program: "runner".to_owned(),
            status: RunStatus::Running,
            started: chrono::DateTime::UNIX_EPOCH,
            seconds: 1.0,
            stages,
            night: None,
            accounts: Vec::new(),
            lookahead: None,
            damaged: 0,
        }
    }

    #[test]
    fn a_small_graph_has_a_box_for_each_point() {
        let drawn = stage_graph(&run(3));
        assert_eq!(drawn.matches("<rect").count(), 7);
        assert_eq!(drawn.matches("<path").count(), 6);
        assert!(
            drawn.contains("<g class=\"running\"><title>train[seed=0]: running"),
            "{drawn}"
        );
    }

    #[test]
    fn of_many_points_the_matrix_is_one_box() {
        let drawn = stage_graph(&run(500));
        assert_eq!(drawn.matches("<rect").count(), 3);
        assert_eq!(drawn.matches("<path").count(), 2);
        assert!(
            drawn.contains("train ×500") && drawn.contains("499 cached, 1 running"),
            "{drawn}"
        );
        assert!(drawn.contains("<g class=\"running\">"), "{drawn}");
    }
}
