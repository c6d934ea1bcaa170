//! The short rate of Cox, Ingersoll and Ross ("A theory of the term structure of interest rates", 1985)
//! without a risk premium, and the zero rates that follow from it.

use super::limits::{Invalid, within};

stages_core::settings! {
    /// The short rate r: dr = speed (mean - r) dt + volatility sqrt(r) dW. Rates are continuously compounded,
    /// annual, decimal.
    ///
    /// The defaults are a calm market: estimates of the square-root process from Treasury bills give speeds
    /// of 0.1 to 0.4 and volatilities of 0.05 to 0.1 (Aït-Sahalia 1999; Chan, Karolyi, Longstaff and Sanders
    /// 1992).
    #[derive(Copy)]
    pub struct Rates {
        /// The short rate on the first day.
        pub short_rate: f64 = 0.02,
        /// The level it reverts to.
        pub mean: f64 = 0.025,
        /// The speed of reversion, per year.
        pub speed: f64 = 0.25,
        /// Its volatility; 0 for none.
        pub volatility: f64 = 0.05,
        /// The seed of its path; without it, it moves with the random numbers of the market. The worlds of a
        /// market share one.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub seed: Option<u64>,
    }
}

impl Rates {
    /// The parameters of rates for every world of a market with the given seed: all worlds share one path.
    pub(super) fn shared(&self, seed: u64) -> Self {
        Self {
            seed: Some(self.seed.unwrap_or(seed)),
            ..*self
        }
    }

    pub(super) fn check(&self) -> Result<(), Invalid> {
        within("rates.short_rate", self.short_rate, 0.0, 0.3)?;
        within("rates.mean", self.mean, 0.0, 0.3)?;
        within("rates.speed", self.speed, 0.0, 20.0)?;
        within("rates.volatility", self.volatility, 0.0, 1.0)
    }
}

/// The maturities of published zero rates, in years; 0 is overnight.
pub const TENORS: [f64; 6] = [0.0, 1.0 / 12.0, 0.25, 0.5, 1.0, 2.0];

/// The zero rates at [`TENORS`], continuously compounded, annual, decimal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curve(pub [f64; TENORS.len()]);

impl Curve {
    /// The zero rate for a maturity of `years`: linear between tenors, constant beyond them.
    pub fn rate(&self, years: f64) -> f64 {
        let after = TENORS.partition_point(|&tenor| tenor < years);
        if after == 0 {
            return self.0[0];
        }
        if after == TENORS.len() {
            return self.0[after - 1];
        }
        let (t0, t1) = (TENORS[after - 1], TENORS[after]);
        self.0[after - 1] + (self.0[after] - self.0[after - 1]) * ((years - t0) / (t1 - t0))
    }
}

impl Rates {
    /// The short rate after `years` (a few days), driven by the standard normal number `z`.
    pub(super) fn next(&self, r: f64, years: f64, z: f64) -> f64 {
        (r + self.speed * (self.mean - r) * years + self.volatility * (r.max(0.0) * years).sqrt() * z)
            .max(0.0)
    }

    /// The zero rates for a short rate of `r`, rounded to a thousandth of a basis point.
    pub(super) fn curve(&self, r: f64) -> Curve {
        Curve(TENORS.map(|tenor| libm::round(self.zero_rate(r, tenor) * 1e7) / 1e7))
    }

    fn zero_rate(&self, r: f64, years: f64) -> f64 {
        let Self {
            mean,
            speed,
            volatility,
            ..
        } = *self;
        if years == 0.0 {
            return r;
        }
        if volatility < 1e-6 {
            let weight = if speed > 0.0 {
                -libm::expm1(-speed * years) / (speed * years)
            } else {
                1.0
            };
            return mean + (r - mean) * weight;
        }
        let h = (speed * speed + 2.0 * volatility * volatility).sqrt();
        let growth = libm::expm1(h * years);
        let below = (h + speed) * growth + 2.0 * h;
        let b = 2.0 * growth / below;
        let log_a = 2.0 * speed * mean / (volatility * volatility)
            * (libm::log(2.0 * h / below) + 0.5 * (speed + h) * years);
        (b * r - log_a) / years
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_numerics::random::Random;

    #[test]
    fn bonds_are_worth_what_the_short_rate_earns() {
        let rates = Rates {
            volatility: 0.1,
            ..Rates::default()
        };
        let (paths, steps, years) = (20_000, 50, 1.0);
        let mut random = Random::new(&[3]);
        let mut bond = 0.0;
        for _ in 0..paths {
            let (mut r, mut integral) = (0.02, 0.0);
            for _ in 0..steps {
                let next = rates.next(r, years / f64::from(steps), random.normal());
                integral += 0.5 * (r + next) * years / f64::from(steps);
                r = next;
            }
            bond += libm::exp(-integral) / f64::from(paths);
        }
        assert!((-libm::log(bond) - rates.zero_rate(0.02, years)).abs() < 2e-4);
        let still = Rates {
            volatility: 1e-7,
            ..rates
        };
        let nearly = Rates {
            volatility: 2e-4,
            ..rates
        };
        assert!((still.zero_rate(0.02, 1.5) - nearly.zero_rate(0.02, 1.5)).abs() < 1e-7);
    }

    #[test]
    fn the_curve_interpolates() {
        let curve = Curve([0.01, 0.02, 0.03, 0.04, 0.05, 0.06]);
        assert_eq!(curve.rate(-1.0), 0.01);
        assert_eq!(curve.rate(0.25), 0.03);
        assert!((curve.rate(0.75) - 0.045).abs() < 1e-15);
        assert_eq!(curve.rate(9.0), 0.06);
    }
}
