//! Saved states as bytes: a tag, then arrays of plain numbers in a fixed order, little-endian.

use bytemuck::Pod;

/// Writes a state.
pub struct StateWriter(Vec<u8>);

impl StateWriter {
    /// Starts a state of the kind and size that `tag` names.
    pub fn new(tag: &str) -> Self {
        let mut bytes = (tag.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(tag.as_bytes());
        Self(bytes)
    }

    /// Adds an array.
    pub fn array<T: Pod>(mut self, values: &[T]) -> Self {
        self.0.extend_from_slice(bytemuck::cast_slice(values));
        self
    }

    /// The bytes.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads a state back, into arrays of the same lengths.
pub struct StateReader<'a>(&'a [u8]);

impl<'a> StateReader<'a> {
    /// Checks the tag, and that `size` bytes of arrays follow it.
    pub fn new(bytes: &'a [u8], tag: &str, size: usize) -> Result<Self, String> {
        let head = StateWriter::new(tag).finish();
        match bytes.strip_prefix(head.as_slice()) {
            None => Err(format!("the saved state is not one of `{tag}`")),
            Some(rest) if rest.len() != size => Err(format!(
                "the saved state of `{tag}` has {} bytes instead of {size}",
                rest.len()
            )),
            Some(rest) => Ok(Self(rest)),
        }
    }

    /// Fills an array.
    pub fn array<T: Pod>(&mut self, values: &mut [T]) {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(values);
        let (mine, rest) = self.0.split_at(bytes.len());
        bytes.copy_from_slice(mine);
        self.0 = rest;
    }
}
