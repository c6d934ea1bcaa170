//! Numerics that several stage families share. Nothing here knows of stages, data sets or the cache.

pub mod class;
pub mod dispatch;
pub mod random;
