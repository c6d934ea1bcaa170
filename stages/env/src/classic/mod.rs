//! Small environments for proving that learning works: CartPole-v1, CartPole with its velocities hidden, and a game of
//! memory.

mod cart_pole;
mod repeat_previous;
mod stage;

pub use cart_pole::CartPole;
pub use repeat_previous::RepeatPrevious;
pub use stage::{Classic, ClassicConfig, Id};
pub(crate) use stage::{FAMILY, open};
