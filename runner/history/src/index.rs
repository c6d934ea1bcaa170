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
//! ```

use super::{ResolvedStage, Run, StageRun};
use cache::shared;
use runner_engine::RunStatus;
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension as _, Transaction, TransactionBehavior, params,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// The version of the tables and of the texts in them. An index of another version is rebuilt.
const VERSION: i64 = 4;

/// The longest wait for a lock of another process.
const TIMEOUT: Duration = Duration::from_millis(250);

const SCHEMA: &str = "
CREATE TABLE shared (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, text BLOB NOT NULL);
CREATE TABLE run (
    id TEXT PRIMARY KEY, bytes INTEGER NOT NULL, modified INTEGER NOT NULL, head TEXT NOT NULL,
    resolved INTEGER NOT NULL, ended INTEGER NOT NULL, seconds BLOB NOT NULL, checksum INTEGER NOT NULL
) WITHOUT ROWID;
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

/// An open index. It never makes a command fail: a query that the index cannot answer is answered from the
/// runs.
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
        // SQLite would block on a FIFO in place of the index or its journal.
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
        // Only the file's owner can share it.
        let _ = shared::share_file(&path);
        Some(Self {
            db: db.ok()?,
            path,
            runs: runs.to_owned(),
        })
    }

    /// The indexed runs among those with these event logs, by id. `files` are sorted by id.
    pub fn runs(&self, files: &[EventFile]) -> HashMap<String, Run> {
        let runs = self.answer(|db| {
            let mut known: HashMap<(i64, i64), Option<Vec<StageRun>>> = HashMap::new();
            let mut runs = HashMap::new();
            for row in rows(db, files)? {
                let stages = match known.entry((row.resolved, row.ended)) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => new.insert(stages(db, row.resolved, row.ended)?),
                };
                let run = stages.as_ref().and_then(|stages| row.run(stages, &self.runs));
                runs.extend(run.map(|run| (row.id, run)));
            }
            Ok(runs)
        });
        runs.unwrap_or_default()
    }

    /// Adds runs that were read from these event logs. Runs still in progress are skipped.
    pub fn add<'r>(&mut self, runs: impl IntoIterator<Item = (&'r EventFile, &'r mut Run)>) {
        let mut runs: Vec<_> = runs
            .into_iter()
            .filter(|(_, run)| run.status != RunStatus::Running && run.damaged == 0)
            .collect();
        if !runs.is_empty() {
            self.change(|change| runs.iter_mut().try_for_each(|(file, run)| add(change, file, run)));
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

    /// Removes the runs with these ids.
    pub fn forget(&mut self, ids: &[String]) {
        if ids.is_empty() {
            return;
        }
        self.change(|change| {
            for id in ids {
                change.execute("DELETE FROM run WHERE id = ?1", [id])?;
            }
            let unused =
                "DELETE FROM shared WHERE id NOT IN (SELECT resolved FROM run UNION SELECT ended FROM run)";
            change.execute(unused, []).map(drop)
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

fn add(change: &Transaction<'_>, file: &EventFile, run: &mut Run) -> rusqlite::Result<()> {
    let mut stages = std::mem::take(&mut run.stages);
    let head = json(run);
    let seconds: Vec<f64> = stages
        .iter_mut()
        .map(|stage| std::mem::take(&mut stage.seconds))
        .collect();
    let metrics: Vec<_> = stages
        .iter_mut()
        .map(|stage| std::mem::take(&mut stage.metrics))
        .collect();
    let texts = (
        json(&stages.iter().map(|stage| &*stage.of).collect::<Vec<_>>()),
        outcomes(&stages),
    );
    for ((stage, seconds), metrics) in stages.iter_mut().zip(&seconds).zip(metrics) {
        (stage.seconds, stage.metrics) = (*seconds, metrics);
    }
    run.stages = stages;
    let mut row = Row {
        id: file.id.clone(),
        bytes: file.bytes,
        modified: file.modified,
        head: head?,
        resolved: share(change, &texts.0?)?,
        ended: share(change, &texts.1?)?,
        seconds: seconds.iter().flat_map(|seconds| seconds.to_le_bytes()).collect(),
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
    Ok(())
}

/// Serialises how stages ended, without the fields that come from the pipeline.
fn outcomes(stages: &[StageRun]) -> rusqlite::Result<String> {
    const OF_PIPELINE: [&str; 7] = ["stage", "point", "kind", "version", "config", "needs", "types"];
    let mut all = serde_json::to_value(stages).unwrap_or_default();
    for stage in all
        .as_array_mut()
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        stage.retain(|name, _| !OF_PIPELINE.contains(&name.as_str()));
    }
    json(&all)
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

    fn head(&self) -> Option<Run> {
        serde_json::from_str(&self.head).ok()
    }

    /// The run, whose directory is in `runs`; `stages` are those of its shared texts.
    fn run(&self, stages: &[StageRun], runs: &Path) -> Option<Run> {
        let seconds = self.seconds.chunks_exact(8);
        let mut run = Run {
            dir: runs.join(&self.id),
            stages: stages.to_vec(),
            ..self.head()?
        };
        for (stage, bytes) in run.stages.iter_mut().zip(seconds) {
            stage.seconds = f64::from_le_bytes(bytes.try_into().unwrap_or_default());
        }
        (self.seconds.len() == stages.len() * 8).then_some(run)
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

/// The stages of two shared texts; `None` if one is missing or damaged.
fn stages(db: &Connection, resolved: i64, ended: i64) -> rusqlite::Result<Option<Vec<StageRun>>> {
    let resolved: Option<Vec<ResolvedStage>> = text(db, resolved)?;
    let (Some(resolved), Some(mut stages)) = (resolved, text::<Vec<StageRun>>(db, ended)?) else {
        return Ok(None);
    };
    let fits = resolved.len() == stages.len();
    for (stage, of) in stages.iter_mut().zip(resolved) {
        stage.of = Arc::new(of);
    }
    Ok(fits.then_some(stages))
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
