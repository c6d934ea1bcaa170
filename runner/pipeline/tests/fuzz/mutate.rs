//! Changes examples as a fuzzer does.

use stages_numerics::random::Random;

/// Choices that a seed decides.
pub(crate) struct Chance(Random);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Random::new(&[seed]))
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0.below(n.max(1) as u64) as usize
    }
}

/// Pieces that mean something in YAML, in JSON, in a path or in an interpolation.
const PIECES: [&[u8]; 48] = [
    b"\n",
    b"\r\n",
    b"  ",
    b"\t",
    b": ",
    b"- ",
    b"? ",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b"\"",
    b"'",
    b"|",
    b">-\n",
    b"&a ",
    b"*a",
    b"<<: *a",
    b"!!str ",
    b"---\n",
    b"%YAML 1.2\n",
    b"#",
    b"${",
    b"$${",
    b"${params.seed}",
    b"${matrix.seed}",
    b"${env.X}",
    b"null",
    b"~",
    b"1e999",
    b"-9223372036854775809",
    b"18446744073709551616",
    b"0x",
    b"NaN",
    b".inf",
    b"\\u0000",
    b"\\ud800",
    b"\0",
    b"\xff",
    b"\xe2\x80\xae",
    b"..",
    b"/",
    b"\\",
    b"include: [x.yaml]\n",
    b"[*]",
    b"{ range: [1, 1e18] }",
    b"{ log_uniform: [1e-5, 1], samples: 1000000000 }",
];

/// One of the examples with some changes: bits, pieces, parts moved, repeated, removed, or taken from another
/// example.
pub(crate) fn mutated(examples: &[Vec<u8>], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = examples[chance.below(examples.len())].clone();
    for _ in 0..=chance.below(6) {
        let at = chance.below(bytes.len() + 1);
        let end = (at + chance.below(60)).min(bytes.len());
        match chance.below(9) {
            0 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            1 if at < bytes.len() => bytes[at] = chance.below(256) as u8,
            2 => drop(bytes.drain(at..end)),
            3 => insert(&mut bytes, at, PIECES[chance.below(PIECES.len())]),
            4 => drop(bytes.splice(at..end, PIECES[chance.below(PIECES.len())].iter().copied())),
            5 => {
                let part = bytes[at..end].to_vec();
                for _ in 0..=chance.below(20) {
                    insert(&mut bytes, at, &part);
                }
            }
            6 => {
                let part = bytes[at..end].to_vec();
                let to = chance.below(bytes.len() + 1);
                insert(&mut bytes, to, &part);
            }
            7 => {
                let other = &examples[chance.below(examples.len())];
                let from = chance.below(other.len() + 1);
                let to = (from + chance.below(200)).min(other.len());
                insert(&mut bytes, at, &other[from..to]);
            }
            _ => {
                let piece = PIECES[chance.below(PIECES.len())];
                for _ in 0..chance.below(300) {
                    insert(&mut bytes, at, piece);
                }
            }
        }
    }
    bytes
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    drop(bytes.splice(at..at, piece.iter().copied()));
}
