//! Configurations with the default of each setting beside it.

/// A configuration: a struct that declares each setting beside its default, `name: Type = default`. Settings
/// may be omitted from the input; unknown ones are refused.
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
