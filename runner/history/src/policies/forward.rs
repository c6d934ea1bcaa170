//! Forward evidence on a candidate: the nights of a paper account, on data that came after the policies.
//!
//! d is the log return of a night of the candidate's account, beside, less that of the paper account, which
//! the policy of the alias leads. A bet of the share f of a capital of 1 on "the candidate earns more",
//!
//! ```text
//! e = 1 + f x / c,   x = d winsorised to [-c, c],   c = 3 x root mean square of d over all nights before
//! ```
//!
//! has an expectation of at most 1 as long as the expectation of x, given the past, is at most 0: the mixture
//! over several f is a test supermartingale (Waudby-Smith and Ramdas, "Estimating means of bounded random
//! variables by betting", JRSS B 86, 2024), which ever reaches 1 / level with a probability of at most level
//! (Ville's inequality), however often it is looked at.

use super::model::{NamedPolicy, Outcome, Tested};
use crate::paper::{Entry, Ledger, Night};
use cache::ArtifactDigest;
use datasets::Date;
use runner_engine::Failure;
use runner_pipeline::{CANDIDATE, Forward};
use std::collections::BTreeMap;
use std::path::Path;

/// The shares of the capital that are bet, with equal weights.
const BETS: [f64; 4] = [0.1, 0.2, 0.4, 0.8];

/// The root mean squares at which differences are winsorised.
const WINSOR: f64 = 3.0;

/// The nights from which the first bound is known.
const LEAST: usize = 10;

/// The e-value that the mean of `differences`, winsorised, is above 0: 1 at the start, and large if it is.
pub fn forward_evidence(differences: impl IntoIterator<Item = f64>) -> f64 {
    let mut wealth = [1.0; BETS.len()];
    let (mut squares, mut nights) = (0.0, 0);
    for difference in differences {
        let bound = WINSOR * f64::sqrt(squares / nights as f64);
        if nights >= LEAST && bound > 0.0 {
            let x = difference.clamp(-bound, bound) / bound;
            for (wealth, share) in wealth.iter_mut().zip(BETS) {
                *wealth *= 1.0 + share * x;
            }
        }
        squares += difference * difference;
        nights += 1;
    }
    wealth.iter().sum::<f64>() / BETS.len() as f64
}

/// The evidence that a paper account gives before a night.
#[derive(Debug)]
pub struct Evidence<'a> {
    forward: &'a Forward,
    /// The nights whose returns are of the account's policy, in order.
    nights: Vec<Followed>,
}

/// The returns of a night.
#[derive(Debug)]
struct Followed {
    policy: ArtifactDigest,
    log_return: f64,
    /// The policies beside, and their returns.
    beside: Vec<(ArtifactDigest, f64)>,
}

impl Followed {
    fn new(night: &Night) -> Self {
        let beside = night.beside.values().filter_map(|shadow| {
            // An account has no return on its first night.
            let policy = shadow.policy.as_ref().filter(|_| night.number > shadow.since)?;
            Some((policy.digest, shadow.log_return))
        });
        Self {
            policy: night.policy.digest,
            log_return: night.log_return,
            beside: beside.collect(),
        }
    }
}

impl<'a> Evidence<'a> {
    /// Reads the nights of the account before the night of a date. Without an account there is no evidence.
    ///
    /// # Errors
    /// If the ledger cannot be read, or its past was changed.
    pub fn read(home: &Path, forward: &'a Forward, before: Option<Date>) -> Result<Self, Failure> {
        let ledger = Ledger::find(home, &forward.paper.0)?;
        let entries = ledger.as_ref().map_or(&[][..], |ledger| ledger.entries());
        Ok(Self::new(entries, forward, before))
    }

    fn new(entries: &[Entry], forward: &'a Forward, before: Option<Date>) -> Self {
        let mut nights: Vec<Followed> = Vec::new();
        let (mut is_halted, mut was_halted, mut is_counted) = (false, false, false);
        for entry in entries {
            match entry {
                Entry::Halted(_) => is_halted = true,
                // The return of the next night is still that of the halt.
                Entry::Resumed(_) => (is_halted, was_halted) = (false, true),
                // The night names the policy that decides; its return is that of the one before.
                Entry::Policy(_) if is_counted => {
                    nights.pop();
                    is_counted = false;
                }
                Entry::Night(night) if before.is_none_or(|before| night.date < before) => {
                    is_counted = !is_halted && !was_halted;
                    if is_counted {
                        nights.push(Followed::new(night));
                    }
                    was_halted = false;
                }
                Entry::Night(_) => break,
                _ => {}
            }
        }
        Self { forward, nights }
    }

    /// The differences of log returns of the last nights in a row on which the account followed `champion`,
    /// and an account beside it `candidate`.
    fn differences(&self, candidate: ArtifactDigest, champion: ArtifactDigest) -> Vec<f64> {
        let difference = |night: &Followed| {
            let is_candidate = |(policy, _): &&(ArtifactDigest, f64)| *policy == candidate;
            let (_, log_return) = night.beside.iter().find(is_candidate)?;
            (night.policy == champion).then_some(log_return - night.log_return)
        };
        let mut found: Vec<f64> = self.nights.iter().rev().map_while(difference).collect();
        found.reverse();
        found
    }

    fn test(&self, version: u32, candidate: ArtifactDigest, champion: ArtifactDigest) -> Tested {
        let differences = self.differences(candidate, champion);
        let nights = differences.len();
        let better = forward_evidence(differences.iter().copied());
        let worse = forward_evidence(differences.iter().map(|difference| -difference));
        let limit = 1.0 / self.forward.level;
        Tested {
            candidate: version,
            nights,
            mean: differences.iter().sum::<f64>() / nights.max(1) as f64,
            better,
            worse,
            outcome: match () {
                () if worse >= limit => Outcome::DroppedWorse,
                () if nights >= self.forward.nights && better >= limit => Outcome::Forward,
                () if nights >= self.forward.at_most => Outcome::DroppedUndecided,
                () => Outcome::Waiting,
            },
        }
    }
}

impl NamedPolicy {
    /// The forward evidence on the candidate, if one is under test against the version `champion`: a
    /// candidate that is dropped, or that became the champion, is the champion.
    pub(super) fn test_candidate(&self, champion: u32, evidence: &Evidence<'_>) -> Option<Tested> {
        let candidate = *self.aliases().get(CANDIDATE)?;
        let (ours, theirs) = (self.version(candidate)?, self.version(champion)?);
        (candidate != champion).then(|| evidence.test(candidate, ours.digest, theirs.digest))
    }
}

impl Outcome {
    /// The alias that moves by the outcome of `tested` against the version `champion` of `alias`, and the
    /// version that it moves to.
    pub(super) fn moves<'a>(self, alias: &'a str, tested: &Tested, champion: u32) -> Option<(&'a str, u32)> {
        match self {
            Self::Waiting => None,
            Self::Forward => Some((alias, tested.candidate)),
            Self::DroppedWorse | Self::DroppedUndecided => Some((CANDIDATE, champion)),
        }
    }
}

impl Tested {
    /// The numbers by name.
    pub(super) fn figures(&self) -> BTreeMap<String, f64> {
        let figures = [
            ("forward/nights", self.nights as f64),
            ("forward/mean", self.mean),
            ("forward/better", self.better),
            ("forward/worse", self.worse),
        ];
        figures.map(|(name, value)| (name.to_owned(), value)).into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Judged, Registration, Registry, Rules, Verdict};
    use super::*;
    use runner_pipeline::First;
    use serde_json::{Value, json};
    use stages_numerics::random::Random;

    fn digest(n: u8) -> ArtifactDigest {
        ArtifactDigest::from_bytes([n; 32])
    }

    fn forward(nights: usize, at_most: usize) -> Forward {
        Forward {
            paper: runner_pipeline::Name("book".to_owned()),
            nights,
            level: 0.05,
            at_most,
        }
    }

    /// A night of an account that `policy` leads, with a candidate, if there is one, beside since a night.
    fn night(number: usize, policy: u8, log_return: f64, beside: Option<(u8, usize, f64)>) -> Entry {
        let stand_in = |n: u8| json!({ "name": format!("desk@{n}"), "digest": digest(n) });
        let shadow = |(n, since, log_return): (u8, usize, f64)| {
            json!({ "desk@candidate": { "nav": 1.0, "log_return": log_return, "costs": 0.0,
                "policy": stand_in(n), "since": since } })
        };
        let date = Date::from_ymd(2024, 1, 1).unwrap().plus(number as i32);
        let none = json!({});
        let entry: Value = json!({
            "entry": "night", "time": date.to_string(), "date": date, "number": number, "data": digest(99),
            "policy": stand_in(policy), "bookings": [], "log_return": log_return, "risk_free": 0.0,
            "book": { "cash": 1.0, "nav": 1.0, "gross": 0.0, "closing_cost": 0.0, "positions": [] },
            "turnover": 0.0, "costs": 0.0, "drawdown": 0.0, "action": "", "orders": [],
            "standing": { "growth": 1.0, "evidence": 1.0, "drawdown": 0.0, "broken": false },
            "beside": beside.map_or(none, shadow), "state": null,
        });
        serde_json::from_value(entry).unwrap()
    }

    /// With a fair coin for each night's sign, the mean over all courses of ten nights of betting is 1.
    #[test]
    fn the_expectation_without_an_edge_is_one() {
        let (mut sum, courses) = (0.0, 1 << 10);
        for course in 0..courses {
            let before = (0..LEAST).map(|night| if night % 2 == 0 { 0.01 } else { -0.02 });
            let after = (0..10).map(|night| if course >> night & 1 == 0 { 0.01 } else { -0.01 });
            sum += forward_evidence(before.chain(after));
        }
        assert!((sum / f64::from(courses) - 1.0).abs() < 1e-12, "{sum}");
    }

    /// docs/studies/statistics.md states these numbers.
    #[test]
    fn evidence_is_rare_without_an_edge_and_comes_with_one() {
        let share = |sharpe: f64, of: fn(&mut Random) -> f64| {
            let accounts = 2_000;
            let mut nights = Vec::new();
            for account in 0..accounts {
                let random = &mut Random::new(&[account, 0x666f_7277]);
                let d: Vec<f64> = (0..250)
                    .map(|_| 0.01 * (sharpe / 252.0_f64.sqrt() + of(random)))
                    .collect();
                let is_enough = |n: &usize| forward_evidence(d[..*n].iter().copied()) >= 20.0;
                nights.extend((60..=250).step_by(5).find(is_enough));
            }
            nights.sort_unstable();
            let median = nights.get(accounts as usize / 2).copied();
            (nights.len() as f64 / accounts as f64, median)
        };
        // Student's t with four degrees of freedom, of variance 1.
        let heavy: fn(&mut Random) -> f64 = |random| {
            let squares: f64 = (0..4).map(|_| random.normal().powi(2)).sum();
            random.normal() / (squares / 2.0).sqrt()
        };
        let normal: fn(&mut Random) -> f64 = |random| random.normal();
        let (none, none_heavy) = (share(0.0, normal).0, share(0.0, heavy).0);
        println!("no edge: {none} and {none_heavy}");
        assert!(none <= 0.05 && none_heavy <= 0.05, "{none} {none_heavy}");
        assert!(share(-2.0, normal).0 <= 0.005);
        for sharpe in [1.0, 2.0, 3.0, 4.0, 6.0] {
            println!("Sharpe ratio {sharpe}: {:?}", share(sharpe, normal));
        }
        assert!(share(4.0, normal).0 >= 0.8 && share(6.0, normal).0 >= 0.98);
    }

    /// Evidence is of the nights in a row on which both policies acted, without those of a halt.
    #[test]
    fn only_nights_of_both_policies_count() {
        let rules = forward(5, 10);
        let stop = json!({ "entry": "halted", "date": "2024-01-09", "by": "person", "why": "" });
        let mut resumed = stop.clone();
        resumed["entry"] = json!("resumed");
        let read = |value: Value| serde_json::from_value::<Entry>(value).unwrap();
        let entries = vec![
            night(0, 1, 0.0, None),
            night(1, 1, 0.5, Some((3, 1, 0.0))),
            night(2, 1, 0.5, Some((3, 1, 0.9))),
            // Another candidate: its first night has no return.
            night(3, 1, 0.5, Some((2, 3, 0.0))),
            night(4, 1, 0.01, Some((2, 3, 0.03))),
            read(stop),
            night(5, 1, 0.0, Some((2, 3, 0.9))),
            read(resumed),
            night(6, 1, 0.0, Some((2, 3, 0.9))),
            night(7, 1, 0.01, Some((2, 3, 0.02))),
            night(8, 1, 0.01, Some((2, 3, 0.05))),
        ];
        let before = |date: &str| Some(date.parse::<Date>().unwrap());
        let found_in = |entries: &[Entry], candidate: u8, champion: u8, before| -> Vec<f64> {
            let evidence = Evidence::new(entries, &rules, before);
            let found = evidence.differences(digest(candidate), digest(champion));
            found.iter().map(|d| (d * 1e9).round() / 1e9).collect()
        };
        let found = |candidate, champion, before| found_in(&entries, candidate, champion, before);
        assert_eq!(found(2, 1, None), [0.02, 0.01, 0.04]);
        // The night itself is not known yet when its run ends.
        assert_eq!(found(2, 1, before("2024-01-09")), [0.02, 0.01]);
        assert_eq!(found(2, 4, None), [0.0; 0]);
        assert_eq!(found(3, 1, before("2024-01-04")), [0.4]);
        assert_eq!(found(3, 1, None), [0.0; 0]);
        // The policy that takes over on a night earns from the next one on.
        let stand_in = |n: u8| json!({ "name": format!("desk@{n}"), "digest": digest(n) });
        let moved =
            json!({ "entry": "policy", "date": "2024-01-10", "from": stand_in(1), "to": stand_in(2) });
        let taken_over = [
            night(8, 1, 0.0, Some((5, 7, 0.9))),
            night(9, 2, 0.0, Some((5, 7, 0.9))),
            read(moved),
            night(10, 2, 0.01, Some((5, 7, 0.04))),
        ];
        assert_eq!(found_in(&taken_over, 5, 2, None), [0.03]);
    }

    /// A candidate is promoted when it has its nights and its evidence, and dropped when it earns less or its
    /// nights are over.
    #[test]
    fn outcomes() {
        let outcome = |rules: &Forward, mean: f64, nights: usize| {
            let entry = |n: usize| {
                let noise = if n.is_multiple_of(2) { 0.004 } else { -0.004 };
                night(n, 1, 0.0, Some((2, 0, mean + noise)))
            };
            let entries: Vec<Entry> = (0..=nights).map(entry).collect();
            let evidence = Evidence::new(&entries, rules, None);
            let tested = evidence.test(2, digest(2), digest(1));
            assert_eq!(tested.nights, nights);
            tested.outcome
        };
        let rules = forward(60, 250);
        assert_eq!(outcome(&rules, 0.01, 59), Outcome::Waiting);
        assert_eq!(outcome(&rules, 0.01, 60), Outcome::Forward);
        assert_eq!(outcome(&rules, -0.01, 30), Outcome::DroppedWorse);
        assert_eq!(outcome(&rules, 0.0, 249), Outcome::Waiting);
        assert_eq!(outcome(&rules, 0.0, 250), Outcome::DroppedUndecided);
    }

    /// The first is better than the rule that it is judged against; a better one becomes the candidate, and
    /// the champion by its nights; one that earns less makes room for that night's challenger.
    #[test]
    fn a_candidate_takes_the_alias_or_makes_room() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::new(dir.path());
        let forward = forward(60, 250);
        let mut log = Vec::new();
        // Nights of an account that version `led` leads, beside version `beside`, which earns so much more.
        let mut judge = |version: u8, verdict: Verdict, led: u8, beside: u8, mean: f64| {
            let date = Date::from_ymd(2024, 1, 1).unwrap().plus(i32::from(version) * 100);
            let from = Registration {
                as_of: Some(date),
                ..Registration::default()
            };
            let now = chrono::DateTime::UNIX_EPOCH;
            registry.register("desk", digest(version), from, None, now).unwrap();
            let entry = |n: usize| {
                let noise = if n.is_multiple_of(2) { 0.004 } else { -0.004 };
                night(n, led, 0.0, Some((beside, 0, mean + noise)))
            };
            let entries: Vec<Entry> = (0..=70).map(entry).collect();
            let evidence = Evidence::new(&entries, &forward, Some(date));
            let rules = Rules {
                first: First::Better,
                forward: Some(&evidence),
            };
            let judged = Judged {
                version: version.into(),
                alias: "champion".to_owned(),
                against: None,
                verdict,
                moved: false,
                run: "run".to_owned(),
                stage: "verdict".to_owned(),
                artifact: digest(100 + version),
                as_of: Some(date),
                time: now,
                figures: BTreeMap::new(),
                forward: None,
            };
            let judged = registry.judge("desk", judged.clone(), &rules).unwrap();
            let policy = registry.read("desk").unwrap().unwrap();
            let aliases = policy.aliases();
            log.push(format!(
                "{version} {}: champion {:?}, candidate {:?}, moved {}, {}",
                verdict.name(),
                aliases.get("champion"),
                aliases.get(CANDIDATE),
                judged.moved,
                judged.forward.map_or("no test", |tested| tested.outcome.name())
            ));
        };
        judge(1, Verdict::Noise, 9, 9, 0.0);
        judge(2, Verdict::Better, 9, 9, 0.0);
        judge(3, Verdict::Better, 2, 9, 0.0);
        judge(4, Verdict::Better, 2, 3, 0.0001);
        judge(5, Verdict::Better, 2, 3, 0.01);
        judge(6, Verdict::Better, 3, 9, 0.0);
        judge(7, Verdict::Better, 3, 6, -0.01);
        judge(8, Verdict::Worse, 3, 7, -0.01);
        insta::assert_snapshot!(log.join("\n"), @r"
        1 noise: champion None, candidate None, moved false, no test
        2 better: champion Some(2), candidate None, moved true, no test
        3 better: champion Some(2), candidate Some(3), moved false, no test
        4 better: champion Some(2), candidate Some(3), moved false, waiting
        5 better: champion Some(3), candidate Some(3), moved true, forward
        6 better: champion Some(3), candidate Some(6), moved false, no test
        7 better: champion Some(3), candidate Some(7), moved false, dropped_worse
        8 worse: champion Some(3), candidate Some(3), moved false, dropped_worse
        ");
    }
}
