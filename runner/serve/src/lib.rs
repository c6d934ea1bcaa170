//! `runner serve`: the history of runs, runs in progress, and the store, as pages for a browser.
//!
//! Pages are HTML from the server, rendered from the event logs and the store by the code of the reports;
//! there is nothing to build, and nothing is fetched from elsewhere. A part of a page that changes (a
//! fragment, an element with an id) is rendered again on the server and sent as a server-sent event: once for
//! all watchers of the page, and only while there are any. Pages only read, unless the server was started
//! with `--allow-run`.
//!
//! ```text
//! server.rs      the listener, its routes, and their errors
//! connections.rs the number of connections, and clients that are slow
//! site.rs        the home that is served; what the program gives the server
//! access.rs      who may connect: hosts, the token, requests from other sites
//! layout.rs      the frame of every page; style.css and live.js beside it
//! parts.rs       what pages are made of: cards, chips, tables whose heads sort them
//! pulse.rs       the state of the home in the navigation
//! calendar.rs    days as a calendar
//! answer.rs      the answer of a run, its main figure and its curve
//! live.rs        fragments of pages that change, rendered once for all their watchers
//! control.rs     starts and cancels runs
//! nights.rs      runs the nights of scheduled pipelines
//! pages/         a module for each page
//! ```

mod access;
mod answer;
mod calendar;
mod connections;
mod control;
mod layout;
mod live;
mod nights;
mod pages;
mod parts;
mod pulse;
mod server;
mod site;

pub use connections::ClientLimits;
pub use server::serve;
pub use site::{Host, Server};
