//! The operands of products in f32: views of rows and panels, with checked bounds.

use super::panel_layout::{UNITS, WIDTH};

/// The length of a block along k: the block's part of a panel stays in the L1 cache.
pub(super) const DEPTH: usize = 256;

/// A left operand `[rows, k]`: row r begins at r x `stride`; each `group` elements of a row are contiguous,
/// and consecutive groups are `jump` apart.
#[derive(Clone, Copy, Debug)]
pub struct Left<'a> {
    pub(super) data: &'a [f32],
    pub(super) rows: usize,
    pub(super) stride: usize,
    pub(super) k: usize,
    pub(super) group: usize,
    pub(super) jump: usize,
}

impl<'a> Left<'a> {
    /// A row-major operand whose rows are `stride` apart.
    pub fn rows(data: &'a [f32], rows: usize, k: usize, stride: usize) -> Self {
        assert!(
            k > 0 && k <= stride && (rows == 0 || data.len() >= (rows - 1) * stride + k),
            "a left operand's rows"
        );
        Self {
            data,
            rows,
            stride,
            k,
            group: k,
            jump: k,
        }
    }

    /// An operand of rows within panels, each of which holds [`WIDTH`] columns of `height` rows.
    pub fn panels(data: &'a [f32], first: usize, rows: usize, k: usize, height: usize) -> Self {
        assert!(
            k > 0 && k.is_multiple_of(WIDTH) && first + rows <= height && data.len() >= k * height,
            "a left operand's panels"
        );
        Self {
            data: &data[first * WIDTH..],
            rows,
            stride: WIDTH,
            k,
            group: WIDTH,
            jump: height * WIDTH,
        }
    }

    /// The offset of element (row, k).
    pub(super) fn at(&self, row: usize, k: usize) -> usize {
        row * self.stride + k / self.group * self.jump + k % self.group
    }
}

#[cfg(target_arch = "x86_64")]
impl Left<'_> {
    pub(super) fn shape(&self) -> (usize, usize) {
        (self.rows, self.k)
    }

    pub(super) fn layout(&self) -> (&[f32], usize, usize, usize) {
        (self.data, self.stride, self.group, self.jump)
    }
}

/// The value from which a product's sums start.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    /// Sums start from zero.
    Zero,
    /// Every row starts from this row of n numbers.
    Row(&'a [f32]),
    /// Sums start from the present values of the result.
    Current,
}

/// A result `[rows, n]`: row r of panel p begins at p x `panel` + r x `stride`.
#[derive(Debug)]
pub struct Out<'a> {
    pub(super) data: &'a mut [f32],
    pub(super) stride: usize,
    pub(super) panel: usize,
    pub(super) last_first: bool,
}

impl<'a> Out<'a> {
    /// A row-major result whose rows are `stride` apart.
    pub fn rows(data: &'a mut [f32], stride: usize) -> Self {
        Self {
            data,
            stride,
            panel: WIDTH,
            last_first: false,
        }
    }

    /// Rows from `first` on of panels of `height` rows.
    pub fn panels(data: &'a mut [f32], first: usize, height: usize) -> Self {
        Self {
            data: &mut data[first * WIDTH..],
            stride: WIDTH,
            panel: height * WIDTH,
            last_first: false,
        }
    }

    /// Computes the last panel first, if `yes`. Products that read the same weights in turns forwards and
    /// backwards find in the L2 cache what the one before read last, when it cannot hold all of them.
    pub fn last_first(mut self, yes: bool) -> Self {
        self.last_first = yes;
        self
    }

    pub(super) fn check(&self, rows: usize, n: usize) {
        let last = n.div_ceil(WIDTH) - 1;
        assert!(
            rows == 0 || self.data.len() >= last * self.panel + (rows - 1) * self.stride + (n - last * WIDTH),
            "room for a product"
        );
    }
}

/// The gradient of a product's result `[rows, n]`, with its columns in panels of [`WIDTH`]: row r of panel p
/// begins at p x `panel` + r x `stride`.
#[derive(Clone, Copy, Debug)]
pub struct Right<'a> {
    pub(super) data: &'a [f32],
    pub(super) stride: usize,
    pub(super) panel: usize,
    pub(super) columns: Columns,
}

/// The layout of dw.
#[derive(Clone, Copy, Debug)]
pub(super) enum Columns {
    /// Row-major, with this many columns.
    Plain(usize),
    /// Panels of [`WIDTH`] columns, by their number.
    Panels(usize),
}

impl Columns {
    pub(super) fn panels(self) -> usize {
        match self {
            Self::Plain(n) => n.div_ceil(WIDTH),
            Self::Panels(panels) => panels,
        }
    }

    /// The distance from one row of dw to the next.
    pub(super) fn stride(self) -> usize {
        match self {
            Self::Plain(n) => n,
            Self::Panels(_) => WIDTH,
        }
    }

    /// The number of elements of dw with m rows.
    pub(super) fn len(self, m: usize) -> usize {
        match self {
            Self::Plain(n) => m * n,
            Self::Panels(panels) => m * panels * WIDTH,
        }
    }

    /// The offset of row 0 of a panel in a dw of m rows, and the width of the panel.
    pub(super) fn panel(self, panel: usize, m: usize) -> (usize, usize) {
        match self {
            Self::Plain(n) => (panel * WIDTH, (n - panel * WIDTH).min(WIDTH)),
            Self::Panels(_) => (panel * m * WIDTH, WIDTH),
        }
    }
}

impl<'a> Right<'a> {
    /// A row-major, contiguous gradient.
    pub fn rows(data: &'a [f32], n: usize) -> Self {
        Self {
            data,
            stride: n,
            panel: WIDTH,
            columns: Columns::Plain(n),
        }
    }

    /// The gradient of an LSTM's gates, in panels of `height` rows (see [`UNITS`]); dw is `[panels, m, 32]`.
    pub fn gates(data: &'a [f32], hidden: usize, height: usize) -> Self {
        Self {
            data,
            stride: WIDTH,
            panel: height * WIDTH,
            columns: Columns::Panels(2 * hidden.div_ceil(UNITS)),
        }
    }
}

/// The inputs x `[rows, m]` of a product, with rows `stride` apart.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The elements; row r begins at r x `stride`.
    pub data: &'a [f32],
    /// The distance from one row to the next.
    pub stride: usize,
    /// The number of rows.
    pub rows: usize,
    /// The number of elements of each row.
    pub width: usize,
}
