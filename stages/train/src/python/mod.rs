//! Training by a function of the user's own, in Python (`train/python`).
//!
//! The stage opens the environments and serves them: the function runs in a process of the user's
//! interpreter (`agent.py`), which maps the arrays of a step and asks for one with a byte over a socket.
//! Metrics, checkpoints and validation are this crate's: a checkpoint is a train state whose parameters are
//! the function's, in a file beside it ([`beside`]). What the function returns becomes a policy of one of the
//! forms that [`stages_policy`] reads ([`returned`]).

mod arrays;
mod beside;
mod config;
mod returned;
mod server;
mod stage;

pub use config::PythonTrainConfig;
pub use stage::PythonTrain;
