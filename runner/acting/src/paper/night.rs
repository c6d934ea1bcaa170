//! The nights of an account.

use super::acts::{Acts, Files};
use super::entries::{as_entry, bookings, orders};
use super::opening::{PREVIOUS, rule};
use super::{Papers, Told};
use crate::refused;
use crate::stale::Shown;
use cache::{Artifact, ArtifactDigest};
use datasets::{Date, SnapshotTime};
use runner_engine::{Failure, exit, text};
use runner_history::paper::{
    Booking, Correction, Entry, Ledger, Night, Opened, PolicyMove, Position, Shadow, StandIn, Standing, Stop,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stages_core::StageError;
use stages_env::acting::Holdings;
use stages_evaluate::paper::{Account, Decider, Held, Pending, enter, open as open_account};
use stages_evaluate::promise::drift::drifted;
use stages_evaluate::promise::{Promise, Watch};
use std::collections::BTreeMap;

/// The snapshots whose observed rows are remembered, to tell when their data is restated.
const REMEMBERED: usize = 40;

/// The snapshots of the training, and the last ones of the account, whose features are compared.
const TRAINING: usize = 1000;
const RECENT: usize = 40;

/// The settings of a night.
#[derive(Clone, Debug)]
pub struct Nightly {
    /// The data of the night.
    pub files: Files,
    /// The date up to which nights are booked.
    pub until: Date,
    /// A date whose night comes first, if the account has lived before it.
    pub requires: Option<Date>,
}

/// The state that a night goes on from.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    account: Held,
    watch: Watch,
    /// Snapshots and the hashes of what the policy saw of the market.
    seen: Vec<(SnapshotTime, String)>,
    beside: BTreeMap<String, Beside>,
}

/// An account beside.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Beside {
    held: Held,
    since: usize,
    policy: Option<StandIn>,
}

/// Books every night that the data has after the last one, one by one, each on the data up to it. Returns
/// what was added to the ledger.
///
/// # Errors
/// If the account is closed, the data does not allow a night, or a stage fails; nights that are complete are
/// booked.
pub fn run(
    papers: &Papers<'_>,
    ledger: &mut Ledger,
    nightly: &Nightly,
    progress: Told<'_, '_>,
) -> Result<Vec<Entry>, Failure> {
    let name = ledger.opened().name.clone();
    if ledger.is_closed() {
        return Err(Failure::usage(format!("the account `{name}` is closed"))
            .hint("`runner paper open` opens another one"));
    }
    let mut added = Vec::new();
    // A night that is booked is not booked again, and there is none before the first.
    let is_over = match ledger.last_night() {
        Some(last) => last.date >= nightly.until,
        None => ledger.opened().from > nightly.until,
    };
    if is_over {
        return Ok(added);
    }
    let acts = papers.acts(ledger.policy())?;
    let dates = due(papers, ledger, &acts, nightly, progress)?;
    if let Some(required) = nightly.requires
        && ledger.last_night().is_some_and(|last| last.date < required)
        && !dates.contains(&required)
    {
        return Err(
            refused(format!("the data has no snapshot of {required}, the night before"))
                .hint("its data may be late; `runner schedule skip` settles a night whose data never comes"),
        );
    }
    for date in dates {
        let mut has_more = true;
        while has_more {
            let (entries, more) = Booked::new(papers, ledger, nightly, date, progress)?.night(progress)?;
            ledger.append(entries.clone())?;
            added.extend(entries);
            has_more = more;
        }
    }
    Ok(added)
}

/// The dates of the nights that are not booked yet.
fn due(
    papers: &Papers<'_>,
    ledger: &Ledger,
    acts: &Acts,
    nightly: &Nightly,
    progress: Told<'_, '_>,
) -> Result<Vec<Date>, Failure> {
    let opened = ledger.opened();
    let (_, env, _) = papers.environment(acts, &nightly.files, nightly.until, progress)?;
    let (store, world) = (&papers.acting.archive.store, opened.world.as_deref());
    let mut account = open_account(store, &env, Decider::Policy(&acts.trained.policy), world)?;
    let mut times: Vec<SnapshotTime> = Vec::new();
    match ledger.last_night() {
        Some(night) => account.resume(&kept(night)?.account)?,
        None => match account.begin(SnapshotTime::of_day(opened.from), opened.capital) {
            Ok(()) => times.push(account.time()),
            // The data does not go so far yet.
            Err(_) => return Ok(Vec::new()),
        },
    }
    times.extend(account.left());
    let mut dates: Vec<Date> = times.iter().map(|time| time.date).collect();
    dates.retain(|date| *date <= nightly.until);
    dates.dedup();
    Ok(dates)
}

fn kept(night: &Night) -> Result<Kept, Failure> {
    serde_json::from_value(night.state.clone()).map_err(|err| {
        Failure::machine(format!("the state of the night {} cannot be read: {err}", night.time))
            .hint("it was booked by another version of the program: close the account and open another one")
    })
}

/// The hash of what a policy sees of the market at a snapshot.
fn seen(row: &[f32]) -> String {
    let bytes: Vec<u8> = row.iter().flat_map(|value| value.to_le_bytes()).collect();
    blake3::hash(&bytes).to_hex()[..16].to_owned()
}

/// True if a failure is of the machine, or the command was interrupted: the night is tried again.
fn is_fatal(failure: &Failure) -> bool {
    [exit::MACHINE_FAILED, exit::INTERRUPTED].contains(&failure.code)
}

/// The night of a date.
struct Booked<'a> {
    papers: &'a Papers<'a>,
    opened: Opened,
    promise: Promise,
    nightly: &'a Nightly,
    date: Date,
    acts: Acts,
    data: ArtifactDigest,
    env: Artifact,
    notes: Vec<String>,
    shown: Shown,
    last: Option<Night>,
    /// The account is halted.
    stopped: bool,
    /// A person has resumed it since the last night.
    resumed: bool,
    /// Capital added since the last night.
    transferred: f64,
    real_fills: Vec<Booking>,
    /// The version that acted before the present one.
    previous: Option<StandIn>,
}

impl<'a> Booked<'a> {
    fn new(
        papers: &'a Papers<'a>,
        ledger: &Ledger,
        nightly: &'a Nightly,
        date: Date,
        progress: Told<'_, '_>,
    ) -> Result<Self, Failure> {
        let acts = papers.acts(ledger.policy())?;
        let (data, env, found) = papers.environment(&acts, &nightly.files, date, progress)?;
        let unmatched = ledger.unmatched();
        let told = unmatched.iter().map(|order| {
            format!(
                "the broker filled {} of the order {} in {}, and the model {}: the position is the model's",
                text::figure(order.real),
                order.order,
                order.of,
                text::figure(order.model)
            )
        });
        let notes = found.notes.into_iter().chain(told).collect();
        let after = ledger.entries().iter().rev();
        let after = || after.clone().take_while(|entry| !matches!(entry, Entry::Night(_)));
        Ok(Self {
            promise: as_entry(&ledger.opened().promise)?,
            opened: ledger.opened().clone(),
            last: ledger.last_night().cloned(),
            stopped: ledger.stopped().is_some(),
            resumed: after().any(|entry| matches!(entry, Entry::Resumed(_))),
            transferred: after()
                .filter_map(|entry| match entry {
                    Entry::Transfer(change) => Some(change.amount),
                    _ => None,
                })
                .sum(),
            real_fills: ledger.real_fill_difference(),
            previous: ledger.entries().iter().rev().find_map(|entry| match entry {
                Entry::Policy(moved) => Some(moved.from.clone()),
                _ => None,
            }),
            papers,
            nightly,
            date,
            acts,
            data,
            env,
            notes,
            shown: found.shown,
        })
    }

    fn account<'b>(&'b self, acts: &'b Acts, env: &Artifact) -> Result<Box<dyn Account + 'b>, Failure> {
        let (store, world) = (&self.papers.acting.archive.store, self.opened.world.as_deref());
        Ok(open_account(store, env, Decider::Policy(&acts.trained.policy), world)?)
    }

    /// The entries of the next snapshot, and true if its date has a further one.
    fn night(&self, progress: Told<'_, '_>) -> Result<(Vec<Entry>, bool), Failure> {
        let mut account = self.account(&self.acts, &self.env)?;
        let mut entries = Vec::new();
        let mut is_ruined = false;
        let (mut night, mut kept) = match &self.last {
            None => {
                account.begin(SnapshotTime::of_day(self.opened.from), self.opened.capital)?;
                let kept = Kept {
                    account: account.held(),
                    watch: Watch::new(),
                    seen: Vec::new(),
                    beside: BTreeMap::new(),
                };
                (self.entered(&*account, 0, Vec::new(), [0.0; 4]), kept)
            }
            Some(last) => {
                let mut kept = kept(last)?;
                account.resume(&kept.account)?;
                self.corrections(last, &mut kept, &*account, &mut entries)?;
                if self.stopped {
                    // A person's halt comes after the night's decision.
                    account.wait(self.halt());
                }
                if self.resumed {
                    kept.watch = kept.watch.anew();
                }
                let real: f64 = self.real_fills.iter().map(|booking| booking.cash).sum();
                let step = enter(&mut *account, real)?;
                if self.transferred != 0.0 {
                    // After the fills, which were decided without it.
                    account.pay(self.transferred, false);
                }
                let booked = [bookings(&step.bookings)?, self.real_fills.clone()].concat();
                kept.watch.update(&self.promise, step.log_return, step.risk_free);
                let figures = [step.log_return, step.risk_free, step.turnover, step.costs];
                is_ruined = step.is_ruined;
                (self.entered(&*account, last.number + 1, booked, figures), kept)
            }
        };
        night.book = as_entry(&account.marked())?;
        night.standing = as_entry(&kept.watch.standing(&self.promise))?;
        night.drawdown = kept.watch.present_drawdown();
        night.standing.drifted = self.drifted(&*account);
        night.notes.extend(self.notes.iter().cloned());
        let (store, spec) = (&self.papers.acting.archive.store, self.acts.trained.policy.spec());
        let at = (night.time.as_str(), night.date);
        night
            .notes
            .extend(self.shown.stale(store, &spec.observation, account.world(), at)?);
        night.notes.extend(self.drift_told(&night));
        let successor = self.successor(&*account, &mut night, progress)?;
        // A smaller capital than the environment's is ruined by its own measure alone.
        let usual = account.capital().unwrap_or(0.0);
        let is_ruined = is_ruined && self.opened.capital >= 0.999 * usual;
        let halted = match self.stopped {
            true => None,
            false => self.halts(&night, is_ruined, successor.is_some()),
        };
        self.beside(account.time(), &mut night, &mut kept, progress)?;
        let mut moved = None;
        if self.stopped || halted.is_some() {
            let pending = self.halt();
            night.action = match pending {
                Pending::Close => "halted: the book is closed".to_owned(),
                _ => "halted: the book is held".to_owned(),
            };
            night.orders = orders(&night.time, &account.wait(pending))?;
        } else if let Some((next, env)) = &successor {
            moved = self.succeed(&mut *account, (next, env), &mut night, &mut kept)?;
        } else {
            self.decided(&mut *account, &mut night)?;
        }
        if moved.is_none() {
            kept.account = account.held();
            if let Some(row) = account.row(account.time()) {
                kept.seen.push((account.time(), seen(row)));
            }
        }
        let surplus = kept.seen.len().saturating_sub(REMEMBERED);
        kept.seen.drain(..surplus);
        night.state = as_entry(&kept)?;
        entries.push(Entry::Night(Box::new(night)));
        entries.extend(moved.map(Entry::Policy));
        entries.extend(halted.map(Entry::Halted));
        let has_more = account.left().first().is_some_and(|next| next.date <= self.date);
        Ok((entries, has_more))
    }

    /// The treatment of the book while the account is halted.
    fn halt(&self) -> Pending {
        match self.opened.halt.as_str() {
            "close" => Pending::Close,
            _ => Pending::Hold,
        }
    }

    /// A note on features whose drift begins, and one on those whose drift ends.
    fn drift_told(&self, night: &Night) -> Vec<String> {
        let now = &night.standing.drifted;
        let earlier = self
            .last
            .as_ref()
            .map_or(&[][..], |last| last.standing.drifted.as_slice());
        let without = |these: &[String], those: &[String]| -> Vec<String> {
            these.iter().filter(|name| !those.contains(name)).cloned().collect()
        };
        let told = [("begins", without(now, earlier)), ("ends", without(earlier, now))];
        let told = told.into_iter().filter(|(_, names)| !names.is_empty());
        told.map(|(what, names)| format!("drift from the training {what}: {}", names.join(", ")))
            .collect()
    }

    /// The version that is to act from this night on, if it is another one and can act, with its
    /// environment. A note tells why one cannot.
    fn successor(
        &self,
        account: &dyn Account,
        night: &mut Night,
        progress: Told<'_, '_>,
    ) -> Result<Option<(Acts, Artifact)>, Failure> {
        if !Papers::follows(&self.opened.policy) || self.stopped {
            return Ok(None);
        }
        let wanted = self.papers.version_as_of(&self.opened.policy, self.date)?;
        let Some(wanted) = wanted.filter(|wanted| *wanted != self.acts.name) else {
            return Ok(None);
        };
        let mut found = || -> Result<(Acts, Artifact), Failure> {
            let next = self.papers.acts(&wanted)?;
            if let Some(trained) = next.trained_until.filter(|trained| *trained >= self.date) {
                return Err(refused(format!("it was trained on dates until {trained}")));
            }
            let (_, env, _) = self
                .papers
                .environment(&next, &self.nightly.files, self.date, progress)?;
            // Without positions, which it may not know.
            let mut empty = self.account(&next, &env)?;
            let holdings = Holdings {
                positions: Vec::new(),
                ..account.holdings()
            };
            empty.take(account.time(), &holdings, account.held().scale)?;
            drop(empty);
            Ok((next, env))
        };
        match found() {
            Ok(found) => Ok(Some(found)),
            Err(failure) if is_fatal(&failure) => Err(failure),
            Err(failure) => {
                night
                    .notes
                    .push(format!("`{}` cannot act yet: {}", wanted.name, failure.message));
                Ok(None)
            }
        }
    }

    /// A night as its step left it; its decision and standing are to follow.
    fn entered(
        &self,
        account: &dyn Account,
        number: usize,
        bookings: Vec<Booking>,
        [log_return, risk_free, turnover, costs]: [f64; 4],
    ) -> Night {
        let time = account.time();
        Night {
            time: time.to_string(),
            date: time.date,
            number,
            data: self.data,
            policy: self.acts.name.clone(),
            bookings,
            book: Default::default(),
            log_return,
            risk_free,
            turnover,
            costs,
            drawdown: 0.0,
            action: String::new(),
            orders: Vec::new(),
            refused: Vec::new(),
            standing: Standing::default(),
            beside: BTreeMap::new(),
            notes: Vec::new(),
            state: Value::Null,
        }
    }

    /// The features of the policy's last nights that are unlike its training, a message when one begins and
    /// one when it ends.
    fn drifted(&self, account: &dyn Account) -> Vec<String> {
        let Some(trained) = self.acts.trained_until else {
            return Vec::new();
        };
        // A day's last snapshot comes before the next day.
        let (end, start) = (SnapshotTime::of_day(trained.plus(1)), SnapshotTime::default());
        let training = account.rows(start, end, TRAINING);
        let recent = account.rows(end, account.time(), RECENT);
        let before = self.last.as_ref().map(|last| last.standing.drifted.as_slice());
        drifted(&account.row_names(), &training, &recent, before.unwrap_or_default())
    }

    fn decided(&self, account: &mut dyn Account, night: &mut Night) -> Result<(), Failure> {
        let decision = account.decide()?;
        night.action = decision.text;
        night.orders = orders(&night.time, &decision.orders.orders)?;
        // Each reason once, of however many orders.
        night.refused = decision.orders.refused.iter().map(ToString::to_string).collect();
        night.refused.sort();
        night.refused.dedup();
        Ok(())
    }

    /// Data of nights that are booked, which is another one now. Nothing that was booked changes.
    fn corrections(
        &self,
        last: &Night,
        kept: &mut Kept,
        account: &dyn Account,
        entries: &mut Vec<Entry>,
    ) -> Result<(), Failure> {
        let correction = |of: Date, what: String, before, after, difference| {
            Entry::Correction(Correction {
                date: last.date,
                of,
                what,
                before,
                after,
                difference,
                data: self.data,
            })
        };
        for (time, hash) in &mut kept.seen {
            let now = account.row(*time).map(seen).unwrap_or_default();
            if now != *hash {
                let what = "what the policy saw of the market".to_owned();
                entries.push(correction(time.date, what, None, None, 0.0));
                *hash = now;
            }
        }
        let marked = account.marked();
        for restated in account.restated() {
            let (before, after) = (restated.before, restated.after);
            let held = marked.positions.iter().find(|held| held.of.symbol == restated.symbol);
            let difference = held.map_or(0.0, |held| held.value * (after / before - 1.0));
            let what = format!("the price of {}", restated.symbol);
            entries.push(correction(last.date, what, Some(before), Some(after), difference));
        }
        for after in &marked.positions {
            let is_same = |of: &&Position| {
                let name = (&of.of.symbol, of.of.expiry, of.of.strike, of.of.right.as_deref());
                let right = after.of.right.map(|right| right.name());
                name == (&after.of.symbol, after.of.expiry, after.of.strike, right)
                    && of.opened == after.of.opened
            };
            let Some(before) = last.book.positions.iter().find(is_same) else {
                continue;
            };
            if before.mark != after.of.mark {
                let what = format!("the mark of {}", after.of.describe());
                let difference = after.value - before.value;
                entries.push(correction(last.date, what, before.mark, after.of.mark, difference));
            }
        }
        Ok(())
    }

    /// The reason for a halt, if there is one.
    fn halts(&self, night: &Night, is_ruined: bool, is_succeeded: bool) -> Option<Stop> {
        let stop = |by: &str, why: String| {
            Some(Stop {
                date: night.date,
                by: by.to_owned(),
                why,
            })
        };
        let limit = |name: &str| self.opened.limits.get(name).copied();
        if night.book.nav <= 0.0 || is_ruined {
            return stop("ruin", format!("its net asset value is {:.2}", night.book.nav));
        }
        if night.standing.broken {
            return stop(
                "promise",
                format!(
                    "the evidence against its promise is {:.1}, and the limit {:.1}",
                    night.standing.evidence,
                    1.0 / self.opened.promise.false_alarm_rate
                ),
            );
        }
        if let Some(limit) = limit("drawdown").filter(|limit| night.standing.drawdown > *limit) {
            let now = night.standing.drawdown;
            return stop("drawdown", format!("its drawdown is {now:.4}, and the limit {limit}"));
        }
        let exposure = night.book.gross / night.book.nav;
        if let Some(limit) = limit("gross").filter(|limit| exposure > *limit) {
            let why =
                format!("its positions are {exposure:.3} of its net asset value, and the limit is {limit}");
            return stop("exposure", why);
        }
        let age = self
            .acts
            .trained_until
            .map(|trained| f64::from(night.date.0 - trained.0));
        let most = limit("max_age").or(self.acts.max_age);
        if let (Some(age), Some(most)) = (age, most)
            && age > most
            && !is_succeeded
        {
            let why = format!(
                "`{}` was trained on dates until {age} days ago, and its `max_age` is {most} days",
                self.acts.name.name
            );
            return stop("max_age", why);
        }
        None
    }

    /// Lets another version act; where it cannot hold the book, that is closed at the next snapshot first.
    fn succeed(
        &self,
        account: &mut dyn Account,
        (next, env): (&Acts, &Artifact),
        night: &mut Night,
        kept: &mut Kept,
    ) -> Result<Option<PolicyMove>, Failure> {
        let mut taken = self.account(next, env)?;
        let to = &next.name;
        if let Err(err) = taken.take(account.time(), &account.holdings(), account.held().scale) {
            night.action = format!("the book is closed before `{}` acts", to.name);
            let why = format!("`{}` cannot take the book over: {}", to.name, err.message);
            night.notes.push(why);
            night.orders = orders(&night.time, &account.wait(Pending::Close))?;
            return Ok(None);
        }
        self.decided(&mut *taken, night)?;
        let nav = night.book.nav;
        night.book = as_entry(&taken.marked())?;
        if (night.book.nav - nav).abs() > 1e-9 * nav.abs() {
            night.notes.push(format!(
                "the marks of the environment of `{}` are others: {nav:.2} becomes {:.2}",
                to.name, night.book.nav
            ));
        }
        night.policy = to.clone();
        kept.account = taken.held();
        kept.seen.clear();
        let row = taken.row(taken.time()).map(seen);
        kept.seen.extend(row.map(|hash| (taken.time(), hash)));
        Ok(Some(PolicyMove {
            date: night.date,
            from: self.acts.name.clone(),
            to: to.clone(),
        }))
    }

    /// Takes the accounts beside to this night.
    fn beside(
        &self,
        at: SnapshotTime,
        night: &mut Night,
        kept: &mut Kept,
        progress: Told<'_, '_>,
    ) -> Result<(), Failure> {
        for name in &self.opened.beside {
            let before = kept.beside.remove(name);
            let of_shadow = match self.of_shadow(name, progress) {
                Err(failure) if is_fatal(&failure) => return Err(failure),
                Err(failure) => Err(failure.message),
                Ok(of_shadow) => Ok(of_shadow),
            };
            let moved = match of_shadow {
                // It runs from the night on at which there is such a version.
                Ok(None) => continue,
                Ok(Some((acts, env))) => {
                    let decider = match (&acts, rule(name)) {
                        (Some(acts), _) => Decider::Policy(&acts.trained.policy),
                        (None, Some(rule)) => Decider::Rule(rule),
                        (None, None) => continue,
                    };
                    let policy = acts.as_ref().map(|acts| acts.name.clone());
                    self.shadow((decider, policy, &env), (at, before.clone()), night.number)
                        .map_err(|err| err.message)
                }
                Err(why) => Err(why),
            };
            match moved {
                Ok((shadow, after)) => {
                    night.beside.insert(name.clone(), shadow);
                    kept.beside.insert(name.clone(), after);
                }
                Err(why) => {
                    night.notes.push(format!("`{name}` beside it cannot run: {why}"));
                    kept.beside.extend(before.map(|before| (name.clone(), before)));
                }
            }
        }
        Ok(())
    }

    /// The policy of an account beside, unless it is a rule, and its environment; `None` if there is no such
    /// version yet.
    fn of_shadow(
        &self,
        name: &str,
        progress: Told<'_, '_>,
    ) -> Result<Option<(Option<Acts>, Artifact)>, Failure> {
        if rule(name).is_some() {
            return Ok(Some((None, self.env.clone())));
        }
        let version = match name {
            PREVIOUS => self.previous.clone(),
            _ if Papers::follows(name) => self.papers.version_as_of(name, self.date)?,
            _ => Some(self.papers.version(name)?),
        };
        let Some(version) = version else {
            return Ok(None);
        };
        let acts = self.papers.acts(&version)?;
        // What a policy was trained on tells nothing.
        if acts.trained_until.is_some_and(|trained| trained >= self.date) {
            return Ok(None);
        }
        let (_, env, _) = self
            .papers
            .environment(&acts, &self.nightly.files, self.date, progress)?;
        Ok(Some((Some(acts), env)))
    }

    /// Takes an account beside to the moment `at`; it begins anew if another policy decides for it.
    fn shadow(
        &self,
        (decider, policy, env): (Decider<'_>, Option<StandIn>, &Artifact),
        (at, before): (SnapshotTime, Option<Beside>),
        number: usize,
    ) -> Result<(Shadow, Beside), StageError> {
        let store = &self.papers.acting.archive.store;
        let mut account = open_account(store, env, decider, self.opened.world.as_deref())?;
        let (mut log_return, mut costs, mut since) = (0.0, 0.0, number);
        match before.filter(|before| before.policy == policy) {
            Some(before) => {
                account.resume(&before.held)?;
                // After nights on which it could not run there are several.
                while account.time() < at {
                    let step = enter(&mut *account, 0.0)?;
                    (log_return, costs) = (log_return + step.log_return, costs + step.costs);
                }
                since = before.since;
            }
            None => account.begin(at, self.opened.capital)?,
        }
        StageError::new("its environment has no such snapshot").when(account.time() != at)?;
        account.decide()?;
        let shadow = Shadow {
            nav: account.marked().nav,
            log_return,
            costs,
            policy: policy.clone(),
            since,
        };
        let held = account.held();
        Ok((shadow, Beside { held, since, policy }))
    }
}
