//! Enums whose variants have one name each.

/// Defines `ALL` and `name` of an enum from its variants and their names, or `ALL` alone from variants
/// without names.
#[macro_export]
macro_rules! names {
    ($of:ident: $($variant:ident $name:literal),* $(,)?) => {
        $crate::names!($of: $($variant),*);

        impl $of {
            /// The name, as files, metrics and messages have it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
    ($of:ident: $($variant:ident),* $(,)?) => {
        impl $of {
            /// All, in order.
            #[allow(dead_code, reason = "for some enums only the names are used")]
            pub const ALL: [Self; [$(stringify!($variant)),*].len()] = [$(Self::$variant),*];
        }
    };
}
