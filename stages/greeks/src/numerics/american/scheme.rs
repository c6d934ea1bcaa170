//! The resolution of the spectral method.

/// The resolution of boundary and premium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scheme {
    /// Chebyshev nodes of the boundary.
    pub nodes: usize,
    /// Points of the integral at each node.
    pub points: usize,
    /// Points of the premium's integral.
    pub premium: usize,
}

impl Scheme {
    /// A price on a strike of 100 to 1e-6 over the range of market quotes.
    pub const STANDARD: Self = Self {
        nodes: 14,
        points: 14,
        premium: 40,
    };
    /// For extreme parameters, and to check [`Scheme::STANDARD`] against.
    pub const FINE: Self = Self {
        nodes: 32,
        points: 32,
        premium: 80,
    };

    /// All counts times two.
    pub const fn doubled(self) -> Self {
        Self {
            nodes: 2 * self.nodes,
            points: 2 * self.points,
            premium: 2 * self.premium,
        }
    }
}
