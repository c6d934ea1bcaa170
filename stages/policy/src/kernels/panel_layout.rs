//! The layout of matrices in panels of columns.

/// Columns in a panel.
pub const WIDTH: usize = 32;

/// Units of an LSTM in a block: its gates fill two panels.
pub const UNITS: usize = 16;

/// The 16 columns of the gates `[4 H]` in the order i, f, g, o that a panel's half holds: the first, and
/// their number.
pub fn columns(panel: usize, half: usize, hidden: usize) -> (usize, usize) {
    let unit = (panel / 2 * UNITS).min(hidden);
    ((panel % 2 * 2 + half) * hidden + unit, (hidden - unit).min(UNITS))
}
