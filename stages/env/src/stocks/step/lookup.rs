//! The open tables of an environment, in which a step looks up its values.

use crate::env_artifact::{self, Files};
use crate::episode::EpisodeLength;
use crate::normalise;
use crate::open_options::OpenOptions;
use crate::parts::{by_world, consistent};
use crate::portfolio::{Common, Worlds, normalise_as, part_batches};
use crate::rates::growth;
use crate::reward::Reward;
use crate::stocks::config::Rules;
use crate::stocks::quantities::names;
use crate::stocks::tables::{Event, HedgeQuote, PANEL, Panel, PanelFile, Spec, status};
use datasets::{Date, SnapshotTime};
use stages_core::StageError;

/// The open tables: T dates of N symbols. The worlds' dates follow one another.
pub(crate) struct Tables {
    pub spec: Spec,
    /// N, the number of symbols.
    pub n: usize,
    /// The dates of all worlds, without what is kept in another form below.
    pub panel: Panel,
    /// Days to the next date; 0 at the end of a world.
    pub days: Vec<f64>,
    /// Interest on 1 of debt to the next date.
    pub debit_accrual: Vec<f64>,
    /// `[T]`: true where positions in any symbol are settled.
    settles: Vec<bool>,
    /// The mean volume and the volatility of each symbol `[T, N]`.
    volumes: Vec<f64>,
    volatilities: Vec<f64>,
    /// The quotes of the instrument that hedges `[T]`, where the portfolio is hedged.
    hedge: Vec<HedgeQuote>,
}

impl Tables {
    /// Opens the files that `file` gives by name, and what all accounts share.
    pub(crate) fn open(file: impl Files, options: &OpenOptions) -> Result<(Self, Common), StageError> {
        let mut spec: Spec = env_artifact::spec(&file)?;
        normalise_as(&mut spec.env, options.normalise_as.as_ref());
        let n = spec.symbols();
        let config = &spec.config;
        let batches = part_batches(file, PANEL, &spec.parts)?;
        let files: Vec<PanelFile<'_>> = batches
            .iter()
            .map(|batch| PanelFile::new(batch, n))
            .collect::<Result<_, _>>()?;
        let (mut all, mut worlds) = (Panel::default(), Worlds::default());
        let mut days: Vec<f64> = Vec::new();
        for (world, rows) in spec.worlds.iter().zip(by_world(&batches, spec.worlds.len())?) {
            let start = all.dates.len();
            for (file, rows) in &rows {
                files[*file].append_to(&mut all, &spec, rows)?;
            }
            consistent(world.symbols.len() == n)?;
            worlds.push(&world.name, &world.splits, all.dates.len() - start)?;
            days.extend(all.dates[start..].windows(2).map(|pair| f64::from(pair[1] - pair[0])));
            days.push(0.0);
        }
        consistent(!all.dates.is_empty())?;
        let debit: Vec<f64> = all.rate.iter().map(|rate| rate + config.margin.debit_spread).collect();
        let rows = rows(&spec, &all);
        let interest = growth(&days, &all.rate);
        let this = Self {
            n,
            debit_accrual: growth(&days, &debit),
            days,
            settles: all
                .status
                .chunks_exact(n.max(1))
                .map(|flags| flags.iter().any(|flags| flags & status::SETTLES != 0))
                .collect(),
            volumes: all.liquidity.iter().copied().step_by(2).collect(),
            volatilities: all.liquidity.iter().copied().skip(1).step_by(2).collect(),
            hedge: bytemuck::cast_slice(&all.hedge).to_vec(),
            spec,
            panel: Panel {
                liquidity: Vec::new(),
                features: Vec::new(),
                symbol_features: Vec::new(),
                hedge: Vec::new(),
                ..all
            },
        };
        let (config, t) = (&this.spec.config, this.panel.dates.len());
        let is_finrl = config.rules == Rules::Finrl;
        let common = Common {
            spec: this.spec.env.clone(),
            worlds,
            reward: Reward::new(&config.reward, config.capital, &names(!config.hedge.is_none()))?,
            tag: ["stocks v1".to_owned(), format!("{n} symbols over {t} dates")],
            width: n,
            num_weights: n,
            hedges: !config.hedge.is_none(),
            // FinRL's episodes are whole, and have a step after the last date.
            episode_length: match is_finrl {
                true => EpisodeLength {
                    least: u32::MAX,
                    most: u32::MAX,
                },
                false => config.episode_length,
            },
            steps_beyond: usize::from(is_finrl),
            times: this
                .panel
                .dates
                .iter()
                .map(|&date| SnapshotTime::of_day(Date(date)))
                .collect(),
            risk_free: if is_finrl { vec![0.0; t] } else { interest },
            underlying: (1..=t).map(|t| this.mean_return(t)).collect(),
            rows,
        };
        Ok((this, common))
    }

    /// True if `t` is a date, and not the first of a world.
    fn has_date_before(&self, t: usize) -> bool {
        t < self.panel.dates.len() && t > 0 && self.days[t - 1] > 0.0
    }

    /// The mean return of the symbols that trade at `t` and at the date before; 0 where none does.
    fn mean_return(&self, t: usize) -> f64 {
        let returns: Vec<f64> = (0..self.n).filter_map(|i| self.total_return(t, i)).collect();
        match returns.len() {
            0 => 0.0,
            count => returns.iter().sum::<f64>() / count as f64,
        }
    }

    /// The return of a symbol, dividends included, from the date before `t`, where it trades on both.
    pub(crate) fn total_return(&self, t: usize, symbol: usize) -> Option<f64> {
        if !self.has_date_before(t) {
            return None;
        }
        let trades = |t: usize| self.status(t)[symbol] & status::TRADES != 0;
        if !(trades(t) && trades(t - 1)) {
            return None;
        }
        let event = self.events(t).iter().find(|event| event.symbol as usize == symbol);
        let (ratio, cash) = event.map_or((1.0, 0.0), |event| (event.ratio, event.cash));
        let (before, now) = (self.marks(t - 1)[symbol], self.marks(t)[symbol]);
        Some((now * ratio + cash) / before - 1.0)
    }

    #[inline]
    fn of<'a, T>(&self, values: &'a [T], t: usize) -> &'a [T] {
        &values[t * self.n..(t + 1) * self.n]
    }

    /// The mark of each symbol.
    #[inline]
    pub(crate) fn marks(&self, t: usize) -> &[f64] {
        self.of(&self.panel.mark, t)
    }

    /// The open of each symbol, where fills need it.
    #[inline]
    pub(crate) fn opens(&self, t: usize) -> &[f64] {
        self.of(&self.panel.open, t)
    }

    /// The status of each symbol.
    #[inline]
    pub(crate) fn status(&self, t: usize) -> &[u8] {
        self.of(&self.panel.status, t)
    }

    /// True where positions in some symbol are settled.
    #[inline]
    pub(crate) fn settles(&self, t: usize) -> bool {
        self.settles[t]
    }

    /// The mean volume and the volatility of each symbol, where fills need them.
    #[inline]
    pub(crate) fn liquidity(&self, t: usize) -> (&[f64], &[f64]) {
        (self.of(&self.volumes, t), self.of(&self.volatilities, t))
    }

    /// The instrument that hedges, where there is one.
    #[inline]
    pub(crate) fn hedge(&self, t: usize) -> HedgeQuote {
        self.hedge[t]
    }

    /// The beta of each symbol to it, where it is hedged by beta.
    #[inline]
    pub(crate) fn betas(&self, t: usize) -> &[f64] {
        self.of(&self.panel.beta, t)
    }

    /// The return of the instrument that hedges, dividends included, from the date before `t`, where it has a
    /// bar on both.
    pub(crate) fn hedge_return(&self, t: usize) -> Option<f64> {
        if !self.has_date_before(t) {
            return None;
        }
        self.hedge.get(t)?.total_return(&self.hedge[t - 1])
    }

    /// The corporate actions that change holdings from the date before to `t`.
    #[inline]
    pub(crate) fn events(&self, t: usize) -> &[Event] {
        self.panel.events_of(t)
    }

    /// The hidden value of that name of a symbol at `t`; NaN where it has none.
    pub(crate) fn hidden(&self, name: &str, t: usize, symbol: usize) -> Option<f64> {
        let at = self.spec.hidden.iter().position(|of| of == name)?;
        Some(f64::from(
            self.panel.hidden[(t * self.n + symbol) * self.spec.hidden.len() + at],
        ))
    }
}

/// The rows of observations: under the rules of a market normalised features and what trades, under FinRL's
/// closes and raw indicators, indicator by indicator.
fn rows(spec: &Spec, all: &Panel) -> Vec<f32> {
    let (n, f, g) = (spec.symbols(), spec.features.len(), spec.symbol_features.len());
    let mut out = Vec::new();
    for t in 0..all.dates.len() {
        let of_symbols = &all.symbol_features[t * n * g..(t + 1) * n * g];
        match (spec.config.rules, &spec.env.normalisation) {
            (Rules::Market, Some(by)) => {
                let raw = [&all.features[t * f..(t + 1) * f], of_symbols].concat();
                if !raw.is_empty() {
                    out.extend(normalise::rows(&raw, raw.len(), by));
                }
                let trades = |flags: &u8| f32::from(u8::from(flags & status::TRADES != 0)).min(by.clip);
                out.extend(all.status[t * n..(t + 1) * n].iter().map(trades));
            }
            _ => {
                out.extend(all.mark[t * n..(t + 1) * n].iter().map(|&mark| mark as f32));
                for j in 0..g {
                    out.extend((0..n).map(|i| of_symbols[i * g + j]));
                }
            }
        }
    }
    out
}
