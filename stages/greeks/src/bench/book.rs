//! Simulated options, over which speed is measured.

use crate::numerics::batch::Columns;
use crate::numerics::formula::Contract;
use stages_numerics::random::Random;

/// Simulated options, as a list and as columns.
pub struct Book {
    pub(super) list: Vec<Contract>,
    pub(super) columns: [Vec<f64>; 6],
    call: Vec<bool>,
}

impl Book {
    /// A book of `options` options.
    pub fn new(options: usize) -> Self {
        let mut random = Random::new(&[1]);
        let list: Vec<Contract> = (0..options)
            .map(|_| Contract {
                spot: 100.0,
                strike: 70.0 + 60.0 * random.uniform(),
                years: 0.01 + 2.0 * random.uniform(),
                rate: 0.05 * random.uniform(),
                dividend_yield: 0.02 * random.uniform(),
                volatility: 0.05 + 0.6 * random.uniform(),
                call: random.uniform() < 0.5,
            })
            .collect();
        let columns = std::array::from_fn(|k| list.iter().map(|option| option.to_array()[k]).collect());
        let call = list.iter().map(|o| o.call).collect();
        Self { list, columns, call }
    }

    /// The first `n` options, as columns.
    pub(super) fn first(&self, n: usize) -> Columns<'_> {
        Columns::new(self.columns.each_ref().map(|column| &column[..n]), &self.call[..n])
    }
}
