//! The file that a knowledge base lies in: sections of 32-bit words or bytes, read in place.
//!
//! | bytes | contents |
//! | --- | --- |
//! | 0 to 7 | `RKNOW` and three digits, the version of the format |
//! | 8 to 15 | the number of sections |
//! | 16 for each section | its first byte, and its length in bytes |
//! | | the sections, each at a multiple of 64 bytes, zeros between them |
//!
//! All numbers are little-endian. The sections have no names: who writes them reads them in the same order.

use arrow_buffer::{Buffer, ScalarBuffer, ToByteSlice as _};
use bytes::Bytes;
use std::io::{self, Write};
use std::ops::Deref;

/// 32-bit words: in memory, or mapped from a file.
pub type Words = ScalarBuffer<u32>;

const MAGIC: &[u8; 8] = b"RKNOW001";
const ALIGN: u64 = 64;

/// The error for a file that is damaged or of another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the file is damaged, or of another version of the format")]
pub struct SectionError;

/// The contents of a file: one section, or those of a struct's fields, in order.
pub trait Section: Sized {
    /// Adds the sections.
    fn add<'a>(&'a self, sections: &mut Vec<&'a [u8]>);

    /// Reads the sections.
    ///
    /// # Errors
    /// Fails when a section is missing, or what they hold together cannot be.
    fn read(reader: &mut Reader) -> Result<Self, SectionError>;

    /// Writes the file.
    ///
    /// # Errors
    /// Returns the error of writing to `out`.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut sections = Vec::new();
        self.add(&mut sections);
        let mut head = MAGIC.to_vec();
        head.extend((sections.len() as u64).to_le_bytes());
        let mut at = 16 + 16 * sections.len() as u64;
        for section in &sections {
            at = at.next_multiple_of(ALIGN);
            head.extend(at.to_le_bytes());
            head.extend((section.len() as u64).to_le_bytes());
            at += section.len() as u64;
        }
        out.write_all(&head)?;
        let mut written = head.len() as u64;
        for section in sections {
            let gap = written.next_multiple_of(ALIGN) - written;
            out.write_all(&[0; ALIGN as usize][..gap as usize])?;
            out.write_all(section)?;
            written += gap + section.len() as u64;
        }
        Ok(())
    }

    /// Opens a file that [`Section::write`] made, without copying it.
    ///
    /// # Errors
    /// Fails when the file is of another form.
    fn open(file: Bytes) -> Result<Self, SectionError> {
        let reader = &mut Reader::open(file)?;
        let whole = Self::read(reader)?;
        let is_whole = reader.sections.as_slice().is_empty();
        is_whole.then_some(whole).ok_or(SectionError)
    }
}

/// Implements [`Section`] for a struct by its fields; they must be sound together.
macro_rules! sections {
    ($of:ty [$($field:ident),*] $is_sound:expr) => {
        impl $crate::sections::Section for $of {
            fn add<'a>(&'a self, sections: &mut Vec<&'a [u8]>) {
                $($crate::sections::Section::add(&self.$field, sections);)*
            }

            fn read(
                reader: &mut $crate::sections::Reader,
            ) -> Result<Self, $crate::sections::SectionError> {
                let of = Self {
                    $($field: $crate::sections::Section::read(reader)?,)*
                };
                let is_sound: fn(&Self) -> bool = $is_sound;
                is_sound(&of).then_some(of).ok_or($crate::sections::SectionError)
            }
        }
    };
}
pub(crate) use sections;

impl Section for Bytes {
    fn add<'a>(&'a self, sections: &mut Vec<&'a [u8]>) {
        sections.push(self);
    }

    fn read(reader: &mut Reader) -> Result<Self, SectionError> {
        let (at, length) = reader.sections.next().ok_or(SectionError)?;
        Ok(reader.file.slice(at..at + length))
    }
}

impl Section for Words {
    fn add<'a>(&'a self, sections: &mut Vec<&'a [u8]>) {
        sections.push(self.to_byte_slice());
    }

    fn read(reader: &mut Reader) -> Result<Self, SectionError> {
        let bytes = Bytes::read(reader)?;
        if bytes.is_empty() {
            return Ok(Self::from(Vec::new()));
        }
        if bytes.len() % 4 != 0 || !(bytes.as_ptr() as usize).is_multiple_of(4) {
            return Err(SectionError);
        }
        let length = bytes.len() / 4;
        Ok(Self::new(Buffer::from(bytes), 0, length))
    }
}

impl Section for u32 {
    fn add<'a>(&'a self, sections: &mut Vec<&'a [u8]>) {
        sections.push(std::slice::from_ref(self).to_byte_slice());
    }

    fn read(reader: &mut Reader) -> Result<Self, SectionError> {
        Words::read(reader)?.first().copied().ok_or(SectionError)
    }
}

impl<T: Section> Section for [T; 3] {
    fn add<'a>(&'a self, sections: &mut Vec<&'a [u8]>) {
        self.iter().for_each(|of| of.add(sections));
    }

    fn read(reader: &mut Reader) -> Result<Self, SectionError> {
        Ok([T::read(reader)?, T::read(reader)?, T::read(reader)?])
    }
}

/// The sections of a file, in order.
pub struct Reader {
    file: Bytes,
    sections: std::vec::IntoIter<(usize, usize)>,
}

impl Reader {
    /// Opens a file without copying or reading its sections.
    fn open(file: Bytes) -> Result<Self, SectionError> {
        let number = |at: usize| -> Option<usize> {
            let bytes = file.get(at..at + 8)?.try_into().ok()?;
            usize::try_from(u64::from_le_bytes(bytes)).ok()
        };
        let table = || -> Option<Vec<(usize, usize)>> {
            let count = (file.get(..8)? == MAGIC).then(|| number(8))??;
            (count < 1 << 16).then_some(())?;
            (0..count)
                .map(|i| {
                    let (at, length) = (number(16 + 16 * i)?, number(24 + 16 * i)?);
                    (at.checked_add(length)? <= file.len()).then_some((at, length))
                })
                .collect()
        };
        let sections = table().ok_or(SectionError)?.into_iter();
        Ok(Self { file, sections })
    }
}

/// Lists of words, one after another.
#[derive(Clone, Debug)]
pub struct Lists<W = Words> {
    words: W,
    /// The start of each list, and the end of the last one.
    starts: W,
}

/// Lists to which more can be added.
pub type ListsBuilder = Lists<Vec<u32>>;

impl<W: Deref<Target = [u32]>> Lists<W> {
    /// The number of lists.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns whether there are no lists.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A list, by its number.
    #[inline]
    pub fn get(&self, list: usize) -> &[u32] {
        &self.words[self.starts[list] as usize..self.starts[list + 1] as usize]
    }

    /// The lists, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        (0..self.len()).map(|list| self.get(list))
    }

    /// The number of words in all lists together.
    pub(crate) fn words(&self) -> usize {
        self.words.len()
    }
}

impl Default for ListsBuilder {
    fn default() -> Self {
        Self {
            words: Vec::new(),
            starts: vec![0],
        }
    }
}

impl ListsBuilder {
    /// Adds a list.
    pub fn push(&mut self, list: impl IntoIterator<Item = u32>) {
        self.words.extend(list);
        self.starts.push(self.words.len() as u32);
    }

    /// The frozen lists.
    pub fn freeze(self) -> Lists {
        Lists {
            words: self.words.into(),
            starts: self.starts.into(),
        }
    }
}

impl Lists {
    /// A copy to which lists can be added.
    pub fn thaw(&self) -> ListsBuilder {
        Lists {
            words: self.words.to_vec(),
            starts: self.starts.to_vec(),
        }
    }
}

sections!(Lists [words, starts] |lists| !lists.starts.is_empty());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_come_back() {
        let words: Vec<u32> = (0..10_000).collect();
        let parts = [Words::from(words), Words::from(Vec::new()), Words::from(vec![7])];
        let mut file = Vec::new();
        parts.write(&mut file).unwrap();
        let again = <[Words; 3]>::open(Bytes::from(file.clone())).unwrap();
        assert_eq!(again, parts);
        assert!(Words::open(Bytes::from(file.clone())).is_err());
        for cut in [0, 7, 20, file.len() - 1] {
            let cut = Bytes::copy_from_slice(&file[..cut]);
            assert!(<[Words; 3]>::open(cut).is_err());
        }
    }
}
