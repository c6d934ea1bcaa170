//! Buffers that begin on a cache line: a vector that straddles two lines costs two accesses.

use std::ops::{Deref, DerefMut};

/// Bytes of a cache line.
const LINE: usize = 64;

/// A buffer of elements of 4 bytes, aligned to a cache line.
#[derive(Debug, Default)]
pub struct Aligned<T = f32> {
    data: Vec<T>,
    start: usize,
    len: usize,
}

impl<T: Copy + Default> Aligned<T> {
    /// Sets the length to `len`. The contents are then initialised but arbitrary. Nothing is moved or
    /// allocated if the buffer was as long before.
    pub fn resize(&mut self, len: usize) {
        let room = LINE / size_of::<T>();
        if self.data.len() < len + room {
            // Not `resize`, which would copy.
            self.data = vec![T::default(); len + room];
            // In elements; where it cannot be told, only speed is lost.
            self.start = self.data.as_ptr().align_offset(LINE).min(room);
        }
        self.len = len;
    }

    /// Sets the length to `len` and fills the buffer with zeros.
    pub fn zeros(&mut self, len: usize) {
        self.resize(len);
        self.fill(T::default());
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.data[self.start..self.start + self.len]
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.data[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begins_on_a_line_and_keeps_its_room() {
        let mut buffer = Aligned::<f32>::default();
        for len in [1, 1000, 3, 100_000, 0] {
            buffer.resize(len);
            buffer.fill(1.0);
            assert_eq!((buffer.len(), buffer.as_ptr() as usize % 64), (len, 0));
        }
        buffer.zeros(10);
        assert_eq!(*buffer, [0.0; 10]);
    }
}
