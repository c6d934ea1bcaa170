//! Non-temporal stores: results too large for any cache go to main memory in whole cache lines, without
//! reading the lines first and without evicting anything.

use stages_numerics::dispatch::InstructionSet;

/// The number of values in a cache line.
const LINE: usize = 8;

/// The last values of a column, fewer than a cache line, buffered until the line is full: writing a partial
/// line takes as long as writing several whole ones.
#[derive(Clone, Copy, Default)]
pub(super) struct PartialLine {
    values: [f64; LINE],
    count: usize,
}

impl PartialLine {
    /// Stores values that belong at index `from`, as far as they fill cache lines, and buffers the rest.
    #[inline(always)]
    pub(super) fn store(
        &mut self,
        out: &mut [f64],
        from: usize,
        values: &[f64],
        instructions: InstructionSet,
    ) {
        let out = &mut out[from - self.count..from + values.len()];
        // Only the first values of a column may precede the beginning of a line.
        let head = match self.count {
            0 => (out.as_ptr().addr().wrapping_neg() % 64 / 8).min(values.len()),
            _ => 0,
        };
        let (begun, out) = out.split_at_mut(head);
        begun.copy_from_slice(&values[..head]);
        let mut values = &values[head..];
        let (lines, _) = out.as_chunks_mut::<LINE>();
        let mut lines = lines.iter_mut();
        if self.count > 0
            && let Some((rest, later)) = values.split_at_checked(LINE - self.count)
            && let Some(line) = lines.next()
        {
            self.values[self.count..].copy_from_slice(rest);
            store_line(line, &self.values, instructions);
            (values, self.count) = (later, 0);
        }
        let (whole, rest) = values.as_chunks();
        for (line, values) in lines.zip(whole) {
            store_line(line, values, instructions);
        }
        self.values[self.count..][..rest.len()].copy_from_slice(rest);
        self.count += rest.len();
    }

    /// Stores the buffered values of a column that ends at index `end`.
    pub(super) fn finish(self, out: &mut [f64], end: usize) {
        out[end - self.count..end].copy_from_slice(&self.values[..self.count]);
    }
}

/// Makes the stored lines visible to other threads before anything that is stored later.
#[inline(always)]
pub(super) fn fence() {
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "an instruction of its own")]
    // SAFETY: x86-64 always has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Stores a cache line: by one AVX-512 instruction if it is aligned to 64 bytes, by four SSE2 instructions if
/// to 16.
#[inline(always)]
fn store_line(line: &mut [f64; LINE], values: &[f64; LINE], instructions: InstructionSet) {
    #[cfg(target_arch = "x86_64")]
    {
        let address = line.as_ptr().addr();
        if let InstructionSet::Avx512(token) = instructions
            && address.is_multiple_of(64)
        {
            #[expect(unsafe_code, reason = "a non-temporal store is an instruction of its own")]
            // SAFETY: `line` is eight f64 at a multiple of 64 bytes.
            unsafe {
                let avx512f = token.avx512f;
                avx512f._mm512_stream_pd(line.as_mut_ptr(), avx512f._mm512_loadu_pd(values.as_ptr()));
            }
            return;
        }
        if address.is_multiple_of(16) {
            return store_pairs(line, values);
        }
    }
    let _ = instructions;
    *line = *values;
}

/// Stores a line aligned to 16 bytes.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn store_pairs(line: &mut [f64; LINE], values: &[f64; LINE]) {
    use std::arch::x86_64::{_mm_loadu_pd, _mm_stream_pd};
    for (out, values) in line.as_chunks_mut::<2>().0.iter_mut().zip(values.as_chunks::<2>().0) {
        #[expect(unsafe_code, reason = "a non-temporal store is an instruction of its own")]
        // SAFETY: both point to two f64, `out` at a multiple of 16 bytes; x86-64 always has the instructions.
        unsafe {
            _mm_stream_pd(out.as_mut_ptr(), _mm_loadu_pd(values.as_ptr()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_arrives_and_nothing_else_changes() {
        const COUNT: usize = 64;
        let values: Vec<f64> = (0..COUNT).map(|i| i as f64).collect();
        // For every offset of the column within a cache line, and every size of the pieces.
        for offset in 0..2 * LINE {
            for piece in [1, 5, LINE, 13, COUNT] {
                for instructions in InstructionSet::available() {
                    let mut out = vec![-1.0; COUNT + 3 * LINE];
                    let (mut partial, column) = (PartialLine::default(), &mut out[offset..][..COUNT]);
                    for from in (0..COUNT).step_by(piece) {
                        partial.store(column, from, &values[from..COUNT.min(from + piece)], instructions);
                    }
                    partial.finish(column, COUNT);
                    fence();
                    assert_eq!(out[offset..offset + COUNT], values);
                    let around = out[..offset].iter().chain(&out[offset + COUNT..]);
                    assert!(around.copied().all(|value| value == -1.0));
                }
            }
        }
    }
}
