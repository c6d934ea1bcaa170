//! Whose the bars are: what the files' names and directories decided, and symbols that are there twice.

use super::config::BarsConfig;
use super::file_bars::{FileBars, Wanted};
use crate::whose::{Origin, Partitions, Places, is_ticker, listed, lookalike, other_spellings, tell_empty};
use datasets::Date;
use datasets::spelling::alike;
use stages_core::{Context, Source, StageError};
use std::collections::{BTreeMap, BTreeSet};

/// The number of days in common from which two files of one symbol are compared.
const FEW_DAYS: usize = 5;

/// Tells what the symbols of files without a column of them are taken from, and refuses files that are of one
/// symbol by their places and of several by their closes.
pub(super) fn check(
    config: &BarsConfig,
    context: &Context,
    sources: &[Source],
    files: &[FileBars],
) -> Result<(), StageError> {
    let rows = |file: &FileBars| u64::from(!file.is_empty());
    tell_empty(context, files.iter().map(|file| (&*file.name, rows(file))));
    one_exchange(files)?;
    if !config.symbol.is_empty() {
        return Ok(());
    }
    let unnamed: BTreeMap<&str, &FileBars> = files
        .iter()
        .filter(|file| !file.is_empty())
        .filter_map(|file| Some((file.unnamed.as_deref()?, file)))
        .collect();
    let places = Places::of_sources(sources);
    tell_names(context, &places, files);
    for line in places.lines(|name| unnamed.contains_key(name)) {
        context.warn(line, None);
    }
    if let Some(name) = unnamed.keys().next().filter(|_| places.is_general()) {
        context.warn(
            format!("no column names the symbol: it is the file's name, which is a general word, `{name}`"),
            Some("`symbol: NAME` states whose the bars are"),
        );
    }
    let mut of_symbol: BTreeMap<&str, Vec<&FileBars>> = BTreeMap::new();
    for (name, file) in &unnamed {
        if let Some(place) = places.get(name) {
            of_symbol.entry(place.text()).or_default().push(file);
        }
    }
    for (symbol, files) in of_symbol {
        for (i, file) in files.iter().enumerate() {
            for other in files[..i].iter().filter(|other| file.days_in_common(other) > FEW_DAYS) {
                let (own, others) = (file.closes(context)?, other.closes(context)?);
                let common = own.iter().filter_map(|(day, close)| Some((*close, *others.get(day)?)));
                let (common, differ) = common.fold((0, 0), |(common, differ), (a, b)| {
                    (common + 1, differ + usize::from((a - b).abs() > 1e-6 * a.abs()))
                });
                if differ * 2 > common {
                    return Err(StageError::new(format!(
                        "`{}` and `{}` are both taken for `{symbol}`, and {differ} of their {common} days in \
                        common have different closes",
                        other.name, file.name
                    ))
                    .hint(
                        "put the files of each symbol into a folder `symbol=NAME`, or leave out what is no \
                        table of bars",
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Refuses files of one symbol in directories of several exchanges: they may be of two companies.
fn one_exchange(files: &[FileBars]) -> Result<(), StageError> {
    let mut first: BTreeMap<&str, (String, &str)> = BTreeMap::new();
    for file in files {
        let Some(exchange) = Partitions::of(&file.name).exchange() else {
            continue;
        };
        for symbol in file.symbols.keys() {
            let (other, name) = first.entry(symbol).or_insert_with(|| (exchange.clone(), &file.name));
            StageError::new(format!(
                "`{symbol}` is of `{other}` in `{name}` and of `{exchange}` in `{}`: two companies?",
                file.name
            ))
            .hint("read each exchange in a stage of its own, by `path`")
            .when(*other != exchange)?;
        }
    }
    Ok(())
}

/// The most pairs of spellings whose days are looked at.
const MOST_PAIRS: usize = 50;

/// Tells of pairs of spellings of which one begins after the other ends: a company that is two symbols.
fn tell_spellings<'s>(
    context: &Context,
    files: &[FileBars],
    symbols: impl Iterator<Item = &'s str>,
) -> Result<(), StageError> {
    let days = |symbol: &str| -> Result<BTreeSet<Date>, StageError> {
        let wanted = Wanted {
            symbols: &[symbol.to_owned()],
            dates: None,
        };
        let of = files.iter().filter(|file| file.symbols.contains_key(symbol));
        let mut all = BTreeSet::new();
        for file in of {
            all.extend(file.days(context, &wanted)?);
        }
        Ok(all)
    };
    let mut pairs = Vec::new();
    let is_other = |(a, b): &(&str, &str)| !a.eq_ignore_ascii_case(b);
    for (a, b) in alike(symbols).into_iter().filter(is_other).take(MOST_PAIRS) {
        let (of_a, of_b) = (days(a)?, days(b)?);
        let follows = |a: &BTreeSet<Date>, b: &BTreeSet<Date>| a.last() < b.first();
        if follows(&of_a, &of_b) || follows(&of_b, &of_a) {
            pairs.push(format!("`{a}` and `{b}`"));
        }
    }
    if !pairs.is_empty() {
        context.warn(
            format!(
                "symbols that follow one another may be spellings of one: {}",
                listed(&pairs)
            ),
            Some("write one symbol for each company"),
        );
    }
    Ok(())
}

/// Tells of files whose column states another symbol than their names do.
fn tell_names(context: &Context, places: &Places, files: &[FileBars]) {
    let of = |file: &FileBars| -> Option<String> {
        let place = places.get(&file.name).filter(|_| file.unnamed.is_none())?;
        let (symbol, name) = (file.symbols.keys().next()?, place.symbol().ok()?);
        let is_other = file.symbols.len() == 1
            && place.origin != Origin::Folder
            && is_ticker(name)
            && Partitions::of(&file.name).symbol().is_none()
            && !symbol.contains(name)
            && !name.contains(symbol.as_str())
            && lookalike(symbol, [name]).is_none();
        is_other.then(|| format!("`{}` is of `{symbol}`", file.name))
    };
    let others: Vec<String> = files.iter().filter_map(of).collect();
    if !others.is_empty() {
        context.warn(
            format!(
                "the symbol is a column's; the files' names are ignored: {}",
                listed(&others)
            ),
            None,
        );
    }
}

/// Tells of symbols with the same rows (`symbols` has their number and a hash of each), of symbols that
/// differ in case alone or are spellings of one, and of wanted ones without rows.
pub(super) fn tell_symbols(
    config: &BarsConfig,
    context: &Context,
    files: &[FileBars],
    symbols: &BTreeMap<String, (u64, u64)>,
) -> Result<(), StageError> {
    tell_spellings(context, files, symbols.keys().map(String::as_str))?;
    let mut same: BTreeMap<(u64, u64), Vec<&str>> = BTreeMap::new();
    for (symbol, rows) in symbols {
        same.entry(*rows).or_default().push(symbol);
    }
    let twice: Vec<String> = same
        .iter()
        .filter(|((rows, _), symbols)| *rows >= FEW_DAYS as u64 && symbols.len() > 1)
        .map(|(_, symbols)| {
            symbols
                .iter()
                .map(|symbol| format!("`{symbol}`"))
                .collect::<Vec<_>>()
                .join(" and ")
        })
        .collect();
    if !twice.is_empty() {
        context.warn(
            format!("the rows of several symbols are the same: {}", listed(&twice)),
            Some("`symbols: [ … ]` keeps one of them"),
        );
    }
    let pairs: Vec<String> = other_spellings(symbols.keys().map(String::as_str))
        .into_iter()
        .map(|(a, b)| format!("`{a}` and `{b}`"))
        .collect();
    if !pairs.is_empty() {
        context.warn(format!("symbols differ only in case: {}", listed(&pairs)), None);
    }
    let missing: Vec<String> = config
        .symbols
        .iter()
        .filter(|symbol| !symbols.contains_key(*symbol))
        .map(|symbol| match lookalike(symbol, symbols.keys().map(String::as_str)) {
            Some(near) => format!("`{symbol}` (there is `{near}`)"),
            None => format!("`{symbol}`"),
        })
        .collect();
    if !missing.is_empty() && !symbols.is_empty() {
        context.warn(format!("there are no rows of {}", listed(&missing)), None);
    }
    Ok(())
}
