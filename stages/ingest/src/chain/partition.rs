//! A single partition of a chain, from the rows of files to the partition's tables.

use super::classes::{self, ClassOf};
use super::columns::{ASK, BID, Chain, Columns, FLOATS, UNDERLYING, UNKNOWN_TIME, bit};
use super::config::ChainConfig;
use super::edge;
use super::file_rows::{FileRows, Kind};
use super::intraday::{self, Zones};
use super::join;
use super::parity::fill_underlying;
use super::quotes::Quotes;
use super::result::{Done, Found, Underlying};
use super::rules::{Rules, Styles};
use super::seen::Seen;
use super::snapshots_a_day;
use crate::cuts::{encode, kept};
use crate::value::zone_of;
use cache::{BlobDigest, canonical_json};
use chrono_tz::Tz;
use datasets::calendar::CalendarName;
use datasets::contract::{Contracts, QuoteUnit};
use datasets::corporate_action::CorporateAction;
use datasets::quality::{Action, CHAIN, Tally};
use datasets::{Date, DateRange};
use serde_json::json;
use stages_core::dataset::{self, Period};
use stages_core::{Context, Memo, StageError};
use std::collections::{BTreeMap, BTreeSet};

/// The facts of the whole chain, from which its partitions are made.
pub(super) struct Facts<'a> {
    /// The stage's configuration.
    pub config: &'a ChainConfig,
    /// The period of partitions.
    pub period: Period,
    /// The option class of each kind of contracts.
    pub classes: &'a ClassOf,
    /// The contract terms by class.
    pub contracts: &'a Contracts,
    /// The exercise and settlement styles of the contracts.
    pub styles: Styles,
    /// The exchange's calendar.
    pub calendar: CalendarName,
    /// The smallest step of prices.
    pub tick: f64,
    /// The largest daily move of the underlying as a fraction; 0 for no limit.
    pub limit: f64,
    /// The corporate actions that explain jumps.
    pub actions: &'a [CorporateAction],
    /// The closes in the files of the underlying.
    pub closes: &'a Closes,
    /// True if any file has times of day.
    pub has_times: bool,
    /// The contents of the chain's rows.
    pub found: Found,
}

/// The set of all columns of [`datasets::schema::stated`].
pub(super) const STATED: Columns = !0 << FLOATS.len();

/// Closes of underlyings by symbol and day.
pub(super) type Closes = BTreeMap<String, BTreeMap<Date, f64>>;

/// A partition to be made.
pub(super) struct Unit<'a> {
    /// The dates of the partition.
    pub range: DateRange,
    /// The single symbol of the partition; `None` for all symbols.
    pub only: Option<&'a str>,
    /// The files with rows on these dates, and the indices of their cuts.
    pub cuts: Vec<(&'a FileRows, Vec<usize>)>,
    /// The symbols of the partition.
    pub symbols: BTreeSet<&'a str>,
    /// The pairs of symbol and day in the partition.
    pub days: BTreeSet<(&'a str, Date)>,
    /// The kinds of contracts in the partition, with their symbols.
    pub kinds: Vec<(&'a str, &'a Kind)>,
}

/// A partition that is read and sorted, or made, and not yet stored.
pub(super) struct Part {
    chain: Chain,
    tally: Tally,
    /// The result as far as it is known.
    pub(super) done: Done,
    /// The serialised state of each underlying at the end of the partition.
    states: BTreeMap<String, Vec<u8>>,
}

impl Facts<'_> {
    /// The memo of a partition, keyed by its rows and all facts that its result depends on. `states` are the
    /// digests of the underlyings' states before the partition.
    pub(super) fn memo<'f>(&self, unit: &Unit<'f>, states: &[(&str, Option<BlobDigest>)]) -> Memo {
        let config = self.config;
        // The key does not depend on the order of files or of rows within them.
        let cuts = unit
            .cuts
            .iter()
            .flat_map(|(file, cuts)| cuts.iter().map(move |cut| (*file, &file.cuts.list[*cut])));
        let zone = |file: &'f FileRows| if self.found.intraday { file.zone.as_str() } else { "" };
        let mut cuts: Vec<_> = cuts
            .map(|(file, cut)| {
                let form = u8::from(file.has_times) | u8::from(file.is_partial) << 1;
                (form, zone(file), *cut.digest.as_bytes())
            })
            .collect();
        cuts.sort_unstable();
        let mut rows: Vec<u8> = Vec::new();
        for (form, zone, digest) in cuts {
            rows.push(form);
            rows.extend(zone.as_bytes());
            rows.extend(digest);
        }
        let classes: Vec<_> = unit
            .kinds
            .iter()
            .map(|(symbol, kind)| (symbol, kind, self.class(symbol, kind)))
            .collect();
        let classes_where = |is: &dyn Fn(&str, &str) -> bool| {
            let of = classes.iter().map(|(symbol, _, class)| (**symbol, *class));
            of.filter(|(symbol, class)| is(symbol, class)).collect::<BTreeSet<_>>()
        };
        let actions: Vec<_> = self
            .actions
            .iter()
            .filter(|action| unit.symbols.contains(&*action.symbol))
            .collect();
        let closes: Vec<(&str, Date, u64)> = match self.found.underlying {
            Underlying::File => unit
                .days
                .iter()
                .map(|(symbol, date)| (*symbol, *date, self.close(symbol, *date).to_bits()))
                .collect(),
            Underlying::Quoted | Underlying::Parity => Vec::new(),
        };
        let dates = config.dates.map(|dates| dates.intersection(unit.range));
        let facts = json!({
            "range": unit.range,
            "only": unit.only,
            "period": self.period,
            "symbols": config.symbols,
            // Date ranges that contain the whole partition give the same key.
            "dates": dates.filter(|dates| *dates != unit.range),
            "snapshot": config.snapshot,
            "on_bad_rows": config.on_bad_rows,
            "quotes": config.quotes,
            "has_times": self.has_times,
            "found": self.found,
            "calendar": self.calendar,
            "tick": self.tick,
            "limit": self.limit,
            "classes": classes,
            "morning": classes_where(&|_, class| self.styles.morning.contains(class)),
            "american": classes_where(&|symbol, _| self.styles.american.contains(symbol)),
            "coin": classes_where(&|symbol, class| self.is_in_coin(symbol, class)),
            "actions": actions.iter().map(|action| format!("{action:?}")).collect::<Vec<_>>(),
            "closes": closes,
            "zones": self.found.intraday.then(|| self.zones(&classes)),
            "states": states,
        });
        let label = format!("{}_{}", unit.range.from, unit.range.to);
        Memo::new(
            "ingest/option_chain partition v3",
            &[&rows, canonical_json(&facts).as_bytes()],
            label,
        )
    }

    /// The time zone of each symbol and class.
    fn zones<'c>(&'c self, classes: &[(&&str, &&Kind, &str)]) -> BTreeSet<(String, Option<&'c str>)> {
        let zone = |symbol: &str, class: &str| self.contracts.of(symbol, class)?.terms.time_zone.as_deref();
        let of = classes
            .iter()
            .map(|(symbol, _, class)| (format!("{symbol} {class}"), zone(symbol, class)));
        of.collect()
    }

    fn class<'c>(&'c self, symbol: &str, kind: &'c Kind) -> &'c str {
        let kinds = self.classes.get(&(symbol.to_owned(), kind.root.clone()));
        let class = kinds.and_then(|kinds| kinds.iter().find(|(terms, _)| *terms == kind.terms));
        class.map_or(&*kind.root, |(_, class)| class)
    }

    fn is_in_coin(&self, symbol: &str, class: &str) -> bool {
        let facts = self.contracts.of(symbol, class);
        facts.is_some_and(|facts| facts.terms.quote_unit == Some(QuoteUnit::Coin))
    }

    /// The close of the underlying on a date, from the files of the underlying.
    fn close(&self, symbol: &str, date: Date) -> f64 {
        let symbol_closes = self.closes.get(symbol).or_else(|| {
            // With one underlying and one series of bars, the two belong together even if their symbols
            // differ.
            let is_one = self.closes.len() == 1 && self.found.one_symbol;
            self.closes.values().next().filter(|_| is_one)
        });
        symbol_closes
            .and_then(|days| days.get(&date))
            .copied()
            .unwrap_or(f64::NAN)
    }

    /// The rules of the chain.
    fn rules(&self) -> Rules<'_> {
        Rules {
            bad: &self.config.on_bad_rows,
            calendar: self.calendar,
            styles: &self.styles,
            quoted: self.found.quoted,
            counted: self.found.counted,
            tick: self.tick,
            actions: self.actions,
        }
    }

    /// Reads the rows of a partition and sorts them.
    pub(super) fn prepare(&self, context: &Context, unit: &Unit<'_>) -> Result<Part, StageError> {
        let mut chain = Chain::default();
        let config = self.config;
        let is_wanted = |symbol: &str| {
            (config.symbols.is_empty() || config.symbols.iter().any(|wanted| wanted == symbol))
                && unit.only.is_none_or(|only| only == symbol)
        };
        let mut partial: Vec<bool> = Vec::new();
        for (file, cuts) in &unit.cuts {
            let zone = zone_of(&file.zone).map_err(StageError::new)?;
            let zone = zone.or((!file.zone.is_empty()).then_some(Tz::UTC));
            file.cuts.read(&context.store, cuts, |batch| {
                let before = chain.len();
                chain.append(&batch, file.has_times)?;
                match zone {
                    Some(zone) if self.found.intraday => {
                        intraday::localise(&mut chain, before.., |_, _| zone)
                    }
                    _ => Ok(()),
                }
            })?;
            partial.resize(chain.len(), file.is_partial);
        }
        if !self.found.intraday {
            chain.instant.clear();
        }
        if self.has_times {
            chain.time.resize(chain.len(), UNKNOWN_TIME);
        }
        let is_joined = join::partial_rows(&mut chain, &partial);
        let wanted: Vec<bool> = chain.names.texts.iter().map(|name| is_wanted(name)).collect();
        let mut joined = 0;
        let keep: Vec<bool> = (0..chain.len())
            .map(|i| {
                let date = Date(chain.date[i]);
                let is_kept = wanted[chain.symbol[i] as usize]
                    && unit.range.contains(date)
                    && config.dates.is_none_or(|dates| dates.contains(date));
                joined += u64::from(is_kept && is_joined[i]);
                is_kept && !is_joined[i]
            })
            .collect();
        chain.retain(&keep);
        classes::assign(&mut chain, self.classes);
        let other_snapshots = intraday::choose(&mut chain, config.snapshot);
        let mut timeless = 0;
        if self.found.intraday {
            timeless = chain.time.iter().filter(|time| **time == UNKNOWN_TIME).count() as u64;
            let zones = Zones::of(&chain, self.contracts);
            intraday::localise(&mut chain, 0.., |chain, row| zones.zone(chain, row))?;
            zones.check_days(&chain)?;
        }
        chain.time.clear();
        chain.complete(self.found.stated);
        let mut part = Part {
            done: Done {
                other_snapshots,
                joined,
                timeless,
                columns: [chain.columns(), 0, 0],
                ..Done::default()
            },
            chain,
            tally: Tally::new(CHAIN),
            states: BTreeMap::new(),
        };
        self.rules().prepare(&mut part.chain, &mut part.tally);
        Ok(part)
    }

    /// Applies the rules to the rows of a partition, starting from the state `seen`.
    pub(super) fn make(&self, unit: &Unit<'_>, part: Part, seen: &mut Seen) -> Result<Part, StageError> {
        let Part {
            mut chain,
            mut tally,
            done,
            ..
        } = part;
        let several = self.found.intraday && intraday::has_several(&chain);
        self.rules().check_rows(&mut chain, seen, &mut tally);
        let cleaned = chain.columns();
        let symbols: BTreeSet<u32> = chain.symbol.iter().copied().collect();
        let symbols = symbols.into_iter().map(|id| chain.name(id).to_owned()).collect();
        match self.found.underlying {
            Underlying::Quoted => {}
            Underlying::File => {
                for run in chain.snapshots() {
                    let close = self.close(chain.name(chain.symbol[run.start]), Date(chain.date[run.start]));
                    chain.values[UNDERLYING][run].fill(close);
                }
            }
            Underlying::Parity => {
                let bound = self.config.on_bad_rows.of(CHAIN, "underlying_beyond_limit") != Action::Keep;
                fill_underlying(&mut chain, self.limit, bound, seen, &mut tally);
            }
        }
        classes::convert_coin_quotes(&mut chain, self.contracts);
        if let Quotes::FromLast(from_last) = &self.config.quotes {
            from_last.fill(&mut chain);
        }
        self.rules().check_prices(&mut chain, seen, &mut tally);

        let snapshots = chain.snapshots();
        let (snapshots_of_days, times) = match self.found.intraday {
            true => snapshots_a_day::count(&chain, &Zones::of(&chain, self.contracts)),
            false => Default::default(),
        };
        let open = seen.end_partition(unit.range.to);
        let states = seen.states()?;
        let done = Done {
            states: states
                .iter()
                .map(|(symbol, state)| (symbol.clone(), edge::digest(state)))
                .collect(),
            rows: chain.len() as u64,
            first_day: chain
                .days()
                .first()
                .map_or(0, |day| day.iter().map(ExactSizeIterator::len).sum::<usize>())
                as u64,
            untradable: (0..chain.len()).filter(|row| !chain.is_tradable(*row)).count() as u64,
            snapshots: snapshots.len() as u64,
            several,
            snapshots_of_days,
            times,
            columns: [done.columns[0], cleaned, chain.columns()],
            symbols,
            classes: (chain.pairs().into_iter())
                .map(|(symbol, root)| (chain.name(symbol).to_owned(), chain.name(root).to_owned()))
                .collect(),
            open,
            tally: tally.clone().counted(),
            ..done
        };
        Ok(Part {
            chain,
            tally,
            done,
            states,
        })
    }

    /// Stores a partition and its memo.
    pub(super) fn store(&self, context: &Context, memo: &Memo, part: Part) -> Result<Done, StageError> {
        let Part {
            chain,
            mut done,
            states,
            ..
        } = part;
        context.compute_memo(memo, || {
            let of = |i: usize| (chain.name(chain.symbol[i]), Date(chain.date[i]));
            let tables = dataset::partition_rows(&context.store, chain.len(), self.period, of, |rows| {
                chain.to_table(rows)
            })?;
            for table in tables {
                done.tables.push((table.key.symbol()?.to_owned(), table.blob));
            }
            let edge = context.store.put(&edge::pack(&states)?)?;
            context.store.put_memo(kept(memo).key, edge)?;
            done.edge = Some(edge);
            encode(&done)
        })?;
        Ok(done)
    }
}

/// The set of quote columns.
pub(super) const QUOTES: Columns = bit(BID) | bit(ASK);
