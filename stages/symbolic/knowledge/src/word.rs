//! Words: the 32-bit codes that terms, atoms and clauses are written in.
//!
//! A term is written in prefix order: a constant or a variable is one word; a compound term is the word of
//! its functor, then its arguments. An atom is the word of its predicate, then its arguments; a goal list or
//! a body is one atom after another. A functor's and a predicate's word hold their arity, so that a slice of
//! words can be walked without a table. A list is `'[|]'(Head, Tail)`, ended by the constant `[]`.
//!
//! | bits 31, 30 | word | the rest |
//! | --- | --- | --- |
//! | 00 | constant | its number (30 bits): the word is the number |
//! | 01 | variable | its number (30 bits) |
//! | 10 | functor | arity (8 bits), number (22 bits) |
//! | 11 | predicate | 1 if negated (1 bit), arity (8 bits), number (21 bits) |

/// A 32-bit code; see the module's description.
pub type Word = u32;

/// The largest arity of a functor or predicate.
pub const MAX_ARITY: usize = 255;
/// The number of constants that words can name.
pub const MAX_CONSTANTS: usize = 1 << 30;
/// The number of variables that words can name in a goal list or clause.
pub const MAX_VARIABLES: usize = 1 << 29;
/// The number of functors that words can name.
pub const MAX_FUNCTORS: usize = 1 << 22;
/// The number of predicates that words can name.
pub const MAX_PREDICATES: usize = 1 << 21;

/// The error for more names, facts or words, or a larger arity, than words and 32-bit offsets can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than 32-bit words can hold")]
pub struct TooMany;

const TAG: Word = 0xC000_0000;
const VARIABLE: Word = 0x4000_0000;
const FUNCTOR: Word = 0x8000_0000;
const PREDICATE: Word = 0xC000_0000;
const NEGATED: Word = 0x2000_0000;

/// The word of a constant.
#[inline]
pub fn constant(number: u32) -> Word {
    debug_assert!((number as usize) < MAX_CONSTANTS);
    number
}

/// The word of a variable.
#[inline]
pub fn variable(number: u32) -> Word {
    debug_assert!((number as usize) < MAX_CONSTANTS);
    VARIABLE | number
}

/// The word of a functor.
#[inline]
pub fn functor(number: u32, arity: usize) -> Word {
    debug_assert!((number as usize) < MAX_FUNCTORS && arity <= MAX_ARITY);
    FUNCTOR | (arity as u32) << 22 | number
}

/// The word of a predicate.
#[inline]
pub fn predicate(number: u32, arity: usize) -> Word {
    debug_assert!((number as usize) < MAX_PREDICATES && arity <= MAX_ARITY);
    PREDICATE | (arity as u32) << 21 | number
}

/// A predicate's word, negated.
#[inline]
pub fn negated(word: Word) -> Word {
    word | NEGATED
}

/// A predicate's word, positive.
#[inline]
pub fn positive(word: Word) -> Word {
    word & !NEGATED
}

/// Returns whether a predicate's word is negated.
#[inline]
pub fn is_negated(word: Word) -> bool {
    word & NEGATED != 0
}

/// Returns whether the word is a constant's.
#[inline]
pub fn is_constant(word: Word) -> bool {
    word & TAG == 0
}

/// Returns whether the word is a variable's.
#[inline]
pub fn is_variable(word: Word) -> bool {
    word & TAG == VARIABLE
}

/// Returns whether the word is a functor's.
#[inline]
pub fn is_functor(word: Word) -> bool {
    word & TAG == FUNCTOR
}

/// Returns whether the word is a predicate's.
#[inline]
pub fn is_predicate(word: Word) -> bool {
    word & TAG == PREDICATE
}

/// The number of a constant, variable, functor or predicate.
#[inline]
pub fn number(word: Word) -> u32 {
    match word & TAG {
        PREDICATE => word & (MAX_PREDICATES as u32 - 1),
        FUNCTOR => word & (MAX_FUNCTORS as u32 - 1),
        _ => word & !TAG,
    }
}

/// The number of words that follow as arguments: 0 for a constant or a variable.
#[inline]
pub fn arity(word: Word) -> usize {
    match word & TAG {
        PREDICATE => (word >> 21 & 0xFF) as usize,
        FUNCTOR => (word >> 22 & 0xFF) as usize,
        _ => 0,
    }
}

/// The end of the term or atom that begins at `start`.
#[inline]
pub fn end(words: &[Word], start: usize) -> usize {
    let mut at = start;
    let mut left = 1;
    while left > 0 {
        left += arity(words[at]);
        left -= 1;
        at += 1;
    }
    at
}

/// The ranges of the atoms of a goal list or body, or of the arguments behind an atom's word.
pub fn parts(words: &[Word]) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        (at < words.len()).then(|| {
            let start = at;
            at = end(words, start);
            start..at
        })
    })
}

/// The number of distinct variables, where they are numbered from 0 without a gap: the largest number plus
/// one.
pub fn variables(words: &[Word]) -> usize {
    words
        .iter()
        .filter(|&&word| is_variable(word))
        .map(|&word| number(word) as usize + 1)
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_what_they_were_made_of() {
        for (n, a) in [(0, 0), (7, 1), (MAX_PREDICATES as u32 - 1, MAX_ARITY)] {
            let p = predicate(n, a);
            assert!(is_predicate(p) && !is_negated(p) && is_negated(negated(p)));
            assert_eq!((number(p), arity(p), positive(negated(p))), (n, a, p));
            assert_eq!((number(negated(p)), arity(negated(p))), (n, a));
            let f = functor(n, a);
            assert!(is_functor(f));
            assert_eq!((number(f), arity(f)), (n, a));
        }
        let v = variable(5);
        assert!(is_variable(v) && !is_constant(v));
        assert_eq!((number(v), arity(v), number(constant(9))), (5, 0, 9));
        // p(f(a, X), b), q
        let words = [predicate(0, 2), functor(0, 2), 0, variable(0), 1, predicate(1, 0)];
        assert_eq!(parts(&words).collect::<Vec<_>>(), [0..5, 5..6]);
        assert_eq!(parts(&words[1..5]).collect::<Vec<_>>(), [0..3, 3..4]);
        assert_eq!(variables(&words), 1);
    }
}
