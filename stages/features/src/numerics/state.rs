//! The state that a feature carries from one partition to the next.

/// The state of a feature: a few numbers, stored and restored bit for bit.
pub type State = Vec<f64>;

/// Saves the numbers of a state, or restores them: one function visits them in both directions.
pub enum StateVisitor<'a> {
    /// Appends the numbers to a state.
    Save(&'a mut State),
    /// Takes the numbers from the front of a state.
    Load(&'a [f64]),
}

impl StateVisitor<'_> {
    /// Saves or restores a number.
    pub fn number(&mut self, value: &mut f64) {
        match self {
            Self::Save(state) => state.push(*value),
            Self::Load(state) => {
                if let Some((first, rest)) = state.split_first() {
                    (*value, *state) = (*first, rest);
                }
            }
        }
    }

    /// Saves or restores some numbers.
    pub fn numbers(&mut self, values: &mut [f64]) {
        for value in values {
            self.number(value);
        }
    }

    /// Saves or restores a count, at most `most`.
    pub fn count(&mut self, count: &mut usize, most: usize) {
        let mut value = *count as f64;
        self.number(&mut value);
        *count = (value as usize).min(most);
    }

    /// Saves or restores a truth value.
    pub fn flag(&mut self, flag: &mut bool) {
        let mut value = f64::from(u8::from(*flag));
        self.number(&mut value);
        *flag = value != 0.0;
    }

    /// Returns whether numbers are restored.
    pub fn is_load(&self) -> bool {
        matches!(self, Self::Load(_))
    }
}
