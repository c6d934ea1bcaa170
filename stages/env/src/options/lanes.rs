//! Environments side by side: columns of [`LANES`] numbers, and the few operations on them that a compiler does not find by itself.
//!
//! Everything here moves numbers or compares them and rounds nothing, so that every path gives the same bytes.

use super::tables::Entry;

/// How many environments are stepped side by side.
pub(crate) const LANES: usize = 16;
/// Numbers that a vector holds.
const WIDTH: usize = 8;
/// Numbers of a line in an observation, as they are written: two more than there are.
pub(crate) const ROW: usize = 8;

/// A number of each environment.
pub(crate) type Column = [f64; LANES];

/// The entries of a line of each environment, field by field.
#[repr(C, align(64))]
pub(crate) struct Fields(pub [Column; Entry::WIDTH]);

/// What is shown of a line of each environment, by groups of [`WIDTH`] environments.
#[repr(C, align(64))]
pub(crate) struct Shown(pub [[[f32; WIDTH]; 6]; LANES / WIDTH]);

/// Which instructions the caller was compiled for.
pub(crate) trait Path {
    /// Entries by field; asks for those that follow them.
    fn fields(entries: &[&Entry; LANES], out: &mut Fields);

    /// Writes six numbers of each of `lanes` environments at `out[first + stride * lane]`, and two more that are arbitrary.
    fn rows(shown: &Shown, out: &mut [f32], first: usize, stride: usize, lanes: usize);

    /// The numbers of `values` that times `by` are above `least`, as bits.
    fn above(values: &[f64; WIDTH], by: f64, least: f64) -> u8;
}

/// For any processor.
pub(crate) struct Portable;

impl Path for Portable {
    #[inline(always)]
    fn fields(entries: &[&Entry; LANES], out: &mut Fields) {
        for (lane, &entry) in entries.iter().enumerate() {
            for (column, value) in out.0.iter_mut().zip(entry.numbers()) {
                column[lane] = *value;
            }
        }
    }

    #[inline(always)]
    fn rows(shown: &Shown, out: &mut [f32], first: usize, stride: usize, lanes: usize) {
        for lane in 0..lanes {
            let at = first + stride * lane;
            for (i, value) in out[at..at + 6].iter_mut().enumerate() {
                *value = shown.0[lane / WIDTH][i][lane % WIDTH];
            }
        }
    }

    #[inline(always)]
    fn above(values: &[f64; WIDTH], by: f64, least: f64) -> u8 {
        let mut bits = 0;
        for (i, value) in values.iter().enumerate() {
            bits |= u8::from(by * value > least) << i;
        }
        bits
    }
}

/// For processors with AVX-512 F, VL, DQ and BW, to be used by functions compiled for them.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Avx512;

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::{Fields, LANES, ROW, Shown, WIDTH};
    use crate::options::tables::Entry;
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx512f")]
    #[inline]
    pub(super) fn fields(entries: &[&Entry; LANES], out: &mut Fields) {
        for group in 0..LANES / WIDTH {
            let mut rows = [_mm512_setzero_pd(); WIDTH];
            for (row, &entry) in rows.iter_mut().zip(&entries[group * WIDTH..]) {
                let from: *const Entry = entry;
                #[expect(unsafe_code, reason = "vector instructions")]
                // SAFETY: an entry is eight numbers; a hint may name any address.
                unsafe {
                    *row = _mm512_loadu_pd(from.cast());
                    _mm_prefetch::<_MM_HINT_T1>(from.wrapping_add(1).cast());
                }
            }
            let [a, b, c, d, e, f, g, h] = rows;
            let low = [
                _mm512_unpacklo_pd(a, b),
                _mm512_unpacklo_pd(c, d),
                _mm512_unpacklo_pd(e, f),
                _mm512_unpacklo_pd(g, h),
            ];
            let high = [
                _mm512_unpackhi_pd(a, b),
                _mm512_unpackhi_pd(c, d),
                _mm512_unpackhi_pd(e, f),
                _mm512_unpackhi_pd(g, h),
            ];
            for (odd, [a, b, c, d]) in [low, high].into_iter().enumerate() {
                let (e, f) = (_mm512_shuffle_f64x2::<0x88>(a, b), _mm512_shuffle_f64x2::<0x88>(c, d));
                let (g, h) = (_mm512_shuffle_f64x2::<0xdd>(a, b), _mm512_shuffle_f64x2::<0xdd>(c, d));
                let columns = [
                    (0, _mm512_shuffle_f64x2::<0x88>(e, f)),
                    (2, _mm512_shuffle_f64x2::<0x88>(g, h)),
                    (4, _mm512_shuffle_f64x2::<0xdd>(e, f)),
                    (6, _mm512_shuffle_f64x2::<0xdd>(g, h)),
                ];
                for (field, column) in columns {
                    let to = &mut out.0[field + odd][group * WIDTH..(group + 1) * WIDTH];
                    #[expect(unsafe_code, reason = "vector instructions")]
                    // SAFETY: `to` is eight numbers.
                    unsafe {
                        _mm512_storeu_pd(to.as_mut_ptr(), column);
                    }
                }
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    pub(super) fn rows(shown: &Shown, out: &mut [f32], first: usize, stride: usize, lanes: usize) {
        assert!(lanes <= LANES && (lanes == 0 || first + stride * (lanes - 1) + ROW <= out.len()));
        // A pair of rows: elements 0 to 3 of both from two columns each, then elements 4 and 5.
        let start = _mm512_setr_epi32(0, 8, 16, 24, 0, 8, 0, 8, 1, 9, 17, 25, 1, 9, 1, 9);
        let end = _mm512_setr_epi32(0, 1, 2, 3, 16, 24, 16, 24, 8, 9, 10, 11, 17, 25, 17, 25);
        let step = _mm512_setr_epi32(2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2);
        let step_end = _mm512_setr_epi32(0, 0, 0, 0, 2, 2, 2, 2, 0, 0, 0, 0, 2, 2, 2, 2);
        for (group, columns) in shown.0.iter().enumerate() {
            let from: *const f32 = columns.as_ptr().cast();
            #[expect(unsafe_code, reason = "vector instructions")]
            // SAFETY: `columns` is six times eight numbers in a row.
            let (ab, cd, ef) = unsafe {
                (
                    _mm512_loadu_ps(from),
                    _mm512_loadu_ps(from.add(16)),
                    _mm512_loadu_ps(from.add(32)),
                )
            };
            let (mut start, mut end) = (start, end);
            for pair in 0..WIDTH / 2 {
                let lane = group * WIDTH + 2 * pair;
                let abcd = _mm512_permutex2var_ps(ab, start, cd);
                let both = _mm512_permutex2var_ps(abcd, end, ef);
                start = _mm512_add_epi32(start, step);
                end = _mm512_add_epi32(end, step_end);
                #[expect(unsafe_code, reason = "vector instructions")]
                // SAFETY: the assertion above holds for every lane below `lanes`.
                unsafe {
                    if lane < lanes {
                        let to = out.as_mut_ptr().add(first + stride * lane);
                        _mm256_storeu_ps(to, _mm512_castps512_ps256(both));
                    }
                    if lane + 1 < lanes {
                        let to = out.as_mut_ptr().add(first + stride * (lane + 1));
                        _mm256_storeu_ps(to, _mm512_extractf32x8_ps::<1>(both));
                    }
                }
            }
        }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    pub(super) fn above(values: &[f64; WIDTH], by: f64, least: f64) -> u8 {
        #[expect(unsafe_code, reason = "vector instructions")]
        // SAFETY: eight numbers.
        let values = unsafe { _mm512_loadu_pd(values.as_ptr()) };
        let product = _mm512_mul_pd(_mm512_set1_pd(by), values);
        _mm512_cmp_pd_mask::<_CMP_GT_OQ>(product, _mm512_set1_pd(least))
    }
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the instructions were detected at run time")]
impl Path for Avx512 {
    #[inline(always)]
    fn fields(entries: &[&Entry; LANES], out: &mut Fields) {
        // SAFETY: this path is taken only by functions that are compiled for it.
        unsafe { avx512::fields(entries, out) }
    }

    #[inline(always)]
    fn rows(shown: &Shown, out: &mut [f32], first: usize, stride: usize, lanes: usize) {
        // SAFETY: as above.
        unsafe { avx512::rows(shown, out, first, stride, lanes) }
    }

    #[inline(always)]
    fn above(values: &[f64; WIDTH], by: f64, least: f64) -> u8 {
        // SAFETY: as above.
        unsafe { avx512::above(values, by, least) }
    }
}
