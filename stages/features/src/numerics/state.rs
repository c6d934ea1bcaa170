//! The state that a feature carries from one partition to the next.

/// The state of a feature: a few numbers, stored and restored bit for bit.
pub type State = Vec<f64>;

/// Saves or restores the numbers of a state: a single function visits them in both directions.
pub(super) enum StateVisitor<'a> {
    /// Appends the numbers to a state.
    Save(&'a mut State),
    /// Reads the numbers from the front of a state.
    Load(&'a [f64]),
}

impl StateVisitor<'_> {
    /// Saves or restores a number.
    pub(super) fn number(&mut self, value: &mut f64) {
        match self {
            Self::Save(state) => state.push(*value),
            Self::Load(state) => {
                if let Some((first, rest)) = state.split_first() {
                    (*value, *state) = (*first, rest);
                }
            }
        }
    }

    /// Saves or restores several numbers.
    pub(super) fn numbers(&mut self, values: &mut [f64]) {
        for value in values {
            self.number(value);
        }
    }

    /// Saves or restores a count, which is at most `most`.
    pub(super) fn count(&mut self, count: &mut usize, most: usize) {
        let mut value = *count as f64;
        self.number(&mut value);
        *count = (value as usize).min(most);
    }

    /// Saves or restores a boolean.
    pub(super) fn flag(&mut self, flag: &mut bool) {
        let mut value = f64::from(u8::from(*flag));
        self.number(&mut value);
        *flag = value != 0.0;
    }

    /// Returns whether numbers are being restored.
    pub(super) fn is_load(&self) -> bool {
        matches!(self, Self::Load(_))
    }
}

/// Declares the fields that form the state of a struct, in order; a count is followed by its maximum.
macro_rules! state {
    ([$($generics:tt)*] $name:ty { $($field:tt $(<= $($most:tt).+ $(+ $more:literal)?)?),* }) => {
        impl<$($generics)*> $crate::numerics::state::Stateful for $name {
            fn visit(&mut self, visitor: &mut $crate::numerics::state::StateVisitor<'_>) {
                $($crate::numerics::state::field!(self, visitor, $field $(<= $($most).+ $(+ $more)?)?);)*
            }
        }
    };
    ($name:ty { $($fields:tt)* }) => {
        $crate::numerics::state::state!([] $name { $($fields)* });
    };
}
pub(crate) use state;

macro_rules! field {
    ($self:ident, $visitor:ident, $field:tt) => {
        $crate::numerics::state::Stateful::visit(&mut $self.$field, $visitor)
    };
    ($self:ident, $visitor:ident, $field:tt <= $most:literal) => {
        $visitor.count(&mut $self.$field, $most)
    };
    ($self:ident, $visitor:ident, $field:tt <= $($most:ident).+ $(+ $more:literal)?) => {
        $visitor.count(&mut $self.$field, $self.$($most).+ $(+ $more)?)
    };
}
pub(crate) use field;

/// A part of a kernel that has state.
pub(super) trait Stateful {
    /// Passes every number of the state to `visitor`, always in the same order.
    fn visit(&mut self, visitor: &mut StateVisitor<'_>);

    /// Returns whether the warm-up is over for good. Compilers remove its tests from what follows.
    #[inline(always)]
    fn is_settled(&self) -> bool {
        false
    }
}

impl Stateful for f64 {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        visitor.number(self);
    }

    #[inline(always)]
    fn is_settled(&self) -> bool {
        true
    }
}

/// A flag that is set by the first row.
impl Stateful for bool {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        visitor.flag(self);
    }

    #[inline(always)]
    fn is_settled(&self) -> bool {
        *self
    }
}

impl Stateful for () {
    fn visit(&mut self, _: &mut StateVisitor<'_>) {}

    #[inline(always)]
    fn is_settled(&self) -> bool {
        true
    }
}

impl<T: Stateful, const N: usize> Stateful for [T; N] {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        self.iter_mut().for_each(|part| part.visit(visitor));
    }

    #[inline(always)]
    fn is_settled(&self) -> bool {
        self.iter().all(T::is_settled)
    }
}

macro_rules! tuple {
    ($($part:ident $place:tt),+) => {
        impl<$($part: Stateful),+> Stateful for ($($part,)+) {
            fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
                $(self.$place.visit(visitor);)+
            }

            #[inline(always)]
            fn is_settled(&self) -> bool {
                true $(&& self.$place.is_settled())+
            }
        }
    };
}
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);

/// A countdown of the rows that are missing until a window is full.
#[derive(Clone, Debug)]
pub(super) struct Missing {
    rows: usize,
    most: usize,
}

impl Missing {
    pub(super) fn new(rows: usize, most: usize) -> Self {
        Self { rows, most }
    }

    /// Counts a row. Returns whether it was missing.
    #[inline(always)]
    pub(super) fn next(&mut self) -> bool {
        let is_missing = self.rows > 0;
        self.rows -= usize::from(is_missing);
        is_missing
    }

    /// Returns whether no more rows are missing.
    #[inline(always)]
    pub(super) fn is_over(&self) -> bool {
        self.rows == 0
    }
}

impl Stateful for Missing {
    fn visit(&mut self, visitor: &mut StateVisitor<'_>) {
        visitor.count(&mut self.rows, self.most);
    }

    #[inline(always)]
    fn is_settled(&self) -> bool {
        self.is_over()
    }
}
