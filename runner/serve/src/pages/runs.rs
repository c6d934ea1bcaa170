//! The list of runs: filtered, sorted, grouped, with columns that the reader chooses, all by its address.

use super::conditions::{conditions, narrowed};
use crate::answer::{columns as metric_columns, main_figure, spark};
use crate::layout::{Page, encode, link, run_address};
use crate::live::{Fragments, Source};
use crate::parts::{
    Head, Line, Order, button, chip, empty, folded, grid, option, pager, status, suggestion, time,
};
use crate::site::Site;
use cache::Store;
use runner_engine::{Failure, StageStatus, text};
use runner_history::{self as history, Cell, Key, Library, Question, Run};
use runner_report::figures::{Unit, deciding, shown};
use runner_report::html::escape;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The number of runs of a page.
const RUNS: usize = 100;

/// The number of columns of parameters, and of metrics, that runs of one pipeline have unless the reader
/// chooses.
const OWN_COLUMNS: usize = 3;

/// The number of columns that are offered.
const OFFERED: usize = 40;

/// The order unless the reader chooses: the newest first.
const NEWEST: &str = "-started";

/// The runs of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// An expression as of `runner runs --where`; empty for all.
    filter: String,
    /// A key as of `runner runs --sort`; empty for the newest first.
    sort: String,
    /// The columns besides the fixed ones; `None` for those that suit the runs.
    columns: Option<Vec<String>>,
    /// The key by which runs are grouped; empty for none.
    group: String,
    /// The number of pages before this one.
    page: u32,
}

impl Wanted {
    /// Reads the query of an address. Of what cannot be read, nothing is wanted.
    pub(crate) fn read(query: &str) -> Self {
        let mut wanted = Self::default();
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let value = value.trim().to_owned();
            match &*key {
                "where" => wanted.filter = value,
                "sort" => wanted.sort = value,
                "group" => wanted.group = value,
                "page" => wanted.page = value.parse().unwrap_or(0),
                "show" => {
                    let columns = wanted.columns.get_or_insert_default();
                    let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
                    columns.extend(names.map(str::to_owned));
                }
                _ => {}
            }
        }
        wanted
    }

    /// The query of the page's address: what differs from the plain list.
    pub(crate) fn query(&self) -> String {
        let mut parts = Vec::new();
        let mut add = |key: &str, value: &str| parts.push(format!("{key}={}", encode(value)));
        for (key, value) in [("where", &self.filter), ("sort", &self.sort), ("group", &self.group)] {
            if !value.is_empty() {
                add(key, value);
            }
        }
        match self.columns.as_deref() {
            None => {}
            Some([]) => add("show", ""),
            Some(columns) => columns.iter().for_each(|column| add("show", column)),
        }
        if self.page > 0 {
            add("page", &self.page.to_string());
        }
        parts.join("&")
    }

    /// The page's address.
    pub(crate) fn address(&self) -> String {
        match self.query() {
            query if query.is_empty() => "/runs".to_owned(),
            query => format!("/runs?{query}"),
        }
    }

    /// The first page of the same list with something else changed.
    fn with(&self, change: impl FnOnce(&mut Self)) -> String {
        let mut other = Self {
            page: 0,
            ..self.clone()
        };
        change(&mut other);
        other.address()
    }

    /// True without filter, order and groups: such a list needs no more than the runs that it shows.
    fn is_newest_of_all(&self) -> bool {
        self.filter.is_empty() && self.group.is_empty() && matches!(self.sort.as_str(), "" | NEWEST)
    }

    /// The head of a column that sorts by a key.
    fn head(&self, head: Head, key: &str) -> Head {
        let now = if self.sort.is_empty() { NEWEST } else { &self.sort };
        let order = match now.strip_prefix('-') {
            Some(name) => (name == key).then_some(Order::Descending),
            None => (now == key).then_some(Order::Ascending),
        };
        let next = match order {
            Some(Order::Descending) => key.to_owned(),
            _ => format!("-{key}"),
        };
        head.sorted(self.with(|other| other.sort = next), order)
    }
}

pub(crate) fn runs(site: &Site, wanted: &Wanted) -> Page {
    let (list, offers) = match list(site, wanted) {
        Ok(listed) => (listed.html, listed.offers),
        Err(failure) => (problem(&failure), Offers::default()),
    };
    let start = match site.allow_run {
        true => button("/pipelines", "Start a run"),
        false => String::new(),
    };
    let body = format!(
        "<div class=\"head\"><h1>Runs</h1>{start}</div>\n{}{}{}<form method=\"get\" action=\"/compare\" \
         class=\"list\"><div id=\"runs\">{list}</div>\
         <button>Compare the ticked runs</button></form>\n",
        search(wanted),
        chips(wanted, &offers),
        view(wanted, &offers),
    );
    Page {
        live: Some(format!("/events/runs?{}", wanted.query())),
        ..Page::new("Runs", "/runs", body)
    }
}

/// Hidden fields of a form for what it leaves as it is.
fn kept(wanted: &Wanted, keys: &[&str]) -> String {
    url::form_urlencoded::parse(wanted.query().as_bytes())
        .filter(|(key, _)| keys.contains(&&**key))
        .map(|(key, value)| format!("<input type=\"hidden\" name=\"{key}\" value=\"{}\">", escape(&value)))
        .collect()
}

fn search(wanted: &Wanted) -> String {
    format!(
        "<form method=\"get\" action=\"/runs\" role=\"search\"><label for=\"where\">Filter</label>\
         <input type=\"text\" id=\"where\" name=\"where\" value=\"{}\" placeholder=\"evaluate.sharpe &gt; 1 \
         and status = done\" spellcheck=\"false\">{}<button>Show</button></form>\n",
        escape(&wanted.filter),
        kept(wanted, &["sort", "group", "show"])
    )
}

/// The conditions of the filter, each with what removes it, and others to add.
fn chips(wanted: &Wanted, offers: &Offers) -> String {
    let conditions = conditions(&wanted.filter);
    let mut out = String::from("<p class=\"chips\">");
    for (at, condition) in conditions.iter().enumerate() {
        let others: Vec<&str> = conditions
            .iter()
            .enumerate()
            .filter(|(i, _)| *i != at)
            .map(|(_, other)| *other)
            .collect();
        let without = wanted.with(|other| other.filter = others.join(" and "));
        out.push_str(&chip(condition, &without));
    }
    let common = ["status = running", "status = failed", "status = done", "age < 1d"].map(str::to_owned);
    let pipelines = offers
        .pipelines
        .iter()
        .map(|name| format!("pipeline = {}", quoted(name)));
    let tags = offers.tags.iter().map(|tag| format!("tag = {}", quoted(tag)));
    for more in common.into_iter().chain(pipelines.take(8)).chain(tags.take(6)) {
        let (key, _) = more.split_once(' ').unwrap_or_default();
        if conditions
            .iter()
            .any(|condition| condition.split(' ').next() == Some(key))
        {
            continue;
        }
        let with = wanted.with(|other| other.filter = narrowed(&wanted.filter, &more));
        out.push_str(&suggestion(&more, &with));
    }
    out + "</p>\n"
}

fn quoted(text: &str) -> String {
    match text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "")),
    }
}

/// An order in words.
fn order_text(key: &str) -> String {
    let (name, is_descending) = match key.strip_prefix('-') {
        Some(name) => (name, true),
        None => (key, false),
    };
    let (ascending, descending) = match name {
        "started" => ("oldest", "newest"),
        "id" | "pipeline" | "status" => ("A", "Z"),
        _ => ("smallest", "largest"),
    };
    format!("{name}, {} first", if is_descending { descending } else { ascending })
}

/// The form that chooses columns, groups and order.
fn view(wanted: &Wanted, offers: &Offers) -> String {
    let mut columns = String::new();
    for (at, name) in offers.columns.iter().enumerate() {
        let ticked = if offers.shown.contains(name) { " checked" } else { "" };
        columns.push_str(&format!(
            "<label><input type=\"checkbox\" id=\"column-{at}\" name=\"show\" value=\"{0}\"{ticked}> \
            {0}</label>",
            escape(name)
        ));
    }
    let others: Vec<&str> = offers
        .shown
        .iter()
        .filter(|name| !offers.columns.contains(name))
        .map(String::as_str)
        .collect();
    let keys = offers
        .columns
        .iter()
        .filter(|name| name.starts_with("params."))
        .map(String::as_str);
    let groups: String = ["pipeline", "status", "tag"]
        .into_iter()
        .chain(keys)
        .map(|key| option(key, key, key == wanted.group))
        .collect();
    let keys = ["started", "duration", "id", "pipeline", "status"];
    let keys = keys.into_iter().chain(offers.columns.iter().map(String::as_str));
    let mut sorts: Vec<String> = keys.flat_map(|key| [format!("-{key}"), key.to_owned()]).collect();
    // What a column or an address asked for is kept.
    if !wanted.sort.is_empty() && !sorts.contains(&wanted.sort) {
        sorts.push(wanted.sort.clone());
    }
    let sorts: String = sorts
        .iter()
        .map(|key| option(key, &order_text(key), *key == wanted.sort))
        .collect();
    folded(
        "view",
        "Columns, groups, order",
        &format!(
            "<form method=\"get\" action=\"/runs\" \
            class=\"view\">{}<fieldset><legend>Columns</legend>{columns}\
             <label>Others <input type=\"text\" name=\"show\" value=\"{}\" \
             placeholder=\"train.losses/entropy, \
             train.with.gamma\" spellcheck=\"false\"></label></fieldset>\
             <label>Groups <select name=\"group\">{}{groups}</select></label> \
             <label>Order <select name=\"sort\">{sorts}</select></label> <button>Show</button></form>",
            kept(wanted, &["where"]),
            escape(&others.join(", ")),
            option("", "none", wanted.group.is_empty())
        ),
    )
}

/// A filter that cannot be read, or no run that has its field.
fn problem(failure: &Failure) -> String {
    let hint = failure.hint.as_ref().map(|hint| format!("<br>{}", escape(hint)));
    format!(
        "<p class=\"error\">{}{}</p>\n",
        escape(&failure.message),
        hint.unwrap_or_default()
    )
}

/// The choices that the runs of a page offer.
#[derive(Default)]
struct Offers {
    pipelines: BTreeSet<String>,
    tags: BTreeSet<String>,
    /// Names of columns.
    columns: Vec<String>,
    /// The columns that are shown.
    shown: Vec<String>,
}

struct Listed {
    html: String,
    offers: Offers,
}

/// The value of a column for people: metrics with their unit, parameters as they were given.
fn cell_text(key: &Key, cell: &Cell) -> String {
    match cell
        .to_json()
        .as_f64()
        .filter(|_| !key.text.starts_with("params.") && !key.text.contains(".with."))
    {
        Some(value) => shown(value, Unit::of(&key.text)),
        None => cell.shown(),
    }
}

/// The parameters that differ among runs, and the others; then the metrics, those that decide first.
fn offered(runs: &[&Run], store: Option<&Store>) -> (Vec<String>, usize) {
    let mut values: BTreeMap<&String, BTreeSet<String>> = BTreeMap::new();
    for run in runs {
        for (name, value) in &run.params {
            values.entry(name).or_default().insert(value.to_string());
        }
    }
    let (varied, same): (Vec<_>, Vec<_>) = values.into_iter().partition(|(_, values)| values.len() > 1);
    let differ = varied.len();
    let mut columns: Vec<String> = varied
        .into_iter()
        .chain(same)
        .map(|(name, _)| format!("params.{name}"))
        .collect();
    columns.truncate(OFFERED / 2);
    // Runs of one pipeline have the same metrics: the first of each will do.
    let mut seen = BTreeSet::new();
    for run in runs.iter().filter(|run| seen.insert(&run.pipeline)) {
        for name in store.map(|store| metric_columns(run, store)).unwrap_or_default() {
            if !columns.contains(&name) && columns.len() < OFFERED {
                columns.push(name);
            }
        }
    }
    (columns, differ)
}

/// The columns that suit runs of one pipeline: parameters that differ, and metrics that decide.
fn own(runs: &[&Run], columns: &[String], differ: usize) -> Vec<String> {
    let pipelines: BTreeSet<&String> = runs.iter().map(|run| &run.pipeline).collect();
    if pipelines.len() > 1 {
        return Vec::new();
    }
    let params = columns.iter().filter(|name| name.starts_with("params."));
    let metrics = columns.iter().filter(|name| deciding(name).is_some());
    params
        .take(differ.min(OWN_COLUMNS))
        .chain(metrics.take(OWN_COLUMNS))
        .cloned()
        .collect()
}

/// The table of runs.
fn list(site: &Site, wanted: &Wanted) -> Result<Listed, Failure> {
    let filter = Some(wanted.filter.as_str()).filter(|filter| !filter.is_empty());
    let sort = if wanted.sort.is_empty() { NEWEST } else { &wanted.sort };
    let group = Some(wanted.group.clone()).filter(|group| !group.is_empty());
    let is_newest = sort == NEWEST && group.is_none();
    let order: Vec<String> = match is_newest {
        true => Vec::new(),
        false => group.iter().cloned().chain([sort.to_owned()]).collect(),
    };
    let question = Question::new(filter, &order, &[])?;
    let page = wanted.page as usize;
    let end = RUNS * (page + 1);
    let store = site
        .home
        .join("format")
        .is_file()
        .then(|| Store::open(&site.home))
        .transpose()?;
    let store = store.as_ref();
    let warn = &mut |text: &str| site.host.warn(text);
    // One more tells whether there are older ones. The members of groups are counted among all runs.
    let (mut library, count) = match (question.is_plain(), &group) {
        (true, _) => (Library::read(&site.runs, Some(end + 1), warn)?, 0),
        (false, None) => Library::first(&site.runs, &question, (end + 1, is_newest), store, warn)?,
        (false, Some(_)) => Library::first(&site.runs, &question, (usize::MAX, false), store, warn)?,
    };
    if question.is_plain() {
        library.all.reverse();
    }
    let chosen: Vec<&Run> = library.all.iter().collect();
    let has_more = chosen.len() > end;
    let runs: Vec<&Run> = chosen.iter().copied().skip(RUNS * page).take(RUNS).collect();
    if runs.is_empty() {
        let html = match filter {
            Some(_) => empty("No run matches.", &link("/runs", "Show all runs")),
            None => empty("No runs yet.", "<code>runner exec PIPELINE</code> makes the first."),
        };
        return Ok(Listed {
            html,
            offers: Offers::default(),
        });
    }
    let (columns, differ) = offered(&runs, store);
    let mut named = wanted.columns.clone().unwrap_or_else(|| own(&runs, &columns, differ));
    // What the list is filtered or sorted by is shown, too.
    named.extend(question.shown().into_iter().map(|key| key.text));
    let mut seen = BTreeSet::new();
    named.retain(|name| seen.insert(name.clone()));
    let keys = Question::new(None, &[], &named)?.columns;
    let groups: Vec<String> = match &group {
        None => Vec::new(),
        Some(key) => {
            let key = Question::new(None, &[], std::slice::from_ref(key))?.columns;
            let cells = library.cells(&chosen, &key, store);
            cells.into_iter().flatten().map(|cell| cell.shown()).collect()
        }
    };
    let count = match question.is_plain() {
        true => String::new(),
        false => format!("<p class=\"dim\">{}</p>\n", text::count(count, "run")),
    };
    let html = count
        + &table(wanted, &library, &runs, &keys, &groups, store)
        + &pager(
            (page > 0).then(|| {
                (
                    Wanted {
                        page: wanted.page - 1,
                        ..wanted.clone()
                    }
                    .address(),
                    "newer",
                )
            }),
            has_more.then(|| {
                let page = wanted.page.saturating_add(1);
                (
                    Wanted {
                        page,
                        ..wanted.clone()
                    }
                    .address(),
                    "older",
                )
            }),
        );
    let offers = Offers {
        pipelines: runs.iter().map(|run| run.pipeline.clone()).collect(),
        tags: runs
            .iter()
            .flat_map(|run| library.marks_of(run).tags.iter().cloned())
            .collect(),
        columns,
        shown: keys.into_iter().map(|key| key.text).collect(),
    };
    Ok(Listed { html, offers })
}

/// The rows of some runs; `groups` has the group of each run of the whole list.
fn table(
    wanted: &Wanted,
    library: &Library,
    runs: &[&Run],
    keys: &[Key],
    groups: &[String],
    store: Option<&Store>,
) -> String {
    let mut head = vec![
        Head::hidden("compare"),
        wanted.head(Head::text("run"), "id"),
        wanted.head(Head::text("pipeline"), "pipeline"),
        wanted.head(Head::text("status"), "status"),
        Head::text("result"),
        Head::hidden("curve"),
    ];
    head.extend(keys.iter().map(|key| wanted.head(Head::number(&key.text), &key.text)));
    head.push(wanted.head(Head::number("time"), "duration"));
    head.push(Head::text("stages"));
    head.push(wanted.head(Head::text("started"), "started"));
    let cells = library.cells(runs, keys, store);
    let mut lines = Vec::new();
    let first = RUNS * wanted.page as usize;
    for (i, (run, cells)) in runs.iter().zip(cells).enumerate() {
        if let Some(group) = groups.get(first + i)
            && (i == 0 || groups.get(first + i - 1) != Some(group))
        {
            let members = groups.iter().filter(|other| *other == group).count();
            let name = if group.is_empty() { "none" } else { group };
            lines.push(Line::Group(format!(
                "{} <span class=\"dim\">{} · {}</span>",
                escape(name),
                escape(&wanted.group),
                text::count(members, "run")
            )));
        }
        let mut row = vec![
            format!(
                "<input type=\"checkbox\" name=\"run\" value=\"{0}\" id=\"tick-{0}\" aria-label=\"compare \
                {0}\">",
                escape(&run.id)
            ),
            called(library, run),
            escape(&run.pipeline),
            status(run.status.name()),
            store
                .and_then(|store| main_figure(run, store))
                .map(|(name, value)| format!("<strong>{}</strong> {}", escape(&value), escape(&name)))
                .unwrap_or_default(),
            spark(run),
        ];
        row.extend(keys.iter().zip(&cells).map(|(key, cell)| escape(&cell_text(key, cell))));
        row.push(text::duration(run.seconds));
        row.push(stages(run));
        row.push(time(run.started));
        lines.push(Line::Row(row));
    }
    grid("runs", &head, &lines)
}

/// A link to a run, with its name and tags.
fn called(library: &Library, run: &Run) -> String {
    let marks = library.marks_of(run);
    let mut out = link(&run_address(&run.id), &run.id);
    let names = marks
        .name
        .iter()
        .map(|name| format!(" <span class=\"mark\">{}</span>", escape(name)));
    let tags = marks
        .tags
        .iter()
        .map(|tag| format!(" <span class=\"mark tag\">{}</span>", escape(tag)));
    let kept = marks.kept.then(|| " <span class=\"mark\">kept</span>".to_owned());
    out.extend(names.chain(tags).chain(kept));
    out
}

/// The numbers of a run's stages by status: `2 ran, 5 cached`.
fn stages(run: &Run) -> String {
    let statuses = [
        StageStatus::Failed,
        StageStatus::Ran,
        StageStatus::Cached,
        StageStatus::Skipped,
    ];
    let counts = statuses.map(|status| (run.count(status), status.name()));
    let counts = counts
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, name)| format!("{n} {name}"));
    counts.collect::<Vec<_>>().join(", ")
}

/// The list as it changes.
pub(crate) struct LiveRuns {
    site: Site,
    wanted: Wanted,
    ticks: u32,
    /// The state of the last runs at the last rendering.
    seen: Option<String>,
}

/// The number of looks between two renderings: the list changes by whole runs.
const SELDOM: u32 = 4;

/// The number of looks after which a list is rendered even if the last runs are as they were: ages pass, and
/// older runs change.
const IDLE: u32 = 30;

/// The number of last runs whose changes are noticed at once.
const WATCHED: usize = 20;

/// The state of the last runs: their status, their stages that ended, and their directories, which marks
/// change. `None` if it cannot be read.
fn state(site: &Site) -> Option<String> {
    let (runs, broken) = history::last(&site.runs, WATCHED).ok()?;
    let touched = |dir: &Path| dir.metadata().ok()?.modified().ok();
    let run = |run: &Run| {
        let ended = run.stages.iter().filter(|stage| stage.status.is_some()).count();
        (run.id.clone(), run.status, ended, touched(&run.dir))
    };
    let runs: Vec<_> = runs.iter().map(run).collect();
    Some(format!("{runs:?} {broken:?} {:?}", touched(&site.runs)))
}

impl LiveRuns {
    /// The list of a page.
    pub(crate) fn new(site: Site, wanted: Wanted) -> Self {
        Self {
            site,
            wanted,
            ticks: 0,
            seen: None,
        }
    }
}

impl Source for LiveRuns {
    fn render(&mut self) -> Fragments {
        let (look, is_due) = (self.ticks / SELDOM, self.ticks.is_multiple_of(SELDOM));
        self.ticks += 1;
        if !is_due {
            return Fragments::new();
        }
        // Filters, orders and groups read every run.
        if !self.wanted.is_newest_of_all() {
            let state = state(&self.site);
            let is_same = state.is_some() && state == self.seen;
            self.seen = state;
            if is_same && !look.is_multiple_of(IDLE) {
                return Fragments::new();
            }
        }
        let list = list(&self.site, &self.wanted);
        let html = list.map_or_else(|failure| problem(&failure), |listed| listed.html);
        Fragments::from([("runs", html)])
    }

    fn is_over(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A choice of columns sends the order along, whatever it is.
    #[test]
    fn the_order_is_among_the_choices() {
        for sort in ["id", "-duration", "duration", "train.charts/SPS"] {
            let wanted = Wanted {
                sort: sort.to_owned(),
                ..Wanted::default()
            };
            let form = view(&wanted, &Offers::default());
            let chosen = option(sort, &order_text(sort), true);
            assert!(chosen.contains("selected") && form.contains(&chosen), "{form}");
        }
        assert_eq!(order_text("started"), "started, oldest first");
    }

    #[test]
    fn an_address_reads_back() {
        for query in [
            "",
            "where=a%20%3D%201&sort=-params.n&group=tag&show=train.x&show=params.y&page=2",
            "show=",
        ] {
            assert_eq!(Wanted::read(query).query(), query);
        }
        let commas = Wanted::read("show=a.b,%20c.d&show=");
        assert_eq!(commas.query(), "show=a.b&show=c.d");
    }
}
