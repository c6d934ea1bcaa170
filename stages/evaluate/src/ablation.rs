//! Changes of what a policy sees, which show whether it uses it.

use stages_env::EnvSpec;
use stages_env::options::OptionsEnv;
use stages_numerics::random::Random;
use std::ops::Range;

/// A change of what a policy sees; its account and the action mask stay its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ablation {
    /// Market features of another world at the same step, or, where there is one world, of the same one half of the test range later, wrapped around its end.
    OtherWorld,
    /// The slate of another snapshot of the test range, its slots in another order, both drawn anew at each step.
    ShuffledSlate,
    /// A memory that is empty at each step.
    NoMemory,
}

impl Ablation {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OtherWorld => "other_world",
            Self::ShuffledSlate => "shuffled_slate",
            Self::NoMemory => "no_memory",
        }
    }
}

/// An evaluation episode: its world and its snapshots.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub world: String,
    pub first: usize,
    pub steps: usize,
}

/// The elements of an observation that hold the market and the slate.
pub(crate) struct Layout {
    market: Range<usize>,
    slate: Range<usize>,
    /// Elements of a slot.
    slot: usize,
}

impl Layout {
    pub(crate) fn of(spec: &EnvSpec) -> Self {
        let names = &spec.observation;
        let range = |prefix: &str| {
            let first = names.iter().position(|name| name.starts_with(prefix)).unwrap_or(0);
            first..first + names.iter().filter(|name| name.starts_with(prefix)).count()
        };
        let slate = range("slate.");
        let slot_of = |name: &String| name.rsplit_once('.').map(|(slot, _)| slot.to_owned());
        let slots = &names[slate.clone()];
        let slot = slots
            .iter()
            .take_while(|name| slot_of(name) == slot_of(&slots[0]))
            .count();
        Self {
            market: range("market."),
            slate,
            slot,
        }
    }

    /// Changes the observation of episode `i` at a step of it. The changes of a step depend on the seed, the episode and the step alone.
    pub(crate) fn change(
        &self,
        ablation: Ablation,
        (env, spans, seed): (&OptionsEnv, &[Span], u64),
        (i, step): (usize, usize),
        obs: &mut [f32],
    ) {
        let own = &spans[i];
        match ablation {
            Ablation::NoMemory => {}
            Ablation::OtherWorld => {
                let others = (1..spans.len()).map(|k| &spans[(i + k) % spans.len()]);
                let other = others.into_iter().find(|other| other.world != own.world);
                let snapshot = match other {
                    Some(other) => other.first + step % (other.steps + 1),
                    None => own.first + (step + own.steps.div_ceil(2)) % (own.steps + 1),
                };
                obs[self.market.clone()].copy_from_slice(&env.market_row(snapshot)[self.market.clone()]);
            }
            Ablation::ShuffledSlate => {
                if self.slot == 0 {
                    return;
                }
                let mut random = Random::new(&[seed, 0x736c_6174, i as u64, step as u64]);
                let snapshot = own.first + random.below(own.steps as u64 + 1) as usize;
                let slate = &env.market_row(snapshot)[self.slate.clone()];
                let mut order: Vec<usize> = (0..slate.len() / self.slot).collect();
                for last in (1..order.len()).rev() {
                    order.swap(last, random.below(last as u64 + 1) as usize);
                }
                for (out, from) in obs[self.slate.clone()].chunks_exact_mut(self.slot).zip(order) {
                    out.copy_from_slice(&slate[from * self.slot..][..self.slot]);
                }
            }
        }
    }
}
