//! Configurations with the default of each setting beside it.

/// A configuration: a structure whose settings have their defaults beside them, `name: Type = default`. It is
/// read with any of them left out, and with no others.
#[macro_export]
macro_rules! config {
    (
        $(#[$meta:meta])*
        $vis:vis struct $of:ident {
            $($(#[$setting_meta:meta])* $setting_vis:vis $setting:ident: $ty:ty = $default:expr),* $(,)?
        }
    ) => {
        #[derive(Clone, Debug, PartialEq)]
        #[derive(::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        $(#[$meta])*
        $vis struct $of {
            $($(#[$setting_meta])* $setting_vis $setting: $ty,)*
        }

        impl Default for $of {
            fn default() -> Self {
                Self {
                    $($setting: $default,)*
                }
            }
        }
    };
}
