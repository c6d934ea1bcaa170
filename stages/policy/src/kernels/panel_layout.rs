//! The layout of matrices in panels of columns.

/// The number of columns in a panel.
pub const WIDTH: usize = 32;

/// The number of an LSTM's units in a block: their gates fill two panels.
pub const UNITS: usize = 16;

/// The 16 columns of the gates `[4 H]`, in the order i, f, g, o, that a half of a panel holds: the first
/// column, and their number.
pub fn columns(panel: usize, half: usize, hidden: usize) -> (usize, usize) {
    let unit = (panel / 2 * UNITS).min(hidden);
    ((panel % 2 * 2 + half) * hidden + unit, (hidden - unit).min(UNITS))
}
