//! The opening of an account: what its policy's backtests promised is fixed.

use super::Papers;
use super::acts::Acts;
use super::entries::as_entry;
use crate::refused;
use chrono::{DateTime, Utc};
use datasets::{Date, SnapshotTime};
use runner_engine::Failure;
use runner_history::paper::{Opened, PromiseRecord};
use stages_env::BaselineName;
use stages_evaluate::paper::{Decider, open as open_account, samples};
use stages_evaluate::promise::{Promise, PromiseSettings};
use std::collections::BTreeMap;

/// The settings of an account.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The name of the account.
    pub name: String,
    /// The policy: `NAME@ALIAS`, which is followed, `NAME@VERSION`, or RUN/STAGE.
    pub policy: String,
    /// The capital; by default the environment's.
    pub capital: Option<f64>,
    /// The world, where the environment has several.
    pub world: Option<String>,
    /// The date from which on nights count.
    pub from: Date,
    /// The time of the opening.
    pub opened: DateTime<Utc>,
    /// Rules and policies that run beside it; by default the rules that the environment has, and the version
    /// that acted before where an alias is followed.
    pub beside: Option<Vec<String>>,
    /// The treatment of the book on a halt: `close` or `hold`.
    pub halt: String,
    /// The limits that halt it.
    pub limits: BTreeMap<String, f64>,
    /// The probability of an alarm, ever, while the promise is kept.
    pub false_alarm_rate: f64,
}

/// Makes the first entry of an account, and notes for people.
///
/// # Errors
/// If there is no such policy, its environment has no account, its training data do not end before the
/// account begins, or its backtests are too short to promise anything.
pub fn open(papers: &Papers<'_>, opening: &Opening) -> Result<(Opened, Vec<String>), Failure> {
    let as_of = match Papers::follows(&opening.policy) {
        true => papers.version_as_of(&opening.policy, opening.from)?,
        false => None,
    };
    let version = match as_of {
        Some(version) => version,
        None => papers.version(&opening.policy)?,
    };
    let acts = papers.acts(&version)?;
    if let Some(trained) = acts.trained_until
        && opening.from <= trained
    {
        return Err(refused(format!(
            "the account would begin on {}, and the policy was trained on dates until {trained}",
            opening.from
        ))
        .hint("let it begin later: a policy is judged on dates that it has not seen"));
    }
    let most = opening.limits.get("max_age").copied().or(acts.max_age);
    if let (Some(trained), Some(most)) = (acts.trained_until, most)
        && f64::from(opening.from.0 - trained.0) > most
    {
        return Err(refused(format!(
            "the policy was trained on dates until {trained}, and its `max_age` of {most} days is over on {}: \
            the account would halt on its first night",
            opening.from
        ))
        .hint("train it on newer dates, or give `--from` or, for nights that are rehearsed, `--now`"));
    }
    let store = &papers.acting.archive.store;
    let env = papers.trained_env(&acts)?;
    let policy = &acts.trained.policy;
    let account = open_account(store, &env, Decider::Policy(policy), opening.world.as_deref())?;
    let mut notes = Vec::new();
    let usual = account.capital();
    let capital = opening.capital.or(usual).ok_or_else(|| {
        Failure::usage("an account over a table has no capital of its own").hint("give `--capital 100000`")
    })?;
    if !(capital.is_finite() && capital > 0.0) {
        return Err(Failure::usage(format!("a capital of {capital} is none")).hint("give one above 0"));
    }
    if let Some(usual) = usual.filter(|usual| !(0.5..=2.0).contains(&(capital / usual))) {
        notes.push(format!(
            "the policy was trained with a capital of {usual}, by which its observations are scaled: with \
            {capital} it sees an account that it has never seen"
        ));
    }
    let beside: Vec<String> = match &opening.beside {
        Some(named) => {
            let checked = named.iter().map(|name| check_beside(papers, &acts, opening, name));
            checked.collect::<Result<_, Failure>>()?
        }
        None => {
            let rules = RULES
                .into_iter()
                .filter_map(|name| check_beside(papers, &acts, opening, name).ok());
            let previous = Papers::follows(&opening.policy).then(|| PREVIOUS.to_owned());
            rules.chain(previous).collect()
        }
    };
    let samples = samples(store, &env, policy)?;
    let settings = PromiseSettings {
        false_alarm_rate: opening.false_alarm_rate,
    };
    let promise = Promise::new(&samples.steps, samples.steps_a_year, &settings)?;
    for name in beside.iter().filter(|name| Papers::follows(name)) {
        if papers.version(name).is_err() {
            notes.push(format!(
                "`{name}` points to nothing yet: it runs beside the account once it does"
            ));
        }
    }
    notes.extend(promise.caveat().map(ToOwned::to_owned));
    let promise = PromiseRecord {
        dates: samples.dates,
        ..as_entry(&promise)?
    };
    let last = samples.dates.map(|(_, last)| last);
    if let Some(last) = last.filter(|last| *last >= opening.from) {
        notes.push(format!(
            "the account begins on {}, within the test dates of its policy, which go to {last}: nights until \
            then are no forward evidence",
            opening.from
        ));
    }
    let opened = Opened {
        name: opening.name.clone(),
        opened: opening.opened,
        policy: opening.policy.clone(),
        version,
        capital,
        world: opening.world.clone(),
        from: opening.from,
        beside,
        halt: opening.halt.clone(),
        limits: opening.limits.clone(),
        promise,
    };
    Ok((opened, notes))
}

/// The rules that run beside an account where its environment has them.
const RULES: [&str; 4] = ["cash", "underlying", "short_straddle", "equal_weight"];

/// The name of the version that acted before the present one.
pub(super) const PREVIOUS: &str = "previous";

/// The rule of this name; `None` if it names a policy.
pub(super) fn rule(name: &str) -> Option<BaselineName> {
    serde_json::from_value(name.into()).ok()
}

/// The name of an account beside, refused if it is a rule that the environment does not have or no policy. An
/// alias that nothing has yet may get its first version later.
fn check_beside(papers: &Papers<'_>, acts: &Acts, opening: &Opening, name: &str) -> Result<String, Failure> {
    let store = &papers.acting.archive.store;
    match rule(name) {
        Some(rule) => {
            let env = papers.trained_env(acts)?;
            let mut account = open_account(store, &env, Decider::Rule(rule), opening.world.as_deref())?;
            account.begin(SnapshotTime::default(), account.capital().unwrap_or(1.0))?;
            account.decide()?;
            account.advance()?;
            Ok(name.to_owned())
        }
        None if name == PREVIOUS || Papers::follows(name) => Ok(name.to_owned()),
        None => match papers.version(name) {
            Ok(version) => Ok(version.name),
            Err(err) => Err(err.hint(format!(
                "beside an account run the rules {}, `{PREVIOUS}`, NAME@ALIAS of a policy, and RUN/STAGE",
                RULES.join(", ")
            ))),
        },
    }
}
