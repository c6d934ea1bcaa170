//! The files of the registry of policies.

use super::forward::Evidence;
use super::model::{Judged, Move, NamedPolicy, Outcome, ROLLBACK, Reason, Registration, Verdict, Version};
use super::reference::{Pick, PolicyRef, check_alias, check_policy_name};
use crate::document;
use cache::{ActionKey, ArtifactDigest, shared};
use chrono::{DateTime, Utc};
use datasets::Date;
use runner_engine::Failure;
use runner_pipeline::{CANDIDATE, First};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The policy registry of a home directory.
#[derive(Clone, Debug)]
pub struct Registry {
    dir: PathBuf,
}

/// The rules by which a verdict moves an alias.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules<'a> {
    /// The policies that may be the first.
    pub first: First,
    /// The forward evidence on candidates, if an alias moves by it.
    pub forward: Option<&'a Evidence<'a>>,
}

/// The objects that garbage collection keeps for registered policies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The actions that produced registered policies.
    pub actions: BTreeSet<ActionKey>,
    /// The runs of the versions that an alias points to; a run's record states what its policy acts on.
    pub runs: BTreeSet<String>,
}

/// The outcome of merging two registries' policies of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Both have the same policies.
    Same,
    /// The other registry has more, which has been copied to this one.
    Theirs,
    /// This registry has more.
    Ours,
    /// Each registry has something that the other lacks: nothing was changed.
    Neither,
}

impl Registry {
    /// The registry of the home directory `home`, which need not exist.
    pub fn new(home: &Path) -> Self {
        Self {
            dir: home.join("policies"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.json"))
    }

    /// The names of the registered policies, sorted.
    pub fn names(&self) -> Result<Vec<String>, Failure> {
        let entries = document::entries(&self.dir)?;
        let names = entries.iter().filter_map(|(name, _)| name.strip_suffix(".json"));
        Ok(names
            .filter(|name| check_policy_name(name).is_ok())
            .map(ToOwned::to_owned)
            .collect())
    }

    /// The registered policies of a name; `None` if there are none.
    ///
    /// # Errors
    /// If the registry's file cannot be read or is damaged: continuing could use another policy than the
    /// intended one.
    pub fn read(&self, name: &str) -> Result<Option<NamedPolicy>, Failure> {
        document::check_case(&self.dir, name)?;
        self.read_known(name)
    }

    /// The same of a name as the directory has it.
    fn read_known(&self, name: &str) -> Result<Option<NamedPolicy>, Failure> {
        let hint = "restore it from a backup, or move it away and register again";
        document::read(&self.path(name), hint)
    }

    /// The registered policies with their names, sorted.
    ///
    /// # Errors
    /// If the registry cannot be read.
    pub fn all(&self) -> Result<Vec<(String, NamedPolicy)>, Failure> {
        let read = |name: String| Ok(self.read_known(&name)?.map(|policy| (name, policy)));
        self.names()?
            .into_iter()
            .filter_map(|name| read(name).transpose())
            .collect()
    }

    /// The version that a reference denotes, as of before a scheduled date if one is given; `None` if there
    /// is no such policy or version.
    pub fn find(&self, reference: &PolicyRef, before: Option<Date>) -> Result<Option<Version>, Failure> {
        let Some(policy) = self.read(&reference.name)? else {
            return Ok(None);
        };
        Ok(policy.pick(&reference.pick, before).cloned())
    }

    /// The version that a reference denotes, which must exist, and all policies of its name.
    pub fn get(&self, reference: &PolicyRef) -> Result<(NamedPolicy, Version), Failure> {
        let name = &reference.name;
        let Some(policy) = self.read(name)? else {
            let names = self.names()?;
            let hint = match names.is_empty() {
                true => "`runner policy register RUN/STAGE NAME` makes the first".to_owned(),
                false => runner_pipeline::suggest(name, "policies", names.iter().map(String::as_str)),
            };
            return Err(Failure::usage(format!("there is no policy `{name}`")).hint(hint));
        };
        match policy.pick(&reference.pick, None).cloned() {
            Some(version) => Ok((policy, version)),
            None => {
                let aliases = policy.aliases();
                let known: Vec<String> = aliases
                    .iter()
                    .map(|(alias, version)| format!("{alias} ({version})"))
                    .collect();
                let what = match &reference.pick {
                    Pick::Alias(alias) => format!("alias `{alias}`"),
                    Pick::Version(number) => format!("version {number}"),
                };
                Err(
                    Failure::usage(format!("the policy `{name}` has no {what}")).hint(format!(
                        "it has {} versions, and the aliases {}",
                        policy.versions.len(),
                        if known.is_empty() {
                            "none".to_owned()
                        } else {
                            known.join(", ")
                        }
                    )),
                )
            }
        }
    }

    /// The objects that garbage collection keeps for the registered policies.
    ///
    /// # Errors
    /// If the registry cannot be read: nothing may be removed then.
    pub fn kept(&self) -> Result<Kept, Failure> {
        let mut kept = Kept::default();
        for (_, policy) in self.all()? {
            kept.actions
                .extend(policy.versions.iter().filter_map(|version| version.from.key));
            let in_use = policy
                .aliases()
                .into_values()
                .filter_map(|number| policy.version(number));
            kept.runs.extend(in_use.map(|version| version.from.run.clone()));
        }
        Ok(kept)
    }

    /// Registers an artifact under a name, and points `alias` to it if one is given. An artifact that is
    /// already a version keeps its version number.
    pub fn register(
        &self,
        name: &str,
        digest: ArtifactDigest,
        from: Registration,
        alias: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<Version, Failure> {
        check_policy_name(name)?;
        alias.map(check_alias).transpose()?;
        self.change(name, |policy| {
            let version = match policy.with_digest(digest) {
                Some(known) => known.clone(),
                None => {
                    let version = Version {
                        version: policy.versions.len() as u32 + 1,
                        digest,
                        time: now,
                        from: from.clone(),
                    };
                    policy.versions.push(version.clone());
                    version
                }
            };
            // An old night that is run again does not yield the newest policy.
            let is_old = |alias: &&str| policy.has_moved_after(alias, from.as_of);
            if let Some(alias) = alias.filter(|alias| !is_old(alias)) {
                let reason = Reason {
                    by: "register".to_owned(),
                    run: Some(from.run.clone()).filter(|run| !run.is_empty()),
                    as_of: from.as_of,
                    ..Reason::default()
                };
                point(policy, alias, version.version, reason, now);
            }
            Ok(version)
        })
    }

    /// Points an alias to a version.
    pub fn point(
        &self,
        name: &str,
        alias: &str,
        version: u32,
        reason: Reason,
        now: DateTime<Utc>,
    ) -> Result<(), Failure> {
        check_alias(alias)?;
        self.change(name, |policy| {
            if policy.version(version).is_none() {
                return Err(Failure::usage(format!("the policy `{name}` has no version {version}"))
                    .hint(format!("it has {}", policy.versions.len())));
            }
            point(policy, alias, version, reason, now);
            Ok(())
        })
    }

    /// Records a verdict, and points the alias to the version if the verdict is better, or if the alias does
    /// not exist yet and `rules` let it be the first. With [`Rules::forward`], a version whose verdict is
    /// better becomes the candidate if none is under test, and a candidate takes the alias by its forward
    /// evidence. A repeated night moves nothing: neither a night whose verdict is known, nor one before the
    /// alias's last move.
    pub fn judge(&self, name: &str, mut judged: Judged, rules: &Rules<'_>) -> Result<Judged, Failure> {
        check_alias(&judged.alias)?;
        self.change(name, |policy| {
            let is_same = |known: &&Judged| {
                (known.version, &known.alias, known.as_of) == (judged.version, &judged.alias, judged.as_of)
                    && known.artifact == judged.artifact
            };
            if let Some(known) = policy.verdicts.iter().find(is_same) {
                return Ok(known.clone());
            }
            judged.against = policy.aliases().get(judged.alias.as_str()).copied();
            let is_before = policy.has_moved_after(&judged.alias, judged.as_of);
            let is_better = judged.verdict == Verdict::Better;
            let by = match judged.against {
                None if is_better || rules.first == First::Any => Some("first"),
                Some(_) if is_better && !is_before && rules.forward.is_none() => Some(Verdict::Better.name()),
                _ => None,
            };
            judged.moved = by.is_some() && judged.against != Some(judged.version);
            let reason = |by: &str| Reason {
                by: by.to_owned(),
                run: Some(judged.run.clone()),
                as_of: judged.as_of,
                figures: judged.figures.clone(),
            };
            if let Some(by) = by {
                point(policy, &judged.alias, judged.version, reason(by), judged.time);
            } else if let (Some(evidence), Some(against), false) = (rules.forward, judged.against, is_before)
            {
                let tested = policy.test_candidate(against, evidence);
                let outcome = tested.as_ref().map(|tested| tested.outcome);
                if let Some(tested) = &tested
                    && let Some((alias, version)) = tested.outcome.moves(&judged.alias, tested, against)
                {
                    let reason = Reason {
                        figures: tested.figures(),
                        ..reason(tested.outcome.name())
                    };
                    point(policy, alias, version, reason, judged.time);
                    judged.moved = alias == judged.alias;
                }
                let is_free = !matches!(outcome, Some(Outcome::Waiting | Outcome::Forward));
                if is_better && is_free && judged.version != against {
                    point(
                        policy,
                        CANDIDATE,
                        judged.version,
                        reason(Verdict::Better.name()),
                        judged.time,
                    );
                }
                judged.forward = tested;
            }
            policy.verdicts.push(judged.clone());
            Ok(judged)
        })
    }

    /// Copies the policies of a name from another registry, if they continue where the local ones end.
    pub fn take(&self, name: &str, other: &NamedPolicy) -> Result<Taken, Failure> {
        check_policy_name(name)?;
        self.change(name, |policy| {
            Ok(if policy == other {
                Taken::Same
            } else if other.follows(policy) {
                *policy = other.clone();
                Taken::Theirs
            } else if policy.follows(other) {
                Taken::Ours
            } else {
                Taken::Neither
            })
        })
    }

    /// Points an alias back to its previous version, and returns that version's number.
    pub fn rollback(&self, name: &str, alias: &str, now: DateTime<Utc>) -> Result<u32, Failure> {
        self.change(name, |policy| {
            let Some(version) = policy.previous(alias) else {
                return Err(
                    Failure::usage(format!("`{name}@{alias}` pointed to no other version before"))
                        .hint(format!("`runner policy show {name}` lists its moves")),
                );
            };
            let reason = Reason {
                by: ROLLBACK.to_owned(),
                ..Reason::default()
            };
            point(policy, alias, version, reason, now);
            Ok(version)
        })
    }

    /// Changes the policies of a name under the registry's lock.
    fn change<T>(
        &self,
        name: &str,
        change: impl FnOnce(&mut NamedPolicy) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let path = self.path(name);
        let failed = |err: std::io::Error| {
            Failure::caused(format!("cannot write `{}`", path.display()), &err)
                .hint("free some disk space, or make the directory writable")
        };
        shared::create_dir_all(&self.dir).map_err(failed)?;
        let lock_path = self.dir.join("lock");
        let lock = File::options()
            .create(true)
            .append(true)
            .open(&lock_path)
            .map_err(failed)?;
        // A change takes microseconds.
        lock.lock().map_err(failed)?;
        let before = self.read(name)?.unwrap_or_default();
        let mut policy = before.clone();
        let outcome = change(&mut policy)?;
        if policy != before {
            document::write(&path, &policy).map_err(failed)?;
        }
        lock.unlock().map_err(failed)?;
        Ok(outcome)
    }
}

/// Moves an alias, unless it already points to the version.
fn point(policy: &mut NamedPolicy, alias: &str, version: u32, reason: Reason, now: DateTime<Utc>) {
    let before = policy.aliases().get(alias).copied();
    if before != Some(version) {
        policy.moves.push(Move {
            alias: alias.to_owned(),
            version,
            before,
            time: now,
            reason,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn digest(n: u8) -> ArtifactDigest {
        ArtifactDigest::from_bytes([n; 32])
    }

    fn on(date: &str) -> Registration {
        Registration {
            run: format!("run-{date}"),
            output: "train.policy".to_owned(),
            key: None,
            as_of: Some(date.parse().unwrap()),
            max_age: None,
        }
    }

    fn reason(by: &str, date: &str) -> Reason {
        Reason {
            by: by.to_owned(),
            as_of: Some(date.parse().unwrap()),
            ..Reason::default()
        }
    }

    fn now() -> DateTime<Utc> {
        DateTime::UNIX_EPOCH
    }

    fn number(registry: &Registry, reference: &str, before: Option<&str>) -> Option<u32> {
        let before = before.map(|date| date.parse().unwrap());
        let found = registry.find(&PolicyRef::parse(reference).unwrap(), before).unwrap();
        found.map(|version| version.version)
    }

    #[test]
    fn versions_and_aliases_as_of_a_date() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::new(dir.path());
        assert_eq!(number(&registry, "desk@champion", None), None);
        for (n, date) in [(1, "2024-01-02"), (2, "2024-01-03"), (3, "2024-01-04")] {
            let version = registry
                .register("desk", digest(n), on(date), Some("challenger"), now())
                .unwrap();
            assert_eq!(version.version, u32::from(n));
        }
        registry
            .point("desk", "champion", 1, reason("promote", "2024-01-02"), now())
            .unwrap();
        registry
            .point("desk", "champion", 3, reason("promote", "2024-01-04"), now())
            .unwrap();
        assert_eq!(number(&registry, "desk@champion", None), Some(3));
        // A night that is run again sees the champion that it saw.
        assert_eq!(number(&registry, "desk@champion", Some("2024-01-04")), Some(1));
        assert_eq!(number(&registry, "desk@champion", Some("2024-01-02")), None);
        assert_eq!(number(&registry, "desk@2", Some("2024-01-02")), Some(2));
        assert_eq!(number(&registry, "desk@4", None), None);
        let policy = registry.read("desk").unwrap().unwrap();
        assert_eq!(policy.tried(None), 3);
        assert_eq!(policy.tried(Some("2024-01-04".parse().unwrap())), 2);
        // The same artifact is the same version, and an alias that stays is no move.
        let again = registry
            .register("desk", digest(3), on("2024-01-05"), Some("challenger"), now())
            .unwrap();
        assert_eq!(
            (again.version, again.from.as_of),
            (3, Some("2024-01-04".parse().unwrap()))
        );
        assert_eq!(registry.read("desk").unwrap().unwrap(), policy);
        assert_eq!(registry.names().unwrap(), ["desk"]);
    }

    #[test]
    fn a_verdict_moves_the_alias_where_it_says_better_or_nothing_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::new(dir.path());
        let judged = |version: u32, verdict: Verdict, date: &str| Judged {
            version,
            alias: "champion".to_owned(),
            against: None,
            verdict,
            moved: false,
            run: format!("run-{date}"),
            stage: "compare".to_owned(),
            artifact: digest(100 + version as u8),
            as_of: Some(date.parse().unwrap()),
            time: now(),
            figures: BTreeMap::from([("trials".to_owned(), 2.0)]),
            forward: None,
        };
        let rules = &Rules::default();
        let champion = || number(&registry, "desk@champion", None);
        let mut outcomes = Vec::new();
        for (n, verdict, date) in [
            (1, Verdict::Noise, "2024-01-02"),
            (2, Verdict::Noise, "2024-01-03"),
            (3, Verdict::Better, "2024-01-04"),
            (4, Verdict::Worse, "2024-01-05"),
        ] {
            registry.register("desk", digest(n), on(date), None, now()).unwrap();
            let found = registry.judge("desk", judged(n.into(), verdict, date), rules).unwrap();
            outcomes.push((found.against, found.moved, champion()));
        }
        let wanted = [
            (None, true, Some(1)),
            (Some(1), false, Some(1)),
            (Some(1), true, Some(3)),
            (Some(3), false, Some(3)),
        ];
        assert_eq!(outcomes, wanted);
        let policy = registry.read("desk").unwrap().unwrap();
        let reasons: Vec<&str> = policy.moves.iter().map(|moved| moved.reason.by.as_str()).collect();
        assert_eq!(
            (reasons.as_slice(), policy.verdicts.len()),
            (&["first", "better"][..], 4)
        );
        // A night that is run again changes nothing, even where its verdict is another one now.
        registry
            .judge("desk", judged(3, Verdict::Better, "2024-01-04"), rules)
            .unwrap();
        assert_eq!(registry.read("desk").unwrap().unwrap(), policy);
        let again = registry
            .judge("desk", judged(2, Verdict::Better, "2024-01-03"), rules)
            .unwrap();
        assert!(!again.moved);
        let late = Judged {
            artifact: digest(200),
            ..judged(2, Verdict::Better, "2024-01-03")
        };
        assert!(!registry.judge("desk", late, rules).unwrap().moved);
        assert_eq!(champion(), Some(3));
    }

    #[test]
    fn registries_meet_where_one_goes_on_from_the_other() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [ours, theirs] = dirs.each_ref().map(|dir| Registry::new(dir.path()));
        let meet =
            |from: &Registry, to: &Registry| to.take("desk", &from.read("desk").unwrap().unwrap()).unwrap();
        theirs
            .register("desk", digest(1), on("2024-01-02"), Some("champion"), now())
            .unwrap();
        assert_eq!(meet(&theirs, &ours), Taken::Theirs);
        assert_eq!(meet(&theirs, &ours), Taken::Same);
        assert_eq!(number(&ours, "desk@champion", None), Some(1));
        ours.register("desk", digest(2), on("2024-01-03"), None, now()).unwrap();
        assert_eq!(meet(&theirs, &ours), Taken::Ours);
        theirs
            .register("desk", digest(3), on("2024-01-03"), None, now())
            .unwrap();
        assert_eq!(meet(&theirs, &ours), Taken::Neither);
        assert_eq!(ours.read("desk").unwrap().unwrap().versions[1].digest, digest(2));
    }

    #[test]
    fn a_rollback_goes_back_step_by_step() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::new(dir.path());
        for n in 1..=3 {
            registry
                .register("desk", digest(n), on("2024-01-02"), None, now())
                .unwrap();
            registry
                .point("desk", "champion", u32::from(n), reason("promote", "2024-01-02"), now())
                .unwrap();
        }
        assert_eq!(registry.rollback("desk", "champion", now()).unwrap(), 2);
        assert_eq!(registry.rollback("desk", "champion", now()).unwrap(), 1);
        let none = registry.rollback("desk", "champion", now()).unwrap_err();
        assert!(none.message.contains("no other version before"), "{none}");
        registry
            .point("desk", "champion", 3, reason("promote", "2024-01-03"), now())
            .unwrap();
        assert_eq!(registry.rollback("desk", "champion", now()).unwrap(), 1);
    }

    #[test]
    fn mistakes_are_named_and_damage_is_no_other_policy() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::new(dir.path());
        registry
            .register("desk", digest(1), on("2024-01-02"), Some("champion"), now())
            .unwrap();
        let get = |text: &str| registry.get(&PolicyRef::parse(text).unwrap()).unwrap_err();
        assert!(get("dsek@champion").hint.unwrap().contains("desk"));
        assert!(get("desk@challenger").hint.unwrap().contains("champion (1)"));
        assert!(get("desk@2").message.contains("no version 2"));
        for wrong in ["desk", "de/sk@champion", "@champion", "desk@", "desk@-1", ".@x"] {
            assert!(PolicyRef::parse(wrong).is_err(), "{wrong}");
        }
        let path = dir.path().join("policies/desk.json");
        let whole = std::fs::read(&path).unwrap();
        let policy = registry.read("desk").unwrap().unwrap();
        for place in 0..whole.len() - 1 {
            let mut damaged = whole.clone();
            damaged[place] ^= 1;
            std::fs::write(&path, damaged).unwrap();
            // A damaged name of the checksum's field leaves the rest as it was.
            let found = registry.read("desk");
            assert!(
                found.as_ref().map_or(true, |found| found.as_ref() == Some(&policy)),
                "{place}: {found:?}"
            );
        }
    }

    #[test]
    fn several_processes_register_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::new(dir.path());
        std::thread::scope(|scope| {
            for n in 1..=8 {
                let registry = registry.clone();
                scope.spawn(move || {
                    registry
                        .register("desk", digest(n), on("2024-01-02"), None, now())
                        .unwrap()
                });
            }
        });
        let policy = registry.read("desk").unwrap().unwrap();
        let numbers: Vec<u32> = policy.versions.iter().map(|version| version.version).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
