//! Structures of numbers.

/// The names of the numbers of a structure, and the numbers in the same order; with `all` those are all that
/// it has, or all but those behind the semicolon, and it is made of them.
#[macro_export]
macro_rules! fields {
    (all $of:ident, $value:ty: $($field:ident),+ $(; $($other:ident: $ty:ty),+)?) => {
        $crate::fields!($of, $value: $($field),+);

        impl $of {
            /// From the numbers in the order of the fields.
            pub const fn from_array(
                [$($field),+]: [$value; Self::NAMES.len()] $($(, $other: $ty)+)?
            ) -> Self {
                Self { $($field),+ $($(, $other)+)? }
            }
        }
    };
    ($of:ident, $value:ty: $($field:ident),+) => {
        impl $of {
            /// The names of the numbers, in order.
            pub const NAMES: [&'static str; [$(stringify!($field)),+].len()] = [$(stringify!($field)),+];

            /// The numbers in the order of the fields.
            pub const fn to_array(&self) -> [$value; Self::NAMES.len()] {
                [$(self.$field),+]
            }
        }
    };
}
