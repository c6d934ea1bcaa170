//! Recognises the layout of a file, and explains why.

use super::description::{Evidence, Form, Layout, Table};
use super::known::known;
use super::nearest::normal;
use super::pattern::fits;
use std::cmp::Reverse;

/// A layout, and how well a file fits it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The layout.
    pub layout: &'static Layout,
    /// The names of [`super::Recognise::headers`] that the file has.
    pub found: Vec<String>,
    /// The names of [`super::Recognise::headers`] that the file lacks.
    pub lacks: Vec<String>,
    /// True if the file's name fits one of [`super::Recognise::files`].
    pub name_fits: bool,
    /// True if the file can have this layout.
    pub fits: bool,
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
    /// The number of header names found that identify the layout.
    pub fn score(&self) -> usize {
        self.found.len()
    }

    fn is_certain(&self) -> bool {
        self.fits && (self.name_fits || self.layout.recognise.evidence == Evidence::Strong)
    }

    /// The reason why the layout fits or does not fit.
    pub fn reason(&self) -> String {
        let of = self.found.len() + self.lacks.len();
        let names = &self.layout.recognise.files;
        if !self.lacks.is_empty() {
            let lacks: Vec<_> = self.lacks.iter().map(|name| format!("`{name}`")).collect();
            return format!(
                "the header has {} of its {of} names and lacks {}",
                self.found.len(),
                lacks.join(", ")
            );
        }
        let by_header = match of {
            0 => "its files have no header".to_owned(),
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

/// The fit of a file with each layout of a table, the best first. `path` is the file's name, relative to the
/// source's root, with the name of its entry in an archive; `header` gives the names in the file's header as
/// read in a given form, and `None` if the file cannot have that form.
pub fn candidates(
    table: Table,
    path: &str,
    mut header: impl FnMut(&Form) -> Option<Vec<String>>,
) -> Vec<Candidate> {
    let mut all = Vec::new();
    for layout in known(table) {
        let recognise = &layout.recognise;
        if recognise.headers.is_empty() && recognise.files.is_empty() {
            continue;
        }
        let Some(names) = header(&layout.form) else { continue };
        let fitting = recognise.files.iter().filter(|pattern| fits(pattern, path));
        let longest = fitting.map(String::len).max();
        let name_fits = longest.is_some();
        let specific = longest.filter(|_| recognise.headers.is_empty()).unwrap_or(0);
        let names: Vec<String> = names.iter().map(|name| normal(name)).collect();
        let has = |wanted: &str| names.iter().any(|name| *name == normal(wanted));
        let (found, lacks): (Vec<String>, Vec<String>) = recognise
            .headers
            .iter()
            .cloned()
            .partition(|wanted| wanted.split('|').any(&has));
        let is_useful = !layout.form.header.is_empty()
            || layout
                .mappings()
                .any(|mapping| !matches!(&*mapping.ours, "date" | "symbol") && has(&mapping.theirs));
        // Without header names, only the form and the file's name are evidence.
        let fits = match recognise.headers.is_empty() {
            true => name_fits && names.len() == layout.form.header.len(),
            false => lacks.is_empty() && is_useful,
        };
        all.push(Candidate {
            layout,
            found,
            lacks,
            name_fits,
            fits,
            specific,
        });
    }
    all.sort_by_key(|candidate| {
        let of = candidate.found.len() + candidate.lacks.len();
        let share = (candidate.found.len() * 1000).checked_div(of).unwrap_or(0);
        Reverse((
            candidate.is_certain(),
            candidate.fits,
            if candidate.fits { candidate.score() } else { share },
            candidate.name_fits,
            candidate.specific,
        ))
    });
    all
}

/// Finds the layout of a file among the known layouts of a table; see [`candidates`] for the arguments.
///
/// # Errors
/// When no layout fits, the evidence is weak, or two layouts fit equally well.
pub fn recognise(
    table: Table,
    path: &str,
    header: impl FnMut(&Form) -> Option<Vec<String>>,
) -> Result<Recognised, Unrecognised> {
    let all = candidates(table, path, header);
    let mut certain = all.iter().filter(|candidate| candidate.is_certain());
    let (first, second) = (certain.next(), certain.next());
    let name = |candidate: &Candidate| format!("`{}`", candidate.layout.name);
    let rank = |candidate: &Candidate| (candidate.score(), candidate.name_fits, candidate.specific);
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
            Ok(Recognised {
                layout: first.layout,
                why: format!("{}{other}", first.reason()),
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
                None => "no layout is known with this header".to_owned(),
            };
            let decide = match weak {
                Some(weak) => format!(
                    "say it with `layout: {}` if it is that; if not, describe the columns with `layout: \
                    {{ columns: {{ date: … }} }}`",
                    weak.layout.name
                ),
                None => "say which column is which with `layout: { columns: { date: … } }`; `runner data \
                    inspect` proposes it"
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
