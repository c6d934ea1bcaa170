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
use crate::episodic::{Episodic, EpisodicEnv, Outcome};
use crate::open_options::OpenOptions;
use crate::spec::EnvSpec;
use stages_core::StageError;
use stages_numerics::random::Random;

const SUITS: [&str; 4] = ["spades", "diamonds", "clubs", "hearts"];
const CARDS: usize = 52;

/// The game.
pub struct Game {
    spec: EnvSpec,
    /// Cards in a game.
    cards: usize,
    /// The distance of the card to be named; 1 is the card that is shown.
    k: usize,
}

/// B games.
pub type RepeatPrevious = EpisodicEnv<Game>;

impl RepeatPrevious {
    /// A batch of `options.num_envs` games with this many decks.
    pub(crate) fn new(name: &str, decks: usize, k: usize, options: &OpenOptions) -> Self {
        let spec = EnvSpec {
            name: name.to_owned(),
            observation: SUITS.map(str::to_owned).into(),
            action_space: ActionSpace::discrete(SUITS),
            normalisation: None,
            encoding: crate::ActionEncoding::default(),
        };
        let cards = decks * CARDS;
        Self::of(Game { spec, cards, k }, options)
    }
}

impl Episodic for Game {
    /// The type of a suit; the state holds the suits in the order in which they are dealt.
    type Value = u8;
    type Input = u32;
    type Action = u32;
    type Final = ();
    /// The count is the number of cards dealt.
    const FIRST: u32 = 1;

    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn width(&self) -> usize {
        self.cards
    }

    fn actions<'a>(&self, actions: Actions<'a>, num_envs: usize) -> Result<&'a [u32], StageError> {
        actions.discrete(num_envs)
    }

    fn begin(&self, mut random: Random, _: u64, suits: &mut [u8]) {
        for (card, suit) in suits.iter_mut().enumerate() {
            *suit = (card % SUITS.len()) as u8;
        }
        random.shuffle(suits);
    }

    fn advance(&self, suits: &mut [u8], dealt: u32, action: u32) -> Outcome {
        let (dealt, unit) = (dealt as usize, 1.0 / (self.cards - self.k) as f32);
        Outcome {
            reward: match dealt.checked_sub(self.k) {
                None => 0.0,
                Some(back) if u32::from(suits[back]) == action => unit,
                Some(_) => -unit,
            },
            // The last card is dealt, but there is nothing left to decide.
            terminated: dealt + 1 == self.cards,
            truncated: false,
        }
    }

    fn show(&self, suits: &[u8], dealt: u32, out: &mut [f32]) {
        out.fill(0.0);
        out[usize::from(suits[dealt as usize - 1])] = 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{BatchEnv as _, Step};
    use crate::tests::step_discrete;

    fn suit(obs: &[f32]) -> u32 {
        obs.iter().position(|&x| x == 1.0).unwrap() as u32
    }

    #[test]
    fn steps_again_after_a_restart() {
        let mut env = RepeatPrevious::new("test", 1, 4, &OpenOptions::train(3, 2));
        crate::tests::steps_again_after_a_restart(&mut env, 120);
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
