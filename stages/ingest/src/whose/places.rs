//! The symbols that directories and names of files give, decided for all files of a stage together: a name
//! that is general (`part-0`, `prices`) or repeated is nobody's symbol, and that of its directory counts.

use super::names::is_usual;
use super::partitions::{Partitions, partition};
use super::spelling::listed;
use chrono::Month;
use datasets::Date;
use stages_core::{Source, StageError};
use stages_table_file::packing::PACKED_ENDINGS;
use std::collections::{BTreeMap, BTreeSet};

/// The origin of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// The name of the file, or a directory in Hive's style, which is a column.
    Name,
    /// The name of the file without a date, or without the mark of a second download.
    Part,
    /// A directory.
    Folder,
}

/// The symbol of a file without a column of one.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The symbol; an error where names do not tell.
    symbol: Result<String, StageError>,
    pub origin: Origin,
}

impl Place {
    /// The symbol.
    pub(crate) fn symbol(&self) -> Result<&str, StageError> {
        self.symbol.as_deref().map_err(Clone::clone)
    }

    /// The symbol as a part of keys.
    pub(crate) fn text(&self) -> &str {
        self.symbol.as_deref().unwrap_or_default()
    }
}

/// The symbols of the files of a stage, by name.
#[derive(Debug, Default)]
pub(crate) struct Places(BTreeMap<String, Place>);

/// The meaning of a file's name.
#[derive(Clone, Debug, PartialEq)]
enum Stem<'n> {
    /// A symbol.
    Name(&'n str),
    /// A symbol with a date, or the mark of a second download, beside it.
    Part(&'n str),
    /// Nothing: a general word, a number of a part.
    General,
    /// A date.
    Date,
}

/// A file's directories and what its name says.
struct Named<'n> {
    name: &'n str,
    folder: Option<&'n str>,
    stem: Stem<'n>,
}

/// Words that name data, and nobody's.
const GENERAL: &str = include_str!("general_names.txt");

fn is_general_word(word: &str) -> bool {
    GENERAL.split_whitespace().any(|general| general == word)
}

/// Returns whether a word is a month, a quarter or half a year, which are none of any year.
fn is_period(word: &str) -> bool {
    let word = word.to_lowercase();
    matches!(&*word, "q1" | "q2" | "q3" | "q4" | "h1" | "h2" | "sept") || word.parse::<Month>().is_ok()
}

/// Returns whether a word is a year, a month or quarter of it, or a day.
fn is_dated(word: &str) -> bool {
    let number = |text: &str| {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u32>().ok()).flatten()
    };
    let Some((year, rest)) = word.split_at_checked(4) else {
        return false;
    };
    let Some(year) = number(year).filter(|year| (1900..2100).contains(year)) else {
        return false;
    };
    match rest.split_at_checked(2) {
        _ if rest.is_empty() => true,
        Some((month, "")) => is_period(month) || number(month).is_some_and(|month| (1..=12).contains(&month)),
        Some((month, day)) if day.len() == 2 => {
            let date = || Date::from_ymd(year as i32, number(month)?, number(day)?);
            date().is_some()
        }
        _ => false,
    }
}

fn is_date(word: &str) -> bool {
    is_dated(word) || is_period(word)
}

/// The words of a name that `_`, `-` and blanks separate, with their ends. A year, and what follows it
/// (`2023-01-03`, `2022 Q1`), is one word with its separators.
fn words(name: &str) -> Vec<&str> {
    name.split(['_', '-', ' ']).filter(|word| !word.is_empty()).collect()
}

/// The name of a file without directories and ending, where it is a general word or a date, and not a
/// symbol.
pub fn name_of_nobody(path: &str) -> Option<&str> {
    let name = super::stem_of(path);
    matches!(stem(name), Stem::General | Stem::Date).then_some(name)
}

/// Returns whether a name is a general one: known words, numbers of parts and unique identifiers.
pub(super) fn is_general(name: &str) -> bool {
    let lower = name.to_lowercase();
    let parts: Vec<&str> = lower
        .split(['_', '-', ' ', '.'])
        .filter(|word| !word.is_empty())
        .collect();
    let is_number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
    let joined: String = parts.iter().filter(|word| !is_number(word)).copied().collect();
    let begins = parts
        .first()
        .is_some_and(|word| matches!(*word, "part" | "chunk" | "block" | "batch" | "split"));
    let is_identifier = |word: &str| word.len() >= 12 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let has_identifier = is_identifier(&parts.concat().chars().take(32).collect::<String>());
    let words = || parts.iter().filter(|word| !is_number(word) && !is_date(word));
    begins && parts.len() > 1
        || has_identifier && !parts.iter().all(is_number)
        || is_general_word(&joined)
        || words().count() > 0 && words().all(|word| is_general_word(word))
        || lower
            .strip_prefix("part")
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// A name without the mark of a second download: `AAPL (1)`, `AAPL - Copy (2)`, `AAPL copy`, `Copy of AAPL`.
pub(super) fn without_copy_mark(name: &str) -> Option<&str> {
    let mut base = name.trim();
    loop {
        let numbered = base.strip_suffix(')').and_then(|rest| rest.rsplit_once('('));
        let digits =
            numbered.filter(|(_, n)| !n.is_empty() && n.len() <= 2 && n.bytes().all(|b| b.is_ascii_digit()));
        let ends = |mark: &str| {
            let at = base.len().checked_sub(mark.len())?;
            let end = base.get(at..)?;
            end.eq_ignore_ascii_case(mark).then(|| &base[..at])
        };
        let marks = [" - copy", " copy", "_copy", "-copy", " - kopie", " - copie", " - copia"];
        let shorter = digits
            .map(|(rest, _)| rest)
            .or_else(|| marks.iter().find_map(|mark| ends(mark)));
        let begins = || {
            base.get(..8)
                .filter(|begin| begin.eq_ignore_ascii_case("copy of "))
                .map(|_| &base[8..])
        };
        match shorter
            .or_else(begins)
            .map(str::trim)
            .filter(|shorter| !shorter.is_empty())
        {
            Some(shorter) => base = shorter,
            None => break,
        }
    }
    (base != name.trim()).then_some(base)
}

/// A name without the dates that it ends in or begins with.
fn without_dates(name: &str) -> Option<&str> {
    let (mut begin, mut end) = (0, name.len());
    let separator = |c: char| matches!(c, '_' | '-' | ' ' | '.');
    let is_day = |word: &str| word.len() <= 2 && !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    // From the end: days and months of two digits count where a year is before them.
    loop {
        let rest = &name[begin..end];
        let mut cut = end;
        let mut at = end;
        for _ in 0..3 {
            let Some((place, c)) = name[begin..at].char_indices().rev().find(|(_, c)| separator(*c)) else {
                break;
            };
            let word = &name[begin + place + c.len_utf8()..at];
            let is_cut = end < name.len();
            if is_dated(word) || is_cut && (is_period(word) || matches!(word, "to" | "until")) {
                cut = begin + place;
            } else if !is_day(word) && !is_period(word) {
                break;
            }
            at = begin + place;
        }
        if cut == end || rest.is_empty() {
            break;
        }
        end = cut;
    }
    // From the beginning, where no dot follows: `2020.HK` is a symbol.
    while let Some((place, c)) = name[begin..end].char_indices().find(|(_, c)| separator(*c)) {
        let word = &name[begin..begin + place];
        let follows_date = begin > 0 && is_day(word);
        if c == '.' || !(is_dated(word) || follows_date) {
            break;
        }
        begin += place + c.len_utf8();
    }
    let base = name[begin..end].trim_matches(separator);
    (base.len() < name.len() && !base.is_empty()).then_some(base)
}

fn stem(name: &str) -> Stem<'_> {
    let name = name.trim();
    let name = match partition(name).filter(|(key, _)| is_usual("symbol", key)) {
        Some((key, _)) => &name[key.len() + 1..],
        None => name,
    };
    let own = without_copy_mark(name).unwrap_or(name);
    let is_dates = !words(own).is_empty()
        && words(own).iter().any(|word| is_date(word))
        && words(own)
            .iter()
            .all(|word| is_date(word) || word.len() <= 2 && word.parse::<u32>().is_ok());
    if is_dates {
        return Stem::Date;
    }
    if is_general(own) {
        return Stem::General;
    }
    match without_dates(own) {
        Some(base) if is_general(base) => Stem::Date,
        Some(base) => Stem::Part(base),
        None if own.len() < name.len() => Stem::Part(own),
        None => Stem::Name(own),
    }
}

fn is_code(own: &str) -> bool {
    own.len() >= 4 && own.bytes().all(|byte| byte.is_ascii_digit())
}

/// The nearest directory whose name may be a symbol or, if there is none, the archive whose name may.
fn folder(name: &str) -> Option<&str> {
    let (folders, _) = name.rsplit_once('/')?;
    let is_packed = |folder: &str| {
        let ending = folder.rsplit_once('.').map_or("", |(_, ending)| ending);
        PACKED_ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known))
    };
    let may_be = |folder: &&str| {
        let is_number = folder.len() <= 3 && folder.bytes().all(|byte| byte.is_ascii_digit());
        !is_number && partition(folder).is_none() && matches!(stem(folder), Stem::Name(_))
    };
    let find = |is_archive: bool| {
        let mut found = folders.rsplit('/').filter(|folder| is_packed(folder) == is_archive);
        found.find_map(|folder| Some(if is_archive { super::stem_of(folder) } else { folder }).filter(may_be))
    };
    find(false).or_else(|| find(true))
}

impl Places {
    /// The symbols of files, given by the names that their sources have and by these without directories and
    /// endings.
    pub(crate) fn of<'n>(names: impl IntoIterator<Item = (&'n str, &'n str)>) -> Self {
        let mut files: Vec<Named<'n>> = names
            .into_iter()
            .map(|(name, own)| Named {
                name,
                folder: folder(name),
                stem: stem(own),
            })
            .collect();
        // Among other symbols, codes that look like years and tickers that are words are symbols.
        let place_of = |name: &'n str| name.rsplit_once('/').map_or("", |(folders, _)| folders);
        let beside: BTreeSet<(&str, bool)> = files
            .iter()
            .filter_map(|file| match file.stem {
                Stem::Name(own) => Some((place_of(file.name), is_code(own))),
                _ => None,
            })
            .collect();
        for file in &mut files {
            let own = super::stem_of(file.name);
            let is_word = own.len() <= 5 && own.bytes().all(|byte| byte.is_ascii_alphabetic());
            let may_be = is_code(own) && own.len() == 4 || is_word;
            let is_symbol = may_be && beside.contains(&(place_of(file.name), is_code(own)));
            if matches!(file.stem, Stem::General | Stem::Date) && is_symbol {
                file.stem = Stem::Name(own);
            }
        }
        let folders_of = |stem: &str| -> BTreeSet<&str> {
            let same = files
                .iter()
                .filter(|file| matches!(&file.stem, Stem::Name(own) | Stem::Part(own) if *own == stem));
            same.filter_map(|file| file.folder).collect()
        };
        let stems: BTreeSet<&str> = files
            .iter()
            .filter_map(|file| match file.stem {
                Stem::Name(own) | Stem::Part(own) => Some(own),
                _ => None,
            })
            .collect();
        let repeated: BTreeSet<&str> = stems.into_iter().filter(|stem| folders_of(stem).len() > 1).collect();
        // A directory of each symbol has files of one name.
        let one_name_each = |folder: &str| {
            let mut own =
                files
                    .iter()
                    .filter(|file| file.folder == Some(folder))
                    .filter_map(|file| match file.stem {
                        Stem::Name(own) | Stem::Part(own) => Some(own),
                        _ => None,
                    });
            let first = own.next();
            own.all(|other| Some(other) == first)
        };
        let alone = files.len() == 1;
        let place = |file: &Named<'n>| {
            let own = |symbol: &str, origin| Place {
                symbol: Ok(symbol.to_owned()),
                origin,
            };
            let of_folder = |folder: &str| own(folder, Origin::Folder);
            match (&file.stem, file.folder) {
                (Stem::Name(own) | Stem::Part(own), Some(folder)) if repeated.contains(own) => {
                    match folders_of(own).iter().all(|folder| one_name_each(folder)) {
                        true => of_folder(folder),
                        false => Place {
                            symbol: Err(two(own, &folders_of(own))),
                            origin: Origin::Folder,
                        },
                    }
                }
                (Stem::Name(symbol), _) => own(symbol, Origin::Name),
                (Stem::Part(symbol), _) => own(symbol, Origin::Part),
                (Stem::General | Stem::Date, Some(folder)) => of_folder(folder),
                (Stem::General | Stem::Date, None) if alone => own(super::stem_of(file.name), Origin::Name),
                (Stem::General | Stem::Date, None) => Place {
                    symbol: Err(nobody(file.name, files.len())),
                    origin: Origin::Folder,
                },
            }
        };
        Self(files.iter().map(|file| (file.name.to_owned(), place(file))).collect())
    }

    /// The symbols of a stage's files.
    pub(crate) fn of_sources(sources: &[Source]) -> Self {
        Self::of(
            sources
                .iter()
                .map(|source| (source.name.as_str(), super::stem_of(&source.name))),
        )
    }

    /// Returns whether they are those of a single file with a general name.
    pub(crate) fn is_general(&self) -> bool {
        let names: Vec<&String> = self.0.keys().collect();
        matches!(names.as_slice(), [one] if folder(one).is_none() && name_of_nobody(one).is_some())
    }

    /// The place of the file of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Place> {
        self.0.get(name)
    }

    /// The symbols of files, and what is not told of others: what was taken and what was ignored, in a
    /// sentence each.
    pub(crate) fn lines(&self, is_taken: impl Fn(&str) -> bool) -> Vec<String> {
        let of = |origin: Origin| {
            let taken = self
                .0
                .iter()
                .filter(|(name, place)| place.origin == origin && is_taken(name));
            let shown = |(name, place): (&String, &Place)| format!("`{name}` is of `{}`", place.text());
            taken.map(shown).collect::<Vec<_>>()
        };
        let mut lines = Vec::new();
        let (folders, parts) = (of(Origin::Folder), of(Origin::Part));
        if !folders.is_empty() {
            lines.push(format!(
                "the symbol is taken from the folder; the files' names are ignored: {}",
                listed(&folders)
            ));
        }
        if !parts.is_empty() {
            lines.push(format!(
                "the symbol is taken from the file's name without its date or mark of a copy: {}",
                listed(&parts)
            ));
        }
        let ignored: BTreeSet<&str> = self
            .0
            .iter()
            .filter(|(name, place)| place.origin == Origin::Name && is_taken(name))
            .filter(|(_, place)| !place.text().is_empty())
            .filter_map(|(name, place)| folder(name).filter(|folder| *folder != place.text()))
            .collect();
        if ignored.len() > 1 {
            let ignored: Vec<&str> = ignored.into_iter().collect();
            lines.push(format!(
                "the symbol is taken from the file's name; the folders are ignored: {}",
                listed(&ignored)
            ));
        }
        lines
    }
}

/// The error of files of one name in several directories, of which each has other names, too.
fn two(name: &str, folders: &BTreeSet<&str>) -> StageError {
    let folders: Vec<&str> = folders.iter().copied().collect();
    StageError::new(format!(
        "several files are called `{name}`, in the folders {}: they may be of one symbol or of several",
        listed(&folders)
    ))
    .hint(
        "read each folder in a stage of its own, or put the files of each symbol into a folder `symbol=NAME`",
    )
}

/// The error of a file whose name is nobody's.
fn nobody(name: &str, files: usize) -> StageError {
    let hint = match Partitions::of(name).other() {
        Some(key) => {
            let below = name
                .split('/')
                .skip_while(|part| !part.starts_with(&format!("{key}=")))
                .skip(1);
            let rest: String = below.map(|_| "/*").collect();
            format!(
                "if `{key}` names it, rename the folders to `symbol=NAME`, or write `layout: {{ like: plain, \
                paths: [\"{key}={{symbol}}{rest}\"] }}` (`symbol: {key}` in `ingest/table` and \
                `ingest/features`)"
            )
        }
        None => "if all are of one symbol, write `symbol: NAME`; else put the files of each into a folder \
            `symbol=NAME`"
            .to_owned(),
    };
    StageError::new(format!(
        "`{name}` and the other {} files name no symbol: no column, no folder, no file's name",
        files - 1
    ))
    .hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(names: &[&str]) -> String {
        let places = Places::of(names.iter().map(|name| (*name, super::super::stem_of(name))));
        let shown = |name: &&str| match &places.get(name).unwrap().symbol {
            Ok(symbol) => symbol.clone(),
            Err(_) => "!".to_owned(),
        };
        names.iter().map(shown).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn symbols_of_files() {
        for (names, wanted) in [
            (&["AAPL.csv", "MSFT.csv"][..], "AAPL MSFT"),
            (
                &["BRK.B.csv", "GC=F.csv", "2330.TW.csv", "2020.HK.csv", "^GSPC.csv"],
                "BRK.B GC=F 2330.TW 2020.HK ^GSPC",
            ),
            (&["AAPL/prices.csv", "MSFT/prices.csv"], "AAPL MSFT"),
            (&["AAPL/2022.csv", "AAPL/2023.csv", "MSFT/2023.csv"], "AAPL AAPL MSFT"),
            (&["2022/AAPL.csv", "2023/AAPL.csv"], "AAPL AAPL"),
            (&["2022/AAPL.csv", "2023/MSFT.csv"], "AAPL MSFT"),
            (&["A/eod_x.csv", "B/eod_x.csv"], "A B"),
            (
                &["nyse/AAPL.csv", "nyse/IBM.csv", "nasdaq/AAPL.csv", "nasdaq/X.csv"],
                "! IBM ! X",
            ),
            (&["AAPL_2022.csv", "AAPL_2023.csv"], "AAPL AAPL"),
            (
                &["AAPL-2022-01-03.csv", "AAPL_2022Q1.csv", "2022_AAPL.csv"],
                "AAPL AAPL AAPL",
            ),
            (&["AAPL_2020-01-01_2021-01-01.csv", "BF-B 2022.csv"], "AAPL BF-B"),
            (
                &["AAPL 202201.csv", "AAPL.2022.csv", "2022-01-03-AAPL.csv"],
                "AAPL AAPL AAPL",
            ),
            (&["2022.csv", "2023.csv"], "! !"),
            (&["0700.csv", "2020.csv"], "0700 2020"),
            (&["AAPL.csv", "ALL.csv", "MAR.csv", "d.csv"], "AAPL ALL MAR d"),
            (
                &["AAPL_Q1_2022.csv", "AAPL_2022_Q2.csv", "AAPL_Mar_2023.csv"],
                "AAPL AAPL AAPL",
            ),
            (&["BRK-B.csv", "ES_H1.csv", "X-1.csv"], "BRK-B ES_H1 X-1"),
            (&["a/data.csv", "b/data.csv"], "a b"),
            (&["0/data.csv", "1/data.csv"], "! !"),
            (&["0/AAPL.csv", "1/AAPL.csv"], "AAPL AAPL"),
            (&["data.csv"], "data"),
            (&["vix_daily_1990_2026.csv"], "vix_daily"),
            (&["part-0.parquet", "part-1.parquet"], "! !"),
            (
                &[
                    "x/part-00000-1f2e3d4c-aaaa-bbbb-cccc-123456789abc.c000.parquet",
                    "y/part-0.parquet",
                ],
                "x y",
            ),
            (
                &["AAPL.csv", "AAPL (1).csv", "MSFT - Copy.csv", "Copy of X.csv"],
                "AAPL AAPL MSFT X",
            ),
            (&["600519.csv", "000001.csv"], "600519 000001"),
            (&["GC=F/prices.csv", "EURUSD=X/prices.csv"], "GC=F EURUSD=X"),
            (&["AA.zip/data.csv"], "AA"),
            (&["AA.zip/part-0.csv", "AA.zip/part-1.csv"], "AA AA"),
            (&["archive/BB.zip/data.csv"], "archive"),
            (&["AA.zip/BB.csv"], "BB"),
            (&["tech/AAPL.csv", "energy/XOM.csv"], "AAPL XOM"),
            (
                &["us/AAPL/jan.csv", "us/AAPL/feb.csv", "us/MSFT/jan.csv"],
                "AAPL AAPL MSFT",
            ),
            (&["company=A/part-0.csv", "company=B/part-0.csv"], "! !"),
            (&["symbol=A.csv", "symbol=B.csv"], "A B"),
        ] {
            assert_eq!(shown(names), wanted, "{names:?}");
        }
    }
}
