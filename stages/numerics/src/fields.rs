//! Conversions between structs of numbers and arrays.

/// Implements `NAMES` and `to_array` for the listed numeric fields of a struct, in order. With `all`, these
/// are all of its fields, except for those after the semicolon, and `from_array` builds the struct from them.
#[macro_export]
macro_rules! fields {
    (all $of:ident, $value:ty: $($field:ident),+ $(; $($other:ident: $ty:ty),+)?) => {
        $crate::fields!($of, $value: $($field),+);

        #[allow(
            unreachable_pub,
            clippy::wrong_self_convention,
            reason = "some of the structs are public, some small enough to be copied"
        )]
        impl $of {
            /// Builds the struct from its numbers, in the order of the fields.
            pub const fn from_array(
                [$($field),+]: [$value; Self::NAMES.len()] $($(, $other: $ty)+)?
            ) -> Self {
                Self { $($field),+ $($(, $other)+)? }
            }
        }
    };
    ($of:ident, $value:ty: $($field:ident),+) => {
        #[allow(
            unreachable_pub,
            clippy::wrong_self_convention,
            reason = "some of the structs are public, some small enough to be copied"
        )]
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
