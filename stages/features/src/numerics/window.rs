//! The last few values of a series, within a state.

/// How many numbers a window of `n` values takes.
pub const fn size(n: usize) -> usize {
    n + 1
}

/// Adds a value to a window (`[count, values…]`, the newest last), dropping the oldest when it is full.
pub fn push(window: &mut [f64], value: f64) {
    let n = window.len() - 1;
    window.copy_within(2.., 1);
    window[n] = value;
    window[0] = (window[0] + 1.0).min(n as f64);
}

/// Its values, oldest first; `None` until it is full.
pub fn full(window: &[f64]) -> Option<&[f64]> {
    let values = &window[1..];
    (window[0] == values.len() as f64).then_some(values)
}
