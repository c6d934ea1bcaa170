//! Classic control, for proving that learning works: CartPole-v1 and CartPole with its velocities hidden.

mod cart_pole;
mod stage;

pub use cart_pole::CartPole;
pub use stage::{Classic, ClassicConfig, Id};
pub(crate) use stage::{FAMILY, open};
