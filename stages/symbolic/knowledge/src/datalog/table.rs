//! The facts of a predicate while a model is computed: rows with their least proofs, and indices that are
//! kept as rows are added.

use crate::word::Word;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A fact: its predicate and row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Fact {
    pub predicate: u32,
    pub row: u32,
}

/// The rule number that marks a given fact.
pub(super) const GIVEN: u32 = u32::MAX;

/// The state of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The least depth of a proof of the fact; 0 where the fact does not hold.
    pub depth: u32,
    /// The steps of the proof.
    pub steps: u32,
    /// The index of the proof's last rule among all rules, or [`GIVEN`].
    pub rule: u32,
    /// The start of the proof's conditions in [`Table::children`].
    pub children: usize,
}

/// A hasher for keys that already are hashes.
#[derive(Default)]
pub(super) struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = mix(self.0, value);
    }
}

fn mix(state: u64, value: u64) -> u64 {
    let state = (state.rotate_left(29) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    state ^ state >> 32
}

/// A map whose keys are hashes.
pub(super) type HashedMap<K, V> = HashMap<K, V, BuildHasherDefault<Mixed>>;

/// Rows by the values at some arguments.
#[derive(Debug, Default)]
struct Index {
    /// The arguments of the index; bit i stands for argument i.
    mask: u32,
    rows: HashedMap<u64, Vec<u32>>,
}

/// The facts of a predicate.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub arity: usize,
    values: Vec<Word>,
    pub rows: Vec<Row>,
    pub children: Vec<Fact>,
    /// Rows plus one, by the hash of all values; 0 is free. At most half full; the length is 0 or a power of
    /// two.
    slots: Vec<u32>,
    indices: Vec<Index>,
}

fn key(values: impl Iterator<Item = Word>) -> u64 {
    values.fold(0, |state, value| mix(state, value.into()))
}

/// The arguments whose bits a mask has.
fn masked(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |argument| mask >> argument & 1 == 1)
}

impl Table {
    pub(super) fn new(arity: usize) -> Self {
        Self {
            arity,
            ..Self::default()
        }
    }

    pub(super) fn values(&self, row: u32) -> &[Word] {
        &self.values[row as usize * self.arity..][..self.arity]
    }

    /// The row of a fact, whether or not it holds.
    pub(super) fn find(&self, values: &[Word]) -> Option<u32> {
        self.slot(values).ok()
    }

    /// The row of a fact, or the free slot for it.
    fn slot(&self, values: &[Word]) -> Result<u32, usize> {
        if self.slots.is_empty() {
            return Err(0);
        }
        let mask = self.slots.len() - 1;
        let mut at = key(values.iter().copied()) as usize & mask;
        loop {
            match self.slots[at].checked_sub(1) {
                None => return Err(at),
                Some(row) if self.values(row) == values => return Ok(row),
                Some(_) => at = (at + 1) & mask,
            }
        }
    }

    fn grow(&mut self) {
        self.slots = vec![0; (2 * self.slots.len()).max(16)];
        for row in 0..self.rows.len() as u32 {
            if let Err(at) = self.slot(self.values(row)) {
                self.slots[at] = row + 1;
            }
        }
    }

    /// Returns whether a fact holds.
    pub(super) fn holds(&self, values: &[Word]) -> bool {
        self.find(values).is_some_and(|row| self.rows[row as usize].depth > 0)
    }

    /// The row of a fact; a new fact is added as one that does not hold.
    pub(super) fn add(&mut self, values: &[Word]) -> u32 {
        if self.slots.len() < 2 * (self.rows.len() + 1) {
            self.grow();
        }
        let slot = match self.slot(values) {
            Ok(row) => return row,
            Err(slot) => slot,
        };
        let row = self.rows.len() as u32;
        self.slots[slot] = row + 1;
        self.values.extend_from_slice(values);
        self.rows.push(Row {
            depth: 0,
            steps: 0,
            rule: GIVEN,
            children: 0,
        });
        for index in &mut self.indices {
            let key = key(masked(index.mask).map(|argument| values[argument]));
            index.rows.entry(key).or_default().push(row);
        }
        row
    }

    /// Sets a row's proof.
    pub(super) fn prove(&mut self, row: u32, depth: u32, steps: u32, rule: u32, children: &[Fact]) {
        let place = &mut self.rows[row as usize];
        // The place of the last proof is taken where the new one fits.
        let is_same = place.depth > 0 && place.rule == rule && place.rule != GIVEN;
        if !is_same {
            place.children = self.children.len();
            self.children.extend_from_slice(children);
        } else {
            self.children[place.children..place.children + children.len()].copy_from_slice(children);
        }
        (place.depth, place.steps, place.rule) = (depth, steps, rule);
    }

    /// Builds the index over the arguments of a mask, if it does not exist yet.
    pub(super) fn index(&mut self, mask: u32) {
        if mask == 0 || self.indices.iter().any(|index| index.mask == mask) {
            return;
        }
        let mut rows: HashedMap<u64, Vec<u32>> = HashMap::default();
        for row in 0..self.rows.len() as u32 {
            let values = &self.values[row as usize * self.arity..][..self.arity];
            let key = key(masked(mask).map(|argument| values[argument]));
            rows.entry(key).or_default().push(row);
        }
        self.indices.push(Index { mask, rows });
    }

    /// The rows that may have the given values at the arguments of an index; `None` for all rows.
    pub(super) fn matching(&self, mask: u32, values: impl Iterator<Item = Word>) -> Option<&[u32]> {
        let index = self.indices.iter().find(|index| index.mask == mask)?;
        Some(index.rows.get(&key(values)).map_or(&[], Vec::as_slice))
    }
}
