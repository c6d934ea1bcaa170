//! Ablations: changes of what a policy observes, which show whether it uses what is changed.

use crate::market::{Layout, Market, Span};
use stages_env::PortfolioEnv;
use stages_numerics::random::Random;

/// An ablation of what a policy observes; its account and the action mask stay its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ablation {
    /// The market features of another world at the same step or, where there is one world, those of the same
    /// world half the test range later, wrapped around its end.
    OtherWorld,
    /// The instruments (the slate's contracts, the stocks) of another snapshot of the test range, in another
    /// order, both drawn anew at each step.
    Shuffled,
    /// A recurrent memory that is empty at each step.
    NoMemory,
}

impl Ablation {
    pub(crate) fn name<S: Market>(self) -> &'static str {
        match self {
            Self::OtherWorld => "other_world",
            Self::Shuffled => S::SHUFFLED,
            Self::NoMemory => "no_memory",
        }
    }

    /// Changes the observation of episode `i` at one of its steps. The change depends on the seed, the
    /// episode and the step alone.
    pub(crate) fn change<S: Market>(
        self,
        layout: &Layout,
        (env, spans, seed): (&PortfolioEnv<S>, &[Span], u64),
        (i, step): (usize, usize),
        obs: &mut [f32],
    ) {
        let own = &spans[i];
        match self {
            Self::NoMemory => {}
            Self::OtherWorld => {
                let mut others = (1..spans.len()).map(|k| &spans[(i + k) % spans.len()]);
                let other = others.find(|other| other.world != own.world);
                let snapshot = match other {
                    Some(other) => other.first + step % (other.steps + 1),
                    None => own.first + (step + own.steps.div_ceil(2)) % (own.steps + 1),
                };
                obs[layout.market.clone()]
                    .copy_from_slice(&env.common().row(snapshot)[layout.market.clone()]);
            }
            Self::Shuffled => {
                if layout.width == 0 {
                    return;
                }
                let mut random = Random::new(&[seed, 0x736c_6174, i as u64, step as u64]);
                let snapshot = own.first + random.below(own.steps as u64 + 1) as usize;
                let shown = &env.common().row(snapshot)[layout.instruments.clone()];
                let mut order: Vec<usize> = (0..shown.len() / layout.width).collect();
                for last in (1..order.len()).rev() {
                    order.swap(last, random.below(last as u64 + 1) as usize);
                }
                for (out, from) in obs[layout.instruments.clone()]
                    .chunks_exact_mut(layout.width)
                    .zip(order)
                {
                    out.copy_from_slice(&shown[from * layout.width..][..layout.width]);
                }
            }
        }
    }
}
