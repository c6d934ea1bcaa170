//! A named policy: its versions, and the moves of its aliases.

use super::reference::Pick;
use cache::{ActionKey, ArtifactDigest};
use chrono::{DateTime, Utc};
use datasets::Date;
use runner_engine::{stamp, text};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The policies of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NamedPolicy {
    /// The versions; the number of the first is 1.
    pub versions: Vec<Version>,
    /// The moves of the aliases, in order.
    pub moves: Vec<Move>,
    /// The verdicts on versions, in order, whether an alias moved or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<Judged>,
}

/// A version of a policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// The version's number, from 1.
    pub version: u32,
    /// The policy's artifact.
    pub digest: ArtifactDigest,
    /// The time of the registration.
    #[serde(with = "stamp")]
    pub time: DateTime<Utc>,
    /// The version's origin.
    #[serde(flatten)]
    pub from: Registration,
}

/// The origin of a version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Registration {
    /// The run that made or used the policy.
    pub run: String,
    /// The stage and the output, joined by a dot: `train.policy`.
    pub output: String,
    /// The key of the stage's action.
    pub key: Option<ActionKey>,
    /// The scheduled date of the run, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Date>,
    /// The maximum age in seconds at which the policy may act: the time from the last date of its training
    /// data to a decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age: Option<u64>,
}

/// A move of an alias.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Move {
    /// The alias.
    pub alias: String,
    /// The version that the alias points to from this move on.
    pub version: u32,
    /// The version that the alias pointed to before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u32>,
    /// The time of the move.
    #[serde(with = "stamp")]
    pub time: DateTime<Utc>,
    /// The reason for the move.
    #[serde(flatten)]
    pub reason: Reason,
}

/// The reason for a move.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// The cause of the move: a command, `register`, `promote` or `rollback`; for `promote:` in a pipeline
    /// `better`, the verdict, or `first`, if the alias did not exist; with `forward:` the [`Outcome`] of a
    /// candidate.
    pub by: String,
    /// The run that moved the alias, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The scheduled date of that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Date>,
    /// The numbers that led to the move.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, f64>,
}

/// A verdict of `promote:` on a version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The version that was judged.
    pub version: u32,
    /// The alias that the verdict is about.
    pub alias: String,
    /// The version that the alias pointed to at the time of the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<u32>,
    /// The verdict.
    pub verdict: Verdict,
    /// True if the alias moved.
    pub moved: bool,
    /// The id of the run that gave the verdict.
    pub run: String,
    /// The stage that gave the verdict.
    pub stage: String,
    /// The artifact with the numbers and the equity curves of both policies.
    pub artifact: ArtifactDigest,
    /// The scheduled date of the run, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Date>,
    /// The time of the verdict.
    #[serde(with = "stamp")]
    pub time: DateTime<Utc>,
    /// The numbers that led to the verdict.
    pub figures: BTreeMap<String, f64>,
    /// The candidate under test by `forward:`, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward: Option<Tested>,
}

/// The forward evidence on a candidate as of a night.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tested {
    /// The candidate's version.
    pub candidate: u32,
    /// The nights on which both it and the policy of the alias were followed.
    pub nights: usize,
    /// The mean difference of log returns a night, that of the candidate less that of the alias' policy.
    pub mean: f64,
    /// The evidence that the candidate earns more, an e-value.
    pub better: f64,
    /// The evidence that the candidate earns less, an e-value.
    pub worse: f64,
    /// The fate of the candidate.
    pub outcome: Outcome,
}

/// The fate of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The test goes on.
    Waiting,
    /// The candidate takes the alias.
    Forward,
    /// The candidate is dropped: it earns less.
    DroppedWorse,
    /// The candidate is dropped: its nights are over without enough evidence.
    DroppedUndecided,
}

impl Outcome {
    /// The outcome's name in files and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Forward => "forward",
            Self::DroppedWorse => "dropped_worse",
            Self::DroppedUndecided => "dropped_undecided",
        }
    }
}

impl Reason {
    /// The numbers that led to the move, in one line.
    pub fn shown(&self) -> String {
        let figures = self.figures.iter();
        let figures: Vec<String> = figures
            .map(|(name, value)| format!("{name} {}", text::figure(*value)))
            .collect();
        figures.join(", ")
    }
}

impl Judged {
    /// The cells of a row in a table of verdicts: log return with its lower and upper bound, deflated Sharpe
    /// ratio, and trials.
    pub fn shown(&self) -> [String; 5] {
        let names = [
            "difference/log_return",
            "difference/log_return_low",
            "difference/log_return_high",
            "difference/deflated_sharpe",
            "trials",
        ];
        names.map(|name| {
            self.figures
                .get(name)
                .map(|value| text::figure(*value))
                .unwrap_or_default()
        })
    }
}

/// A verdict on a policy compared with another policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Better beyond noise, and within the limits.
    Better,
    /// Worse beyond noise.
    Worse,
    /// Neither [`Verdict::Better`] nor [`Verdict::Worse`].
    Noise,
}

impl Verdict {
    /// The verdict that a metric encodes as 1 (better), -1 (worse) or 0 (noise).
    pub fn from_number(number: f64) -> Option<Self> {
        [(1.0, Self::Better), (-1.0, Self::Worse), (0.0, Self::Noise)]
            .into_iter()
            .find_map(|(of, verdict)| (number == of).then_some(verdict))
    }

    /// The verdict's name in files and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Noise => "noise",
        }
    }
}

impl NamedPolicy {
    /// The version with this number.
    pub fn version(&self, number: u32) -> Option<&Version> {
        self.versions.get((number as usize).checked_sub(1)?)
    }

    /// The version with this artifact.
    pub fn with_digest(&self, digest: ArtifactDigest) -> Option<&Version> {
        self.versions.iter().find(|version| version.digest == digest)
    }

    /// The version that an alias points to; with `before`, the version that it pointed to before anything of
    /// that scheduled date or a later date was known.
    pub fn alias(&self, alias: &str, before: Option<Date>) -> Option<&Version> {
        let is_known =
            |as_of: Option<Date>| before.is_none_or(|before| as_of.is_none_or(|date| date < before));
        let mut moves = self.moves.iter().rev();
        let last = moves.find(|moved| moved.alias == alias && is_known(moved.reason.as_of))?;
        self.version(last.version)
    }

    /// The version that a pick denotes.
    pub fn pick(&self, pick: &Pick, before: Option<Date>) -> Option<&Version> {
        match pick {
            Pick::Alias(alias) => self.alias(alias, before),
            Pick::Version(number) => self.version(*number),
        }
    }

    /// True if this history equals `other`, perhaps with further versions, moves and verdicts appended.
    pub fn follows(&self, other: &Self) -> bool {
        self.versions.starts_with(&other.versions)
            && self.moves.starts_with(&other.moves)
            && self.verdicts.starts_with(&other.verdicts)
    }

    /// The number of versions registered before a scheduled date; the number of all versions if `before` is
    /// `None`.
    pub fn tried(&self, before: Option<Date>) -> usize {
        let is_before = |version: &&Version| {
            before.is_none_or(|before| version.from.as_of.is_none_or(|date| date < before))
        };
        self.versions.iter().filter(is_before).count()
    }

    /// The aliases and the versions that they point to now.
    pub fn aliases(&self) -> BTreeMap<&str, u32> {
        let moves = self.moves.iter();
        moves.map(|moved| (moved.alias.as_str(), moved.version)).collect()
    }

    /// The aliases that point to a version now, joined by commas.
    pub fn aliases_of(&self, version: u32) -> String {
        let aliases = self.aliases();
        let pointing = aliases.iter().filter(|(_, to)| **to == version);
        pointing.map(|(alias, _)| *alias).collect::<Vec<_>>().join(", ")
    }

    /// True if an alias moved on a scheduled date after `as_of`.
    pub fn has_moved_after(&self, alias: &str, as_of: Option<Date>) -> bool {
        let mut moves = self.moves.iter().filter(|moved| moved.alias == alias);
        moves.any(|moved| as_of.is_some() && moved.reason.as_of > as_of)
    }

    /// The version that an alias pointed to before its current one, ignoring versions that were rolled back.
    pub fn previous(&self, alias: &str) -> Option<u32> {
        let mut path: Vec<u32> = Vec::new();
        for moved in self.moves.iter().filter(|moved| moved.alias == alias) {
            if moved.reason.by == ROLLBACK {
                path.pop();
            } else if path.last() != Some(&moved.version) {
                path.push(moved.version);
            }
        }
        path.pop();
        path.pop()
    }
}

/// The value of [`Reason::by`] for a rollback.
pub(super) const ROLLBACK: &str = "rollback";
