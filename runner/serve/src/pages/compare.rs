//! The comparison of runs, as `runner compare --html` writes it.

use crate::site::Site;
use runner_engine::Failure;
use runner_history::compare::{Comparison, Options, select};
use runner_report::comparison_page;

/// The page of these runs.
pub(crate) fn compare(site: &Site, runs: &[String]) -> Result<String, Failure> {
    if runs.is_empty() {
        return Err(
            Failure::usage("no run is ticked").hint("tick the runs that are to be compared, and try again")
        );
    }
    let points = select(&site.runs, &site.store()?, runs)?;
    let comparison = Comparison::new(points, &Options::default())?;
    Ok(comparison_page(&comparison))
}
