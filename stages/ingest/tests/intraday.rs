//! Chains by instant: every snapshot of a day is kept, whatever files it is in, and costs its file and its
//! partition.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use arrow_array::{Array as _, ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use common::{Bench, CHAIN, Done, floats, run_chain};
use serde_json::{Value, json};
use stages_core::table;
use std::sync::Arc;

const HEADER: &str = "s,t,e,k,cp,b,a,u\n";

/// The rows of a snapshot: a strike ladder of two expiries about a spot.
fn snapshot(time: &str, spot: f64) -> String {
    let mut rows = String::new();
    for expiry in ["2024-06-21", "2024-09-20"] {
        for k in 0..9 {
            let strike = 80.0 + 5.0 * f64::from(k);
            for (right, gap) in [("C", spot - strike), ("P", strike - spot)] {
                let value = 2.0 + gap.max(0.0) + 0.01 * f64::from(k % 5);
                rows.push_str(&format!(
                    "ABC,{time},{expiry},{strike},{right},{:.2},{:.2},{spot}\n",
                    value - 0.1,
                    value + 0.1
                ));
            }
        }
    }
    rows
}

/// The rows of a snapshot, which are 36.
const ROWS: usize = 36;

fn with(more: Value) -> Value {
    let columns = json!({ "symbol": "s", "date": "t", "expiry": "e", "strike": "k", "call": "cp", "bid": "b",
        "ask": "a", "underlying": "u" });
    let mut with = json!({ "path": "d", "layout": { "columns": columns, "zone": "America/New_York" },
        "partition": "day", "calendar": "us" });
    for (key, value) in more.as_object().unwrap() {
        match (with["layout"].as_object_mut(), key.as_str()) {
            (Some(layout), "zone" | "dates") => layout.insert(key.clone(), value.clone()),
            (Some(layout), "date" | "time") => layout["columns"]
                .as_object_mut()
                .unwrap()
                .insert(key.clone(), value.clone()),
            _ => with.as_object_mut().unwrap().insert(key.clone(), value.clone()),
        };
    }
    with
}

fn write(bench: &Bench, name: &str, rows: &[String]) {
    bench.file(&format!("d/{name}.csv"), format!("{HEADER}{}", rows.concat()));
}

/// The instants of the snapshots, in the order of the rows.
fn instants(rows: &RecordBatch) -> Vec<String> {
    let column = table::snapshots(rows).unwrap().unwrap();
    let mut all: Vec<String> = (0..rows.num_rows())
        .map(|i| {
            column
                .value_as_datetime(i)
                .unwrap()
                .format("%m-%d %H:%M:%S%.f")
                .to_string()
        })
        .collect();
    all.dedup();
    all
}

/// The days of 2024 that tests are about: Thursday and Friday, Monday and Tuesday.
const DAYS: [&str; 4] = ["2024-04-11", "2024-04-12", "2024-04-15", "2024-04-16"];

#[test]
fn two_snapshots_of_a_day_are_kept_and_not_dropped_as_duplicates() {
    let bench = Bench::new();
    let day = |i: usize| {
        [
            snapshot(&format!("{} 10:00", DAYS[i]), 100.0 + i as f64),
            snapshot(&format!("{} 15:45:00", DAYS[i]), 100.5 + i as f64),
        ]
    };
    write(&bench, "a", &[day(0), day(1)].concat());
    let done = run_chain(&bench, &with(json!({})));
    let meta = &done.artifact.meta;
    assert_eq!((&meta["rows"], &meta["snapshots"]), (&json!(4 * ROWS), &json!(4)));
    assert_eq!(done.finding("duplicate_key").0, 0);
    assert_eq!(
        meta["snapshots_a_day"],
        json!({
            "usual": 2, "fewest": 2, "most": 2, "days": 2, "days_with_fewer": 0, "first": "10:00",
                "last": "15:45",
            "time_zone": ["America/New_York"], "file_time_zone": ["America/New_York"],
                "file_time_zone_origin": "layout",
        })
    );
    let rows = bench.rows(&done);
    assert_eq!(rows.schema().field(2).name(), "snapshot");
    // By symbol, date, snapshot and then contract: the first strikes of each snapshot are neighbours.
    assert_eq!(
        instants(&rows),
        ["04-11 14:00:00", "04-11 19:45:00", "04-12 14:00:00", "04-12 19:45:00"]
    );
    assert_eq!(floats(&rows, "underlying")[ROWS - 1..=ROWS], [100.0, 100.5]);
    assert_eq!(done.artifact.entries.len(), 2, "a partition for each day");
    // A file for each snapshot, and rows in another order.
    let other = Bench::new();
    for (i, rows) in [day(1), day(0)].concat().into_iter().enumerate() {
        let mut lines: Vec<&str> = rows.lines().collect();
        lines.reverse();
        write(&other, &i.to_string(), &[lines.join("\n") + "\n"]);
    }
    assert_eq!(
        run_chain(&other, &with(json!({}))).artifact.entries,
        done.artifact.entries
    );
    // By month, in one partition, the same rows.
    assert_eq!(
        bench.rows(&run_chain(&bench, &with(json!({ "partition": "month" })))),
        rows
    );
}

/// A chain with one time a day has no column of snapshots, unless all are asked for.
#[test]
fn one_snapshot_a_day_is_a_day() {
    let bench = Bench::new();
    write(
        &bench,
        "a",
        &[snapshot("2024-04-11 15:45", 100.0), snapshot("2024-04-12 16:00", 101.0)],
    );
    let daily = run_chain(&bench, &with(json!({})));
    assert!(table::snapshots(&bench.rows(&daily)).unwrap().is_none());
    assert!(daily.artifact.meta.get("snapshots_a_day").is_none());
    let all = run_chain(&bench, &with(json!({ "snapshot": "all" })));
    assert_eq!(instants(&bench.rows(&all)), ["04-11 19:45:00", "04-12 20:00:00"]);
    // The same quotes without times are the same chain.
    let days = Bench::new();
    write(
        &days,
        "a",
        &[snapshot("2024-04-11", 100.0), snapshot("2024-04-12", 101.0)],
    );
    assert_eq!(
        run_chain(&days, &with(json!({}))).artifact.entries,
        daily.artifact.entries
    );
    // Contracts that are each quoted at a time of their own are of one snapshot.
    let other = Bench::new();
    let rows: String = snapshot("2024-04-11 15:59:xx", 100.0)
        .lines()
        .enumerate()
        .map(|(i, line)| line.replace("xx", &format!("{i:02}")) + "\n")
        .collect();
    write(&other, "a", &[rows, snapshot("2024-04-12 16:00", 101.0)]);
    assert_eq!(
        run_chain(&other, &with(json!({}))).artifact.entries,
        daily.artifact.entries
    );
}

#[test]
fn an_appended_snapshot_costs_its_file_and_its_partition() {
    let bench = Bench::new();
    let with = with(json!({}));
    let write_one = |day: usize, time: &str, spot: f64| {
        write(
            &bench,
            &format!("{}_{time}", DAYS[day]),
            &[snapshot(&format!("{} {time}", DAYS[day]), spot)],
        )
    };
    for day in 0..3 {
        write_one(day, "10:00", 100.0 + day as f64);
        write_one(day, "15:45", 101.5 + day as f64);
    }
    let first = run_chain(&bench, &with);
    // The header and the rows of each file, and each partition.
    assert_eq!((first.memos, first.artifact.entries.len()), ((0, 15), 3));
    assert_eq!(run_chain(&bench, &with).memos, (15, 15));
    write_one(3, "10:00", 103.0);
    let appended = run_chain(&bench, &with);
    assert_eq!(appended.computed(), 3, "an appended day");
    assert_eq!(appended.artifact.entries[..3], first.artifact.entries);
    assert_eq!(appended.artifact.meta["snapshots_a_day"]["days_with_fewer"], 1);
    write_one(3, "15:45", 104.5);
    let whole = run_chain(&bench, &with);
    assert_eq!(whole.computed(), 3, "an appended snapshot");
    assert_eq!(whole.artifact.entries[..3], first.artifact.entries);
    assert_eq!(whole.artifact.meta["snapshots_a_day"]["days_with_fewer"], 0);
}

/// Equal quotes of neighbouring snapshots are normal; a day whose first and last snapshot are those of the
/// day before is a copy.
#[test]
fn rules_compare_days_and_not_minutes() {
    let bench = Bench::new();
    let day = |date: &str, spots: [f64; 3]| {
        let times = ["10:00:00", "10:01:00", "10:02:00"];
        times
            .iter()
            .zip(spots)
            .map(|(time, spot)| snapshot(&format!("{date} {time}"), spot))
            .collect::<String>()
    };
    write(
        &bench,
        "a",
        &[
            day(DAYS[0], [100.0; 3]),
            day(DAYS[1], [100.0, 100.0, 101.0]),
            day(DAYS[2], [101.0, 101.0, 101.0]),
        ],
    );
    for partition in ["day", "year"] {
        let done = run_chain(&bench, &with(json!({ "partition": partition })));
        for rule in ["copied_day", "repeated_underlying", "duplicate_key"] {
            assert_eq!(done.finding(rule).0, 0, "{rule}");
        }
        assert_eq!(done.artifact.meta["rows"], 9 * ROWS);
    }
    write(&bench, "b", &[day(DAYS[3], [101.0; 3])]);
    for partition in ["day", "year"] {
        let done = run_chain(
            &bench,
            &with(json!({ "partition": partition, "on_bad_rows": { "copied_day": "keep" } })),
        );
        assert_eq!(done.finding("copied_day"), (3 * ROWS as u64, 1, "kept".to_owned()));
        assert_eq!(done.finding("repeated_underlying").0, 3 * ROWS as u64);
        assert_eq!(done.examples("copied_day"), [DAYS[3]]);
        assert_eq!(done.sample("copied_day")[0]["note"], "at 2024-04-16T14:00:00Z");
    }
}

/// A split is found overnight, between the last snapshot of a day and the first of the next.
#[test]
fn splits_are_found_between_days() {
    let bench = Bench::new();
    let halved = |time: &str| -> String {
        snapshot(time, 100.0)
            .lines()
            .map(|line| {
                let cells: Vec<&str> = line.split(',').collect();
                let half = |i: usize| cells[i].parse::<f64>().unwrap() / 2.0;
                format!(
                    "ABC,{},{},{},{},{},{},{}\n",
                    cells[1],
                    cells[2],
                    half(3),
                    cells[4],
                    half(5),
                    half(6),
                    half(7)
                )
            })
            .collect()
    };
    let times = |date: &str| ["10:00", "15:45"].map(|time| format!("{date} {time}"));
    let whole: Vec<String> = times(DAYS[0]).iter().map(|time| snapshot(time, 100.0)).collect();
    write(&bench, "a", &whole);
    write(&bench, "b", &times(DAYS[1]).map(|time| halved(&time)));
    let done = run_chain(&bench, &with(json!({ "on_bad_rows": { "strike_jump": "keep" } })));
    assert_eq!(done.finding("strike_jump"), (1, 1, "noted".to_owned()));
    assert_eq!(done.examples("strike_jump"), [DAYS[1]]);
}

/// The price of the underlying by parity is that of each snapshot, whatever the partitions.
#[test]
fn parity_at_each_snapshot() {
    let bench = Bench::new();
    for (i, date) in DAYS.iter().enumerate() {
        let spot = 100.0 + i as f64;
        let rows = [
            snapshot(&format!("{date} 10:00"), spot),
            snapshot(&format!("{date} 15:45"), spot + 0.4),
        ]
        .concat();
        let rows: String = rows
            .lines()
            .map(|line| format!("{}\n", line.rsplit_once(',').unwrap().0))
            .collect();
        bench.file(&format!("d/{date}.csv"), format!("s,t,e,k,cp,b,a\n{rows}"));
    }
    let of = |partition: &str| {
        let mut with = with(json!({ "partition": partition }));
        with["layout"]["columns"].as_object_mut().unwrap().remove("underlying");
        run_chain(&bench, &with)
    };
    let (by_day, by_year) = (of("day"), of("year"));
    assert_eq!(by_day.artifact.meta["underlying"], "parity");
    assert_eq!(bench.rows(&by_day), bench.rows(&by_year));
    let spots = floats(&bench.rows(&by_day), "underlying");
    for (i, spot) in spots.chunks(ROWS).map(|snapshot| snapshot[0]).enumerate() {
        let wanted = 100.0 + (i / 2) as f64 + 0.4 * (i % 2) as f64;
        assert!((spot - wanted).abs() < 0.05, "{i}: {spot}, not {wanted}");
    }
}

/// One instant in all the ways in which files write it, to the microsecond.
#[test]
fn instants_as_files_write_them() {
    let utc = "04-11 19:45:00.250";
    let of = |times: [&str; 2], more: Value| {
        let bench = Bench::new();
        write(&bench, "a", &times.map(|time| snapshot(time, 100.0)));
        instants(&bench.rows(&run_chain(&bench, &with(more))))[1].clone()
    };
    assert_eq!(of(["2024-04-11 10:00:00", "2024-04-11 15:45:00.25"], json!({})), utc);
    assert_eq!(of(["2024-04-11T14:00:00Z", "2024-04-11T19:45:00.25Z"], json!({})), utc);
    assert_eq!(
        of(
            ["2024-04-11T14:00:00Z", "2024-04-11T19:45:00.25Z"],
            json!({ "zone": "" })
        ),
        utc
    );
    assert_eq!(
        of(
            ["2024-04-11 14:00:00", "2024-04-11 19:45:00.25"],
            json!({ "zone": "UTC" })
        ),
        utc
    );
    assert_eq!(
        of(
            ["1712844000000", "1712864700250"],
            json!({ "dates": ["epoch_ms", "%Y-%m-%d"] })
        ),
        utc
    );
    assert_eq!(
        of(
            ["1712844000000000000", "1712864700250000000"],
            json!({ "dates": ["epoch_ns", "%Y-%m-%d"], "zone": "" })
        ),
        utc
    );
    // A column of its own, beside one of days: milliseconds after midnight, as Lean has them.
    let bench = Bench::new();
    let rows = |ms: u32| snapshot(&format!("2024-04-11,{ms}"), 100.0);
    bench.file(
        "d/a.csv",
        format!("s,t,ms,e,k,cp,b,a,u\n{}{}", rows(36_000_000), rows(56_700_250)),
    );
    let done = run_chain(&bench, &with(json!({ "time": { "column": "ms", "per": 3_600_000 } })));
    assert_eq!(instants(&bench.rows(&done))[1], utc);
}

/// Timestamps of Parquet: in UTC, with a zone of their own, and local ones.
#[test]
fn timestamps_of_parquet() {
    // 14:00 and 20:30 in New York, of which the second is the next day in UTC.
    let times = [1_712_858_400_i64, 1_712_881_800];
    let parquet = |column: ArrayRef| {
        let bench = Bench::new();
        let rows = column.len();
        let number = |value: f64| -> ArrayRef { Arc::new(Float64Array::from(vec![value; rows])) };
        let text = |value: &str| -> ArrayRef { Arc::new(StringArray::from(vec![value; rows])) };
        let columns = [
            ("s", text("ABC")),
            ("t", column),
            ("e", text("2024-06-21")),
            ("k", number(100.0)),
            ("cp", text("C")),
            ("b", number(5.0)),
            ("a", number(5.2)),
            ("u", number(101.0)),
        ];
        let bytes = table::to_parquet(&RecordBatch::try_from_iter(columns).unwrap()).unwrap();
        bench.file("d/a.parquet", bytes);
        bench
    };
    let micros = |offset: i64| times.map(|time| (time + offset) * 1_000_000).to_vec();
    let in_utc = TimestampMicrosecondArray::from(micros(0)).with_timezone("UTC");
    let with_zone = TimestampMicrosecondArray::from(micros(0)).with_timezone("America/New_York");
    let local = TimestampMicrosecondArray::from(micros(-4 * 3600));
    for (column, zone) in [
        (in_utc, "America/New_York"),
        (with_zone, ""),
        (local, "America/New_York"),
    ] {
        let bench = parquet(Arc::new(column));
        let done = run_chain(&bench, &with(json!({ "zone": zone })));
        let rows = bench.rows(&done);
        assert_eq!(instants(&rows), ["04-11 18:00:00", "04-12 00:30:00"]);
        let days = table::dates(&rows, "date").unwrap();
        assert!(days.iter().all(|day| day.to_string() == DAYS[0]), "{days:?}");
    }
}

/// Local times in UTC have their day on the exchange, where the layout states both zones.
#[test]
fn days_of_the_exchange() {
    let bench = Bench::new();
    write(
        &bench,
        "a",
        &[snapshot("2024-04-11 18:00", 100.0), snapshot("2024-04-12 00:30", 101.0)],
    );
    let mut with = with(json!({ "zone": "UTC" }));
    let err = bench.run(CHAIN, with.clone()).err();
    assert!(err.is_none(), "a day each in UTC");
    with["layout"]["contract"] = json!({ "time_zone": "America/New_York" });
    let done = run_chain(&bench, &with);
    assert_eq!(done.artifact.entries.len(), 1);
    assert_eq!(instants(&bench.rows(&done)), ["04-11 18:00:00", "04-12 00:30:00"]);
    with["snapshot"] = json!("20:30");
    assert_eq!(
        floats(&bench.rows(&run_chain(&bench, &with)), "underlying"),
        [101.0; ROWS]
    );
}

/// A zone that nothing states is assumed to be the exchange's, and said once.
#[test]
fn an_assumed_zone_is_a_warning() {
    let bench = Bench::new();
    write(
        &bench,
        "a",
        &[snapshot("2024-04-11 10:00", 100.0), snapshot("2024-04-11 15:45", 101.0)],
    );
    let warned = |done: &Done| {
        done.warnings
            .iter()
            .filter(|warning| warning.contains("time zone"))
            .count()
    };
    let assumed = run_chain(&bench, &with(json!({ "zone": "" })));
    assert_eq!(
        (warned(&assumed), instants(&bench.rows(&assumed))[0].as_str()),
        (1, "04-11 14:00:00")
    );
    assert_eq!(
        assumed.artifact.meta["snapshots_a_day"]["file_time_zone_origin"],
        "assumed"
    );
    let stated = run_chain(
        &bench,
        &with(json!({ "zone": "", "contract": { "time_zone": "Europe/Berlin" } })),
    );
    assert_eq!(
        (warned(&stated), instants(&bench.rows(&stated))[0].as_str()),
        (0, "04-11 08:00:00")
    );
    assert_eq!(warned(&run_chain(&bench, &with(json!({})))), 0);
    // A chain with one snapshot a day asks for no zone.
    assert_eq!(
        warned(&run_chain(&bench, &with(json!({ "zone": "", "snapshot": "last" })))),
        0
    );
}

#[test]
fn days_on_which_clocks_change() {
    let bench = Bench::new();
    let around =
        |date: &str| ["00:30", "01:30", "03:30"].map(|time| snapshot(&format!("{date} {time}"), 100.0));
    let with = |more: Value| {
        let mut with = with(more);
        with["calendar"] = json!("always");
        with["on_bad_rows"] = json!("keep");
        with["contract"] = json!({ "time_zone": "America/New_York" });
        with
    };
    write(&bench, "a", &around("2024-03-10"));
    write(&bench, "b", &around("2024-11-03"));
    let rows = bench.rows(&run_chain(&bench, &with(json!({}))));
    assert_eq!(
        instants(&rows),
        [
            "03-10 05:30:00",
            "03-10 06:30:00",
            "03-10 07:30:00",
            "11-03 04:30:00",
            "11-03 05:30:00",
            "11-03 08:30:00"
        ],
        "the first of the two hours of half past one"
    );
    write(&bench, "c", &[snapshot("2024-03-10 02:30", 100.0)]);
    let err = bench.run(CHAIN, with(json!({}))).err().unwrap();
    assert_eq!(
        err.message,
        "2024-03-10 02:30 does not exist in America/New_York: clocks skip it"
    );
    assert!(err.hint.unwrap().contains("`zone: UTC`"));
}

#[test]
fn chains_that_cannot_be_by_instant_are_refused() {
    let bench = Bench::new();
    write(
        &bench,
        "a",
        &[snapshot("2024-04-11 10:00", 100.0), snapshot("2024-04-11 15:45", 101.0)],
    );
    bench.file("bars.csv", "date,close\n2024-04-11,100\n");
    let err = |more: Value| bench.run(CHAIN, with(more)).err().unwrap();
    let closes = err(json!({ "underlying_path": "bars.csv" }));
    assert!(closes.message.contains("daily closes"), "{}", closes.message);
    // Midnight in UTC is another day in New York.
    let late = Bench::new();
    write(
        &late,
        "a",
        &[
            snapshot("2024-04-12T00:30:00Z", 100.0),
            snapshot("2024-04-12T14:00:00Z", 101.0),
        ],
    );
    let other_day = late.run(CHAIN, with(json!({ "zone": "" }))).err().unwrap();
    assert_eq!(
        other_day.message,
        "the snapshot of 2024-04-12T00:30:00Z is on 2024-04-11 in America/New_York, and its rows are of \
        2024-04-12"
    );
    let done = run_chain(&late, &with(json!({ "calendar": "none" })));
    assert_eq!(done.artifact.entries.len(), 2, "with a zone, each has its day there");
    bench.file("d/b.csv", format!("{HEADER}{}", snapshot("2024-04-11", 102.0)));
    let days = Bench::new();
    write(&days, "a", &[snapshot("2024-04-11", 100.0)]);
    let no_times = days.run(CHAIN, with(json!({ "snapshot": "all" }))).err().unwrap();
    assert_eq!(no_times.message, "the files have no times of day");
    let timeless = err(json!({}));
    assert_eq!(
        timeless.message,
        "36 rows have no time of day, and others are of several snapshots a day"
    );
    assert!(bench.run(CHAIN, with(json!({ "snapshot": "last" }))).is_ok());
}
