//! Stage kinds of algorithms that are all of one form.

/// Declares a stage kind: environment and initial policy in, policy and metrics out.
macro_rules! kind {
    ($(#[$meta:meta])* $kind:ident($config:ty, $algorithm:ty), $name:literal, version: $version:literal,
        $about:literal, not_in_key: $not_in_key:expr, |$settings:ident| $depends:expr) => {
        $(#[$meta])*
        pub struct $kind;

        impl stages_core::StageKind for $kind {
            type Config = $config;
            const NAME: &'static str = $name;
            const VERSION: u32 = $version;
            const ABOUT: &'static str = $about;
            const NOT_IN_KEY: &'static [&'static str] = $not_in_key;
            const NONDETERMINISTIC: Option<&'static str> = $crate::stage::MANY_DEVICES;
            const WORK_UNITS: Option<&'static str> = Some("total_timesteps");
            const PORTS: stages_core::Ports = stages_core::Ports {
                inputs: &[$crate::stage::ENV, $crate::stage::INIT],
                outputs: $crate::stage::OUTPUTS,
            };

            fn check(
                &self,
                config: &$config,
                _: &stages_core::PlanContext,
            ) -> Result<std::collections::BTreeMap<String, stages_core::Provided>,
                stages_core::ConfigProblem> {
                config.settings()?;
                Ok($crate::stage::provided(&Self::PORTS))
            }

            fn run(
                &self,
                config: &$config,
                context: &stages_core::Context,
            ) -> Result<stages_core::Outputs, stages_core::StageError> {
                let $settings = &config.settings()?;
                let init = $crate::warm_start::policy(&context.given(), $crate::warm_start::PORT)?;
                // A policy to begin with sees observations in the normalisation that it was trained with.
                let normalise_as = init.as_ref().and_then(|init| init.spec().normalisation.clone());
                let training = $crate::stage::Training::<Self> {
                    config,
                    common: $settings.common(),
                    depends_on_total: $depends,
                };
                training.run(context, init.as_ref(), normalise_as, || <$algorithm>::new($settings))
            }

            fn cached_share(
                &self,
                config: &$config,
                given: &stages_core::Given<'_>,
            ) -> Result<Option<stages_core::Share>, stages_core::StageError> {
                let $settings = &config.settings()?;
                let training = $crate::stage::Training::<Self> {
                    config,
                    common: $settings.common(),
                    depends_on_total: $depends,
                };
                training.share(given)
            }
        }
    };
}
pub(crate) use kind;
