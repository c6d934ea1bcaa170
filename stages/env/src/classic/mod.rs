//! Small environments for proving that learning works: CartPole-v1, CartPole with its velocities hidden, a
//! game of memory, and Pendulum-v1 and MountainCarContinuous-v0, whose actions are numbers.

mod cart_pole;
mod control;
mod mountain_car;
mod pendulum;
mod repeat_previous;
mod stage;

pub use cart_pole::CartPole;
pub use repeat_previous::RepeatPrevious;
pub use stage::{Classic, ClassicConfig, Id};
pub(crate) use stage::{FAMILY, open};
