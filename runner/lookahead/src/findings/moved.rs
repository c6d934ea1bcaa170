//! Values that moved, as the verdict names them.

use super::Column;
use crate::change::Version;
use crate::compare::Difference;
use crate::plan::Plan;
use crate::verdict::Moved;

/// A difference in a column as a finding.
pub(super) fn moved(plan: &Plan<'_>, column: &Column, version: &Version, difference: Difference) -> Moved {
    let (node, output, table, _) = column;
    let digest = plan.base.made.get(node).and_then(|(_, outputs)| outputs.get(output));
    let files = digest
        .and_then(|digest| plan.store.artifact(*digest).ok())
        .map_or(1, |artifact| artifact.entries.len());
    let is_part = table.contains('/');
    let sources: Vec<&str> = (0..plan.found.sources.len())
        .filter(|&place| plan.downstream(place).contains(node))
        .map(|place| plan.found.sources[place].name.as_str())
        .collect();
    Moved {
        stage: plan.pipeline.nodes[*node].id.clone(),
        node: *node,
        output: if files == 1 && !is_part {
            output.clone()
        } else {
            format!("{output}/{table}")
        },
        column: difference.column,
        at: plan.cuts[version.cut].at.clone(),
        change: version.change,
        row: difference.row,
        date: difference.date.map(|date| date.to_string()),
        about: difference.about,
        was: difference.was,
        became: difference.became,
        rows: difference.rows,
        dates: 1,
        source: sources.join(", "),
        from: Vec::new(),
    }
}
