//! The peak operations per second of an instruction set, the limit with which the kernels' speed is compared.

use stages_numerics::dispatch::{InstructionSet, Kernel};
use std::hint::black_box;
use std::time::Instant;

/// The number of vector operations in a kernel per vector of options.
#[derive(Clone, Copy)]
pub(super) struct Cost {
    /// Additions, multiplications, fused multiply-adds, comparisons, selections and integer operations.
    pub operations: f64,
    /// Divisions and square roots.
    pub divisions: f64,
}

/// Counted in the AVX-512 machine code of one loop iteration, without loads, stores and moves.
pub(super) const GREEKS: Cost = Cost {
    operations: 203.0,
    divisions: 5.0,
};
pub(super) const IMPLIED_VOLATILITY: Cost = Cost {
    operations: 1_310.0,
    divisions: 39.0,
};

/// Counted by a vector of one lane that counts its operations, a mean over the options of a book.
pub(super) const AMERICAN_PRICE: Cost = Cost {
    operations: 165_628.0,
    divisions: 1_937.0,
};
pub(super) const AMERICAN_GREEKS: Cost = Cost {
    operations: 485_456.0,
    divisions: 4_818.0,
};

/// Operations and divisions per second on one thread, counted per lane.
#[derive(Clone, Copy)]
pub(super) struct Peak {
    operations: f64,
    divisions: f64,
}

impl Peak {
    /// Measures the peak of an instruction set.
    pub(super) fn measure(instructions: InstructionSet) -> Self {
        // Enough independent chains to hide an operation's latency, few enough to fit into the registers.
        let (operations, divisions) = match instructions {
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512(_) => (best::<96, false>(instructions), best::<96, true>(instructions)),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2(_) => (best::<48, false>(instructions), best::<48, true>(instructions)),
            InstructionSet::Portable => (best::<16, false>(instructions), best::<16, true>(instructions)),
        };
        Self { operations, divisions }
    }

    /// The options per second if only operations took time, with divisions in parallel to the others.
    pub(super) fn limit(self, cost: Cost) -> f64 {
        (self.operations / cost.operations).min(self.divisions / cost.divisions)
    }
}

/// Independent chains of dependent operations.
struct Chains<'a, const N: usize, const DIVIDE: bool> {
    state: &'a mut [f64; N],
    rounds: usize,
    by: f64,
}

impl<const N: usize, const DIVIDE: bool> Kernel for Chains<'_, N, DIVIDE> {
    type Output = ();
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { state, rounds, by } = self;
        let mut chains = *state;
        for _ in 0..rounds {
            for chain in &mut chains {
                *chain = if DIVIDE { by / *chain } else { chain.mul_add(by, by) };
            }
        }
        *state = chains;
    }
}

fn best<const N: usize, const DIVIDE: bool>(instructions: InstructionSet) -> f64 {
    let rounds = if instructions == InstructionSet::Portable {
        4_000
    } else {
        40_000
    };
    let mut state = [1.0; N];
    let mut most = 0.0_f64;
    for _ in 0..8 {
        let start = Instant::now();
        instructions.run(Chains::<N, DIVIDE> {
            state: &mut state,
            rounds,
            by: black_box(0.5),
        });
        black_box(&state);
        most = most.max((N * rounds) as f64 / start.elapsed().as_secs_f64());
    }
    most
}
