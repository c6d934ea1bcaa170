//! The listener and its routes.

use crate::access::{Access, Refused, query_value, random_text, token_cookie};
use crate::connections;
use crate::control;
use crate::layout::{self, Page, run_address, search_address};
use crate::live::{Hub, Source};
use crate::nights::Nights;
use crate::pages::{self, LiveOverview, LiveRunPage, LiveRuns, LiveSearch, Part, Wanted};
use crate::pulse::{Heart, Pulse};
use crate::site::{Server, Site};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Form, Path as InPath, Query, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use runner_engine::{Failure, exit};
use runner_history as history;
use runner_report as report;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;

/// The content security policy of pages: they may load only their own style sheet, scripts and events.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src \
                      'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The interval at which a signal to stop is checked for.
const STOP: Duration = Duration::from_millis(100);

/// The time allowed for finishing responses when the server stops.
const GRACE: Duration = Duration::from_secs(1);

/// The number of pages that are rendered at a time; further requests wait. Each takes memory in proportion to
/// the history.
const THREADS: usize = 2;

/// The largest body of a request in bytes: forms are small.
const LARGEST: usize = 64 << 10;

/// Listens, calls `announce` with the address and the token that requests need, and serves until
/// [`Server::stop`] is set.
pub fn serve(
    server: Server,
    announce: impl FnOnce(SocketAddr, Option<&str>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let no_random = |err: std::io::Error| Failure::caused("cannot read random numbers", &err);
    let address = server.bind;
    let token = match server.token {
        None if !address.ip().is_loopback() => Some(random_text().map_err(no_random)?),
        token => token,
    };
    let failed = |err: &std::io::Error| {
        Failure::caused(format!("cannot listen on {address}"), err)
            .hint("name another address: `--bind 127.0.0.1:8643`")
    };
    let access = Access::new(address.ip(), token.as_deref()).map_err(no_random)?;
    let site = Site {
        host: server.host,
        program: server.program,
        runs: server.home.join("runs"),
        home: server.home,
        directory: server.directory,
        allow_run: server.allow_run,
        access: Arc::new(access),
        hub: Hub::default(),
        heart: Heart::default(),
        days: pages::Days::default(),
    };
    let stop = server.stop;
    let nights = match server.schedule.as_slice() {
        [] => None,
        pipelines => Some(Nights::start(&site, pipelines, Arc::clone(&stop))?),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(THREADS)
        .build()
        .map_err(|err| Failure::caused("cannot start the server", &err))?;
    let served = runtime.block_on(async {
        let listener = TcpListener::bind(address).await.map_err(|err| failed(&err))?;
        let address = listener.local_addr().map_err(|err| failed(&err))?;
        announce(address, token.as_deref())?;
        let limits = server.limits;
        tokio::select! {
            () = connections::serve(listener, router(site, limits.patience), limits) => {}
            () = stopped(&stop) => {}
        }
        Ok(())
    });
    runtime.shutdown_timeout(GRACE);
    stop.store(true, Ordering::Relaxed);
    if let Some(nights) = nights {
        nights.join();
    }
    served
}

async fn stopped(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(STOP).await;
    }
}

fn router(site: Site, patience: Duration) -> Router {
    Router::new()
        .route("/", get(overview))
        .route("/runs", get(runs))
        .route("/spark.svg", get(spark))
        .route("/runs/{run}", get(run))
        .route("/runs/{run}/report", get(run_report))
        .route("/runs/{run}/cancel", post(cancel))
        .route("/runs/{run}/stages/{stage}", get(stage))
        .route("/runs/{run}/stages/{stage}/outputs/{output}", get(artifact))
        .route("/compare", get(compare))
        .route("/searches", page(pages::searches))
        .route("/searches/{search}", get(search))
        .route("/schedule", page(pages::schedule))
        .route("/schedule/{name}/retry", post(retry))
        .route("/policies", page(pages::policies))
        .route("/paper", page(pages::papers))
        .route("/paper/{account}", get(paper))
        .route("/data", page(pages::data))
        .route("/cache", page(pages::cache))
        .route(
            "/pipelines",
            page(|site| may_run(site).and_then(|()| pages::pipelines(site))),
        )
        .route("/start", post(start))
        .route("/events/overview", get(overview_events))
        .route("/events/runs", get(runs_events))
        .route("/events/runs/{run}", get(run_events))
        .route("/events/searches/{search}", get(search_events))
        .route("/style.css", get(style))
        .route("/live.js", get(|| script(layout::SCRIPT)))
        .route("/charts.js", get(|| script(report::chart::SCRIPT)))
        .fallback(nowhere)
        .layer(middleware::from_fn_with_state((site.clone(), patience), guard))
        .with_state(site)
}

/// Checks access, and adds the headers common to all responses.
async fn guard(State((site, patience)): State<(Site, Duration)>, request: Request, next: Next) -> Response {
    let mut response = match site.access.check(request.uri(), request.headers()) {
        Err(refused) => refuse(refused),
        Ok(true) => to_cookie(request.uri()),
        Ok(false) => match whole(request, patience).await {
            Ok(request) => next.run(request).await,
            Err(response) => response,
        },
    };
    let headers = response.headers_mut();
    headers
        .entry(CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(POLICY));
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    headers.insert("referrer-policy", HeaderValue::from_static("same-origin"));
    response
}

/// Reads the body of a request.
async fn whole(request: Request, patience: Duration) -> Result<Request, Response> {
    let (head, body) = request.into_parts();
    match tokio::time::timeout(patience, to_bytes(body, LARGEST)).await {
        Ok(Ok(body)) => Ok(Request::from_parts(head, Body::from(body))),
        Ok(Err(_)) => Err((StatusCode::PAYLOAD_TOO_LARGE, "the form cannot be read\n").into_response()),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the form did not arrive\n").into_response()),
    }
}

fn refuse(refused: Refused) -> Response {
    let status = match refused {
        Refused::Token => StatusCode::UNAUTHORIZED,
        Refused::Host | Refused::Origin => StatusCode::FORBIDDEN,
    };
    (status, format!("{}\n", refused.message())).into_response()
}

/// Moves the token from the address to a cookie, so that it is not in the browser's history.
fn to_cookie(uri: &Uri) -> Response {
    let token = query_value(uri, "token").unwrap_or_default();
    (
        StatusCode::SEE_OTHER,
        [(LOCATION, uri.path().to_owned()), (SET_COOKIE, token_cookie(&token))],
    )
        .into_response()
}

/// Runs `work`, which blocks on files, in a thread of its own, and returns its response.
async fn answer<R: IntoResponse + Send + 'static>(
    work: impl FnOnce() -> Result<R, Failure> + Send + 'static,
) -> Response {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(answer)) => answer.into_response(),
        Ok(Err(failure)) => failed(&failure),
        Err(_) => failed(&Failure::machine("the request could not be carried out")),
    }
}

/// Renders a page in the frame of the site, or the page of its failure.
async fn shown(site: Site, render: impl FnOnce(&Site) -> Result<Page, Failure> + Send + 'static) -> Response {
    answer(move || {
        let page = render(&site);
        let pulse = site.heart.pulse(&site);
        Ok(match page {
            Ok(page) => Html(page.html(&pulse)).into_response(),
            Err(failure) => failed_within(&failure, &pulse),
        })
    })
    .await
}

/// The route of a page without parameters.
fn page(render: fn(&Site) -> Result<Page, Failure>) -> MethodRouter<Site> {
    get(move |State(site): State<Site>| shown(site, render))
}

fn failed(failure: &Failure) -> Response {
    failed_within(failure, &Pulse::default())
}

fn failed_within(failure: &Failure, pulse: &Pulse) -> Response {
    let status = match failure.code {
        exit::WRONG_USAGE => StatusCode::NOT_FOUND,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, Html(Page::failure(failure).html(pulse))).into_response()
}

/// The overview; a query is that of an address of the list of runs from when it was the first page.
async fn overview(State(site): State<Site>, uri: Uri) -> Response {
    match uri.query() {
        Some(query) if !query.is_empty() => {
            (StatusCode::PERMANENT_REDIRECT, [(LOCATION, format!("/runs?{query}"))]).into_response()
        }
        _ => shown(site, pages::overview).await,
    }
}

async fn runs(State(site): State<Site>, uri: Uri) -> Response {
    let wanted = Wanted::read(uri.query().unwrap_or_default());
    shown(site, move |site| Ok(pages::runs(site, &wanted))).await
}

/// Draws the first of some artifacts that has a curve. What an artifact holds never changes.
async fn spark(State(site): State<Site>, uri: Uri) -> Response {
    let query = uri.query().unwrap_or_default().to_owned();
    answer(move || {
        let store = site.store()?;
        let pairs = url::form_urlencoded::parse(query.as_bytes());
        let digests = pairs
            .filter(|(key, _)| key == "of")
            .filter_map(|(_, digest)| digest.parse().ok());
        let mut curves =
            digests.filter_map(|digest| report::spark_curve(&store, &store.artifact(digest).ok()?));
        let curve = curves.next();
        // An artifact that is missing now may be there later.
        let kept = match curve {
            Some(_) => "private, max-age=31536000, immutable",
            None => "no-store",
        };
        let headers = [(CONTENT_TYPE, "image/svg+xml"), (CACHE_CONTROL, kept)];
        Ok((headers, report::spark_svg(&curve.unwrap_or_default())))
    })
    .await
}

#[derive(Deserialize)]
struct RunQuery {
    #[serde(default)]
    stages: String,
}

async fn run(
    State(site): State<Site>,
    InPath(name): InPath<String>,
    Query(query): Query<RunQuery>,
) -> Response {
    shown(site, move |site| {
        pages::run(site, &site.run(&name)?, query.stages == "all")
    })
    .await
}

async fn stage(State(site): State<Site>, InPath((run, stage)): InPath<(String, String)>) -> Response {
    shown(site, move |site| pages::stage(site, &site.run(&run)?, &stage)).await
}

async fn artifact(
    State(site): State<Site>,
    InPath((run, stage, output)): InPath<(String, String, String)>,
    uri: Uri,
) -> Response {
    let part = Part::read(uri.query().unwrap_or_default());
    shown(site, move |site| {
        pages::artifact(site, &site.run(&run)?, &stage, &output, part)
    })
    .await
}

/// Returns the report, which is rendered first if it does not exist.
async fn run_report(State(site): State<Site>, InPath(name): InPath<String>) -> Response {
    let read = move || {
        let run = history::load(&site.runs, &site.run(&name)?)?;
        let path = run.dir.join("report.html");
        let is_over = run.status != runner_engine::RunStatus::Running;
        if !(is_over && path.is_file()) {
            report::write(&run, &site.runs, &site.store()?)?;
        }
        let page = std::fs::read_to_string(&path);
        page.map(self_contained).map_err(Failure::at("cannot read", &path))
    };
    answer(read).await
}

async fn compare(State(site): State<Site>, uri: Uri) -> Response {
    let query = uri.query().unwrap_or_default().to_owned();
    let read = move || {
        let pairs = url::form_urlencoded::parse(query.as_bytes());
        let names = pairs.filter(|(key, _)| key == "run").map(|(_, run)| run.into_owned());
        pages::compare(&site, &names.collect::<Vec<_>>()).map(self_contained)
    };
    answer(read).await
}

/// A page that is also a file, with its own content security policy, which names its inline style and script.
fn self_contained(page: String) -> Response {
    let own = report::html::policy(&page).map(|policy| format!("{policy}; frame-ancestors 'none'"));
    let value = own.and_then(|policy| HeaderValue::from_str(&policy).ok());
    let policy = value.unwrap_or_else(|| HeaderValue::from_static(POLICY));
    ([(CONTENT_SECURITY_POLICY, policy)], Html(page)).into_response()
}

/// Refuses a request that changes something, unless the server allows it.
fn may_run(site: &Site) -> Result<(), Failure> {
    match site.allow_run {
        true => Ok(()),
        false => Err(Failure::usage("this server only shows")
            .hint("start it with `--allow-run` to start and cancel runs")),
    }
}

/// Makes a change that a form of this server asks for, and shows the page whose address it returns.
async fn change(
    site: Site,
    headers: &HeaderMap,
    secret: &str,
    work: impl FnOnce(&Site) -> Result<String, Failure> + Send + 'static,
) -> Response {
    if let Err(refused) = site.access.check_form(headers, secret) {
        return refuse(refused);
    }
    answer(move || {
        may_run(&site)?;
        Ok((StatusCode::SEE_OTHER, [(LOCATION, work(&site)?)]))
    })
    .await
}

/// A form with nothing but the secret.
#[derive(Deserialize)]
struct ButtonForm {
    #[serde(default)]
    secret: String,
}

async fn cancel(
    State(site): State<Site>,
    InPath(name): InPath<String>,
    headers: HeaderMap,
    Form(form): Form<ButtonForm>,
) -> Response {
    let cancel = move |site: &Site| {
        let run = site.run(&name)?;
        control::cancel(&site.runs, &run).map(|()| run_address(&run))
    };
    change(site, &headers, &form.secret, cancel).await
}

async fn retry(
    State(site): State<Site>,
    InPath(name): InPath<String>,
    headers: HeaderMap,
    Form(form): Form<ButtonForm>,
) -> Response {
    let retry = move |site: &Site| control::run_due(site, &name).map(|()| "/schedule".to_owned());
    change(site, &headers, &form.secret, retry).await
}

#[derive(Deserialize)]
struct StartForm {
    #[serde(default)]
    secret: String,
    pipeline: PathBuf,
    #[serde(default)]
    set: String,
}

async fn start(State(site): State<Site>, headers: HeaderMap, Form(form): Form<StartForm>) -> Response {
    let StartForm { secret, pipeline, set } = form;
    let start = move |site: &Site| {
        if !pages::is_offered(site, &pipeline)? {
            return Err(Failure::usage(format!("`{}` is not offered", pipeline.display())));
        }
        let set: Vec<String> = set.split_whitespace().map(str::to_owned).collect();
        control::start(site, &pipeline, &set).map(|run| run_address(&run))
    };
    change(site, &headers, &secret, start).await
}

async fn overview_events(State(site): State<Site>) -> Response {
    answer(move || {
        site.hub
            .clone()
            .watch("/", move || Ok(Box::new(LiveOverview::new(site))))
    })
    .await
}

async fn runs_events(State(site): State<Site>, uri: Uri) -> Response {
    let wanted = Wanted::read(uri.query().unwrap_or_default());
    let (hub, name) = (site.hub.clone(), wanted.address());
    answer(move || hub.watch(&name, move || Ok(Box::new(LiveRuns::new(site, wanted))))).await
}

async fn run_events(State(site): State<Site>, InPath(name): InPath<String>) -> Response {
    answer(move || {
        let run = site.run(&name)?;
        let open = || -> Result<Box<dyn Source>, Failure> { Ok(Box::new(LiveRunPage::open(&site, &run)?)) };
        site.hub.watch(&run_address(&run), open)
    })
    .await
}

async fn search(State(site): State<Site>, InPath(name): InPath<String>) -> Response {
    shown(site, move |site| pages::search(site, &name)).await
}

async fn paper(State(site): State<Site>, InPath(account): InPath<String>) -> Response {
    shown(site, move |site| pages::paper(site, &account)).await
}

async fn search_events(State(site): State<Site>, InPath(name): InPath<String>) -> Response {
    answer(move || {
        let hub = site.hub.clone();
        let source = LiveSearch::open(&site, &name)?;
        hub.watch(&search_address(source.id()), move || Ok(Box::new(source)))
    })
    .await
}

async fn style() -> Response {
    ([(CONTENT_TYPE, "text/css; charset=utf-8")], layout::style()).into_response()
}

async fn script(text: &'static str) -> Response {
    ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], text).into_response()
}

async fn nowhere() -> Response {
    failed(&Failure::usage("there is no such page").hint("the list of runs is at `/runs`"))
}
