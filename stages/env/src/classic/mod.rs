//! Classic control, for proving that learning works: CartPole-v1, CartPole with its velocities hidden, and
//! Pendulum-v1, whose actions are numbers.

mod cart_pole;
mod pendulum;
mod stage;

pub use cart_pole::CartPole;
pub use pendulum::Pendulum;
pub use stage::{Classic, ClassicConfig, Id};
pub(crate) use stage::{FAMILY, open};
