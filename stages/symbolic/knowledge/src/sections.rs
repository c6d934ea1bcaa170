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

/// The sections of a file that is to be written.
#[derive(Default)]
pub struct Writer<'a>(Vec<&'a [u8]>);

impl<'a> Writer<'a> {
    /// Adds a section of words.
    pub fn words(&mut self, words: &'a [u32]) {
        self.0.push(words.to_byte_slice());
    }

    /// Adds a section of bytes.
    pub fn bytes(&mut self, bytes: &'a [u8]) {
        self.0.push(bytes);
    }

    /// Writes the file.
    ///
    /// # Errors
    /// Returns the error of writing to `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut head = MAGIC.to_vec();
        head.extend((self.0.len() as u64).to_le_bytes());
        let mut at = 16 + 16 * self.0.len() as u64;
        for section in &self.0 {
            at = at.next_multiple_of(ALIGN);
            head.extend(at.to_le_bytes());
            head.extend((section.len() as u64).to_le_bytes());
            at += section.len() as u64;
        }
        out.write_all(&head)?;
        let mut written = head.len() as u64;
        for section in &self.0 {
            let gap = written.next_multiple_of(ALIGN) - written;
            out.write_all(&[0; ALIGN as usize][..gap as usize])?;
            out.write_all(section)?;
            written += gap + section.len() as u64;
        }
        Ok(())
    }

    /// The file in memory.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // A vector takes all that is written.
        let _ = self.write(&mut bytes);
        bytes
    }
}

/// The sections of a file, in order.
pub struct Reader {
    file: Bytes,
    sections: std::vec::IntoIter<(usize, usize)>,
}

impl Reader {
    /// Opens a file without copying or reading its sections.
    ///
    /// # Errors
    /// When it is not of this format.
    pub fn open(file: Bytes) -> Result<Self, SectionError> {
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

    /// The next section, as bytes.
    ///
    /// # Errors
    /// When there is none.
    pub fn bytes(&mut self) -> Result<Bytes, SectionError> {
        let (at, length) = self.sections.next().ok_or(SectionError)?;
        Ok(self.file.slice(at..at + length))
    }

    /// The next section, as words.
    ///
    /// # Errors
    /// When there is none, or it is not aligned.
    pub fn words(&mut self) -> Result<Words, SectionError> {
        let bytes = self.bytes()?;
        if bytes.is_empty() {
            return Ok(Words::from(Vec::new()));
        }
        if bytes.len() % 4 != 0 || !(bytes.as_ptr() as usize).is_multiple_of(4) {
            return Err(SectionError);
        }
        let length = bytes.len() / 4;
        Ok(Words::new(Buffer::from(bytes), 0, length))
    }

    /// Returns whether all sections have been read.
    pub fn is_at_end(&self) -> bool {
        self.sections.as_slice().is_empty()
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

    /// Adds the two sections of the lists.
    pub(crate) fn write<'a>(&'a self, writer: &mut Writer<'a>) {
        writer.words(&self.words);
        writer.words(&self.starts);
    }

    /// Reads the two sections of the lists.
    pub(crate) fn read(reader: &mut Reader) -> Result<Self, SectionError> {
        let (words, starts) = (reader.words()?, reader.words()?);
        match starts.is_empty() {
            true => Err(SectionError),
            false => Ok(Self { words, starts }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_come_back() {
        let mut writer = Writer::default();
        let words: Vec<u32> = (0..10_000).collect();
        writer.words(&words);
        writer.bytes(b"abc");
        writer.words(&[]);
        let file = writer.to_bytes();
        let mut reader = Reader::open(Bytes::from(file.clone())).unwrap();
        assert_eq!(&reader.words().unwrap()[..], words);
        assert_eq!(&reader.bytes().unwrap()[..], b"abc");
        assert!(reader.words().unwrap().is_empty() && reader.is_at_end());
        assert!(reader.words().is_err());
        for cut in [0, 7, 20, file.len() - 1] {
            let cut = Bytes::copy_from_slice(&file[..cut]);
            assert!(Reader::open(cut).is_err());
        }
    }
}
