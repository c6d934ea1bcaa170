//! The settings and reports that the engine and its worker processes exchange.

use crate::client::Client;
use crate::settings::RemoteSettings;
use cache::{BlobDigest, Result, Store, StoredMemo, WorkerReport, WorkerSettings};
use serde::{Deserialize, Serialize};

/// The contents of [`WorkerSettings`].
#[derive(Serialize, Deserialize)]
struct Settings {
    settings: RemoteSettings,
    /// The rejected blobs. If there are any, the saved existence cache is invalid.
    rejected: Vec<BlobDigest>,
}

/// The settings for a worker process; `None` while the circuit breaker is open.
pub(crate) fn settings(client: &Client) -> Option<WorkerSettings> {
    if !client.is_available() {
        return None;
    }
    let rejected = client.known_if_loaded().map(|known| known.rejected());
    // The signing key is not passed on: a worker writes no records, and needs only the public half.
    let mut settings = client.settings.clone();
    if let Some(path) = client.directory() {
        // A path relative to this home would be another one on another machine.
        settings.url = path.to_string_lossy().into_owned();
    }
    settings
        .trusted_keys
        .extend(settings.sign_key.take().map(|key| key.public()));
    WorkerSettings::new(&Settings {
        settings,
        rejected: rejected.unwrap_or_default(),
    })
}

/// Creates the client of a worker process.
pub(crate) fn client(store: &Store, settings: &WorkerSettings) -> Result<Client> {
    let Settings { settings, rejected } = settings.get()?;
    let client = Client::for_worker(settings, store)?;
    if !rejected.is_empty() {
        let mut known = client.known();
        known.invalidate();
        for blob in rejected {
            known.merge_rejected(blob);
        }
    }
    Ok(client)
}

/// Creates the report of a worker process that wrote these memos.
pub(crate) fn report(client: &Client, memos: Vec<StoredMemo>) -> WorkerReport {
    let rejected = client.known_if_loaded().map(|known| known.rejections().to_vec());
    WorkerReport {
        memos,
        sent: Vec::new(),
        rejected: rejected.unwrap_or_default(),
        warnings: client.warnings.take(),
        stats: client.stats.get(),
        unavailable: !client.is_available(),
    }
}

/// Merges the report of a worker process.
pub(crate) fn merge(client: &Client, report: WorkerReport) {
    if !report.rejected.is_empty() {
        let mut known = client.known();
        known.invalidate();
        for blob in report.rejected {
            known.reject(blob);
        }
    }
    if !report.sent.is_empty() {
        let mut known = client.known();
        report.sent.into_iter().for_each(|blob| known.add(blob));
    }
    client.warnings.merge(report.warnings);
    client.stats.add(report.stats);
    if report.unavailable {
        client.reads.open();
        client.writes.open();
    }
}
