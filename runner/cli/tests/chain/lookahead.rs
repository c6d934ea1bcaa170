//! No look-ahead, through the whole chain of stages: when all market data after a date are others, every
//! implied volatility, Greek, feature, slate, observation and reward up to that date is the same, bit for
//! bit, and so is what a policy does.

use super::*;
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch};
use arrow_schema::DataType;
use datasets::Date;
use serde_json::json;
use stages_core::dataset::{self, DataSet, Partition};
use stages_core::{PortType, table};
use stages_env::{Actions, OpenOptions, Step};
use stages_policy::Mode;

/// The rows up to `date`, inclusive, or after it.
fn part(batch: &RecordBatch, date: Date, after: bool) -> RecordBatch {
    let dates = table::dates(batch, "date").unwrap();
    // Rows of one symbol are in the order of dates.
    let cut = dates.partition_point(|day| *day <= date);
    if after {
        batch.slice(cut, batch.num_rows() - cut)
    } else {
        batch.slice(0, cut)
    }
}

/// A data set in which every number after `date` is another, and with `holes`, a fifth of the rows after it
/// are gone.
fn perturbed(store: &Store, digest: ArtifactDigest, ty: PortType, date: Date, holes: bool) -> ArtifactDigest {
    let set = DataSet::open(&input(store, digest)).unwrap();
    let mut random = Random::new(&[5]);
    let partitions: Vec<Partition> = set
        .partitions
        .iter()
        .map(|partition| {
            let batch = partition.read(store).unwrap();
            let after = part(&batch, date, true);
            let keep: arrow_array::BooleanArray = (0..after.num_rows())
                .map(|_| Some(!holes || random.uniform() > 0.2))
                .collect();
            let columns: Vec<ArrayRef> = after
                .schema()
                .fields()
                .iter()
                .zip(after.columns())
                .map(|(field, column)| -> ArrayRef {
                    if *field.data_type() != DataType::Float64
                        || ["strike", "tenor_years"].contains(&field.name().as_str())
                    {
                        return column.clone();
                    }
                    let values = table::floats(&after, field.name()).unwrap();
                    // One factor a row and day would keep relations; these break them, as the future may.
                    let factor = 1.0 + 0.3 * random.uniform();
                    Arc::new(
                        values
                            .iter()
                            .map(|value| value.map(|value| value * factor))
                            .collect::<Float64Array>(),
                    )
                })
                .collect();
            let after = RecordBatch::try_new(after.schema(), columns).unwrap();
            let after = arrow_select::filter::filter_record_batch(&after, &keep).unwrap();
            let whole =
                arrow_select::concat::concat_batches(&batch.schema(), &[part(&batch, date, false), after])
                    .unwrap();
            Partition {
                key: partition.key.clone(),
                blob: store.put(&table::to_parquet(&whole).unwrap()).unwrap(),
            }
        })
        .collect();
    dataset::write(store, ty, set.meta, partitions).unwrap()
}

/// The rows of a data set up to `date`, and how many follow.
fn past(store: &Store, digest: ArtifactDigest, date: Date) -> (Vec<RecordBatch>, usize) {
    let set = DataSet::open(&input(store, digest)).unwrap();
    let batches = set.read_all(store).unwrap();
    let after = batches.iter().map(|batch| part(batch, date, true).num_rows()).sum();
    (batches.iter().map(|batch| part(batch, date, false)).collect(), after)
}

/// True if two tables are the same bit for bit, nulls included.
fn assert_same(name: &str, a: &[RecordBatch], b: &[RecordBatch]) {
    assert_eq!(a.len(), b.len(), "{name}");
    for (a, b) in a.iter().zip(b) {
        assert_eq!(a.schema(), b.schema(), "{name}");
        for (field, (x, y)) in a.schema().fields().iter().zip(a.columns().iter().zip(b.columns())) {
            if *field.data_type() == DataType::Float64 {
                let bits = |column: &RecordBatch| -> Vec<Option<u64>> {
                    let values = table::floats(column, field.name()).unwrap();
                    values.iter().map(|value| value.map(f64::to_bits)).collect()
                };
                assert_eq!(bits(a), bits(b), "{name}.{}", field.name());
            } else {
                assert_eq!(x.to_data(), y.to_data(), "{name}.{}", field.name());
            }
        }
    }
}

#[test]
fn the_future_changes_nothing_that_came_before() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let market = run(
        &store,
        "ingest/simulated_market",
        json!({ "days": 200, "seed": 3 }),
        &[],
    );
    let rates_set = DataSet::open(&input(&store, market["rates"])).unwrap();
    let mut days: Vec<Date> = Vec::new();
    for batch in rates_set.read_all(&store).unwrap() {
        days.extend(table::dates(&batch, "date").unwrap());
    }
    days.dedup();
    assert_eq!(days.len(), 200);
    let (test_from, date) = (days[130], days[170]);
    let env = json!({
        "train": { "from": days[0].to_string(), "to": days[110].to_string() },
        "test": { "from": test_from.to_string(), "to": days[199].to_string() },
    });

    let truth = derive(&store, market["bars"], market["chain"], market["rates"], &env);
    let other = derive(
        &store,
        perturbed(&store, market["bars"], PortType::Bars, date, false),
        perturbed(&store, market["chain"], PortType::OptionChain, date, true),
        perturbed(&store, market["rates"], PortType::Rates, date, false),
        &env,
    );
    for name in [
        "implied volatility",
        "greeks",
        "technical",
        "realised volatility",
        "surface",
    ] {
        let ((a, n), (b, m)) = (past(&store, truth[name], date), past(&store, other[name], date));
        assert_same(name, &a, &b);
        assert!(
            n > 20 && m > 20 && truth[name] != other[name],
            "{name} was not perturbed"
        );
    }

    let open = |artifact: ArtifactDigest| {
        let artifact = store.artifact(artifact).unwrap();
        stages_env::open(&store, &artifact, &OpenOptions::test(2, 1)).unwrap()
    };
    let (mut a, mut b) = (open(truth["env"]), open(other["env"]));
    assert_eq!(a.spec(), b.spec());
    let policy = policy(a.as_ref());
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    let (mut x, mut y) = (Step::new(a.spec(), 2), Step::new(b.spec(), 2));
    let (mut of_x, mut of_y) = (policy.start(2), policy.start(2));
    a.reset(x.buffers());
    b.reset(y.buffers());
    let mut random = Random::new(&[4]);
    let mut start = vec![true; 2];
    let mut done = BTreeMap::new();
    // The first snapshot is that of `test_from`; after 40 steps the snapshot is that of `date`.
    for step in 0..40 {
        let chosen = policy.act(&x.obs, &x.action_mask, &start, &mut of_x, Mode::Greedy);
        let other = policy.act(&y.obs, &y.action_mask, &start, &mut of_y, Mode::Greedy);
        assert_eq!(chosen, other, "step {step}");
        let mut actions = chosen.discrete(2).unwrap().to_vec();
        start.fill(false);
        // The second environment takes random actions, so that all kinds of positions are held.
        let num_actions = a.spec().action_space.num_outputs();
        let legal: Vec<u32> = (0..num_actions as u32)
            .filter(|action| x.action_mask[num_actions + *action as usize])
            .collect();
        actions[1] = legal[random.below(legal.len() as u64) as usize];
        *done.entry(actions[1]).or_insert(0) += 1;
        a.step(Actions::Discrete(&actions), x.buffers()).unwrap();
        b.step(Actions::Discrete(&actions), y.buffers()).unwrap();
        assert_eq!(bits(&x.obs), bits(&y.obs), "observation after step {step}");
        assert_eq!(bits(&x.reward), bits(&y.reward), "reward of step {step}");
        assert_eq!(x.action_mask, y.action_mask, "mask after step {step}");
        assert!(!x.truncated[0] && !x.terminated[0]);
    }
    assert!(done.len() > 4, "{done:?}");
    a.step(Actions::Discrete(&[0, 0]), x.buffers()).unwrap();
    b.step(Actions::Discrete(&[0, 0]), y.buffers()).unwrap();
    assert_ne!(bits(&x.obs), bits(&y.obs), "the day after is another");
}
