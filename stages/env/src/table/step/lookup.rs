//! The open tables of an environment, in which a step looks up its values.

use crate::env_artifact::{self, Files};
use crate::normalise;
use crate::open_options::OpenOptions;
use crate::parts::{TableRows as _, by_world, consistent, mismatch};
use crate::portfolio::{Common, Worlds, normalise_as, part_batches};
use crate::reward::Reward;
use crate::table::quantities::{Form, with_terms};
use crate::table::tables::{Rows, Spec, TABLE};
use datasets::{Date, SnapshotTime};
use stages_core::StageError;

/// The open tables: T rows. The worlds' rows follow one another.
pub(crate) struct Tables {
    pub spec: Spec,
    /// N, the number of symbols.
    pub n: usize,
    /// Days to the next row; 0 at the end of a world.
    pub days: Vec<f64>,
    /// The payoffs `[T, N]` or `[T, K]` of 1 of position, or of a choice, for the step to the next row; with
    /// a price, its returns. 0 at the end of a world.
    payoffs: Vec<f64>,
    payoff_width: usize,
    /// The prices `[T, N]`, where the options of opening keep them; else empty.
    prices: Vec<f64>,
    /// The values that expressions name `[T, E]`.
    terms: Vec<f64>,
}

impl Tables {
    /// Opens the files that `file` gives by name, and what all accounts share.
    pub(crate) fn open(file: impl Files, options: &OpenOptions) -> Result<(Self, Common), StageError> {
        let mut spec: Spec = env_artifact::spec(&file)?;
        normalise_as(&mut spec.env, options.normalise_as.as_ref());
        let by = spec.env.normalisation.clone().ok_or_else(mismatch)?;
        let (n, width) = (spec.symbols(), spec.paying_width());
        let shown_width = n * spec.observed.len();
        consistent(shown_width > 0 && by.offset.len() >= shown_width && by.scale.len() >= shown_width)?;
        let form = spec.config.form();
        let batches = part_batches(file, TABLE, &spec.parts)?;
        let of_worlds = by_world(&batches, spec.worlds.len())?;
        let (mut all, mut times, mut shown) = (Worlds::default(), Vec::new(), Vec::new());
        let mut this = Self {
            n,
            days: Vec::new(),
            payoffs: Vec::new(),
            payoff_width: width,
            prices: Vec::new(),
            terms: Vec::new(),
            spec,
        };
        for (world, in_files) in this.spec.worlds.iter().zip(of_worlds) {
            let mut rows = Rows::default();
            for (file, of_file) in &in_files {
                rows.append(&batches[*file], of_file, &this.spec)?;
            }
            let t = rows.dates.len();
            consistent(world.symbols.len() == n)?;
            all.push(&world.name, &world.splits, t)?;
            let instant = |row: usize| rows.instants.get(row).copied();
            let start = times.len();
            times.extend(rows.dates.iter().enumerate().map(|(row, &date)| SnapshotTime {
                date: Date(date),
                instant: instant(row),
            }));
            let days = times[start..].windows(2).map(|pair| pair[1].days() - pair[0].days());
            this.days.extend(days);
            this.days.push(0.0);
            let later = rows.paying.iter().skip(width);
            match form {
                Form::Price => this
                    .payoffs
                    .extend(rows.paying.iter().zip(later).map(|(now, later)| later / now - 1.0)),
                Form::PerPosition | Form::PerAction => this.payoffs.extend(later),
            }
            this.payoffs.resize(times.len() * width, 0.0);
            if options.prices && form == Form::Price {
                this.prices.extend_from_slice(&rows.paying);
            }
            this.terms.extend_from_slice(&rows.terms);
            shown.extend(normalise::rows(&rows.observed, shown_width, &by));
        }
        let (config, t) = (&this.spec.config, times.len());
        let common = Common {
            spec: this.spec.env.clone(),
            worlds: all,
            reward: Reward::new(&config.reward, 1.0, &this.names())?,
            tag: ["table v1".to_owned(), format!("{n} symbols over {t} rows")],
            width: n,
            num_weights: n,
            hedges: false,
            episode_length: config.episode_length,
            steps_beyond: 0,
            times,
            // Cash earns nothing.
            risk_free: vec![0.0; t],
            underlying: (0..t).map(|t| this.mean_payoff(t)).collect(),
            rows: shown,
        };
        Ok((this, common))
    }

    /// The names that expressions may have.
    pub(crate) fn names(&self) -> Vec<&str> {
        let terms: Vec<&str> = self.spec.terms.iter().map(String::as_str).collect();
        with_terms(self.spec.config.form(), &terms)
    }

    /// The payoffs of the step from row `t` to the next.
    #[inline]
    pub(crate) fn payoffs(&self, t: usize) -> &[f64] {
        &self.payoffs[t * self.payoff_width..(t + 1) * self.payoff_width]
    }

    /// The price of symbol `i` at row `t`, where prices are kept.
    pub(crate) fn price(&self, t: usize, i: usize) -> Option<f64> {
        self.prices.get(t * self.n + i).copied()
    }

    /// Lets symbol `i` have a price at row `t` as the step from it pays.
    pub(crate) fn restate(&mut self, t: usize, i: usize, price: f64) {
        if let Some(later) = self.price(t + 1, i) {
            self.payoffs[t * self.n + i] = later / price - 1.0;
        }
    }

    /// The mean payoff of the step from row `t` to the next.
    fn mean_payoff(&self, t: usize) -> f64 {
        let payoffs = self.payoffs(t);
        payoffs.iter().sum::<f64>() / payoffs.len() as f64
    }

    /// The values of row `t` that expressions name.
    #[inline]
    pub(crate) fn terms(&self, t: usize) -> &[f64] {
        let width = self.spec.terms.len();
        &self.terms[t * width..(t + 1) * width]
    }
}
