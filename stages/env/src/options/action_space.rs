//! The configuration of actions: a flat menu, several choices at once, or weights; and the limits that mask
//! them.
//!
//! | `actions` | an action is |
//! | --- | --- |
//! | `menu` | one of: hold, close, open a strategy, (hedge) |
//! | `multi_discrete` | a choice for each of the components `strategy`, `size`, (`hedge`) and `close` |
//! | `continuous` | a weight in \[-1, 1\] for each slot, and (where actions hedge) a hedge ratio in \[0, 1\] |
//!
//! *Multi-discrete.* Choice 0 of `strategy` opens nothing; choice i opens the i-th strategy. `size` is an
//! index of `sizes`, multiples of `sizing`. `close` is none, the strategy opened first, the one with the
//! nearest expiry, the one that has lost most since it was opened (by its marks), or all with the hedge.
//! `hedge` (where `hedge: { rule: action }`) is leave, to zero, or to the band. They are done in the order
//! close, open, hedge. Each component has its own mask: a strategy is allowed if it could be opened at some
//! size, beside what is held or after everything is closed; a size, if some strategy could be opened at it. A
//! strategy that cannot be opened in the combination that was chosen is counted as refused, with its reason,
//! and the rest is done.
//!
//! *Continuous.* The weight w of a slot aims at round(w n) contracts, where n is what `sizing` gives without
//! rounding. Contracts count for the slot that they were opened through, whatever slot shows them now. A
//! weight below `no_trade` in absolute value is 0, and closes; another change of fewer than `no_trade` n
//! contracts is not traded. First all reductions are traded, the oldest lines first, then all increases, slot
//! by slot, each under the rules of every other opening. With fills at the next snapshot the contracts aimed
//! at, and the slot's contract, are those of the decision. The hedge ratio h aims at -h times the options'
//! delta in the hedge; a change within the `band` is not traded.

use super::action_config::{ActionKind, Limits};
use super::config::OptionsConfig;
use super::observation::slot_names;
use super::strategies::Strategies;
use crate::actions::{ActionSpace, Bounds};
use crate::checks::{not_negative, within};
use crate::hedge::HEDGE_CHOICES;
use stages_core::ConfigProblem;

/// The choices of the component `close`, after none: a strategy by age, by expiry or by loss, and all.
pub(crate) const CLOSE_OLDEST: usize = 1;
pub(crate) const CLOSE_NEAREST_EXPIRY: usize = 2;
pub(crate) const CLOSE_LARGEST_LOSS: usize = 3;
pub(crate) const CLOSE_ALL: usize = 4;
/// The number of choices of the component `close`.
pub(crate) const CLOSE_CHOICES: usize = 5;

/// The action space of a configuration.
pub(crate) fn action_space(config: &OptionsConfig, strategies: &Strategies) -> ActionSpace {
    let hedge = config.hedge.is_by_action();
    match config.actions {
        ActionKind::Menu => ActionSpace::Discrete {
            names: strategies.names.clone(),
            masked: true,
        },
        ActionKind::MultiDiscrete => {
            let mut components = vec![
                ("strategy", strategies.legs.len() as u32 + 1),
                ("size", config.sizes.len() as u32),
            ];
            components.extend(hedge.then_some(("hedge", HEDGE_CHOICES)));
            components.push(("close", CLOSE_CHOICES as u32));
            let (names, choices): (Vec<&str>, Vec<u32>) = components.into_iter().unzip();
            ActionSpace::MultiDiscrete {
                names: names.into_iter().map(str::to_owned).collect(),
                choices,
                masked: true,
            }
        }
        ActionKind::Continuous => {
            let mut names = slot_names(&config.slate);
            let (mut low, mut high) = (vec![-1.0; names.len()], vec![1.0; names.len()]);
            if hedge {
                names.push("hedge_ratio".to_owned());
                low.push(0.0);
                high.push(1.0);
            }
            ActionSpace::Continuous {
                names,
                bounds: Bounds { low, high },
            }
        }
    }
}

impl OptionsConfig {
    /// Checks the settings of actions and limits.
    pub(crate) fn check_actions(&self) -> Result<(), ConfigProblem> {
        let ascends = self.sizes.windows(2).all(|pair| pair[0] < pair[1]);
        ConfigProblem::new("sizes", "expected one or more positive multiples, ascending")
            .hint("sizes: [0.5, 1, 2] are multiples of `sizing`")
            .when(
                self.sizes.is_empty()
                    || !ascends
                    || !self.sizes.iter().all(|size| *size > 0.0 && size.is_finite()),
            )?;
        within("no_trade", self.no_trade, 0.0, 1.0)?;
        let Limits { delta, vega, margin } = self.limits;
        for (field, limit) in [("delta", delta), ("vega", vega), ("margin", margin)] {
            limit.map_or(Ok(()), |limit| not_negative(&format!("limits.{field}"), limit))?;
        }
        Ok(())
    }
}
