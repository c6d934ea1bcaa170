//! Counts of events in environments: no cap cuts silently.

/// Declares a struct of counts, with their names and their sum.
macro_rules! counts {
    ($(#[$about:meta])* $type:ident { $($(#[$doc:meta])* $name:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub struct $type {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl $type {
            /// The number of counts.
            pub const LEN: usize = [$(stringify!($name)),*].len();

            /// The counts with their names, in order.
            pub fn named(&self) -> [(&'static str, u64); Self::LEN] {
                [$((stringify!($name), self.$name)),*]
            }

            /// The counts under the names of metrics, in order.
            pub(crate) fn metrics(&self) -> Vec<(&'static str, u64)> {
                vec![$((concat!("env/", stringify!($name)), self.$name)),*]
            }

            /// The counts of these numbers, in the order of [`Self::named`].
            pub(crate) fn of(numbers: [u64; Self::LEN]) -> Self {
                let [$($name),*] = numbers;
                Self { $($name),* }
            }

            /// Adds those of other environments.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

pub(crate) use counts;
