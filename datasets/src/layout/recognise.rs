//! Recognises the layout of a file, and explains why.

use super::condition::Condition;
use super::contract_symbol::SymbolFormat;
use super::description::{Evidence, Form, Layout, Mapping, OTHERS, Table};
use super::known::known;
use super::nearest::{is_named, nearest_header, normal};
use super::pattern::fits;
use std::cmp::Reverse;
use std::collections::HashSet;

/// A layout, and how well a file fits it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The layout.
    pub layout: &'static Layout,
    /// The names of [`super::Recognise::headers`], or the fields of [`super::Recognise::row`], that the file
    /// has.
    pub found: Vec<&'static str>,
    /// The names of [`super::Recognise::headers`] that the file lacks.
    pub lacks: Vec<&'static str>,
    /// True if the file's name fits one of [`super::Recognise::files`].
    pub name_fits: bool,
    /// True if the file can have this layout.
    pub fits: bool,
    /// The columns of ours that the file cannot fill and its table requires, where few names are lacking.
    pub unfilled: Vec<&'static str>,
    /// True if the table can be made without the names that are lacking.
    is_complete: bool,
    /// For layouts without a header, the length of the longest pattern that the file's name fits: a longer
    /// pattern is more specific.
    specific: usize,
}

/// The layout of a file, and the reason.
#[derive(Clone, Debug)]
pub struct Recognised {
    /// The layout.
    pub layout: &'static Layout,
    /// The reason, in a sentence.
    pub why: String,
}

/// A file whose layout is not known, or not known for certain.
#[derive(Clone, Debug, PartialEq)]
pub struct Unrecognised {
    /// The problem.
    pub message: String,
    /// A hint: a file name, a column or a setting that would decide.
    pub hint: String,
}

impl Candidate {
    /// The number of names, or fields of the first row, that identify the layout.
    pub fn score(&self) -> usize {
        self.found.len()
    }

    /// The share of its names that the file has, in thousandths.
    fn share(&self) -> usize {
        let of = self.found.len() + self.lacks.len();
        (self.found.len() * 1000).checked_div(of).unwrap_or(0)
    }

    fn is_certain(&self) -> bool {
        self.fits && (self.name_fits || self.layout.recognise.evidence == Evidence::Strong)
    }

    /// True if the file has most of the names of the layout, and lacks none without which there is no table.
    fn nearly_fits(&self) -> bool {
        self.is_near() && self.share() >= 750 && self.is_complete
    }

    /// True if the file, which nearly fits the layout, is rather of it than of one that fits: it has more of
    /// its names, among them all of the other's, and some that the other does not explain.
    fn is_rather(&self, other: &Self) -> bool {
        let explains = |layout: &Layout, name: &str| {
            let mut names = name.split('|');
            names.any(|name| layout.mappings().any(|mapping| is_named(&mapping.theirs, name)))
        };
        self.score() > other.score()
            && other.found.iter().all(|name| explains(self.layout, name))
            && (self.name_fits || !self.found.iter().all(|name| explains(other.layout, name)))
    }

    /// True if the file is likely one of the layout with columns renamed or removed.
    fn is_near(&self) -> bool {
        let is_certain = self.name_fits || self.layout.recognise.evidence == Evidence::Strong;
        is_certain && !self.lacks.is_empty() && self.score() >= 4 && self.share() >= 600
    }

    /// The reason why the layout fits or does not fit.
    pub fn reason(&self) -> String {
        let of = self.found.len() + self.lacks.len();
        let names = &self.layout.recognise.files;
        if !self.lacks.is_empty() {
            return format!(
                "the header has {} of its {of} names and lacks {}",
                self.found.len(),
                listed(&self.lacks)
            );
        }
        let by_header = match (of, self.layout.recognise.row.is_empty()) {
            (0, _) => "its files have no header".to_owned(),
            (_, false) => "its files have no header, and the first row is like those of it".to_owned(),
            _ => format!("the header has all {of} names that it is recognised by"),
        };
        match (self.fits, self.name_fits, self.layout.recognise.evidence) {
            (false, ..) => format!("{by_header}, but the file's name is not like {}", names.join(" or ")),
            (_, true, _) => format!("{by_header}, and the file's name fits"),
            (_, _, Evidence::Strong) => by_header,
            (_, _, Evidence::Weak) => format!(
                "{by_header}, but other tables have them, too, and the file's name is not like {}",
                names.join(" or ")
            ),
        }
    }
}

/// Names in quotes, separated by commas.
fn listed(names: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// The header of a file as read in one form.
struct Header {
    names: Vec<String>,
    normal: HashSet<String>,
}

impl Header {
    fn has(&self, name: &str) -> bool {
        name.split('|').any(|name| self.normal.contains(name))
    }

    /// True if the file has a column of a layout, or several for all others.
    fn has_column(&self, theirs: &str) -> bool {
        self.normal.contains(&normal(theirs)) || theirs == OTHERS && self.names.len() > 1
    }

    /// True if the file has the names that its layout gives to files without a header.
    fn is_of(&self, form: &Form) -> bool {
        !form.header.is_empty()
            && self.names.len() == form.header.len()
            && self
                .names
                .iter()
                .zip(&form.header)
                .all(|(name, of)| normal(name) == normal(of))
    }

    /// The columns of ours that a table of the layout cannot do without, and that the file cannot fill.
    fn unfilled(&self, layout: &Layout) -> Vec<&'static str> {
        let is_symbol_there = layout
            .contract_symbol
            .as_ref()
            .is_some_and(|symbol| self.has_column(&symbol.column));
        let gives =
            |ours: &str| match layout.contract_symbol.is_some() && SymbolFormat::COLUMNS.contains(&ours) {
                true => is_symbol_there || layout.values.contains_key(ours),
                false => layout.gives(ours),
            };
        let lacks = |ours: &str, mappings: &[Mapping]| {
            let mut sources = mappings.iter().filter(|mapping| mapping.ours == ours).peekable();
            sources.peek().is_some() && !sources.any(|mapping| self.has_column(&mapping.theirs))
        };
        // A known layout without a column for quotes has others that give them.
        let quotes: &[&str] = match layout.table {
            Table::Chain if layout.sources("symbol").next().is_none() => {
                &["bid", "ask", "last", "underlying", "time", "root"]
            }
            Table::Chain => &["bid", "ask", "last", "underlying", "time"],
            Table::Bars | Table::Rates => &[],
        };
        let is_unfilled = |ours: &str| {
            let sides = [&layout.columns, &layout.call, &layout.put];
            let is_lacking = sides.into_iter().any(|mappings| lacks(ours, mappings));
            let is_mapped = layout.mappings().any(|mapping| mapping.ours == ours);
            !gives(ours) && (is_lacking || !is_mapped && !quotes.contains(&ours))
        };
        let columns = layout.table.required().iter().chain(quotes).copied();
        columns.filter(|ours| is_unfilled(ours)).collect()
    }

    /// True if the file has the columns that decide which rows are read.
    fn has_condition(&self, layout: &Layout) -> bool {
        let mut columns = layout.condition.iter().flat_map(Condition::columns);
        columns.all(|column| self.normal.contains(&column))
    }
}

/// True if a field of a row has the form of a pattern, in which `#` is a digit, `*` any text, and `|` stands
/// between alternatives.
fn is_like(pattern: &str, field: &str) -> bool {
    if let Some((one, others)) = pattern.split_once('|') {
        return is_like(one, field) || is_like(others, field);
    }
    let same = |(wanted, found): (char, char)| match wanted {
        '#' => found.is_ascii_digit(),
        _ => wanted == found,
    };
    pattern == "*" || {
        let count = field.chars().count();
        pattern.chars().count() == count && pattern.chars().zip(field.chars()).all(same)
    }
}

/// The fit of a file with each layout of a table, the best first. `path` is the file's name, relative to the
/// source's root, with the name of its entry in an archive; `header` gives the names in the file's header as
/// read in a given form (the fields of the first row, for files without a header), and `None` if the file
/// cannot have that form.
pub fn candidates(
    table: Table,
    path: &str,
    mut header: impl FnMut(&Form) -> Option<Vec<String>>,
) -> Vec<Candidate> {
    // Most layouts share a form, so that the header is read a few times alone.
    let mut headers: Vec<(&Form, Option<Header>)> = Vec::new();
    let mut all = Vec::new();
    for layout in known(table) {
        let recognise = &layout.recognise;
        if recognise.headers.is_empty() && recognise.files.is_empty() && recognise.row.is_empty() {
            continue;
        }
        let at = headers
            .iter()
            .position(|(form, _)| *form == &layout.form)
            .unwrap_or_else(|| {
                let names = header(&layout.form).map(|names| Header {
                    normal: names.iter().map(|name| normal(name)).collect(),
                    names,
                });
                headers.push((&layout.form, names));
                headers.len() - 1
            });
        let Some(header) = &headers[at].1 else { continue };
        let longest = recognise
            .files
            .iter()
            .filter(|pattern| fits(pattern, path))
            .map(String::len)
            .max();
        let name_fits = longest.is_some();
        let (mut found, mut lacks): (Vec<&str>, Vec<&str>) = recognise
            .headers
            .iter()
            .map(String::as_str)
            .partition(|wanted| header.has(wanted));
        let is_named = !recognise.headers.is_empty() && header.is_of(&layout.form);
        let fits = if !recognise.row.is_empty() && is_named {
            true
        } else if !recognise.row.is_empty() {
            let patterns = recognise.row.iter().map(String::as_str);
            (found, lacks) = (patterns.filter(|pattern| *pattern != "*").collect(), Vec::new());
            let fields = header
                .names
                .iter()
                .map(|field| field.trim_matches(|c: char| c == '"' || c.is_whitespace()));
            header.names.len() == recognise.row.len()
                && recognise
                    .row
                    .iter()
                    .zip(fields)
                    .all(|(pattern, field)| is_like(pattern, field))
        } else if recognise.headers.is_empty() {
            // Only the form and the file's name are evidence.
            name_fits && header.names.len() == layout.form.header.len()
        } else {
            lacks.is_empty()
                && (!layout.form.header.is_empty()
                    || layout.mappings().any(|mapping| {
                        !matches!(&*mapping.ours, "date" | "symbol") && header.has_column(&mapping.theirs)
                    }))
        };
        if !fits && !recognise.row.is_empty() {
            continue;
        }
        let mut candidate = Candidate {
            layout,
            found,
            lacks,
            name_fits,
            fits,
            unfilled: Vec::new(),
            is_complete: false,
            specific: longest.filter(|_| recognise.headers.is_empty()).unwrap_or(0),
        };
        if candidate.is_near() {
            candidate.unfilled = header.unfilled(layout);
            candidate.is_complete = candidate.unfilled.is_empty() && header.has_condition(layout);
        }
        all.push(candidate);
    }
    all.sort_by_key(|candidate| {
        Reverse((
            candidate.is_certain(),
            candidate.fits,
            if candidate.fits {
                candidate.score()
            } else {
                candidate.share()
            },
            candidate.name_fits,
            candidate.specific,
        ))
    });
    all
}

/// Finds the layout of a file among the known layouts of a table; see [`candidates`] for the arguments. Where
/// none fits, a file that lacks only columns without which the table can be made is one of the layout that it
/// is nearest to.
///
/// # Errors
/// When no layout fits, the evidence is weak, or two layouts fit equally well.
pub fn recognise(
    table: Table,
    path: &str,
    mut header: impl FnMut(&Form) -> Option<Vec<String>>,
) -> Result<Recognised, Unrecognised> {
    let all = candidates(table, path, &mut header);
    let fitting = all.iter().find(|candidate| candidate.is_certain());
    let near = |candidate: &&Candidate| {
        candidate.nearly_fits() && fitting.is_none_or(|fitting| candidate.is_rather(fitting))
    };
    // The first fits best: another that fits is considered only where no layout fits nearly and better.
    let is_any = all.iter().any(|candidate| candidate.fits) && !all.iter().any(|candidate| near(&candidate));
    let best = |candidate: &&Candidate| match is_any {
        true => candidate.is_certain(),
        false => near(candidate),
    };
    let mut certain = all.iter().filter(best);
    let (first, second) = (certain.next(), certain.next());
    let name = |candidate: &Candidate| format!("`{}`", candidate.layout.name);
    let rank = |candidate: &Candidate| {
        let share = if is_any { 0 } else { candidate.share() };
        (candidate.score(), share, candidate.name_fits, candidate.specific)
    };
    match (first, second) {
        (Some(first), Some(second)) if rank(first) == rank(second) => Err(Unrecognised {
            message: format!("two layouts fit equally well: {} and {}", name(first), name(second)),
            hint: format!(
                "say which: `layout: {}` or `layout: {}`",
                first.layout.name, second.layout.name
            ),
        }),
        (Some(first), _) => {
            let other = all.iter().find(|candidate| candidate.layout.name != first.layout.name);
            let other = other
                .filter(|other| !other.found.is_empty())
                .map_or_else(String::new, |other| {
                    format!("; next is {}: {}", name(other), other.reason())
                });
            let without = if is_any { "" } else { ", without which it can be read" };
            Ok(Recognised {
                layout: first.layout,
                why: format!("{}{without}{other}", first.reason()),
            })
        }
        (None, _) => {
            let near: Vec<&Candidate> = all
                .iter()
                .filter(|candidate| candidate.fits || candidate.score() >= 2 || candidate.name_fits)
                .take(2)
                .collect();
            let list: Vec<_> = near
                .iter()
                .map(|candidate| format!("{}: {}", name(candidate), candidate.reason()))
                .collect();
            let weak = near.first().filter(|candidate| candidate.fits);
            let message = match weak {
                Some(_) => "no layout fits for certain".to_owned(),
                None => "no known layout has this header".to_owned(),
            };
            let lacking = near.first().filter(|candidate| !candidate.unfilled.is_empty());
            let decide = match (weak, lacking) {
                (Some(weak), _) => format!(
                    "say it with `layout: {}` if it is that; if not, describe the columns with `layout: \
                    {{ columns: {{ date: … }} }}`",
                    weak.layout.name
                ),
                (None, Some(lacking)) => format!(
                    "if it is that, name the columns for {}: `{}`",
                    listed(&lacking.unfilled),
                    completed(lacking, &header(&lacking.layout.form).unwrap_or_default())
                ),
                (None, None) => "say which column is which with `layout: { columns: { date: … } }`; `runner \
                    data inspect` proposes it"
                    .to_owned(),
            };
            Err(Unrecognised {
                message,
                hint: match list.is_empty() {
                    true => decide,
                    false => format!("nearest are {}; {decide}", list.join("; ")),
                },
            })
        }
    }
}

/// The setting that completes a layout, of which a file lacks columns, with the likeliest of the file's other
/// columns.
fn completed(candidate: &Candidate, header: &[String]) -> String {
    let layout = candidate.layout;
    let is_mapped = |name: &&String| layout.mappings().any(|mapping| normal(&mapping.theirs) == normal(name));
    // A name by which the layout is recognised is that of another column.
    let is_other = |name: &&String| {
        candidate
            .found
            .iter()
            .any(|found| found.split('|').any(|f| f == normal(name)))
    };
    let free = header.iter().filter(|name| !is_mapped(name) && !is_other(name));
    let free: Vec<String> = free.cloned().collect();
    let columns: Vec<String> = candidate
        .unfilled
        .iter()
        .map(|ours| {
            let mut theirs = layout
                .sources(ours)
                .map(|mapping| mapping.theirs.as_str())
                .chain([*ours]);
            let near = theirs.find_map(|theirs| nearest_header(theirs, &free));
            let only = || free.first().filter(|_| free.len() == 1).map(|name| name.trim());
            let name = near.or_else(only).map_or("…".to_owned(), |name| format!("\"{name}\""));
            format!("{ours}: {name}")
        })
        .collect();
    format!(
        "layout: {{ like: {}, columns: {{ {} }} }}",
        layout.name,
        columns.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(table: Table, path: &str, line: &str) -> Result<String, Unrecognised> {
        let header = |form: &Form| {
            let plain = form.json.is_none() && form.skip_lines == 0 && form.header.is_empty();
            plain.then(|| line.split(',').map(str::to_owned).collect())
        };
        recognise(table, path, header).map(|found| found.layout.name.clone())
    }

    #[test]
    fn headers_are_recognised() {
        let name = |table, line: &str| of(table, "x.csv", line).ok();
        assert_eq!(
            name(
                Table::Chain,
                "underlying,underlying_last,exchange,optionroot,type,expiration,quotedate,strike,last,net,\
                 bid,\
                 ask,volume,openinterest,impliedvol,delta,gamma"
            )
            .as_deref(),
            Some("cboe_quote_table")
        );
        assert_eq!(
            name(
                Table::Chain,
                "underlying,underlying_last, \
                exchange,optionroot,optionext,type,expiration,quotedate,strike,last,bid,ask,volume,\
                openinterest,impliedvol,delta,gamma,theta,vega,optionalias"
            )
            .as_deref(),
            Some("historicaloptiondata")
        );
        assert_eq!(
            name(Table::Bars, "Date,Open,High,Low,Close,Adj Close,Volume").as_deref(),
            Some("yahoo")
        );
        assert_eq!(
            name(Table::Bars, "date,tic,open,high,low,close,adj_close,volume").as_deref(),
            Some("yahoo_panel")
        );
        assert_eq!(name(Table::Bars, "DATE,OPEN,HIGH,LOW,CLOSE").as_deref(), Some("plain"));
        assert_eq!(
            name(Table::Rates, "date,BC_1MONTH,BC_3MONTH,BC_10YEAR").as_deref(),
            Some("us_treasury_xml")
        );
        assert_eq!(name(Table::Rates, "DATE,DGS10").as_deref(), Some("fred_series"));
        assert_eq!(name(Table::Rates, "date,a,b"), None);
        assert_eq!(name(Table::Chain, ""), None);
    }

    /// A table of closes of SPY was once read as options on the SSE 50 ETF: in CNY, of 10,000 units.
    #[test]
    fn weak_evidence_is_refused() {
        let closes = "quote_date,type,expiration,strike,close";
        assert_eq!(
            of(Table::Chain, "data/sse50etf.csv", closes).as_deref(),
            Ok("sse_50etf_close")
        );
        let err = of(Table::Chain, "spy.csv", closes).unwrap_err();
        assert_eq!(err.message, "no layout fits for certain");
        assert!(
            err.hint.contains("`sse_50etf_close`: the header has all 5 names"),
            "{}",
            err.hint
        );
        assert!(
            err.hint
                .contains("`last_and_volatility`: the header has 5 of its 6 names and lacks `iv|"),
            "{}",
            err.hint
        );
        let with_volatility = "quote_date,type,expiration,strike,close,iv";
        assert_eq!(
            of(Table::Chain, "spy.csv", with_volatility).as_deref(),
            Ok("last_and_volatility")
        );
    }

    #[test]
    fn the_reason_is_given() {
        let header = |form: &Form| {
            let plain = form.json.is_none() && form.skip_lines == 0 && form.header.is_empty();
            plain.then(|| ["date", "tic", "close"].map(str::to_owned).to_vec())
        };
        let found = recognise(Table::Bars, "x.csv", header).unwrap();
        assert!(
            found
                .why
                .starts_with("the header has all 3 names that it is recognised by; next is `plain`"),
            "{}",
            found.why
        );
    }
}
