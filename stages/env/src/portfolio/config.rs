//! The settings that the configurations of all markets have.

/// Declares the configuration of a market: settings of its own, and between them those of its splits and
/// episodes. `unit` is what a world is made of, and a step goes from one `step` to the next.
macro_rules! market_config {
    (
        $(#[$meta:meta])*
        pub struct $of:ident {
            $($(#[$before_meta:meta])* pub $before:ident: $before_ty:ty = $before_default:expr,)*
            splits {
                unit: $unit:literal, step: $step:literal,
                $(#[$test_meta:meta])* test,
                $(#[$fraction_meta:meta])* test_fraction
            }
            $($(#[$after_meta:meta])* pub $after:ident: $after_ty:ty = $after_default:expr,)*
        }
    ) => {
        stages_core::settings! {
            $(#[$meta])*
            pub struct $of {
                $($(#[$before_meta])* pub $before: $before_ty = $before_default,)*
                /// The training dates; without them, all that `test`, `purge` and `embargo` leave before the
                /// test dates.
                pub train: Option<datasets::DateRange> = None,
                $(#[$test_meta])*
                pub test: Option<$crate::worlds::HeldOut> = None,
                /// The validation data, by which training selects the policy that it returns: written as
                /// `test` is; none by default.
                #[serde(skip_serializing_if = "Option::is_none")]
                pub validation: Option<$crate::worlds::HeldOut> = None,
                $(#[$fraction_meta])*
                pub test_fraction: f64 = 0.25,
                #[doc = concat!("Training ", $unit, " within this many calendar days before the first test")]
                /// or validation day are dropped, and validation ones as near to the test.
                pub purge: u32 = 10,
                #[doc = concat!("Training ", $unit, " within this many calendar days after the last test")]
                /// or validation day are dropped, and validation ones as near to the test.
                pub embargo: u32 = 10,
                #[doc = concat!("Steps, from ", $step, " to ", $step, ", in a training episode: a number,")]
                /// or `[least, most]` to draw from; never more than the training dates have.
                pub episode_length: $crate::episode::EpisodeLength =
                    $crate::episode::EpisodeLength { least: 252, most: 252 },
                $($(#[$after_meta])* pub $after: $after_ty = $after_default,)*
            }
        }

        impl $of {
            /// The rules by which worlds are split.
            pub(crate) fn split_rules(&self) -> $crate::split::SplitRules<'_> {
                $crate::split::SplitRules {
                    train: self.train,
                    test: self.test.as_ref(),
                    validation: self.validation.as_ref(),
                    test_fraction: self.test_fraction,
                    purge: self.purge,
                    embargo: self.embargo,
                }
            }
        }
    };
}
pub(crate) use market_config;
