//! The settings of the spelling of texts, which stages without layouts share.

use crate::number::Separators;
use datasets::layout::check_separator;
use stages_core::{ConfigProblem, is_default};

stages_core::flat_settings! {
    /// The header and the numbers of a text.
    pub struct TextSettings {
        /// The number of lines before the header, such as a title; 0 if the header is the first line.
        #[serde(skip_serializing_if = "is_default")]
        pub skip_lines: usize,
        /// The names of the columns, in order, of a text without a header; empty where it has one.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub header: Vec<String>,
        /// The spelling of numbers.
        #[serde(flatten)]
        pub numbers: NumberSettings,
    }

    /// The signs in numbers.
    pub struct NumberSettings {
        /// The decimal sign of numbers, `.` or `,`; empty to find it from the values.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub decimal: String,
        /// The sign between thousands: `,`, `.`, `'` or a blank; empty to find it from the values.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub thousands: String,
    }
}

impl NumberSettings {
    /// Refuses settings that are no separators.
    pub(crate) fn check(&self) -> Result<(), ConfigProblem> {
        for (field, given) in [("decimal", &self.decimal), ("thousands", &self.thousands)] {
            check_separator(field, given)
                .map_err(|problem| ConfigProblem::new(problem.field, problem.message).hint(problem.hint))?;
        }
        ConfigProblem::new("thousands", "it is the decimal sign, too")
            .hint("leave one of the two out")
            .when(!self.decimal.is_empty() && self.decimal == self.thousands)
    }

    /// The separators that are stated.
    pub(crate) fn separators(&self) -> Separators {
        Separators::stated(&self.decimal, &self.thousands)
    }
}
