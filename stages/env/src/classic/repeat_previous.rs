//! Repeat the suit of the card shown k - 1 steps ago: the task `RepeatPrevious` of POPGym.
//!
//! Source: Morad, Kortvelesy, Bettini, Liwicki and Prorok, "POPGym: Benchmarking Partially Observable
//! Reinforcement Learning" (ICLR 2023), and its code. Decks of 52 cards are shuffled together and dealt one
//! card a step; the suit of the last one is seen, as four numbers of which one is 1. Once k cards are out,
//! the action names the suit of the k-th last one: with N cards in all, the right suit earns 1 / (N - k), a
//! wrong one costs as much. All but the last card are decided on, so that an episode has N - 1 steps and a
//! return between -1 and 1. Then it terminates, as no reward is left (POPGym truncates, which would have a
//! learner add the value of a state that has none). Easy has one deck and k = 4, medium two and 32, hard
//! three and 64.
//!
//! The best return is known: with memory 1. Without, the best is to name a suit that is not the one shown, of
//! which a little more is left: it is right 13 n / (52 n - 1) of the time with n decks, a return of 26 n /
//! (52 n - 1) - 1, just above -1/2.

use crate::actions::{ActionSpace, Actions};
use crate::batch::{BatchEnv, StepBuffers};
use crate::open_options::OpenOptions;
use crate::ranges::{Rows, StepRows, View, for_ranges};
use crate::saved_state::{StateReader, StateWriter};
use crate::spec::EnvSpec;
use stages_core::StageError;
use stages_numerics::random::Random;

const SUITS: [&str; 4] = ["spades", "diamonds", "clubs", "hearts"];
const CARDS: usize = 52;
/// With fewer environments per thread than this, scheduling the task costs more than stepping them.
const GRAIN: usize = 1024;

/// B games.
pub struct RepeatPrevious {
    spec: EnvSpec,
    stream: [u64; 2],
    /// Cards in a game.
    cards: usize,
    /// The distance of the card to name; 1 is the one that is shown.
    k: usize,
    /// `[B, cards]`: the suits in the order they are dealt.
    suits: Vec<u8>,
    /// The number of cards dealt.
    dealt: Vec<u32>,
    episodes: Vec<u64>,
}

impl RepeatPrevious {
    /// `options.num_envs` games with this many decks.
    pub(crate) fn new(name: &str, decks: usize, k: usize, options: &OpenOptions) -> Self {
        let cards = decks * CARDS;
        let mut this = Self {
            spec: EnvSpec {
                name: name.to_owned(),
                observation: SUITS.map(str::to_owned).into(),
                action_space: ActionSpace::discrete(SUITS),
                normalisation: None,
            },
            stream: [options.seed, options.split.word()],
            cards,
            k,
            suits: vec![0; options.num_envs * cards],
            dealt: vec![1; options.num_envs],
            episodes: vec![0; options.num_envs],
        };
        for (i, suits) in this.suits.chunks_exact_mut(cards).enumerate() {
            shuffle(this.stream, i, 0, suits);
        }
        this
    }

    fn tag(&self) -> String {
        format!("{} v1 x {}", self.spec.name, self.dealt.len())
    }
}

/// The cards of episode `episode` of environment `i`.
fn shuffle(stream: [u64; 2], i: usize, episode: u64, suits: &mut [u8]) {
    for (card, suit) in suits.iter_mut().enumerate() {
        *suit = (card % SUITS.len()) as u8;
    }
    Random::new(&[stream[0], stream[1], i as u64, episode]).shuffle(suits);
}

fn show(suit: u8, out: &mut [f32]) {
    out.fill(0.0);
    out[usize::from(suit)] = 1.0;
}

struct Games<'a> {
    actions: &'a [u32],
    suits: Rows<'a, u8>,
    dealt: &'a mut [u32],
    episodes: &'a mut [u64],
}

impl View for Games<'_> {
    fn split(self, n: usize) -> (Self, Self) {
        let (actions, suits) = (self.actions.split_at(n), self.suits.split(n));
        let (dealt, episodes) = (self.dealt.split_at_mut(n), self.episodes.split_at_mut(n));
        (
            Self {
                actions: actions.0,
                suits: suits.0,
                dealt: dealt.0,
                episodes: episodes.0,
            },
            Self {
                actions: actions.1,
                suits: suits.1,
                dealt: dealt.1,
                episodes: episodes.1,
            },
        )
    }
}

impl BatchEnv for RepeatPrevious {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn num_envs(&self) -> usize {
        self.dealt.len()
    }

    fn reset(&mut self, mut out: StepBuffers<'_>) {
        out.clear();
        for (i, suits) in self.suits.chunks_exact_mut(self.cards).enumerate() {
            if self.dealt[i] != 1 {
                self.episodes[i] += 1;
                self.dealt[i] = 1;
                shuffle(self.stream, i, self.episodes[i], suits);
            }
            show(suits[0], &mut out.obs[i * SUITS.len()..(i + 1) * SUITS.len()]);
        }
    }

    fn step(&mut self, actions: Actions<'_>, out: StepBuffers<'_>) -> Result<(), StageError> {
        let actions = actions.discrete(self.dealt.len())?;
        let (stream, k, cards, len) = (self.stream, self.k, self.cards, self.dealt.len());
        let unit = 1.0 / (cards - k) as f32;
        let games = Games {
            actions,
            suits: Rows {
                values: &mut self.suits,
                width: cards,
            },
            dealt: &mut self.dealt,
            episodes: &mut self.episodes,
        };
        let view = (games, StepRows::new(out, &self.spec));
        for_ranges(
            view,
            len,
            GRAIN,
            &|first, len, (mut games, mut out): (Games, StepRows)| {
                for i in 0..len {
                    let suits = games.suits.row(i);
                    let dealt = games.dealt[i] as usize;
                    out.reward[i] = match dealt.checked_sub(k) {
                        None => 0.0,
                        Some(back) if u32::from(suits[back]) == games.actions[i] => unit,
                        Some(_) => -unit,
                    };
                    // The last card is dealt, but there is nothing left to decide.
                    let over = dealt + 1 == cards;
                    out.terminated[i] = over;
                    out.truncated[i] = false;
                    if over {
                        show(suits[dealt], out.final_obs.row(i));
                        games.episodes[i] += 1;
                        games.dealt[i] = 1;
                        shuffle(stream, first + i, games.episodes[i], suits);
                    } else {
                        games.dealt[i] += 1;
                    }
                    show(suits[games.dealt[i] as usize - 1], out.obs.row(i));
                }
                out.action_mask.values.fill(true);
            },
        );
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        StateWriter::new(&self.tag())
            .array(&self.suits)
            .array(&self.dealt)
            .array(&self.episodes)
            .finish()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let size = self.suits.len() + self.dealt.len() * (4 + 8);
        let mut reader = StateReader::new(state, &self.tag(), size)?;
        reader.array(&mut self.suits);
        reader.array(&mut self.dealt);
        reader.array(&mut self.episodes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Step;
    use crate::testing::step_discrete;

    fn suit(obs: &[f32]) -> u32 {
        obs.iter().position(|&x| x == 1.0).unwrap() as u32
    }

    #[test]
    fn steps_again_after_a_restart() {
        let mut env = RepeatPrevious::new("test", 1, 4, &OpenOptions::train(3, 2));
        crate::testing::steps_again_after_a_restart(&mut env, 120);
    }

    /// Plays one episode in each environment; `act` sees the suits so far.
    fn play(decks: usize, k: usize, num_envs: usize, act: impl Fn(&[u32]) -> u32) -> Vec<f64> {
        let mut env = RepeatPrevious::new("test", decks, k, &OpenOptions::test(num_envs, 3));
        let mut out = Step::new(env.spec(), num_envs);
        env.reset(out.buffers());
        let mut seen: Vec<Vec<u32>> = out.obs.chunks(4).map(|obs| vec![suit(obs)]).collect();
        let mut returns = vec![0.0; num_envs];
        for step in 1..decks * CARDS {
            let actions: Vec<u32> = seen.iter().map(|suits| act(suits)).collect();
            step_discrete(&mut env, &actions, &mut out);
            for i in 0..num_envs {
                returns[i] += f64::from(out.reward[i]);
                assert!(!out.truncated[i]);
                assert_eq!(out.terminated[i], step + 1 == decks * CARDS);
                seen[i].push(suit(&out.obs[i * 4..(i + 1) * 4]));
            }
        }
        returns
    }

    #[test]
    fn memory_earns_one_and_none_what_is_said() {
        let perfect =
            |k: usize| move |suits: &[u32]| suits.len().checked_sub(k).map_or(0, |back| suits[back]);
        for (decks, k) in [(1, 4), (2, 32), (3, 64)] {
            for total in play(decks, k, 3, perfect(k)) {
                assert!((total - 1.0).abs() < 1e-5, "{total}");
            }
        }
        let n = 4000;
        let mean = |returns: Vec<f64>| returns.iter().sum::<f64>() / n as f64;
        // The standard error of each mean is 0.002.
        let other = mean(play(1, 4, n, |suits| (suits[suits.len() - 1] + 1) % 4));
        assert!((other - (26.0 / 51.0 - 1.0)).abs() < 0.01, "{other}");
        let same = mean(play(1, 4, n, |suits| suits[suits.len() - 1]));
        assert!((same - (24.0 / 51.0 - 1.0)).abs() < 0.01, "{same}");
    }

    #[test]
    fn saved_and_restored() {
        let options = OpenOptions::train(5, 2);
        let mut env = RepeatPrevious::new("test", 1, 4, &options);
        let mut out = Step::new(env.spec(), 5);
        env.reset(out.buffers());
        for _ in 0..70 {
            step_discrete(&mut env, &[0, 1, 2, 3, 1], &mut out);
        }
        let mut other = RepeatPrevious::new("test", 1, 4, &OpenOptions::train(5, 2));
        other.restore(&env.save()).unwrap();
        let mut again = out.clone();
        for _ in 0..70 {
            step_discrete(&mut env, &[1, 1, 0, 1, 3], &mut out);
            step_discrete(&mut other, &[1, 1, 0, 1, 3], &mut again);
            assert_eq!((&out.obs, &out.reward), (&again.obs, &again.reward));
        }
        assert!(
            RepeatPrevious::new("test", 1, 4, &OpenOptions::train(6, 2))
                .restore(&env.save())
                .is_err()
        );
    }

    #[test]
    fn a_thread_more_changes_nothing() {
        let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        let run = || play(1, 4, 2500, |suits| suits.len() as u32 % 4);
        assert!(pool(1).install(run) == pool(3).install(run));
    }
}
