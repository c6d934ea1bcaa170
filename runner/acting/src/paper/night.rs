//! The nights of an account.

use super::acts::{Acts, Files};
use super::entries::{as_entry, bookings, orders};
use super::opening::{PREVIOUS, rule};
use super::{Papers, Told};
use cache::{Artifact, ArtifactDigest};
use datasets::{Date, SnapshotTime};
use runner_engine::Failure;
use runner_history::paper::{
    Booking, Correction, Entry, Ledger, Night, Opened, PolicyMove, Shadow, StandIn, Standing, Stop,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stages_core::StageError;
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
}

/// What a night goes on from.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Kept {
    account: Held,
    watch: Watch,
    /// The largest growth so far.
    peak: f64,
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
    let acts = papers.acts(ledger.policy())?;
    let dates = due(papers, ledger, &acts, nightly, progress)?;
    for date in dates {
        let mut book = Booked::new(papers, ledger, nightly, date, progress)?;
        for entries in book.nights(progress)? {
            ledger.append(entries.clone())?;
            added.extend(entries);
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
    let store = &papers.acting.archive.store;
    let mut account = open_account(
        store,
        &env,
        Decider::Policy(&acts.trained.policy),
        opened.world.as_deref(),
    )?;
    let mut times: Vec<SnapshotTime> = Vec::new();
    match ledger.last_night() {
        Some(night) => account.resume(&kept(night)?.account)?,
        None => {
            account.begin(SnapshotTime::of_day(opened.from), opened.capital)?;
            times.push(account.time());
        }
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
        let (data, env, notes) = papers.environment(&acts, &nightly.files, date, progress)?;
        let unmatched = ledger.unmatched();
        let told = unmatched.iter().map(|order| {
            format!(
                "the broker filled {} of the order {} in {}, and the model {}: the position is the model's",
                order.real, order.order, order.of, order.model
            )
        });
        let notes = notes.into_iter().chain(told).collect();
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
        })
    }

    fn account<'b>(&'b self, acts: &'b Acts, env: &Artifact) -> Result<Box<dyn Account + 'b>, Failure> {
        let (store, world) = (&self.papers.acting.archive.store, self.opened.world.as_deref());
        Ok(open_account(store, env, Decider::Policy(&acts.trained.policy), world)?)
    }

    /// The entries of each snapshot of the date.
    fn nights(&mut self, progress: Told<'_, '_>) -> Result<Vec<Vec<Entry>>, Failure> {
        let mut all = Vec::new();
        loop {
            let Some(entries) = self.night(progress)? else {
                return Ok(all);
            };
            for entry in &entries {
                match entry {
                    Entry::Night(night) => self.last = Some(Night::clone(night)),
                    Entry::Halted(_) => self.stopped = true,
                    _ => {}
                }
            }
            (self.resumed, self.transferred) = (false, 0.0);
            self.real_fills.clear();
            let changed = entries.iter().find_map(|entry| match entry {
                Entry::Policy(moved) => Some(moved.to.clone()),
                _ => None,
            });
            if let Some(to) = changed {
                self.acts = self.papers.acts(&to)?;
                let (data, env, _) =
                    self.papers
                        .environment(&self.acts, &self.nightly.files, self.date, progress)?;
                (self.data, self.env) = (data, env);
            }
            all.push(entries);
        }
    }

    /// The entries of the next snapshot; `None` if the date has no further one.
    fn night(&self, progress: Told<'_, '_>) -> Result<Option<Vec<Entry>>, Failure> {
        let mut account = self.account(&self.acts, &self.env)?;
        let mut entries = Vec::new();
        let (mut night, mut kept) = match &self.last {
            None => {
                account.begin(SnapshotTime::of_day(self.opened.from), self.opened.capital)?;
                let kept = Kept {
                    account: account.held(),
                    watch: Watch::new(),
                    peak: 1.0,
                    seen: Vec::new(),
                    beside: BTreeMap::new(),
                };
                (self.entered(&*account, 0, Vec::new(), [0.0; 4]), kept)
            }
            Some(last) => {
                let mut kept = kept(last)?;
                account.resume(&kept.account)?;
                if account.left().first().is_none_or(|next| next.date > self.date) {
                    return Ok(None);
                }
                self.corrections(last, &mut kept, &*account, &mut entries)?;
                if self.transferred != 0.0 {
                    account.pay(self.transferred, false);
                }
                if self.resumed {
                    (kept.watch, kept.peak) = (Watch::new(), 1.0);
                }
                let real: f64 = self.real_fills.iter().map(|booking| booking.cash).sum();
                let step = enter(&mut *account, real)?;
                let booked = [bookings(&step.bookings)?, self.real_fills.clone()].concat();
                kept.watch.update(&self.promise, step.log_return, step.risk_free);
                let figures = [step.log_return, step.risk_free, step.turnover, step.costs];
                let mut night = self.entered(&*account, last.number + 1, booked, figures);
                if step.is_ruined {
                    night
                        .notes
                        .push("the account is ruined by the environment's rule".to_owned());
                }
                (night, kept)
            }
        };
        night.book = as_entry(&account.marked())?;
        night.standing = as_entry(&kept.watch.standing(&self.promise))?;
        kept.peak = kept.peak.max(night.standing.growth);
        night.drawdown = 1.0 - night.standing.growth / kept.peak;
        night.standing.drifted = self.drifted(&*account);
        night.notes.extend(self.notes.iter().cloned());
        let (earlier, now) = (
            self.last.as_ref().map(|last| &last.standing.drifted),
            &night.standing.drifted,
        );
        let news = |name: &&String| earlier.is_none_or(|earlier| !earlier.contains(name));
        let begun: Vec<&str> = now.iter().filter(news).map(String::as_str).collect();
        let ended = earlier.into_iter().flatten().filter(|name| !now.contains(name));
        let ended: Vec<&str> = ended.map(String::as_str).collect();
        if !begun.is_empty() {
            night
                .notes
                .push(format!("drift from the training begins: {}", begun.join(", ")));
        }
        if !ended.is_empty() {
            night
                .notes
                .push(format!("drift from the training ends: {}", ended.join(", ")));
        }
        let halted = match self.stopped {
            true => None,
            false => self.halts(&night),
        };
        self.beside(account.time(), &mut night, &mut kept, progress)?;
        let wanted = match Papers::follows(&self.opened.policy) {
            true => self.papers.version(&self.opened.policy, Some(self.date))?,
            false => self.acts.name.clone(),
        };
        let mut moved = None;
        if self.stopped || halted.is_some() {
            let pending = match self.opened.halt.as_str() {
                "close" => Pending::Close,
                _ => Pending::Hold,
            };
            night.action = match pending {
                Pending::Close => "halted: the book is closed".to_owned(),
                _ => "halted: the book is held".to_owned(),
            };
            account.wait(pending);
        } else if wanted == self.acts.name {
            self.decided(&mut *account, &mut night)?;
        } else {
            moved = self.succeed(&mut account, &wanted, &mut night, &mut kept, progress)?;
        }
        if moved.is_none() {
            kept.account = account.held();
            if let Some(row) = account.row(account.time()) {
                kept.seen.push((account.time(), seen(row)));
            }
        }
        let surplus = kept.seen.len().saturating_sub(REMEMBERED);
        kept.seen.drain(..surplus);
        night.state = serde_json::to_value(&kept).unwrap_or(Value::Null);
        entries.push(Entry::Night(Box::new(night)));
        entries.extend(moved.map(Entry::Policy));
        entries.extend(halted.map(Entry::Halted));
        Ok(Some(entries))
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
            unfilled: Vec::new(),
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
        night.refused = decision.orders.refused.iter().map(ToString::to_string).collect();
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
        for (before, after) in last.book.positions.iter().zip(&marked.positions) {
            if before.mark != after.of.mark {
                let what = format!("the mark of {}", after.of.describe());
                let difference = after.value - before.value;
                entries.push(correction(last.date, what, before.mark, after.of.mark, difference));
            }
        }
        Ok(())
    }

    /// The reason for a halt, if there is one.
    fn halts(&self, night: &Night) -> Option<Stop> {
        let stop = |by: &str, why: String| {
            Some(Stop {
                date: night.date,
                by: by.to_owned(),
                why,
            })
        };
        let limit = |name: &str| self.opened.limits.get(name).copied();
        if night.book.nav <= 0.0 {
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
        account: &mut Box<dyn Account + '_>,
        wanted: &StandIn,
        night: &mut Night,
        kept: &mut Kept,
        progress: Told<'_, '_>,
    ) -> Result<Option<PolicyMove>, Failure> {
        let next = self.papers.acts(wanted)?;
        let (_, env, _) = self
            .papers
            .environment(&next, &self.nightly.files, self.date, progress)?;
        let mut taken = self.account(&next, &env)?;
        let holdings = account.holdings();
        match taken.take(account.time(), &holdings, account.held().scale) {
            Ok(()) => {
                self.decided(&mut *taken, night)?;
                night.policy = wanted.clone();
                kept.account = taken.held();
                kept.seen.clear();
                let row = taken.row(taken.time()).map(seen);
                kept.seen.extend(row.map(|hash| (taken.time(), hash)));
                Ok(Some(PolicyMove {
                    date: night.date,
                    from: self.acts.name.clone(),
                    to: wanted.clone(),
                    closes: Vec::new(),
                }))
            }
            Err(_) if holdings.positions.is_empty() => {
                let why = format!("`{}` cannot act on the data of this night", wanted.name);
                night.notes.push(why);
                self.decided(&mut **account, night)?;
                Ok(None)
            }
            Err(err) => {
                night.action = format!("the book is closed before `{}` acts", wanted.name);
                night
                    .notes
                    .push(format!("`{}` cannot take the book over: {}", wanted.name, err.message));
                account.wait(Pending::Close);
                Ok(None)
            }
        }
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
            let Some((acts, env)) = self.of_shadow(name, progress)? else {
                // It runs from the night on at which there is such a version.
                continue;
            };
            let decider = match (&acts, rule(name)) {
                (Some(acts), _) => Decider::Policy(&acts.trained.policy),
                (None, Some(rule)) => Decider::Rule(rule),
                (None, None) => continue,
            };
            let policy = acts.as_ref().map(|acts| acts.name.clone());
            match self.shadow((decider, policy, &env), (at, before), night.number) {
                Ok((shadow, after)) => {
                    night.beside.insert(name.clone(), shadow);
                    kept.beside.insert(name.clone(), after);
                }
                Err(err) => night
                    .notes
                    .push(format!("`{name}` beside it cannot run: {}", err.message)),
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
            _ => self.papers.version(name, Some(self.date)).ok(),
        };
        let Some(version) = version else {
            return Ok(None);
        };
        let acts = self.papers.acts(&version)?;
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
                let step = enter(&mut *account, 0.0)?;
                (log_return, costs) = (step.log_return, step.costs);
                since = before.since;
            }
            None => account.begin(at, self.opened.capital)?,
        }
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
