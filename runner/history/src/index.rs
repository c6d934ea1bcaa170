//! The index over runs: one SQLite file for queries that would otherwise read every run directory.
//!
//! Everything in it is derived from the run directories. If it is missing, damaged, locked or of another
//! version, the runs are read instead, and the index is rebuilt if possible. A row is valid only while
//! `events.jsonl` has the size and the modification time that it had when it was read, and while the row's
//! checksum matches. Damaged runs have no row.
//!
//! ```text
//! HOME/index/runs.sqlite
//!   run       a run that ended: size and time of its event log, its head, its seconds by stage, and two shared texts
//!   shared    texts that many runs have in common, by digest: the stages as resolved, and how they ended
//!   action    action key -> the run and stage that computed it, its duration, and the last value of each metric once queried
//!   name      name of a run -> its id; complete while `state` has the text of `HOME/index/names.stamp`
//! ```

use super::stored::{Head, StageOutcome, Template};
use super::{LastMetrics, Run};
use cache::{ActionKey, shared};
use runner_engine::RunStatus;
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension as _, Transaction, TransactionBehavior, params,
};
use serde::{Deserialize, Serialize};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// The version of the tables and of the texts in them. An index of another version is rebuilt.
const VERSION: i64 = 2;

/// The longest wait for a lock of another process.
const TIMEOUT: Duration = Duration::from_millis(250);

const SCHEMA: &str = "
CREATE TABLE shared (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, text BLOB NOT NULL);
CREATE TABLE run (
    id TEXT PRIMARY KEY, bytes INTEGER NOT NULL, modified INTEGER NOT NULL, head TEXT NOT NULL,
    resolved INTEGER NOT NULL, ended INTEGER NOT NULL, seconds BLOB NOT NULL, checksum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE action (
    key BLOB NOT NULL, run TEXT NOT NULL, stage TEXT NOT NULL, kind TEXT NOT NULL, seconds REAL NOT NULL, metrics TEXT,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (key, run)
) WITHOUT ROWID;
CREATE INDEX action_of_run ON action (run);
CREATE TABLE name (name TEXT PRIMARY KEY, run TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE state (stamp TEXT NOT NULL, checksum INTEGER NOT NULL);
";

/// The event log of a run on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFile {
    /// The run.
    pub id: String,
    /// The size in bytes.
    pub bytes: i64,
    /// The modification time, in nanoseconds since 1970.
    pub modified: i64,
}

impl EventFile {
    /// The event log of a run; `None` if there is none.
    pub fn of(runs: &Path, id: &str) -> Option<Self> {
        let meta = std::fs::metadata(runs.join(id).join("events.jsonl")).ok()?;
        let modified = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        meta.is_file().then(|| Self {
            id: id.to_owned(),
            bytes: meta.len() as i64,
            modified: modified.as_nanos() as i64,
        })
    }
}

/// An open index. It never fails a command: a query that it cannot answer is answered from the runs.
pub struct Index {
    db: Connection,
    path: PathBuf,
    runs: PathBuf,
}

impl Index {
    /// Opens or creates the index over the directory `runs`; `None` if that is impossible.
    pub fn open(runs: &Path) -> Option<Self> {
        let folder = folder(runs)?;
        if !runs.is_dir() {
            return None;
        }
        let _ = shared::create_dir_all(&folder);
        let path = folder.join("runs.sqlite");
        // SQLite would wait for a FIFO in the place of the index or its journal.
        for name in ["runs.sqlite", "runs.sqlite-journal"] {
            let path = folder.join(name);
            if std::fs::symlink_metadata(&path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
                let _ = std::fs::remove_file(&path);
            }
        }
        let db = match connect(&path) {
            Err(err) if is_damage(&err) => {
                remove(&path);
                connect(&path)
            }
            opened => opened,
        };
        // Only its owner can do that.
        let _ = shared::share_file(&path);
        Some(Self {
            db: db.ok()?,
            path,
            runs: runs.to_owned(),
        })
    }

    /// The indexed runs among those with these event logs, by id. `files` are sorted by id.
    pub fn runs(&self, files: &[EventFile]) -> HashMap<String, Run> {
        self.answer(|db| {
            let mut templates = Templates::new(db);
            rows(db, files)?
                .into_iter()
                .filter_map(|row| {
                    let template = templates.whole(row.resolved, row.ended).transpose()?;
                    let run = template.map(|template| Some((row.id.clone(), row.run(template, &self.runs)?)));
                    run.transpose()
                })
                .collect()
        })
        .unwrap_or_default()
    }

    /// The pipeline and the number of the stage outcomes of the indexed runs among these, by id. Runs with
    /// the same outcomes have the same number. `files` are sorted by id.
    pub fn outcome_numbers(&self, files: &[EventFile]) -> HashMap<String, (String, i64)> {
        self.answer(|db| {
            let rows = rows(db, files)?;
            Ok(rows
                .into_iter()
                .filter_map(|row| Some((row.id.clone(), (row.head()?.pipeline, row.ended))))
                .collect())
        })
        .unwrap_or_default()
    }

    /// The stage outcomes with a number from [`Self::outcome_numbers`].
    pub(crate) fn outcomes(&self, number: i64) -> Option<Vec<StageOutcome>> {
        self.answer(|db| text(db, number))?
    }

    /// Adds runs that were read from these event logs. Running ones are skipped.
    pub fn add<'r>(&mut self, runs: impl IntoIterator<Item = (&'r EventFile, &'r Run)>) {
        let runs: Vec<_> = runs
            .into_iter()
            .filter(|(_, run)| run.status != RunStatus::Running && run.damaged == 0)
            .collect();
        if !runs.is_empty() {
            self.change(|change| runs.iter().try_for_each(|(file, run)| add(change, file, run)));
        }
    }

    /// Removes every run except those with these event logs.
    pub fn retain(&mut self, files: &[EventFile]) {
        let kept: HashSet<&str> = files.iter().map(|file| file.id.as_str()).collect();
        let gone: Option<Vec<String>> = self.answer(|db| {
            let mut ids = db.prepare("SELECT id FROM run")?;
            let ids = ids.query_map([], |row| row.get::<_, String>(0))?;
            ids.filter(|id| id.as_ref().map_or(true, |id| !kept.contains(id.as_str())))
                .collect()
        });
        self.forget(&gone.unwrap_or_default());
    }

    /// Removes runs.
    pub fn forget(&mut self, ids: &[String]) {
        if ids.is_empty() {
            return;
        }
        self.change(|change| {
            let stamp = stamp(change)?;
            for id in ids {
                change.execute("DELETE FROM run WHERE id = ?1", [id])?;
                change.execute("DELETE FROM action WHERE run = ?1", [id])?;
                change.execute("DELETE FROM name WHERE run = ?1", [id])?;
            }
            stamp.map_or(Ok(()), |stamp| set_stamp(change, &stamp))?;
            let unused =
                "DELETE FROM shared WHERE id NOT IN (SELECT resolved FROM run UNION SELECT ended FROM run)";
            change.execute(unused, []).map(drop)
        });
    }

    /// The newest run that computed an action, and the last value of each of its metrics if known.
    pub fn computed(&self, key: ActionKey) -> Option<(String, Option<LastMetrics>)> {
        let found: Option<(String, Option<String>, bool)> = self.answer(|db| {
            let sql = "SELECT run, metrics, stage, kind, seconds, checksum FROM action WHERE key = ?1 ORDER \
                BY run DESC LIMIT 1";
            db.query_row(sql, [key.as_bytes()], |row| {
                let (run, metrics): (String, Option<String>) = (row.get(0)?, row.get(1)?);
                let (stage, kind): (String, String) = (row.get(2)?, row.get(3)?);
                let sum = action_sum(key, &run, &stage, &kind, row.get(4)?, metrics.as_deref());
                let is_intact = row.get::<_, i64>(5)? == sum;
                Ok((run, metrics, is_intact))
            })
            .optional()
        })?;
        let (run, metrics, is_intact) = found?;
        if !is_intact {
            return None;
        }
        Some((run, metrics.and_then(|text| serde_json::from_str(&text).ok())))
    }

    /// Adds a run that was read with metrics.
    pub fn add_with_metrics(&mut self, file: &EventFile, run: &Run) {
        self.add([(file, run)]);
        self.change(|change| {
            let mut update = change
                .prepare("UPDATE action SET metrics = ?3, checksum = ?4 WHERE key = ?1 AND run = ?2")?;
            for (key, stage) in run.computed() {
                let metrics = json(&stage.last_metrics())?;
                let sum = action_sum(key, &run.id, &stage.id, &stage.kind, stage.seconds, Some(&metrics));
                update.execute(params![key.as_bytes(), run.id, metrics, sum])?;
            }
            Ok(())
        });
    }

    /// The run with that name; the outer `None` if the names in the index are not those of `stamp`.
    pub fn named(&self, name: &str, stamp: &str) -> Option<Option<String>> {
        self.answer(|db| {
            if !has_stamp(db, stamp)? {
                return Ok(None);
            }
            let sql = "SELECT run FROM name WHERE name = ?1";
            db.query_row(sql, [name], |row| row.get(0)).optional().map(Some)
        })?
    }

    /// Replaces all names by those of `stamp`.
    pub fn set_names<'n>(&mut self, names: impl Iterator<Item = (&'n str, &'n str)>, stamp: &str) {
        self.change(|change| {
            change.execute("DELETE FROM name", [])?;
            for (name, run) in names {
                change.execute("INSERT OR REPLACE INTO name VALUES (?1, ?2)", [name, run])?;
            }
            set_stamp(change, stamp)
        });
    }

    /// Changes the name of one run, if the index has the names of the stamp `before`.
    pub fn rename(&mut self, run: &str, name: Option<&str>, before: &str, after: &str) {
        self.change(|change| {
            if !has_stamp(change, before)? {
                return Ok(());
            }
            change.execute("DELETE FROM name WHERE run = ?1", [run])?;
            if let Some(name) = name {
                change.execute("INSERT OR REPLACE INTO name VALUES (?1, ?2)", [name, run])?;
            }
            set_stamp(change, after)
        });
    }

    /// Runs a query; `None` if it fails.
    fn answer<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Option<T> {
        self.check(query(&self.db))
    }

    /// Applies a change in one transaction. It is lost if another process holds the lock for long or the
    /// index is read-only.
    fn change(&mut self, change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>) {
        let changed = self
            .db
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .and_then(|transaction| {
                change(&transaction)?;
                transaction.commit()
            });
        self.check(changed);
    }

    /// Removes a damaged index; the next process that opens it rebuilds it.
    fn check<T>(&self, result: rusqlite::Result<T>) -> Option<T> {
        if result.as_ref().is_err_and(is_damage) {
            remove(&self.path);
        }
        result.ok()
    }
}

/// The directory of the index, beside the directory `runs`.
pub(super) fn folder(runs: &Path) -> Option<PathBuf> {
    Some(runs.parent()?.join("index"))
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    // SQLite falls back to reading if the file is write-protected.
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(TIMEOUT)?;
    db.pragma_update(None, "synchronous", "NORMAL")?;
    if version(&db)? != VERSION {
        let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have created the tables meanwhile.
        if version(&change)? != VERSION {
            let tables: Vec<String> = change
                .prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?
                .query_map([], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            for table in tables {
                change.execute_batch(&format!("DROP TABLE \"{}\"", table.replace('"', "\"\"")))?;
            }
            change.execute_batch(SCHEMA)?;
            change.pragma_update(None, "user_version", VERSION)?;
        }
        change.commit()?;
    }
    Ok(db)
}

fn version(db: &Connection) -> rusqlite::Result<i64> {
    db.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// True if an error means that the index is damaged.
fn is_damage(err: &rusqlite::Error) -> bool {
    use rusqlite::Error;
    match err {
        Error::SqliteFailure(failure, _) => matches!(
            failure.code,
            // `Unknown` includes missing tables and columns: the statements themselves are right.
            ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::Unknown
                | ErrorCode::TypeMismatch
        ),
        Error::FromSqlConversionFailure(..)
        | Error::IntegralValueOutOfRange(..)
        | Error::InvalidColumnType(..) => true,
        _ => false,
    }
}

fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
    let mut journal = path.as_os_str().to_owned();
    journal.push("-journal");
    let _ = std::fs::remove_file(journal);
}

fn json(value: &impl Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|err| rusqlite::Error::ToSqlConversionFailure(err.into()))
}

fn has_stamp(db: &Connection, wanted: &str) -> rusqlite::Result<bool> {
    Ok(stamp(db)?.as_deref() == Some(wanted))
}

/// The stamp of the names in the index; `None` if they do not match their checksum.
fn stamp(db: &Connection) -> rusqlite::Result<Option<String>> {
    let found: Option<(String, i64)> = db
        .query_row("SELECT stamp, checksum FROM state", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    let Some((stamp, sum)) = found else { return Ok(None) };
    Ok((sum == names_sum(db, &stamp)?).then_some(stamp))
}

/// The checksum of all names and the stamp.
fn names_sum(db: &Connection, stamp: &str) -> rusqlite::Result<i64> {
    let mut parts = vec![stamp.to_owned()];
    let mut select = db.prepare("SELECT name, run FROM name ORDER BY name")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        parts.extend([row.get::<_, String>(0)?, row.get(1)?]);
    }
    let parts: Vec<&[u8]> = parts.iter().map(String::as_bytes).collect();
    Ok(sum(&parts))
}

/// The checksum of a row of `action`.
fn action_sum(
    key: ActionKey,
    run: &str,
    stage: &str,
    kind: &str,
    seconds: f64,
    metrics: Option<&str>,
) -> i64 {
    let seconds = seconds.to_bits().to_le_bytes();
    let texts = [run, stage, kind].map(str::as_bytes);
    let has_metrics = [u8::from(metrics.is_some())];
    let metrics = metrics.unwrap_or_default().as_bytes();
    sum(&[
        key.as_bytes(),
        texts[0],
        texts[1],
        texts[2],
        &seconds,
        &has_metrics,
        metrics,
    ])
}

/// The checksum of some texts.
fn sum(parts: &[&[u8]]) -> i64 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut sum = [0; 8];
    hasher.finalize_xof().fill(&mut sum);
    i64::from_le_bytes(sum)
}

fn set_stamp(db: &Connection, stamp: &str) -> rusqlite::Result<()> {
    db.execute("DELETE FROM state", [])?;
    let sum = names_sum(db, stamp)?;
    db.execute("INSERT INTO state VALUES (?1, ?2)", params![stamp, sum])
        .map(drop)
}

fn add(change: &Transaction<'_>, file: &EventFile, run: &Run) -> rusqlite::Result<()> {
    let resolved: Vec<_> = run.stages.iter().map(|stage| &*stage.of).collect();
    let outcomes: Vec<StageOutcome> = run.stages.iter().map(StageOutcome::of).collect();
    let mut row = Row {
        id: file.id.clone(),
        bytes: file.bytes,
        modified: file.modified,
        head: json(&Head::of(run))?,
        resolved: share(change, &json(&resolved)?)?,
        ended: share(change, &json(&outcomes)?)?,
        seconds: run
            .stages
            .iter()
            .flat_map(|stage| stage.seconds.to_le_bytes())
            .collect(),
        checksum: 0,
    };
    row.checksum = row.sum();
    change.execute(
        "INSERT OR REPLACE INTO run VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            row.id,
            row.bytes,
            row.modified,
            row.head,
            row.resolved,
            row.ended,
            row.seconds,
            row.checksum
        ],
    )?;
    let mut insert = change.prepare("INSERT OR REPLACE INTO action VALUES (?1, ?2, ?3, ?4, ?5, NULL, ?6)")?;
    for (key, stage) in run.computed() {
        let sum = action_sum(key, &run.id, &stage.id, &stage.kind, stage.seconds, None);
        insert.execute(params![
            key.as_bytes(),
            run.id,
            stage.id,
            stage.kind,
            stage.seconds,
            sum
        ])?;
    }
    Ok(())
}

/// The number of a shared text, which is inserted if new.
fn share(change: &Transaction<'_>, text: &str) -> rusqlite::Result<i64> {
    let digest = blake3::hash(text.as_bytes());
    let known = change
        .query_row("SELECT id FROM shared WHERE digest = ?1", [digest.as_bytes()], |row| {
            row.get(0)
        })
        .optional()?;
    if let Some(id) = known {
        return Ok(id);
    }
    change.execute(
        "INSERT INTO shared (digest, text) VALUES (?1, ?2)",
        params![digest.as_bytes(), text.as_bytes()],
    )?;
    Ok(change.last_insert_rowid())
}

/// A row of `run`.
struct Row {
    id: String,
    bytes: i64,
    modified: i64,
    head: String,
    resolved: i64,
    ended: i64,
    seconds: Vec<u8>,
    checksum: i64,
}

impl Row {
    fn sum(&self) -> i64 {
        let numbers = [self.bytes, self.modified, self.resolved, self.ended].map(i64::to_le_bytes);
        sum(&[
            self.id.as_bytes(),
            self.head.as_bytes(),
            &self.seconds,
            numbers.as_flattened(),
        ])
    }

    fn head(&self) -> Option<Head> {
        serde_json::from_str(&self.head).ok()
    }

    /// `None` if the row does not match the template.
    fn run(&self, template: &Template, runs: &Path) -> Option<Run> {
        let seconds = self
            .seconds
            .chunks_exact(8)
            .map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap_or_default()));
        let run = self.head()?.run(&self.id, runs.join(&self.id), template, seconds)?;
        (self.seconds.len() == run.stages.len() * 8).then_some(run)
    }
}

/// The valid rows of these event logs.
fn rows(db: &Connection, files: &[EventFile]) -> rusqlite::Result<Vec<Row>> {
    let (Some(first), Some(last)) = (files.first(), files.last()) else {
        return Ok(Vec::new());
    };
    let known: HashMap<&str, &EventFile> = files.iter().map(|file| (file.id.as_str(), file)).collect();
    let mut select = db.prepare("SELECT * FROM run WHERE id BETWEEN ?1 AND ?2")?;
    let rows = select.query_map([&first.id, &last.id], |row| {
        Ok(Row {
            id: row.get(0)?,
            bytes: row.get(1)?,
            modified: row.get(2)?,
            head: row.get(3)?,
            resolved: row.get(4)?,
            ended: row.get(5)?,
            seconds: row.get(6)?,
            checksum: row.get(7)?,
        })
    })?;
    let is_current = |row: &Row| {
        let file = known.get(row.id.as_str());
        file.is_some_and(|file| (file.bytes, file.modified) == (row.bytes, row.modified))
            && row.sum() == row.checksum
    };
    rows.filter(|row| row.as_ref().map_or(true, is_current)).collect()
}

/// Parsed shared texts, each read once.
struct Templates<'d> {
    db: &'d Connection,
    whole: HashMap<(i64, i64), Option<Template>>,
}

impl<'d> Templates<'d> {
    fn new(db: &'d Connection) -> Self {
        Self {
            db,
            whole: HashMap::new(),
        }
    }

    /// The stages with this resolution and these outcomes; `None` if a text is damaged.
    fn whole(&mut self, resolved: i64, ended: i64) -> rusqlite::Result<Option<&Template>> {
        let template = match self.whole.entry((resolved, ended)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let texts = (text(self.db, resolved)?, text(self.db, ended)?);
                new.insert(match texts {
                    (Some(resolved), Some(outcomes)) => Template::new(resolved, outcomes),
                    _ => None,
                })
            }
        };
        Ok(template.as_ref())
    }
}

/// A parsed shared text; `None` if it is missing or does not match its digest.
fn text<T: for<'t> Deserialize<'t>>(db: &Connection, id: i64) -> rusqlite::Result<Option<T>> {
    let sql = "SELECT digest, text FROM shared WHERE id = ?1";
    let found: Option<(Vec<u8>, Vec<u8>)> = db
        .query_row(sql, [id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(found.and_then(|(digest, text)| {
        let sound = blake3::hash(&text).as_bytes()[..] == digest;
        sound.then(|| serde_json::from_slice(&text).ok())?
    }))
}
