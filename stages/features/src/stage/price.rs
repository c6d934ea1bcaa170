//! The price that indicators use, and the input port for its adjustment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::{InputPort, PortType};

/// The price that the indicators take for the close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Price {
    /// The last price.
    #[default]
    Close,
    /// The last price adjusted for splits and dividends; open, high and low are scaled alike, the volume is
    /// not.
    AdjustedClose,
}

/// The input port of corporate actions.
pub(super) const ACTIONS_IN: InputPort = InputPort::optional("actions", PortType::CorporateActions)
    .doc("the splits of unadjusted bars: no value takes one for a change of price");
