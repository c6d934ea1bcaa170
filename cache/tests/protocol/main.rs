//! The protocol by which files get their names, explored: every order in which several actors can take their steps, with
//! deaths, damage and power failures in between.
//!
//! - `disk`, `actors`, `rules`: a model of the store's protocol, one system call a step; `locks`: of the locks of actions;
//!   `explore` visits every state that can be reached. Each rule is left out once, and the explorer must find what goes
//!   wrong then.
//! - `real`: the store itself against a reference of a few lines, by random operations.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod actors;
mod disk;
mod explore;
mod locks;
mod real;
mod rules;
mod step_model;
