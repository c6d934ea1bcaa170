//! The stages, which run features over the partitions of a data set; each partition continues from the state
//! at the end of the previous one.

mod bars;
mod cross_section;
mod engine;
mod options_surface;
mod panel;
mod price;
mod splits;
mod technical;
mod turbulence;
mod values;
mod volatility;

pub use cross_section::{CrossSection, CrossSectionConfig};
pub use engine::DaysAYear;
pub use options_surface::{OptionsSurface, OptionsSurfaceConfig};
pub use price::Price;
pub use technical::{Technical, TechnicalConfig};
pub use turbulence::{Turbulence, TurbulenceConfig};
pub use volatility::{Volatility, VolatilityConfig};

/// The stage kinds of this family.
pub fn kinds() -> Vec<Box<dyn stages_core::AnyStage>> {
    vec![
        stages_core::erase(Technical),
        stages_core::erase(Volatility),
        stages_core::erase(OptionsSurface),
        stages_core::erase(Turbulence),
        stages_core::erase(CrossSection),
    ]
}
