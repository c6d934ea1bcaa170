//! Environments side by side: columns of [`LANES`] numbers as vectors, for AVX-512 and for any processor.
//!
//! An operation is the same IEEE operation on every path, and none is fused with another, so that all give the same bytes.

use super::tables::Entry;
use std::ops::{Add, Div, Mul, Sub};

/// How many environments are stepped side by side: the numbers of an AVX-512 vector, and the fields of an [`Entry`].
pub(crate) const LANES: usize = 8;

/// A number of each environment.
pub(crate) type Column = [f64; LANES];

/// Lanes, by bit.
pub(crate) type Lanes = u8;

/// The lanes whose bits are set, first to last.
pub(crate) fn each(mut lanes: Lanes) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = (lanes != 0).then(|| lanes.trailing_zeros() as usize);
        lanes &= lanes.wrapping_sub(1);
        lane
    })
}

/// How many numbers are shown of a line.
pub(crate) const SHOWN: usize = 6;

/// A number of each environment, in registers.
pub(crate) trait Vector:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// The same number for all.
    fn all(value: f64) -> Self;
    /// From a column.
    fn load(column: &Column) -> Self;
    /// From whole numbers.
    fn whole(column: &[i32; LANES]) -> Self;
    /// To a column.
    fn store(self, to: &mut Column);
    /// Rounded to single precision.
    fn single(self) -> [f32; LANES];
    /// Towards zero; 0 for NaN. Numbers are neither negative nor above 2^32 - 1.
    fn unsigned(self) -> [u32; LANES];
    /// Where this is below.
    fn below(self, other: Self) -> Lanes;
    /// Where this is the same number.
    fn equals(self, other: Self) -> Lanes;
    /// Where whole numbers differ.
    fn differ(a: &[u32; LANES], b: &[u32; LANES]) -> Lanes;
    /// Where a whole number is below the other.
    fn less(a: &[u32; LANES], b: &[u32; LANES]) -> Lanes;
    /// This where it is above, or else the other, as where one of them is NaN.
    fn above_or(self, other: Self) -> Self;
    /// This where it is below, or else the other, as where one of them is NaN.
    fn below_or(self, other: Self) -> Self;
    /// Its absolute value.
    fn abs(self) -> Self;
    /// This in `lanes`, the other elsewhere.
    fn choose(self, lanes: Lanes, other: Self) -> Self;
    /// The entries of a line of each environment, field by field.
    fn fields(entries: &[&Entry; LANES]) -> [Self; Entry::WIDTH];
    /// Writes the numbers of each of `lanes` environments at `out[first + stride * lane]`, cut off at `clip`, with two more that are
    /// arbitrary.
    fn rows(shown: [Self; SHOWN], clip: f32, out: &mut [f32], first: usize, stride: usize, lanes: usize);

    /// The sum in `lanes`, this elsewhere.
    fn plus(self, other: Self, lanes: Lanes) -> Self;
    /// The numbers at these places, each of which must be one of the table's.
    fn look_up(table: &[f64], places: &[u32; LANES]) -> Self;

    /// 0 outside of `lanes`.
    #[inline(always)]
    fn only(self, lanes: Lanes) -> Self {
        self.choose(lanes, Self::all(0.0))
    }

    /// As a column.
    #[inline(always)]
    fn column(self) -> Column {
        let mut column = [0.0; LANES];
        self.store(&mut column);
        column
    }
}

/// For any processor.
#[derive(Clone, Copy)]
pub(crate) struct Portable([f64; LANES]);

impl Portable {
    #[inline(always)]
    fn with(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        let mut out = [0.0; LANES];
        for k in 0..LANES {
            out[k] = f(self.0[k], other.0[k]);
        }
        Self(out)
    }

    #[inline(always)]
    fn lanes(self, other: Self, f: impl Fn(f64, f64) -> bool) -> Lanes {
        let mut lanes = 0;
        for k in 0..LANES {
            lanes |= u8::from(f(self.0[k], other.0[k])) << k;
        }
        lanes
    }
}

macro_rules! operators {
    ($for:ty, $($operator:ident $name:ident: $with:expr),*) => {
        $(impl $operator for $for {
            type Output = Self;
            #[inline(always)]
            fn $name(self, other: Self) -> Self {
                $with(self, other)
            }
        })*
    };
}

operators!(
    Portable,
    Add add: |a: Self, b| a.with(b, |a, b| a + b),
    Sub sub: |a: Self, b| a.with(b, |a, b| a - b),
    Mul mul: |a: Self, b| a.with(b, |a, b| a * b),
    Div div: |a: Self, b| a.with(b, |a, b| a / b)
);

impl Vector for Portable {
    #[inline(always)]
    fn all(value: f64) -> Self {
        Self([value; LANES])
    }

    #[inline(always)]
    fn load(column: &Column) -> Self {
        Self(*column)
    }

    #[inline(always)]
    fn whole(column: &[i32; LANES]) -> Self {
        Self(column.map(f64::from))
    }

    #[inline(always)]
    fn store(self, to: &mut Column) {
        *to = self.0;
    }

    #[inline(always)]
    fn single(self) -> [f32; LANES] {
        self.0.map(|value| value as f32)
    }

    #[inline(always)]
    fn unsigned(self) -> [u32; LANES] {
        self.0.map(|value| value as u32)
    }

    #[inline(always)]
    fn below(self, other: Self) -> Lanes {
        self.lanes(other, |a, b| a < b)
    }

    #[inline(always)]
    fn equals(self, other: Self) -> Lanes {
        self.lanes(other, |a, b| a == b)
    }

    #[inline(always)]
    fn differ(a: &[u32; LANES], b: &[u32; LANES]) -> Lanes {
        (0..LANES).fold(0, |lanes, k| lanes | u8::from(a[k] != b[k]) << k)
    }

    #[inline(always)]
    fn less(a: &[u32; LANES], b: &[u32; LANES]) -> Lanes {
        (0..LANES).fold(0, |lanes, k| lanes | u8::from(a[k] < b[k]) << k)
    }

    #[inline(always)]
    fn above_or(self, other: Self) -> Self {
        self.with(other, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn below_or(self, other: Self) -> Self {
        self.with(other, |a, b| if a < b { a } else { b })
    }

    #[inline(always)]
    fn abs(self) -> Self {
        Self(self.0.map(f64::abs))
    }

    #[inline(always)]
    fn choose(self, lanes: Lanes, other: Self) -> Self {
        let mut out = other.0;
        for k in 0..LANES {
            out[k] = if lanes >> k & 1 == 1 { self.0[k] } else { other.0[k] };
        }
        Self(out)
    }

    #[inline(always)]
    fn plus(self, other: Self, lanes: Lanes) -> Self {
        (self + other).choose(lanes, self)
    }

    #[inline(always)]
    fn look_up(table: &[f64], places: &[u32; LANES]) -> Self {
        Self(places.map(|place| table[place as usize]))
    }

    #[inline(always)]
    fn fields(entries: &[&Entry; LANES]) -> [Self; Entry::WIDTH] {
        let mut out = [[0.0; LANES]; Entry::WIDTH];
        for (k, &entry) in entries.iter().enumerate() {
            for (column, value) in out.iter_mut().zip(entry.numbers()) {
                column[k] = *value;
            }
        }
        out.map(Self)
    }

    #[inline(always)]
    fn rows(shown: [Self; SHOWN], clip: f32, out: &mut [f32], first: usize, stride: usize, lanes: usize) {
        for lane in 0..lanes {
            let at = first + stride * lane;
            for (to, column) in out[at..at + SHOWN].iter_mut().zip(&shown) {
                *to = (column.0[lane] as f32).clamp(-clip, clip);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "vector instructions")]
mod avx512 {
    use super::{Column, Entry, LANES, Lanes, SHOWN, Vector};
    use std::arch::x86_64::*;
    use std::ops::{Add, Div, Mul, Sub};

    /// For processors with AVX-512 F and DQ. It is used by functions alone that are compiled for them and called where they were
    /// detected: this is what all of the calls below rest on.
    #[derive(Clone, Copy)]
    pub(crate) struct Avx512(__m512d);

    // SAFETY (of all that follows): see `Avx512`; and a column is eight numbers, as many as a vector.
    operators!(
        Avx512,
        Add add: |a: Self, b: Self| Self(unsafe { _mm512_add_pd(a.0, b.0) }),
        Sub sub: |a: Self, b: Self| Self(unsafe { _mm512_sub_pd(a.0, b.0) }),
        Mul mul: |a: Self, b: Self| Self(unsafe { _mm512_mul_pd(a.0, b.0) }),
        Div div: |a: Self, b: Self| Self(unsafe { _mm512_div_pd(a.0, b.0) })
    );

    impl Vector for Avx512 {
        #[inline(always)]
        fn all(value: f64) -> Self {
            Self(unsafe { _mm512_set1_pd(value) })
        }

        #[inline(always)]
        fn load(column: &Column) -> Self {
            Self(unsafe { _mm512_loadu_pd(column.as_ptr()) })
        }

        #[inline(always)]
        fn whole(column: &[i32; LANES]) -> Self {
            Self(unsafe { _mm512_cvtepi32_pd(_mm256_loadu_si256(column.as_ptr().cast())) })
        }

        #[inline(always)]
        fn store(self, to: &mut Column) {
            unsafe { _mm512_storeu_pd(to.as_mut_ptr(), self.0) }
        }

        #[inline(always)]
        fn single(self) -> [f32; LANES] {
            let mut out = [0.0; LANES];
            unsafe { _mm256_storeu_ps(out.as_mut_ptr(), _mm512_cvtpd_ps(self.0)) }
            out
        }

        #[inline(always)]
        fn unsigned(self) -> [u32; LANES] {
            let mut out = [0; LANES];
            unsafe {
                let numbers = _mm512_cmp_pd_mask::<_CMP_ORD_Q>(self.0, self.0);
                let whole = _mm512_maskz_cvttpd_epu32(numbers, self.0);
                _mm256_storeu_si256(out.as_mut_ptr().cast(), whole);
            }
            out
        }

        #[inline(always)]
        fn below(self, other: Self) -> Lanes {
            unsafe { _mm512_cmp_pd_mask::<_CMP_LT_OQ>(self.0, other.0) }
        }

        #[inline(always)]
        fn equals(self, other: Self) -> Lanes {
            unsafe { _mm512_cmp_pd_mask::<_CMP_EQ_OQ>(self.0, other.0) }
        }

        #[inline(always)]
        fn differ(a: &[u32; LANES], b: &[u32; LANES]) -> Lanes {
            unsafe {
                let (a, b) = (a.as_ptr().cast(), b.as_ptr().cast());
                _mm256_cmpneq_epu32_mask(_mm256_loadu_si256(a), _mm256_loadu_si256(b))
            }
        }

        #[inline(always)]
        fn less(a: &[u32; LANES], b: &[u32; LANES]) -> Lanes {
            unsafe {
                let (a, b) = (a.as_ptr().cast(), b.as_ptr().cast());
                _mm256_cmplt_epu32_mask(_mm256_loadu_si256(a), _mm256_loadu_si256(b))
            }
        }

        #[inline(always)]
        fn above_or(self, other: Self) -> Self {
            Self(unsafe { _mm512_max_pd(self.0, other.0) })
        }

        #[inline(always)]
        fn below_or(self, other: Self) -> Self {
            Self(unsafe { _mm512_min_pd(self.0, other.0) })
        }

        #[inline(always)]
        fn abs(self) -> Self {
            Self(unsafe { _mm512_abs_pd(self.0) })
        }

        #[inline(always)]
        fn choose(self, lanes: Lanes, other: Self) -> Self {
            Self(unsafe { _mm512_mask_blend_pd(lanes, other.0, self.0) })
        }

        #[inline(always)]
        fn plus(self, other: Self, lanes: Lanes) -> Self {
            Self(unsafe { _mm512_mask_add_pd(self.0, lanes, self.0, other.0) })
        }

        #[inline(always)]
        fn look_up(table: &[f64], places: &[u32; LANES]) -> Self {
            Self(unsafe { look_up(table, places) })
        }

        #[inline(always)]
        fn fields(entries: &[&Entry; LANES]) -> [Self; Entry::WIDTH] {
            unsafe { fields(entries) }.map(Self)
        }

        #[inline(always)]
        fn rows(shown: [Self; SHOWN], clip: f32, out: &mut [f32], first: usize, stride: usize, lanes: usize) {
            unsafe { rows(shown, clip, out, first, stride, lanes) }
        }
    }

    #[target_feature(enable = "avx512f,avx512vl")]
    #[inline]
    fn look_up(table: &[f64], places: &[u32; LANES]) -> __m512d {
        // SAFETY: places are eight whole numbers, and those beyond the table are refused before it is read.
        unsafe {
            let places = _mm256_loadu_si256(places.as_ptr().cast());
            let len = _mm256_set1_epi32(table.len().min(i32::MAX as usize) as i32);
            assert!(_mm256_cmplt_epu32_mask(places, len) == 0xff, "a place beyond the table");
            _mm512_i32gather_pd::<8>(places, table.as_ptr())
        }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn fields(entries: &[&Entry; LANES]) -> [__m512d; LANES] {
        let [a, b, c, d, e, f, g, h] = entries.map(|entry| {
            let from: *const Entry = entry;
            // SAFETY: an entry is eight numbers.
            unsafe { _mm512_loadu_pd(from.cast()) }
        });
        // Numbers of even and of odd fields, two entries each, by quarters.
        let even = [
            _mm512_unpacklo_pd(a, b),
            _mm512_unpacklo_pd(c, d),
            _mm512_unpacklo_pd(e, f),
            _mm512_unpacklo_pd(g, h),
        ];
        let odd = [
            _mm512_unpackhi_pd(a, b),
            _mm512_unpackhi_pd(c, d),
            _mm512_unpackhi_pd(e, f),
            _mm512_unpackhi_pd(g, h),
        ];
        let [[f0, f2, f4, f6], [f1, f3, f5, f7]] = [even, odd].map(|[a, b, c, d]| {
            let (e, f) = (_mm512_shuffle_f64x2::<0x88>(a, b), _mm512_shuffle_f64x2::<0x88>(c, d));
            let (g, h) = (_mm512_shuffle_f64x2::<0xdd>(a, b), _mm512_shuffle_f64x2::<0xdd>(c, d));
            [
                _mm512_shuffle_f64x2::<0x88>(e, f),
                _mm512_shuffle_f64x2::<0x88>(g, h),
                _mm512_shuffle_f64x2::<0xdd>(e, f),
                _mm512_shuffle_f64x2::<0xdd>(g, h),
            ]
        });
        [f0, f1, f2, f3, f4, f5, f6, f7]
    }

    #[target_feature(enable = "avx512f,avx512dq")]
    #[inline]
    fn rows(shown: [Avx512; SHOWN], clip: f32, out: &mut [f32], first: usize, stride: usize, lanes: usize) {
        assert!(lanes <= LANES && (lanes == 0 || first + stride * (lanes - 1) + LANES <= out.len()));
        let [a, b, c, d, e, f] = shown.map(|column| _mm512_cvtpd_ps(column.0));
        let (high, low) = (_mm512_set1_ps(clip), _mm512_set1_ps(-clip));
        let pair = |a, b| {
            let both = _mm512_insertf32x8::<1>(_mm512_castps256_ps512(a), b);
            // NaN stays NaN.
            _mm512_min_ps(high, _mm512_max_ps(low, both))
        };
        let (ab, cd, ef) = (pair(a, b), pair(c, d), pair(e, f));
        // Two rows at a time: elements 0 to 3 of both, then 4 and 5 beside them.
        let mut start = _mm512_setr_epi32(0, 8, 16, 24, 0, 0, 0, 0, 1, 9, 17, 25, 0, 0, 0, 0);
        let mut end = _mm512_setr_epi32(0, 1, 2, 3, 16, 24, 0, 0, 8, 9, 10, 11, 17, 25, 0, 0);
        for lane in (0..LANES).step_by(2) {
            let both = _mm512_permutex2var_ps(_mm512_permutex2var_ps(ab, start, cd), end, ef);
            start = _mm512_add_epi32(start, _mm512_setr_epi32(2, 2, 2, 2, 0, 0, 0, 0, 2, 2, 2, 2, 0, 0, 0, 0));
            end = _mm512_add_epi32(end, _mm512_setr_epi32(0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 0, 0, 2, 2, 0, 0));
            // SAFETY: the assertion above holds for every lane below `lanes`.
            unsafe {
                let to = out.as_mut_ptr().wrapping_add(first + stride * lane);
                if lane < lanes {
                    _mm256_storeu_ps(to, _mm512_castps512_ps256(both));
                }
                if lane + 1 < lanes {
                    _mm256_storeu_ps(to.wrapping_add(stride), _mm512_extractf32x8_ps::<1>(both));
                }
            }
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::options::env::Stepping;

    const ODD: [f64; 14] = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        1.0 / 3.0,
        1e-310,
        -1e300,
        1e300,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        4e9,
        123_456.789,
        0.5,
    ];

    /// All that a path does with two columns and a mask, as bits. The sign and the payload of a NaN that is made are not IEEE's.
    fn all<V: Vector>(a: &Column, b: &Column, lanes: Lanes) -> Vec<u64> {
        let (x, y) = (V::load(a), V::load(b));
        let numbers = [
            x + y,
            x - y,
            x * y,
            x / y,
            x.above_or(y),
            x.below_or(y),
            x.abs(),
            x.choose(lanes, y),
            x.plus(y, lanes),
            x.only(lanes),
            V::all(a[0]),
            V::whole(&[0, 1, -1, 7, i32::MIN, i32::MAX, 12, 13]),
            V::look_up(a, &[7, 0, 3, 3, 1, 2, 6, 5]),
        ];
        let bits = |value: f64| if value.is_nan() { 1 } else { value.to_bits() };
        let mut out: Vec<u64> = numbers.iter().flat_map(|v| v.column()).map(bits).collect();
        out.extend(x.single().map(|value| bits(f64::from(value))));
        out.extend(x.abs().unsigned().map(u64::from));
        out.extend([x.below(y), x.equals(y)].map(u64::from));
        let (i, j) = (a.map(|value| value as u32), b.map(|value| value as u32));
        out.extend([V::differ(&i, &j), V::less(&i, &j)].map(u64::from));
        let entries: [Entry; LANES] = std::array::from_fn(|k| Entry {
            bid: a[k],
            ask: b[k],
            mark: 10.0 * k as f64,
            delta: 10.0 * k as f64 + 1.0,
            gamma: 10.0 * k as f64 + 2.0,
            vega: a[LANES - 1 - k],
            theta: b[LANES - 1 - k],
            source: k as f64,
        });
        let fields = V::fields(&entries.each_ref());
        out.extend(fields.iter().flat_map(|v| v.column()).map(bits));
        for lanes in 0..=LANES {
            let mut rows = vec![7.0_f32; 4 + 11 * LANES];
            let [a, b, c, d, e, f, ..] = fields;
            V::rows([a, b, c, d, e, f], 2.5, &mut rows, 3, 11, lanes);
            for (i, value) in rows.into_iter().enumerate() {
                // Two numbers after each row are arbitrary.
                if i < 3 || (i - 3) % 11 != 6 && (i - 3) % 11 != 7 {
                    out.push(bits(f64::from(value)));
                }
            }
        }
        out
    }

    #[test]
    fn both_paths_do_the_same() {
        if !Stepping::all().contains(&Stepping::Avx512) {
            return;
        }
        for i in 0..ODD.len() * ODD.len() {
            let a = std::array::from_fn(|k| ODD[(i + k) % ODD.len()]);
            let b = std::array::from_fn(|k| ODD[(i / ODD.len() + 3 * k) % ODD.len()]);
            let lanes = (i * 37) as u8;
            assert_eq!(
                all::<Portable>(&a, &b, lanes),
                all::<Avx512>(&a, &b, lanes),
                "{a:?} {b:?}"
            );
        }
    }

    #[test]
    fn lanes_by_bit() {
        assert_eq!(each(0b1010_0001).collect::<Vec<_>>(), [0, 5, 7]);
        assert_eq!(each(0).count(), 0);
    }
}
