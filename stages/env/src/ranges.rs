//! A batch split over threads by contiguous ranges, without allocation.

use crate::batch::StepBuffers;
use crate::spec::EnvSpec;

/// Arrays over a range of environments, which can be cut in two.
pub(crate) trait View: Sized + Send {
    /// The first `n` environments, and the rest.
    fn split(self, n: usize) -> (Self, Self);
}

/// Cuts a struct of views in two, field by field.
macro_rules! split_fields {
    ($this:ident, $n:ident, $($field:ident),+) => {{
        $(let $field = $this.$field.split($n);)+
        (Self { $($field: $field.0),+ }, Self { $($field: $field.1),+ })
    }};
}
pub(crate) use split_fields;

impl<A: View, B: View> View for (A, B) {
    fn split(self, n: usize) -> (Self, Self) {
        let (a, b) = (self.0.split(n), self.1.split(n));
        ((a.0, b.0), (a.1, b.1))
    }
}

/// An array with `width` numbers for each environment.
pub(crate) struct Rows<'a, T> {
    /// `[n, width]`, row-major.
    pub values: &'a mut [T],
    /// Numbers for each environment.
    pub width: usize,
}

impl<T: Send> View for Rows<'_, T> {
    fn split(self, n: usize) -> (Self, Self) {
        let (a, b) = self.values.split_at_mut(n * self.width);
        (Self::new(a, self.width), Self::new(b, self.width))
    }
}

impl<'a, T> Rows<'a, T> {
    /// `values`, of which each environment has `width`.
    pub(crate) fn new(values: &'a mut [T], width: usize) -> Self {
        Self { values, width }
    }

    /// The numbers of the range's environment `i`.
    #[inline(always)]
    pub(crate) fn row(&mut self, i: usize) -> &mut [T] {
        // Values without a size are all alike.
        let i = if size_of::<T>() == 0 { 0 } else { i };
        &mut self.values[i * self.width..(i + 1) * self.width]
    }
}

impl<T: Sync> View for &[T] {
    fn split(self, n: usize) -> (Self, Self) {
        self.split_at(n)
    }
}

impl<T: Send> View for &mut [T] {
    fn split(self, n: usize) -> (Self, Self) {
        self.split_at_mut(n)
    }
}

/// The rows of [`StepBuffers`] for a range of environments.
pub(crate) struct StepRows<'a> {
    pub obs: Rows<'a, f32>,
    pub reward: &'a mut [f32],
    pub terminated: &'a mut [bool],
    pub truncated: &'a mut [bool],
    pub final_obs: Rows<'a, f32>,
    pub action_mask: Rows<'a, bool>,
}

impl<'a> StepRows<'a> {
    /// All of `out`.
    pub(crate) fn new(out: StepBuffers<'a>, spec: &EnvSpec) -> Self {
        let width = spec.obs_dim();
        Self {
            obs: Rows::new(out.obs, width),
            reward: out.reward,
            terminated: out.terminated,
            truncated: out.truncated,
            final_obs: Rows::new(out.final_obs, width),
            action_mask: Rows::new(out.action_mask, spec.action_space.mask_len()),
        }
    }
}

impl View for StepRows<'_> {
    fn split(self, n: usize) -> (Self, Self) {
        split_fields!(self, n, obs, reward, terminated, truncated, final_obs, action_mask)
    }
}

/// Calls `f(first, len, view)` over contiguous ranges of at least `grain` environments, one for each thread
/// of rayon's current pool where there are enough of them.
pub(crate) fn for_ranges<V: View>(view: V, len: usize, grain: usize, f: &(impl Fn(usize, usize, V) + Sync)) {
    if len <= grain {
        return f(0, len, view);
    }
    let threads = rayon::current_num_threads().max(1);
    recurse(view, 0, len, len.div_ceil(threads).max(grain), f);
}

fn recurse<V: View>(view: V, first: usize, len: usize, most: usize, f: &(impl Fn(usize, usize, V) + Sync)) {
    if len <= most {
        f(first, len, view);
        return;
    }
    let parts = len.div_ceil(most);
    let head = (parts / 2) * most;
    let (a, b) = view.split(head);
    rayon::join(
        || recurse(a, first, head, most, f),
        || recurse(b, first + head, len - head, most, f),
    );
}
