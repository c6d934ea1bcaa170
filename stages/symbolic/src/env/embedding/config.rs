//! The settings of an embedding.

use stages_core::ConfigProblem;

stages_core::settings! {
    /// The settings of a ComplEx embedding of the graph's facts of two constants.
    pub struct EmbeddingConfig {
        /// Complex numbers of a vector: a multiple of 8.
        pub dim: u32 = 64,
        /// Passes over the facts.
        pub epochs: u32 = 50,
        /// Facts of a step of the optimiser.
        pub batch_size: u32 = 128,
        /// Constants that each answer is told from, drawn for each batch; all where there are not more.
        pub candidates: u32 = 256,
        /// The learning rate of Adagrad.
        pub learning_rate: f64 = 0.1,
        /// The factor of the sum of the cubes of the absolute values of a fact's vectors in the loss (N3).
        pub penalty: f64 = 0.03,
        /// The seed of first vectors, the order of facts, and what is drawn.
        pub seed: u64 = 0,
    }
}

impl EmbeddingConfig {
    /// Refuses settings that are out of range. `of` is the field that has these settings.
    ///
    /// # Errors
    /// Names the field.
    pub fn validate(&self, of: &str) -> Result<(), ConfigProblem> {
        let problem =
            |field: &str, message: String| Err(ConfigProblem::new(format!("{of}.{field}"), message));
        if !self.dim.is_multiple_of(8) || !(8..=512).contains(&self.dim) {
            return problem("dim", format!("{} is not a multiple of 8 from 8 to 512", self.dim));
        }
        for (field, value, most) in [
            ("epochs", self.epochs, 10_000),
            ("batch_size", self.batch_size, 65_536),
            ("candidates", self.candidates, 65_536),
        ] {
            if !(1..=most).contains(&value) {
                return problem(field, format!("{value} is not from 1 to {most}"));
            }
        }
        if !(1e-9..=10.0).contains(&self.learning_rate) {
            return problem(
                "learning_rate",
                format!("{} is not from 0.000000001 to 10", self.learning_rate),
            );
        }
        if !(0.0..=100.0).contains(&self.penalty) {
            return problem("penalty", format!("{} is not from 0 to 100", self.penalty));
        }
        Ok(())
    }
}
