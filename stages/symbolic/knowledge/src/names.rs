//! Names with numbers: interned while a knowledge base is built, looked up in place in the file that holds
//! it.

use crate::sections::{Words, sections};
use bytes::Bytes;
use std::ops::Deref;

/// The hash of a name and its tag. It is part of the file format.
pub(crate) fn hash(text: &[u8], tag: u32) -> u32 {
    const K: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut state = u64::from(tag) ^ (text.len() as u64) << 32;
    let mix = |state: u64, chunk: u64| (state.rotate_left(29) ^ chunk).wrapping_mul(K);
    let mut chunks = text.chunks_exact(8);
    for chunk in &mut chunks {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(chunk);
        state = mix(state, u64::from_le_bytes(bytes));
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        let mut bytes = [0; 8];
        bytes[..rest.len()].copy_from_slice(rest);
        state = mix(state, u64::from_le_bytes(bytes));
    }
    let state = (state ^ state >> 32).wrapping_mul(K);
    (state >> 32) as u32
}

/// A table of names, each with a tag (the kind of a constant, the arity of a predicate) that is part of its
/// identity. Numbers are given in order of first appearance.
#[derive(Clone, Debug, Default)]
pub struct Table<B, W> {
    text: B,
    ends: W,
    tags: B,
    /// Pairs of a hash and a number plus one; 0 is free. The number of slots is a power of two, and at most
    /// half are in use.
    slots: W,
}

/// A table to which names can be added.
pub type Interner = Table<Vec<u8>, Vec<u32>>;

/// A frozen table: in memory, or mapped from a file.
pub type Names = Table<Bytes, Words>;

impl<B: Deref<Target = [u8]>, W: Deref<Target = [u32]>> Table<B, W> {
    /// The number of names.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether the table has no names.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The name with that number.
    pub fn name(&self, number: u32) -> &str {
        // Names come from text that was UTF-8.
        std::str::from_utf8(self.bytes(number)).unwrap_or("\u{fffd}")
    }

    /// The name with that number, as bytes.
    pub fn bytes(&self, number: u32) -> &[u8] {
        let start = match number {
            0 => 0,
            _ => self.ends[number as usize - 1] as usize,
        };
        &self.text[start..self.ends[number as usize] as usize]
    }

    /// The tag of the name with that number.
    pub fn tag(&self, number: u32) -> u8 {
        self.tags[number as usize]
    }

    /// The number of a name, or the free slot for it.
    fn slot(&self, name: &[u8], tag: u8, hash: u32) -> Result<u32, usize> {
        let slots = &*self.slots;
        let mask = slots.len() / 2 - 1;
        let mut slot = hash as usize & mask;
        loop {
            let number = slots[2 * slot + 1];
            if number == 0 {
                return Err(slot);
            }
            let number = number - 1;
            if slots[2 * slot] == hash && self.tag(number) == tag && self.bytes(number) == name {
                return Ok(number);
            }
            slot = (slot + 1) & mask;
        }
    }
}

impl Interner {
    /// The number of a name, which is added if it is new; `None` where the names together exceed 4 GiB.
    pub fn intern(&mut self, name: &[u8], tag: u8) -> Option<u32> {
        if self.slots.len() < 4 * (self.len() + 1) {
            self.grow();
        }
        let hash = hash(name, tag.into());
        match self.slot(name, tag, hash) {
            Ok(number) => Some(number),
            Err(slot) => {
                let end = u32::try_from(self.text.len() + name.len()).ok()?;
                self.text.extend_from_slice(name);
                self.ends.push(end);
                self.tags.push(tag);
                self.slots[2 * slot] = hash;
                self.slots[2 * slot + 1] = self.len() as u32;
                Some(self.len() as u32 - 1)
            }
        }
    }

    /// The numbers of several names, as successive calls of [`Interner::intern`] give them; `None` where one
    /// of them gives it. Memory look-ups for one name do not wait for those of the others.
    pub fn intern_all(&mut self, names: &[&[u8]], tag: u8, numbers: &mut Vec<u32>) -> Option<()> {
        const AT_ONCE: usize = 64;
        if self.slots.is_empty() {
            self.grow();
        }
        for names in names.chunks(AT_ONCE) {
            // What stands at the slot of each hash, read without a branch in between; and the text of the
            // name there.
            let mut hashes = [0_u32; AT_ONCE];
            let mut slots = [[0_u32; 2]; AT_ONCE];
            let mut places = [(0_usize, 0_usize); AT_ONCE];
            let mask = self.slots.len() / 2 - 1;
            for (hashed, name) in hashes.iter_mut().zip(names) {
                *hashed = hash(name, tag.into());
            }
            for (slot, hashed) in slots.iter_mut().zip(&hashes) {
                let at = 2 * (*hashed as usize & mask);
                *slot = [self.slots[at], self.slots[at + 1]];
            }
            let found: [u32; AT_ONCE] =
                std::array::from_fn(|i| if slots[i][0] == hashes[i] { slots[i][1] } else { 0 });
            for (place, &found) in places.iter_mut().zip(&found).filter(|(_, found)| **found > 1) {
                let number = found as usize - 1;
                if self.tags[number] == tag {
                    *place = (self.ends[number - 1] as usize, self.ends[number] as usize);
                }
            }
            for ((name, found), (start, end)) in names.iter().zip(found).zip(places) {
                let number = match end > start && self.text[start..end] == **name {
                    true => found - 1,
                    false => self.intern(name, tag)?,
                };
                numbers.push(number);
            }
        }
        Some(())
    }

    fn grow(&mut self) {
        let pairs = (self.slots.len() / 2 * 2).max(16);
        let mut slots = vec![0; 2 * pairs];
        for pair in self.slots.chunks_exact(2).filter(|pair| pair[1] != 0) {
            let mut slot = pair[0] as usize & (pairs - 1);
            while slots[2 * slot + 1] != 0 {
                slot = (slot + 1) & (pairs - 1);
            }
            slots[2 * slot..2 * slot + 2].copy_from_slice(pair);
        }
        self.slots = slots;
    }

    /// The frozen table.
    pub fn freeze(mut self) -> Names {
        if self.slots.is_empty() {
            self.grow();
        }
        Names {
            text: self.text.into(),
            ends: self.ends.into(),
            tags: self.tags.into(),
            slots: self.slots.into(),
        }
    }
}

impl Names {
    /// The number of a name.
    pub fn find(&self, name: &str, tag: u8) -> Option<u32> {
        self.slot(name.as_bytes(), tag, hash(name.as_bytes(), tag.into())).ok()
    }

    /// A copy to which names can be added.
    pub fn thaw(&self) -> Interner {
        Interner {
            text: self.text.to_vec(),
            ends: self.ends.to_vec(),
            tags: self.tags.to_vec(),
            slots: self.slots.to_vec(),
        }
    }
}

sections!(Names [text, ends, tags, slots] |names| {
    let pairs = names.slots.len() / 2;
    names.tags.len() == names.ends.len()
        && names.slots.len().is_multiple_of(2)
        && pairs.is_power_of_two()
        && pairs > names.len()
        && names.ends.last().is_none_or(|&end| end as usize == names.text.len())
});

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn names_keep_their_numbers() {
        let mut interner = Interner::default();
        let mut known: HashMap<(String, u8), u32> = HashMap::new();
        for i in 0..5000_u32 {
            let (name, tag) = (format!("{}", (i * 7919) % 1500), (i % 3) as u8);
            let number = interner.intern(name.as_bytes(), tag).unwrap();
            assert_eq!(number, *known.entry((name, tag)).or_insert(number));
        }
        // Several at a time: the same numbers, new names among them.
        let more: Vec<String> = (0..5000_u32).map(|i| format!("{}", (i * 104_729) % 3000)).collect();
        let slices: Vec<&[u8]> = more.iter().map(|name| name.as_bytes()).collect();
        let (mut one, mut numbers) = (interner.clone(), Vec::new());
        interner.intern_all(&slices, 1, &mut numbers).unwrap();
        for (name, number) in more.into_iter().zip(numbers) {
            assert_eq!(one.intern(name.as_bytes(), 1), Some(number));
            known.insert((name, 1), number);
        }
        let names = interner.freeze();
        assert_eq!(names.len(), known.len());
        for ((name, tag), number) in &known {
            assert_eq!(names.find(name, *tag), Some(*number));
            assert_eq!((names.name(*number), names.tag(*number)), (name.as_str(), *tag));
        }
        assert_eq!((names.find("1500", 0), names.find("", 0)), (None, None));
        assert_eq!(Interner::default().freeze().find("a", 0), None);
        assert_eq!(names.thaw().intern(b"new", 0), Some(names.len() as u32));
    }
}
