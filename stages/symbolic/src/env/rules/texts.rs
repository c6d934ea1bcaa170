//! A domain and its problems as texts, as an artifact holds them.

use super::config::RulesConfig;
use serde::{Deserialize, Serialize};
use stages_core::StageError;
use stages_knowledge::Split;
use stages_numerics::random::Random;
use std::collections::BTreeSet;

/// A text, and its name for messages.
pub(super) type NamedText = (String, String);

/// A domain, and the problems of each split.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleTexts {
    /// The domain.
    pub domain: NamedText,
    /// The problems to train on, to choose settings by, and to test on.
    pub problems: [Vec<NamedText>; 3],
}

/// The number of draws for a problem that no earlier split has; after that, a repeated problem is accepted.
const DRAWS: usize = 64;

impl RuleTexts {
    /// Random problems of a world that comes with its domain. Those of a split are none of an earlier one, as
    /// far as the world has as many.
    ///
    /// # Errors
    /// When a setting is out of range.
    pub fn drawn(config: &RulesConfig) -> Result<Self, StageError> {
        config.validate()?;
        let mut earlier: BTreeSet<String> = BTreeSet::new();
        let problems = Split::ALL.map(|split| {
            let problem = |number: u32| {
                let random = &mut Random::new(&[config.seed, split as u64, u64::from(number)]);
                let mut text = String::new();
                for _ in 0..DRAWS {
                    text = config.world.problem(config.size as usize, random);
                    if !earlier.contains(&text) {
                        break;
                    }
                }
                (format!("{} problem {number}", split.name()), text)
            };
            let drawn: Vec<NamedText> = (0..config.problems).map(problem).collect();
            earlier.extend(drawn.iter().map(|(_, text)| text.clone()));
            drawn
        });
        Ok(Self {
            domain: ("domain".to_owned(), config.world.domain().to_owned()),
            problems,
        })
    }

    /// The problems of a split.
    pub fn problems(&self, split: Split) -> &[NamedText] {
        &self.problems[split as usize]
    }

    /// The number of problems of a split that an earlier split has, too.
    pub fn repeated(&self, split: Split) -> usize {
        let earlier: BTreeSet<&str> = self.problems[..split as usize]
            .iter()
            .flatten()
            .map(|(_, text)| text.as_str())
            .collect();
        let texts = self.problems(split).iter().map(|(_, text)| text.as_str());
        texts.filter(|text| earlier.contains(text)).count()
    }
}
