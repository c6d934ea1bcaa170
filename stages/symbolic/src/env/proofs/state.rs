//! States and successors of a search, in words.

use stages_knowledge::{Clause, Word, word};

/// A goal list. Behind the goals, `words` may hold atoms that are carried along: bindings reach them, and
/// they are never resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Goals {
    /// The goals, one atom after another, variables numbered in order of appearance; then the atoms carried
    /// along.
    pub words: Vec<Word>,
    /// The depth of each goal: 1 for those of the query.
    pub depths: Vec<u32>,
}

impl Goals {
    /// A query, whose first `goals` atoms are to be proved.
    pub fn new(words: &[Word], goals: usize) -> Self {
        Self {
            words: words.to_vec(),
            depths: vec![1; goals],
        }
    }

    /// Returns whether nothing is left to prove.
    pub fn is_proved(&self) -> bool {
        self.depths.is_empty()
    }

    pub(crate) fn set(&mut self, words: &[Word], depths: &[u32]) {
        self.words.clear();
        self.words.extend_from_slice(words);
        self.depths.clear();
        self.depths.extend_from_slice(depths);
    }
}

/// A successor of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Successor {
    /// The range of the successor's words in [`Successors::words`].
    words: [u32; 2],
    /// The range of the successor's depths in [`Successors::depths`], one for each goal.
    depths: [u32; 2],
    /// The clause that leads to the successor.
    pub clause: Clause,
    /// The successor's hash; see [`hash`].
    pub hash: u64,
}

impl Successor {
    /// The number of goals.
    #[inline]
    pub(crate) fn goals(&self) -> usize {
        (self.depths[1] - self.depths[0]) as usize
    }
}

/// The successors of a state, in the order of the clauses that lead to them.
#[derive(Clone, Debug, Default)]
pub struct Successors {
    pub(crate) words: Vec<Word>,
    pub(crate) depths: Vec<u32>,
    pub(crate) items: Vec<Successor>,
    /// The predicate of the goal that was resolved; 0 where there was none.
    pub(crate) predicate: Word,
    /// The place of the goal that was resolved among the goals.
    pub(crate) goal: usize,
}

impl Successors {
    /// The number of successors.
    #[inline]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// A successor's words and depths.
    #[inline]
    pub fn get(&self, at: usize) -> (&[Word], &[u32]) {
        let item = &self.items[at];
        (
            &self.words[item.words[0] as usize..item.words[1] as usize],
            &self.depths[item.depths[0] as usize..item.depths[1] as usize],
        )
    }

    /// The clause that leads to a successor.
    #[inline]
    pub fn clause(&self, at: usize) -> Clause {
        self.items[at].clause
    }

    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.depths.clear();
        self.items.clear();
        self.predicate = 0;
        self.goal = 0;
    }

    /// Adds the successor that lies behind the last one.
    #[inline]
    pub(crate) fn push(&mut self, words: usize, depths: usize, clause: Clause, hash: u64) {
        self.items.push(Successor {
            words: [words as u32, self.words.len() as u32],
            depths: [depths as u32, self.depths.len() as u32],
            clause,
            hash,
        });
    }
}

#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A 64-bit hash of a state, from its atoms in any order and, with `with_depths`, the goals' depths.
#[inline]
pub(crate) fn hash(words: &[Word], depths: &[u32], with_depths: bool) -> u64 {
    const K: u64 = 0x9E37_79B9_7F4A_7C15;
    let (mut sum, mut at, mut atom) = (0_u64, 0, 0);
    while at < words.len() {
        let mut state = match with_depths {
            true => u64::from(depths.get(atom).copied().unwrap_or(0)),
            false => 0,
        };
        // A term is a prefix code: its end is where nothing is left.
        let mut left = 1;
        while left > 0 {
            let word = words[at];
            state = (state.rotate_left(29) ^ u64::from(word)).wrapping_mul(K);
            left += word::arity(word);
            left -= 1;
            at += 1;
        }
        atom += 1;
        sum = sum.wrapping_add(mix(state));
    }
    sum
}
