//! Actions that sit at a bound in nearly every step: what they stand for has no slope there, and nothing more
//! is learned.

use stages_core::StageEvent;
use stages_env::{ActionSpace, Bounds};

/// The number of actions after which older ones weigh half, and the number below which nothing is said.
const WINDOW: f64 = 2048.0;
const FEWEST: f64 = 128.0;

/// The share of steps that counts as nearly every one.
const NEARLY_EVERY: f64 = 0.95;

/// The share of a range within which an action is at its bound, as those of tanh never are.
const NEAR: f32 = 1e-3;

/// The counts of the last steps.
#[derive(Default)]
pub(crate) struct AtABound {
    actions: f64,
    /// The actions at the lower and at the upper bound, by component.
    at: Vec<[f64; 2]>,
}

impl AtABound {
    /// Counts actions `[_, A]` of the environment.
    pub(crate) fn see(&mut self, bounds: &Bounds, actions: &[f32]) {
        let a = bounds.low.len();
        self.at.resize(a, [0.0; 2]);
        if self.actions >= WINDOW {
            self.actions *= 0.5;
            self.at.iter_mut().flatten().for_each(|count| *count *= 0.5);
        }
        for row in actions.chunks_exact(a) {
            self.actions += 1.0;
            for (at, x) in row.iter().enumerate() {
                let (low, high) = (bounds.low[at], bounds.high[at]);
                let near = NEAR * (high - low);
                self.at[at][0] += f64::from(u8::from(*x <= low + near));
                self.at[at][1] += f64::from(u8::from(*x >= high - near));
            }
        }
    }

    /// A warning, if every component sat at one of its bounds in nearly every one of the last steps.
    pub(crate) fn warning(&self, space: &ActionSpace) -> Option<StageEvent> {
        let bounds = space.bounds()?;
        let share = |at: &[f64; 2]| at[0].max(at[1]) / self.actions;
        let least = self.at.iter().map(share).fold(f64::INFINITY, f64::min);
        if self.actions < FEWEST || !least.is_finite() || least < NEARLY_EVERY {
            return None;
        }
        let all = space.names().iter().zip(&self.at).enumerate().map(|(i, (name, at))| {
            let bound = if at[0] > at[1] { bounds.low[i] } else { bounds.high[i] };
            format!("`{name}` at {bound}")
        });
        let shown: Vec<String> = all.take(3).collect();
        let more = if self.at.len() > shown.len() { ", …" } else { "" };
        Some(StageEvent::Warning {
            message: format!(
                "the actions sit at a bound in {:.0} % of the last steps: {}{more}",
                100.0 * least,
                shown.join(", ")
            ),
            hint: Some(
                "if that is not the best action, nothing is learned there: see the rewards, lower the \
                learning rate, or widen the bounds"
                    .to_owned(),
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_bound_in_nearly_every_step_is_told() {
        let space = ActionSpace::Continuous {
            names: vec!["x".to_owned(), "y".to_owned()],
            bounds: Bounds {
                low: vec![5.0, -1.0],
                high: vec![10.0, 1.0],
            },
        };
        let said = |action: &dyn Fn(usize) -> [f32; 2]| {
            let mut seen = AtABound::default();
            for i in 0..5000 {
                seen.see(space.bounds().unwrap(), &action(i));
            }
            match seen.warning(&space) {
                Some(StageEvent::Warning { message, .. }) => Some(message),
                _ => None,
            }
        };
        assert_eq!(said(&|_| [7.0, 1.0]), None);
        // From bound to bound is no rest at one.
        assert_eq!(said(&|i| if i % 2 == 0 { [5.0, -1.0] } else { [10.0, 1.0] }), None);
        assert_eq!(said(&|i| if i < 2500 { [5.0, 1.0] } else { [6.0, 0.0] }), None);
        assert_eq!(
            said(&|i| if i < 100 { [7.0, 0.0] } else { [4.0, 1.5] }).unwrap(),
            "the actions sit at a bound in 99 % of the last steps: `x` at 5, `y` at 1"
        );
    }
}
