//! Counts of events on paths: no cap cuts silently.

use crate::env::counts::counts;

counts! {
    /// Numbers of what happened since the environments were opened.
    PathCounts {
        /// Steps of environments.
        steps,
        /// Episodes that ended.
        episodes,
        /// Episodes that ended at the answer.
        right,
        /// Steps that stayed.
        stayed,
        /// Candidates left out as they are the query's own edge or its inverse.
        hidden,
        /// Candidates of last steps left out as they lead to another right answer.
        masked,
        /// Candidates left out by `edge_dropout`.
        dropped,
        /// States in which nothing was left but to stay, though that leads to another right answer.
        nowhere,
        /// States with more actions than `max_actions`.
        states_cut,
        /// The edges left out there.
        edges_cut,
    }
}
