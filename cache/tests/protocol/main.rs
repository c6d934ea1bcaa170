//! The protocol of atomic writes, explored: every interleaving of several actors, with kills, damage and
//! power failures.
//!
//! - `disk`, `actors`, `rules`: a model of the store's protocol, one system call per step; `locks`: a model
//!   of the leases on actions; `explore` visits every reachable state. Each rule is turned off once, and the
//!   explorer must find the violation.
//! - `real`: the store itself against a reference of a few lines, by random operations.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod actors;
mod disk;
mod explore;
mod hosts;
mod locks;
mod real;
mod rules;
mod step_model;
