//! Counts of events in environments: no cap cuts silently.

/// Counts with names.
pub trait Counts: Copy + Default + Send {
    /// The counts under the names of metrics, in order.
    fn metrics(&self) -> Vec<(&'static str, u64)>;
    /// Each count, in the same order.
    fn each(&mut self) -> Vec<&mut u64>;
}

/// No counts.
impl Counts for () {
    fn metrics(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
    fn each(&mut self) -> Vec<&mut u64> {
        Vec::new()
    }
}

/// Adds counts to those of other environments with the same names; `sums` may still be empty.
pub(crate) fn add(sums: &mut Vec<(&'static str, u64)>, counts: Vec<(&'static str, u64)>) {
    match sums.is_empty() {
        true => *sums = counts,
        false => sums.iter_mut().zip(counts).for_each(|(sum, count)| sum.1 += count.1),
    }
}

/// Declares a struct of counts.
macro_rules! counts {
    ($(#[$about:meta])* $type:ident { $($(#[$doc:meta])* $name:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $type {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl crate::env::counts::Counts for $type {
            fn metrics(&self) -> Vec<(&'static str, u64)> {
                vec![$((concat!("env/", stringify!($name)), self.$name)),*]
            }
            fn each(&mut self) -> Vec<&mut u64> {
                vec![$(&mut self.$name),*]
            }
        }
    };
}

pub(crate) use counts;
