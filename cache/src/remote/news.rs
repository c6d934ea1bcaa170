//! What the processes of one run tell each other about the remote.

use super::client::{Remote, locked};
use super::settings::RemoteSettings;
use super::traffic::Traffic;
use crate::{BlobDigest, MemoKey, Result, Store};
use serde::{Deserialize, Serialize};

/// What a worker process is told. It holds what must not be shown: it goes through a pipe, never to a file or into arguments.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Handover {
    settings: RemoteSettings,
    /// Blobs that are not to be used. Where there are any, nothing is taken on trust.
    refused: Vec<BlobDigest>,
}

/// What a worker process has to say at its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct News {
    /// Memos that it wrote.
    pub memos: Vec<MemoKey>,
    /// Blobs that turned out not to be usable.
    refused: Vec<BlobDigest>,
    /// What people should know, by kind, and how often there was reason to.
    warnings: Vec<(String, String, u64)>,
    traffic: Traffic,
    /// Whether the remote did not answer.
    aside: bool,
}

impl Store {
    /// What another process needs to read through to the same remote; `None` where there is none, or none that answers.
    pub fn hand_over(&self) -> Option<Handover> {
        let remote = self.remote.as_ref().filter(|remote| !remote.is_aside())?;
        Some(Handover {
            settings: remote.settings().clone(),
            refused: if remote.knows_something() {
                remote.known().refused()
            } else {
                Vec::new()
            },
        })
    }

    /// Reads through to the remote of another process.
    ///
    /// # Errors
    /// When its settings are wrong.
    pub fn take_over(self, handover: Option<Handover>) -> Result<Self> {
        let Some(Handover { settings, refused }) = handover else {
            return Ok(self);
        };
        let store = self.with_remote(settings)?;
        if let Some(remote) = store.remote.as_ref().filter(|_| !refused.is_empty()) {
            let mut known = remote.known();
            known.distrust();
            for blob in refused {
                known.take_refused(blob);
            }
        }
        Ok(store)
    }

    /// What this process has to say to the one that started it.
    pub fn news(&self) -> News {
        let Some(remote) = &self.remote else {
            return News::default();
        };
        let warnings = std::mem::take(&mut *locked(&remote.inner.warnings));
        News {
            memos: std::mem::take(&mut *locked(&remote.inner.memos)),
            refused: if remote.knows_something() {
                remote.known().found_out().to_vec()
            } else {
                Vec::new()
            },
            warnings: warnings
                .into_iter()
                .map(|(kind, (text, count))| (kind, text, count))
                .collect(),
            traffic: remote.traffic(),
            aside: remote.is_aside(),
        }
    }

    /// Takes in what a worker process had to say.
    pub fn hear(&self, news: News) {
        let Some(remote) = &self.remote else { return };
        remote.hear(news);
    }
}

impl Remote {
    /// How many times a blob of it turned out not to be usable.
    pub fn refusals(&self) -> usize {
        if self.knows_something() {
            self.known().found_out().len()
        } else {
            0
        }
    }

    fn hear(&self, news: News) {
        if !news.refused.is_empty() {
            let mut known = self.known();
            known.distrust();
            for blob in news.refused {
                known.refuse(blob);
            }
        }
        {
            let mut warnings = locked(&self.inner.warnings);
            for (kind, text, more) in news.warnings {
                warnings.entry(kind).or_insert((text, 0)).1 += more;
            }
        }
        self.inner.traffic.add(news.traffic);
        if news.aside {
            self.inner.reads.set_to_rest();
            self.inner.writes.set_to_rest();
        }
    }
}
