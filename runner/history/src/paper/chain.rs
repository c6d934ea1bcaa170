//! The lines of a ledger, and the chain of their digests.
//!
//! ```text
//! {"hash":"…","prev":"…","n":7,"entry":"night",…}
//! ```
//!
//! `hash` is the BLAKE3 digest of the text that follows it in its line, from `"prev"` to the closing brace;
//! `prev` is the `hash` of the line before, 64 zeros in the first; `n` counts from 0. Entries that are added
//! together carry `left`, the number of those that follow: a group that is not complete was never added.

use super::Entry;
use std::fmt::Write as _;

/// The digits of a digest.
const DIGITS: usize = 64;

const HASH: &str = "{\"hash\":\"";
const PREV: &str = "\"prev\":\"";

/// The digest before the first line.
pub(super) fn origin() -> String {
    "0".repeat(DIGITS)
}

/// The chain of a ledger's text.
#[derive(Debug, Default)]
pub(super) struct Chain {
    /// The entries.
    pub entries: Vec<Entry>,
    /// The digest of each entry's line.
    pub hashes: Vec<String>,
    /// The length of the lines of these entries in bytes, line feeds included.
    pub length: usize,
    /// True if the last of these lines has no line feed.
    pub is_open: bool,
    /// The lines after them that count as never written, in words.
    pub dropped: Option<String>,
}

/// The first line whose past was changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken {
    /// The line, counted from 1.
    pub line: usize,
    /// The fault.
    pub what: String,
}

/// The lines of entries that follow a line with the digest `prev` and the number `first - 1`, and their
/// digests.
pub(super) fn encode(
    first: usize,
    prev: &str,
    entries: &[Entry],
) -> serde_json::Result<(String, Vec<String>)> {
    let (mut text, mut hashes) = (String::new(), Vec::<String>::new());
    for (i, entry) in entries.iter().enumerate() {
        let own = serde_json::to_string(entry)?;
        let prev = hashes.last().map_or(prev, String::as_str);
        let mut rest = format!("{PREV}{prev}\",\"n\":{},", first + i);
        let left = entries.len() - 1 - i;
        if left > 0 {
            let _ = write!(rest, "\"left\":{left},");
        }
        rest.push_str(own.strip_prefix('{').unwrap_or(&own));
        let hash = blake3::hash(rest.as_bytes()).to_hex().to_string();
        let _ = writeln!(text, "{HASH}{hash}\",{rest}");
        hashes.push(hash);
    }
    Ok((text, hashes))
}

/// A line that was read.
struct Line<'a> {
    hash: &'a str,
    prev: &'a str,
    n: usize,
    left: usize,
    /// The text of the entry after its opening brace.
    entry: &'a str,
}

/// Splits a line, whose digest must be right.
fn split(line: &str) -> Option<Line<'_>> {
    let (hash, rest) = digest(line.strip_prefix(HASH)?)?;
    if blake3::hash(rest.as_bytes()).to_hex().as_str() != hash {
        return None;
    }
    let (prev, rest) = digest(rest.strip_prefix(PREV)?)?;
    let (n, rest) = number(rest.strip_prefix("\"n\":")?)?;
    let (left, entry) = match rest.strip_prefix("\"left\":") {
        Some(rest) => number(rest)?,
        None => (0, rest),
    };
    Some(Line {
        hash,
        prev,
        n,
        left,
        entry,
    })
}

fn digest(text: &str) -> Option<(&str, &str)> {
    let (digest, rest) = text.split_at_checked(DIGITS)?;
    Some((digest, rest.strip_prefix("\",")?))
}

fn number(text: &str) -> Option<(usize, &str)> {
    let (number, rest) = text.split_once(',')?;
    Some((number.parse().ok()?, rest))
}

/// Reads the text of a ledger. A last line that was not written whole, and a last group of entries that is
/// not complete, are dropped.
pub(super) fn read(bytes: &[u8]) -> Result<Chain, Broken> {
    let mut chain = Chain::default();
    let mut lefts = Vec::new();
    let mut ends = vec![0];
    let mut begin = 0;
    while begin < bytes.len() {
        let feed = bytes[begin..].iter().position(|byte| *byte == b'\n');
        let end = feed.map_or(bytes.len(), |feed| begin + feed);
        let is_last = feed.is_none();
        match read_line(&chain, &bytes[begin..end]) {
            Ok((entry, hash, left)) => {
                chain.entries.push(entry);
                chain.hashes.push(hash);
                lefts.push(left);
                chain.is_open = is_last;
                ends.push(end + usize::from(!is_last));
            }
            Err(_) if is_last => chain.dropped = Some("its last line is incomplete".to_owned()),
            Err(what) => {
                return Err(Broken {
                    line: chain.entries.len() + 1,
                    what,
                });
            }
        }
        begin = end + 1;
    }
    while lefts.last().is_some_and(|left| *left > 0) {
        lefts.pop();
        chain.entries.pop();
        chain.hashes.pop();
        chain.is_open = false;
        chain.dropped = Some("its last entries are incomplete".to_owned());
    }
    chain.length = ends[chain.entries.len()];
    Ok(chain)
}

/// The entry of a line, its digest, and the number of entries of its group that follow it.
fn read_line(before: &Chain, line: &[u8]) -> Result<(Entry, String, usize), String> {
    let text = std::str::from_utf8(line).map_err(|_| "it is not text".to_owned())?;
    let line = split(text).ok_or("its digest does not match its contents: it was edited")?;
    let prev = before.hashes.last().cloned().unwrap_or_else(origin);
    if line.prev != prev || line.n != before.entries.len() {
        return Err("it does not follow the line before it: a line was removed, added or moved".to_owned());
    }
    let entry = serde_json::from_str(&format!("{{{}", line.entry));
    let entry = entry.map_err(|err| format!("it was written by another version of this program: {err}"))?;
    Ok((entry, line.hash.to_owned(), line.left))
}
