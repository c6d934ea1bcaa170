//! Statements about the numbers and dates of a file, and the settings that a message proposes for them.

use crate::number::Separators;
use crate::text_settings::NumberSettings;
use datasets::layout::Layout;

/// Statements of a layout, or of a stage's settings, about numbers and dates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stated {
    /// The separators of numbers.
    pub separators: Separators,
    /// True if the formats of dates are stated, so that no other is looked for.
    pub dates: bool,
    /// The layout that a remedy names; `None` where settings of the stage state formats.
    layout: Option<String>,
    /// The key of the format of dates.
    date_key: &'static str,
}

impl Stated {
    /// The statements of a layout.
    pub(crate) fn of_layout(layout: &Layout) -> Self {
        let base = match layout.name.strip_prefix("custom") {
            Some(like) => like.strip_prefix(", like ").unwrap_or_default().to_owned(),
            None if layout.is_described => String::new(),
            None => layout.name.clone(),
        };
        Self {
            separators: Separators::stated(&layout.decimal, &layout.thousands),
            dates: layout.states_dates,
            layout: Some(base),
            date_key: "date_format",
        }
    }

    /// The statements of a stage without layouts; `date_key` is that of the format of dates.
    pub(crate) fn of_settings(numbers: &NumberSettings, date_key: &'static str, date_format: &str) -> Self {
        Self {
            separators: numbers.separators(),
            dates: !date_format.is_empty(),
            layout: None,
            date_key,
        }
    }

    /// Returns whether numbers are written in no way that a vendor documents.
    pub(crate) fn is_open(&self) -> bool {
        !self.separators.any() && self.layout.as_deref().is_none_or(|name| matches!(name, "" | "plain"))
    }

    /// The text of a setting that states a format of dates.
    pub(crate) fn date_format(&self, format: &str) -> String {
        let key = if self.date_key.is_empty() {
            "date_format"
        } else {
            self.date_key
        };
        self.setting(key, format)
    }

    /// The text of a setting: `layout: { like: plain, decimal: "," }`, or `decimal: ","`.
    pub(crate) fn setting(&self, key: &str, value: &str) -> String {
        match self.layout.as_deref() {
            None => format!("`{key}: \"{value}\"`"),
            Some("") => format!("`{key}: \"{value}\"` in the layout"),
            Some(like) => format!("`layout: {{ like: {like}, {key}: \"{value}\" }}`"),
        }
    }
}
