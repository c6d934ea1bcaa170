//! A run on data changed after a date.

use super::change::{About, Change, Version};
use super::compare::{Compare, Compared};
use super::moment;
use super::overlay::{Overlay, Pool};
use super::perturb;
use super::plan::{Plan, evaluates, is_metrics};
use super::sources::{self, Source};
use runner_engine::{Collected, Control, Failure, Options};
use runner_pipeline::Work;
use std::collections::BTreeSet;

/// The outcome of a run on a version of the data.
pub(crate) struct Tested {
    pub version: Version,
    /// The number of changed rows of each source, by the source's index.
    pub changed: Vec<(usize, u64)>,
    /// The stages that failed, with the reason.
    pub failed: Vec<(usize, String)>,
    /// The comparisons, by node and output.
    pub compared: Vec<(usize, String, Compared)>,
}

/// Runs the stages downstream of the sources on a version of the data, and compares their outputs.
pub(crate) fn test(
    plan: &Plan<'_>,
    pool: &Pool<'_>,
    version: &Version,
    options: &Options,
    control: &Control,
) -> Result<Tested, Failure> {
    let cut = &plan.cuts[version.cut];
    let mut tested = Tested {
        version: *version,
        changed: Vec::new(),
        failed: Vec::new(),
        compared: Vec::new(),
    };
    let overlay = Overlay::new(pool)?;
    let symbols: BTreeSet<String> = plan
        .found
        .sources
        .iter()
        .flat_map(|source| source.scan.symbols.iter().cloned())
        .collect();
    let about = About {
        change: version.change,
        until: cut.until,
        delisted: perturb::delisted(&symbols, moment::date_of(cut.until)),
    };
    let mut versions = Vec::new();
    for (place, source) in plan.found.sources.iter().enumerate() {
        if let Some((new, rows)) = source.version(&overlay, &about)? {
            tested.changed.push((place, rows));
            versions.push((source, new));
        }
    }
    if versions.is_empty() {
        return Ok(tested);
    }
    let pipeline = plan.replaced.pipeline(plan.pipeline, &plan.base.made, &versions);
    // A policy's decisions depend on the account, which a truncated range would settle early: they are
    // compared only on perturbed data.
    let mut left_out = BTreeSet::new();
    let mut nodes = Vec::new();
    for node in plan.lent.union(&plan.affected).copied() {
        let needs = || pipeline.nodes[node].needs.values().flatten();
        if version.change != Change::OtherValues && evaluates(&pipeline, node)
            || needs().any(|need| left_out.contains(&need.node))
        {
            left_out.insert(node);
        } else {
            nodes.push(node);
        }
    }
    lend(&overlay, plan, &versions)?;
    for &node in &nodes {
        for earlier in pipeline.nodes[node].earlier.values().flatten() {
            let is_version = versions.iter().any(|(_, version)| {
                matches!(version, sources::Version::Earlier { digest,
                    .. } if *digest == earlier.digest)
            });
            if !is_version {
                overlay.artifact(earlier.digest)?;
            }
        }
    }
    let options = Options {
        logs: overlay.folder().join("logs"),
        ..options.clone()
    };
    std::fs::create_dir_all(&options.logs)
        .map_err(|err| Failure::caused("cannot create a directory in the store", &err))?;
    let run = Collected::run(
        &pipeline,
        &nodes,
        &overlay.store,
        plan.file_types,
        &options,
        control,
        &mut |_: &str| {},
    )?;
    tested.failed = run.failed;
    for &node in plan.affected.iter().filter(|node| nodes.contains(node)) {
        let (Some((_, was)), Some((_, became))) = (plan.base.made.get(&node), run.made.get(&node)) else {
            continue;
        };
        let compare = Compare {
            until: cut.until,
            change: version.change,
            exact: matches!(plan.pipeline.nodes[node].work, Work::Kind { .. }),
            aligned: plan.aligned.get(&node).map_or(&[], Vec::as_slice),
        };
        for (output, digest) in was {
            if is_metrics(plan.pipeline, node, output) || plan.is_excepted(node, output) {
                continue;
            }
            let Some(other) = became.get(output) else { continue };
            let was = plan.reader.kept(plan.store, *digest)?;
            let other = overlay.store.artifact(*other)?;
            let became = plan.reader.version(&overlay.store, &other, &was, cut.until)?;
            tested.compared.extend(
                compare
                    .outputs(&was, &became)
                    .into_iter()
                    .map(|compared| (node, output.clone(), compared)),
            );
        }
    }
    Ok(tested)
}

/// Records in a store the outputs of nodes that the change does not affect, so that these nodes are cached,
/// and the versions of sources that are outputs.
fn lend(
    overlay: &Overlay<'_>,
    plan: &Plan<'_>,
    versions: &[(&Source, sources::Version)],
) -> Result<(), Failure> {
    for (i, (key, outputs)) in plan.lent.iter().filter_map(|i| Some((*i, plan.base.made.get(i)?))) {
        let Some(mut record) = overlay.base().recorded(*key)? else {
            continue;
        };
        record.outputs = outputs.clone();
        record.log = None;
        for (name, digest) in &mut record.outputs {
            let version = versions.iter().find(|(source, _)| source.is(i, name));
            match version {
                Some((_, sources::Version::Output { digest: other })) => *digest = *other,
                _ => overlay.artifact(*digest)?,
            }
        }
        overlay.store.put_action(&record)?;
    }
    Ok(())
}
