//! The facts of a whole chain that follow from the summaries of its files.

use super::columns::Columns;
use super::config::ChainConfig;
use super::file_rows::{Day, FileRows, Kind};
use super::intraday::{Snapshot, minutes, none_at};
use super::partition::Unit;
use datasets::contract::Terms;
use datasets::quality::Tally;
use datasets::{Date, DateRange};
use stages_core::StageError;
use stages_core::dataset::Period;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The files of a chain, limited to the rows that the configuration selects.
pub(super) struct Whole<'a> {
    config: &'a ChainConfig,
    files: &'a [FileRows],
}

impl<'a> Whole<'a> {
    /// Combines the files of a chain with its configuration.
    pub(super) fn new(config: &'a ChainConfig, files: &'a [FileRows]) -> Self {
        Self { config, files }
    }

    fn is_wanted(&self, symbol: &str) -> bool {
        self.config.symbols.is_empty() || self.config.symbols.iter().any(|wanted| wanted == symbol)
    }

    /// The summaries of wanted symbols and dates, each with its file.
    fn days(&self) -> impl Iterator<Item = (&'a FileRows, &'a Day)> {
        self.files
            .iter()
            .flat_map(|file| self.days_of(file).map(move |day| (file, day)))
    }

    /// The summaries of wanted symbols and dates in one file.
    fn days_of(&self, file: &'a FileRows) -> impl Iterator<Item = &'a Day> + use<'a> {
        let wanted: Vec<bool> = file.symbols.iter().map(|symbol| self.is_wanted(symbol)).collect();
        let dates = self.config.dates;
        file.days.iter().filter(move |day| {
            dates.is_none_or(|dates| dates.contains(day.date)) && wanted[day.symbol as usize]
        })
    }

    /// The summaries that match the time of day chosen by `snapshot`; all if none is chosen.
    fn chosen_days(&self) -> impl Iterator<Item = (&'a FileRows, &'a Day)> {
        let at = match self.config.snapshot {
            Some(Snapshot::At(time)) if self.has_times() => Some(minutes(time)),
            _ => None,
        };
        self.days().filter(move |(_, day)| at.is_none_or(|at| at == day.time))
    }

    /// Returns whether any file has times of day.
    pub(super) fn has_times(&self) -> bool {
        self.files.iter().any(|file| file.has_times)
    }

    /// Returns whether the chain is by instant, as far as the files tell: `snapshot: all` is set or, without
    /// a choice, a day has several times.
    pub(super) fn is_intraday(&self) -> bool {
        match self.config.snapshot {
            _ if !self.has_times() => false,
            Some(snapshot) => snapshot == Snapshot::All,
            None => {
                let mut times: BTreeMap<(&str, Date), i32> = BTreeMap::new();
                self.days().any(|(file, day)| {
                    let first_time = times
                        .entry((&file.symbols[day.symbol as usize], day.date))
                        .or_insert(day.time);
                    day.several || *first_time != day.time
                })
            }
        }
    }

    /// The number of wanted rows with a date and an expiry.
    pub(super) fn rows(&self) -> u64 {
        self.days().map(|(_, day)| day.rows).sum()
    }

    /// Counts wanted rows without a supported date or expiry, and strikes read from single precision on days
    /// with rows. With `until`, rows without a date are not counted, since they may have been appended later.
    pub(super) fn count(&self, tally: &mut Tally) {
        let dated_alone = self.config.until.is_some();
        for file in self.files.iter().filter(|_| !dated_alone) {
            for (symbol, rows) in &file.out_of_range {
                if self.is_wanted(&file.symbols[*symbol as usize]) {
                    tally.add_out_of_range(*rows);
                }
            }
        }
        if self.files.iter().all(|file| file.single_precision.is_empty()) {
            return;
        }
        let left: HashSet<(&str, Date)> = self
            .days()
            .map(|(file, day)| (&*file.symbols[day.symbol as usize], day.date))
            .collect();
        for file in self.files {
            for (symbol, date, rows) in &file.single_precision {
                if left.contains(&(&*file.symbols[*symbol as usize], *date)) {
                    tally.add("single_precision", *date, *rows);
                }
            }
        }
    }

    /// The sets of terms that rows state, by symbol and root.
    pub(super) fn kinds(&self) -> BTreeMap<(String, String), Vec<Terms>> {
        let mut kinds: BTreeMap<(String, String), Vec<Terms>> = BTreeMap::new();
        for file in self.files {
            let pairs: BTreeSet<(u32, u32)> = self
                .days_of(file)
                .flat_map(|day| day.kinds.iter().map(|kind| (day.symbol, *kind)))
                .collect();
            for (symbol, kind) in pairs {
                let kind = &file.kinds[kind as usize];
                let key = (file.symbols[symbol as usize].clone(), kind.root.clone());
                let terms = kinds.entry(key).or_default();
                if !terms.contains(&kind.terms) {
                    terms.push(kind.terms.clone());
                }
            }
        }
        kinds
    }

    /// The dates of the chain.
    pub(super) fn dates(&self) -> Result<BTreeSet<Date>, StageError> {
        let dates: BTreeSet<Date> = self.chosen_days().map(|(_, day)| day.date).collect();
        match self.config.snapshot {
            Some(Snapshot::At(time)) if dates.is_empty() && self.has_times() => {
                Err(none_at(time, self.days().map(|(_, day)| day.time)))
            }
            _ => Ok(dates),
        }
    }

    /// The columns with values in the chosen rows, and whether the rows are of a single symbol.
    pub(super) fn columns(&self) -> (Columns, bool) {
        let columns = self.chosen_days().fold(0, |bits, (_, day)| bits | day.columns);
        let symbols = self
            .chosen_days()
            .map(|(file, day)| &*file.symbols[day.symbol as usize]);
        (columns, symbols.collect::<BTreeSet<&str>>().len() == 1)
    }

    /// The largest number of rows of one symbol and day, summed over all files.
    pub(super) fn most_rows_of_a_day(&self) -> u64 {
        let mut rows: BTreeMap<(&str, Date), u64> = BTreeMap::new();
        for (file, day) in self.days() {
            *rows.entry((&file.symbols[day.symbol as usize], day.date)).or_default() += day.rows;
        }
        rows.into_values().max().unwrap_or(0)
    }

    /// The pairs of symbol and day, in order.
    pub(super) fn single_days(&self) -> BTreeSet<(&'a str, Date)> {
        let days = self.chosen_days();
        days.map(|(file, day)| (&*file.symbols[day.symbol as usize], day.date))
            .collect()
    }

    /// The partitions to be made with the given period, in order.
    pub(super) fn units(&self, period: Period) -> Vec<Unit<'a>> {
        let mut ranges: BTreeMap<Date, DateRange> = BTreeMap::new();
        for (_, day) in self.days() {
            let range = period.range(day.date);
            ranges.insert(range.from, range);
        }
        let mut units: Vec<Unit<'a>> = ranges.into_values().map(|range| Unit::new(range, None)).collect();
        self.fill(&mut units);
        units
    }

    /// The partition of one symbol and day.
    pub(super) fn unit_of_day(&self, symbol: &'a str, date: Date) -> Unit<'a> {
        let mut units = [Unit::new(DateRange { from: date, to: date }, Some(symbol))];
        self.fill(&mut units);
        let [unit] = units;
        unit
    }

    /// Finds the cuts, symbols, days and kinds of `units`, which must be in order of date.
    fn fill(&self, units: &mut [Unit<'a>]) {
        // The index of the first unit that ends on or after a date.
        let place = |units: &[Unit<'a>], date: Date| units.partition_point(|unit| unit.range.to < date);
        for file in self.files {
            for (number, cut) in file.cuts.list.iter().enumerate() {
                let first = place(units, cut.range.from);
                for unit in units[first..]
                    .iter_mut()
                    .take_while(|unit| unit.range.from <= cut.range.to)
                {
                    match unit.cuts.last_mut() {
                        Some((last, cuts)) if std::ptr::eq(*last, file) => cuts.push(number),
                        _ => unit.cuts.push((file, vec![number])),
                    }
                }
            }
        }
        for (file, day) in self.days() {
            let at = place(units, day.date);
            let Some(unit) = units.get_mut(at).filter(|unit| unit.range.contains(day.date)) else {
                continue;
            };
            let symbol: &'a str = &file.symbols[day.symbol as usize];
            if unit.only.is_some_and(|only| only != symbol) {
                continue;
            }
            unit.symbols.insert(symbol);
            unit.days.insert((symbol, day.date));
            for kind in &day.kinds {
                unit.add_kind(symbol, &file.kinds[*kind as usize]);
            }
        }
        for unit in units {
            unit.kinds
                .sort_by_cached_key(|(symbol, kind)| (*symbol, kind.root.clone(), kind.terms.stated()));
        }
    }
}

impl<'a> Unit<'a> {
    fn new(range: DateRange, only: Option<&'a str>) -> Self {
        Self {
            range,
            only,
            cuts: Vec::new(),
            symbols: BTreeSet::new(),
            days: BTreeSet::new(),
            kinds: Vec::new(),
        }
    }

    fn add_kind(&mut self, symbol: &'a str, kind: &'a Kind) {
        if !self
            .kinds
            .iter()
            .rev()
            .any(|(other, known)| *other == symbol && *known == kind)
        {
            self.kinds.push((symbol, kind));
        }
    }
}
