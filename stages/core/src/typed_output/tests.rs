#![allow(clippy::unwrap_used, reason = "tests")]

mod contracts;

use super::{WrittenFile, write};
use crate::event::{EventSink, Silent, StageEvent};
use crate::input::Input;
use crate::port::PortType;
use crate::table;
use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, Date32Array, DictionaryArray, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampNanosecondArray,
};
use bytes::Bytes;
use cache::{Artifact, ArtifactDigest, Store};
use std::collections::BTreeMap;
use std::sync::Arc;

const FEATURES: &str =
    "symbol,date,value,quality\nABC,2019-05-28,1.5,\nABC,2020-01-02,2.5,7\nXYZ,2019-05-28,-1,0\n";
const BARS: &str = "date,symbol,close,high,low,volume\n2019-05-28,ABC,10,11,9,5\n2019-05-29,ABC,10.5,,,\n";
const RATES: &str = "date,tenor_years,rate\n2019-05-28,0,0.02\n2019-05-28,1,0.025\n";

fn file(name: &str, bytes: impl Into<Vec<u8>>) -> WrittenFile {
    WrittenFile {
        name: name.to_owned(),
        bytes: Bytes::from(bytes.into()),
    }
}

fn of(ty: PortType, files: &[WrittenFile]) -> Result<(Artifact, Vec<RecordBatch>), String> {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let digest = write(&store, ty, files, &BTreeMap::new(), &[], &|| Ok(()), &Silent).map_err(|err| {
        assert!(err.hint.is_some(), "no remedy: {}", err.message);
        err.message
    })?;
    let artifact = store.artifact(digest).unwrap();
    let tables = artifact
        .entries
        .iter()
        .map(|entry| table::from_parquet(store.blob(entry.blob).unwrap()).unwrap())
        .collect();
    Ok((artifact, tables))
}

fn of_text(ty: PortType, text: &str) -> Result<(Artifact, Vec<RecordBatch>), String> {
    of(ty, &[file("f.csv", text)])
}

#[test]
fn features_are_cut_by_year() {
    let (artifact, tables) = of_text(PortType::Features, FEATURES).unwrap();
    let paths: Vec<&str> = artifact.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "ABC..XYZ/2019-01-01_2019-12-31.parquet",
            "ABC/2020-01-01_2020-12-31.parquet"
        ]
    );
    assert_eq!(artifact.kind, "features");
    assert_eq!(artifact.meta["features"], serde_json::json!(["value", "quality"]));
    let names: Vec<String> = tables[0]
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    assert_eq!(names, ["symbol", "date", "value", "quality"]);
    assert_eq!(
        table::floats(&tables[0], "value").unwrap(),
        &Float64Array::from(vec![1.5, -1.0])
    );
    assert_eq!(
        table::floats(&tables[0], "quality").unwrap(),
        &Float64Array::from(vec![None, Some(0.0)])
    );
}

const OF_CONTRACTS: &str = "symbol,date,expiry,root,strike,call,score\n\
SPX,2019-02-01,2019-03-15,SPXW,2700,false,-1\nSPX,2019-02-01,2019-03-15,SPXW,2700,true,\nSPX,2019-01-31,\
2019-03-15,SPX,2650.5,true,2\n";

#[test]
fn bars_and_rates() {
    let (artifact, tables) = of_text(PortType::Bars, BARS).unwrap();
    assert_eq!(artifact.meta["symbols"], serde_json::json!(["ABC"]));
    assert_eq!(tables[0].schema(), table::schema(datasets::schema::BARS));
    assert_eq!(table::floats_or_nan(&tables[0], "high").unwrap()[0], 11.0);
    assert!(table::floats_or_nan(&tables[0], "open").unwrap()[0].is_nan());
    let (artifact, tables) = of_text(PortType::Rates, RATES).unwrap();
    assert_eq!(artifact.entries[0].path, "rates/2019-01-01_2019-12-31.parquet");
    assert_eq!(table::floats_or_nan(&tables[0], "rate").unwrap(), [0.02, 0.025]);
}

/// A table has days or instants, with symbols or without.
#[test]
fn tables_of_ones_own() {
    let (artifact, tables) =
        of_text(PortType::Table, "date,close,x\n2019-05-29,2,\n2019-05-28,1,7\n").unwrap();
    assert_eq!(artifact.kind, "table");
    assert_eq!(artifact.entries[0].path, "table/2019-01-01_2019-12-31.parquet");
    assert_eq!(
        artifact.meta,
        serde_json::json!({ "columns": ["close", "x"], "rows": 2, "symbols": ["table"] })
    );
    assert_eq!(table::floats_or_nan(&tables[0], "close").unwrap(), [1.0, 2.0]);
    let times = |batch: &RecordBatch| -> Vec<String> {
        let times = table::snapshot_times(batch).unwrap();
        times.iter().map(|time| format!("{} {time}", time.date)).collect()
    };
    let expected = [
        "2019-05-28 2019-05-28 09:30:00 UTC",
        "2019-05-28 2019-05-28 23:30:00 UTC",
        "2019-05-29 2019-05-29 09:30:00 UTC",
    ];
    let text = "symbol,snapshot,x\nB,2019-05-28T23:30:00Z,2\nA,2019-05-29 09:30:00,1\nA,2019-05-28 \
        05:30:00-0400,1\n";
    let (_, tables) = of_text(PortType::Table, text).unwrap();
    assert_eq!(times(&tables[0]), [expected[0], expected[2], expected[1]]);
    // The day may be that of another zone.
    let (_, tables) =
        of_text(PortType::Table, "date,snapshot,x\n2019-05-29,2019-05-28T23:30:00Z,2\n").unwrap();
    assert_eq!(times(&tables[0]), ["2019-05-29 2019-05-28 23:30:00 UTC"]);
    let instants = TimestampNanosecondArray::from(vec![1_559_035_800_000_000_000, 1_559_035_800_500_000_000]);
    let batch = RecordBatch::try_from_iter([
        ("snapshot", Arc::new(instants) as ArrayRef),
        ("x", Arc::new(Int64Array::from(vec![1, 2]))),
    ]);
    let bytes = table::to_parquet(&batch.unwrap()).unwrap();
    let (_, tables) = of(PortType::Table, &[file("f.parquet", bytes)]).unwrap();
    assert_eq!(times(&tables[0])[1], "2019-05-28 2019-05-28 09:30:00.500 UTC");
    let mixed = of(
        PortType::Table,
        &[
            file("a.csv", "date,x\n2019-05-28,1\n"),
            file("b.csv", "snapshot,x\n2019-05-28 10:00,1\n"),
        ],
    );
    assert_eq!(
        mixed.unwrap_err(),
        "one of `a.csv` and `b.csv` has the column `snapshot`, and the other has not"
    );
}

/// The stored bytes depend on the rows alone: not on their order, the number of files or the number of
/// threads.
#[test]
fn the_same_rows_are_the_same_bytes() {
    let (whole, _) = of_text(PortType::Features, FEATURES).unwrap();
    let lines: Vec<&str> = FEATURES.lines().collect();
    let shuffled = [lines[0], lines[3], lines[2], lines[1]].join("\n");
    let parts: Vec<WrittenFile> = [3, 1, 2]
        .iter()
        .map(|i| file(&format!("{i}.csv"), format!("{}\r\n{}\r\n", lines[0], lines[*i])))
        .collect();
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            assert_eq!(of_text(PortType::Features, &shuffled).unwrap().0.entries, whole.entries);
            assert_eq!(of(PortType::Features, &parts).unwrap().0.entries, whole.entries);
        });
    }
}

/// The types in which pandas, polars and Arrow write dates, categories and numbers.
#[test]
fn parquet_of_several_libraries() {
    let (whole, _) = of_text(PortType::Features, FEATURES).unwrap();
    let days = [18_044, 18_263, 18_044];
    let midnights = days.map(|day| i64::from(day) * 86_400_000_000_000);
    let symbols = ["ABC", "ABC", "XYZ"];
    let categories: DictionaryArray<Int8Type> = symbols.into_iter().collect();
    let columns = |symbol: ArrayRef, date: ArrayRef, value: ArrayRef, quality: ArrayRef| {
        let batch = RecordBatch::try_from_iter([
            ("symbol", symbol),
            ("date", date),
            ("value", value),
            ("quality", quality),
        ]);
        table::to_parquet(&batch.unwrap()).unwrap()
    };
    let qualities: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(7), Some(0)]));
    for bytes in [
        columns(
            Arc::new(StringArray::from(symbols.to_vec())),
            Arc::new(Date32Array::from(days.to_vec())),
            Arc::new(Float64Array::from(vec![1.5, 2.5, -1.0])),
            qualities.clone(),
        ),
        columns(
            Arc::new(categories),
            Arc::new(TimestampNanosecondArray::from(midnights.to_vec())),
            Arc::new(Float32Array::from(vec![1.5, 2.5, -1.0])),
            qualities.clone(),
        ),
        columns(
            Arc::new(StringArray::from(symbols.to_vec())),
            Arc::new(StringArray::from(vec!["2019-05-28", "2020-01-02", "2019-05-28"])),
            Arc::new(Float64Array::from(vec![1.5, 2.5, -1.0])),
            qualities,
        ),
    ] {
        let (found, _) = of(PortType::Features, &[file("f.parquet", bytes)]).unwrap();
        assert_eq!(found.entries, whole.entries);
    }
}

#[test]
fn what_does_not_fit_is_named() {
    use PortType::{Bars, Features, Rates, Table};
    for (ty, text, wanted) in [
        (
            Features,
            "date,value\n2019-05-28,1\n",
            "`f.csv` has no column `symbol`, which `features` needs",
        ),
        (
            Features,
            "symbol,date\nA,2019-05-28\n",
            "`f.csv` has no feature beside `symbol`, `date`",
        ),
        (Features, "symbol,date,v\n", "the output has no rows"),
        (
            Features,
            "symbol,date,expiry,strike,call,v\nA,2019-05-28,2019-05-27,10,true,1\n",
            "`f.csv`, row 2, column `expiry`: 2019-05-27 is before the day of the row, 2019-05-28",
        ),
        (
            Features,
            "symbol,date,expiry,strike,call,v\nA,2019-05-28,2019-06-21,0,true,1\n",
            "`f.csv`, row 2, column `strike`: 0 is not above 0",
        ),
        (
            Features,
            "symbol,date,expiry,strike,call,v\nA,2019-05-28,2019-06-21,10,true,1\nA,2019-05-28,2019-06-21,\
            10,true,2\n",
            "`f.csv`, row 3: a second row of A (A, expiry 2019-06-21, strike 10, call) on 2019-05-28; the \
            first is `f.csv`, row 2",
        ),
        (
            Features,
            "symbol,date,expiry,strike,call,v\nA,2019-05-28,2019-06-21,10,P,1\n",
            "`f.csv`, row 2, column `call`: `P` is neither true nor false",
        ),
        (
            Features,
            "symbol,date,expiry,strike,call,v\nA,2019-05-28,2019-06-21,10,,1\n",
            "`f.csv`, row 2, column `call`: the value is missing",
        ),
        (
            Features,
            "symbol,date,expiry,strike,v\nA,2019-05-28,2019-06-21,10,1\n",
            "`f.csv`, row 2, column `expiry`: `2019-06-21` is not a number",
        ),
        (
            Features,
            "symbol,date,contract,v\nA,2019-05-28,A190621X00010000,1\n",
            "`f.csv`, row 2, column `contract`: `A190621X00010000` is not the symbol of a contract",
        ),
        (
            Features,
            "symbol,date,expiry,strike,call\nA,2019-05-28,2019-06-21,10,true\n",
            "`f.csv` has no feature beside `symbol`, `date`, `expiry`, `strike`, `call`",
        ),
        (Features, "", "`f.csv` is empty"),
        (Features, "a\0b", "`f.csv` is neither Parquet nor CSV"),
        (Features, "PAR1", "`f.csv` cannot be read"),
        (
            Features,
            "symbol,date,v\nA,2019-05-28,x\n",
            "`f.csv`, row 2, column `v`: `x` is not a number",
        ),
        (
            Features,
            "symbol,date,v\nA,2019-05-28,1\nA,2019-05-29,NaN\n",
            "`f.csv`, row 3, column `v`: NaN is not a value",
        ),
        (
            Features,
            "symbol,date,v\nA,2019-05-28,-inf\n",
            "`f.csv`, row 2, column `v`: the number is infinite",
        ),
        (
            Features,
            "symbol,date,v\n,2019-05-28,1\n",
            "`f.csv`, row 2, column `symbol`: the value is missing",
        ),
        (
            Features,
            "symbol,date,v\nA,28/05/2019,1\n",
            "`f.csv`, row 2, column `date`: `28/05/2019` is not a date",
        ),
        (
            Features,
            "symbol,date,v\nA,2019-02-30,1\n",
            "`f.csv`, row 2, column `date`: `2019-02-30` is not a date",
        ),
        (
            Features,
            "symbol,date,v\nA,1066-10-14,1\n",
            "`f.csv`, row 2, column `date`: the date is not in the years 1800 to 2199",
        ),
        (
            Features,
            "symbol,date,v\nB,2019-05-28,1\nA,2019-05-28,1\n\nB,2019-05-28,1\n",
            "`f.csv`, row 5: a second row of B on 2019-05-28; the first is `f.csv`, row 2",
        ),
        (
            Features,
            "symbol,date,v,v\nA,2019-05-28,1,1\n",
            "`f.csv` has two columns `v`",
        ),
        (
            Features,
            ",symbol,date,v\n0,A,2019-05-28,1\n",
            "`f.csv` has a column without a name",
        ),
        (
            Features,
            "symbol,date,snapshot,v\nA,2019-05-28,1,1\n",
            "`f.csv`, column `snapshot`: features of several times a day are not read",
        ),
        (
            Table,
            "x,y\n1,2\n",
            "`f.csv` has no column `date` or `snapshot`, one of which `table` needs",
        ),
        (
            Table,
            "symbol,date\nA,2019-05-28\n",
            "`f.csv` has no column beside `symbol`, `date`",
        ),
        (
            Table,
            "snapshot,x\n2019-05-28,1\n",
            "`f.csv`, row 2, column `snapshot`: `2019-05-28` is not an instant",
        ),
        (
            Table,
            "snapshot,x\n2019-05-28 10:00,1\n2019-05-28 10:00:00Z,2\n",
            "`f.csv`, row 3: a second row of table on 2019-05-28 10:00:00 UTC; the first is `f.csv`, row 2",
        ),
        (
            Table,
            "snapshot,x\n1066-10-14 09:00,1\n",
            "`f.csv`, row 2, column `snapshot`: the instant is not in the years 1800 to 2199",
        ),
        (
            Bars,
            "symbol,date\nA,2019-05-28\n",
            "`f.csv` has no column `close`, which `bars` needs",
        ),
        (
            Bars,
            "symbol,date,close,Volume\nA,2019-05-28,1,1\n",
            "`f.csv`, column `Volume`: `bars` has no such column",
        ),
        (
            Bars,
            "symbol,date,close\nA,2019-05-28,\n",
            "`f.csv`, row 2, column `close`: the value is missing",
        ),
        (
            Bars,
            "symbol,date,close\nA,2019-05-28,0\n",
            "`f.csv`, row 2, column `close`: the price 0 is not above 0",
        ),
        (
            Bars,
            "symbol,date,close,high\nA,2019-05-28,2,1\n",
            "`f.csv`, row 2, column `close`: 2 is not within low NaN and high 1",
        ),
        (
            Bars,
            "symbol,date,close,volume\nA,2019-05-28,2,-1\n",
            "`f.csv`, row 2, column `volume`: -1 is below 0",
        ),
        (
            Rates,
            "date,tenor_years,rate\n2019-05-28,1,5\n",
            "`f.csv`, row 2, column `rate`: the rate 5 is not from -0.1 to 0.5",
        ),
        (
            Rates,
            "date,tenor_years,rate\n2019-05-28,1,0\n2019-05-28,1,0\n",
            "`f.csv`, row 3: a second row of tenor 1 on 2019-05-28; the first is `f.csv`, row 2",
        ),
    ] {
        let found = of_text(ty, text).unwrap_err();
        assert!(found.starts_with(wanted), "{text}\n{found}\n{wanted}");
    }
    let parts = [("a", "v"), ("b", "w")]
        .map(|(name, column)| file(name, format!("symbol,date,{column}\nA,2019-05-28,1\n")));
    assert_eq!(
        of(Features, &parts).unwrap_err(),
        "`a` has the column `v`, and `b` has not"
    );
    assert_eq!(of(Features, &[]).unwrap_err(), "the output holds no file");
    let noon: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![43_200_000_000_000]));
    let flags: ArrayRef = Arc::new(arrow_array::BooleanArray::from(vec![true]));
    let one: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
    let (a, day): (ArrayRef, ArrayRef) = (
        Arc::new(StringArray::from(vec!["A"])),
        Arc::new(Date32Array::from(vec![0])),
    );
    for (date, value, wanted) in [
        (
            noon,
            one,
            "`f.parquet`, row 1, column `date`: the instant is not a day: it is not midnight UTC",
        ),
        (day, flags, "`f.parquet`, column `v`: holds true and false, not numbers"),
    ] {
        let batch =
            RecordBatch::try_from_iter([("symbol", a.clone()), ("date", date), ("v", value)]).unwrap();
        let bytes = table::to_parquet(&batch).unwrap();
        assert_eq!(of(Features, &[file("f.parquet", bytes)]).unwrap_err(), wanted);
    }
}

/// If a change of code or of a dependency moves one, raise the [`super::version`] of the type, and then the
/// digest here.
#[test]
fn golden() {
    let digests: Vec<String> = [
        (PortType::Features, FEATURES),
        (PortType::Bars, BARS),
        (PortType::Rates, RATES),
    ]
    .into_iter()
    .map(|(ty, text)| of_text(ty, text).unwrap().0.entries[0].blob.to_hex()[..16].to_owned())
    .collect();
    assert_eq!(digests, ["102e4abd716d4f46", "9eb0b85ad77597cd", "78ec3e580e720605"]);
}

/// Corporate actions by symbol, date and kind; each has what its kind needs.
#[test]
fn corporate_actions_are_written() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    let stored = |text: &str| {
        let file = WrittenFile {
            name: "actions.csv".to_owned(),
            bytes: Bytes::from(text.to_owned()),
        };
        write(
            &store,
            PortType::CorporateActions,
            &[file],
            &BTreeMap::new(),
            &[],
            &|| Ok(()),
            &Silent,
        )
    };
    let digest = stored(
        "symbol,date,kind,ratio,amount,new_symbol\nB,2020-01-02,symbol_change,,,C\nA,2020-08-31,split,4,\
        ,\nA,2020-08-31,cash_dividend,,0.82,\n",
    )
    .unwrap();
    let input = Input {
        digest,
        artifact: store.artifact(digest).unwrap(),
    };
    let set = crate::dataset::DataSet::open(&input).unwrap();
    let mut found = Vec::new();
    for batch in set.read_all(&store).unwrap() {
        found.extend(crate::corporate_actions::read(&batch).unwrap());
    }
    let found: Vec<String> = found
        .iter()
        .map(|action| format!("{} {} {:?}", action.symbol, action.date, action.kind))
        .collect();
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found[0].starts_with("A 2020-08-31") && found[2].starts_with("B 2020-01-02"),
        "{found:?}"
    );
    let refused = |rows: &str| {
        stored(&format!("symbol,date,kind,ratio,amount\n{rows}"))
            .unwrap_err()
            .message
    };
    assert!(refused("A,2020-08-31,merger,1,\n").contains("row 2, column `kind`: `merger` is not a kind"));
    assert!(refused("A,2020-08-31,split,,\n").contains("column `ratio`: a split needs a ratio above 0"));
    assert!(refused("A,2020-08-31,cash_dividend,,-1\n").contains("a cash dividend needs an amount above 0"));
    assert!(refused("A,2020-08-31,split,4,\nA,2020-08-31,split,4,\n").contains("a second row of A"));
}

const GREEKS: &str = "symbol,date,expiry,root,strike,call,delta\nSPX,2019-02-01,2019-03-15,SPX,2700,false,\
    -0.4\nSPX,2019-01-31,2019-03-15,SPX,2700,true,0.5\nSPX,2019-02-01,2019-03-15,SPX,2700,true,0.6\n";

const CHAIN: &str = "\
symbol,date,expiry,root,strike,call,bid,ask,underlying,forward,discount_factor,multiplier,exercise
SPX,2019-02-01,2019-03-15,SPX,2700,false,30,31,2705,2708.5,0.997,100,european
SPX,2019-01-31,2019-03-15,SPX,2700,true,40,,2702,2706,0.997,,
SPX,2019-02-01,2019-03-15,SPX,2700,true,41,42,2705,2708.5,0.997,,
XYZ,2019-02-01,2019-03-15,XYZ,50,true,1,1.2,49,,,10,
";

#[test]
fn metrics_of_both_forms() {
    let stored = |texts: &[&str]| -> Result<(Artifact, String), String> {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let files: Vec<WrittenFile> = texts.iter().map(|text| file("m.json", *text)).collect();
        let digest = write(
            &store,
            PortType::Metrics,
            &files,
            &BTreeMap::new(),
            &[],
            &|| Ok(()),
            &Silent,
        )
        .map_err(|err| {
            assert!(err.hint.is_some(), "no remedy: {}", err.message);
            err.message
        })?;
        let artifact = store.artifact(digest).unwrap();
        let bytes = store
            .blob(artifact.entry("metrics.jsonl").unwrap().blob)
            .unwrap()
            .to_vec();
        Ok((artifact, String::from_utf8(bytes).unwrap()))
    };
    let lines = "{\"name\":\"loss\",\"step\":0,\"value\":2.0}\n\
        {\"name\":\"loss\",\"step\":5,\"value\":0.5}\n\
        {\"name\":\"sharpe\",\"step\":0,\"value\":1.25}\n";
    let (artifact, found) = stored(&[lines]).unwrap();
    assert_eq!(found, lines);
    assert_eq!(
        artifact.meta["summary"],
        serde_json::json!({ "loss": 0.5, "sharpe": 1.25 })
    );
    // In another order, over two files, one of them an object of figures.
    let parts = [
        "[{\"value\": 0.5, \"name\": \"loss\", \"step\": 5}, {\"name\": \"loss\", \"value\": 2}]",
        "{\"sharpe\": 1.25}",
    ];
    assert_eq!(stored(&parts).unwrap().0, artifact);
    assert_eq!(
        stored(&["{\"calmar\": null}"]).unwrap().0.meta["summary"]["calmar"],
        serde_json::Value::Null
    );
    for (text, wanted) in [
        ("", "the output has no metric"),
        ("{}", "the output has no metric"),
        (
            "{\"sharpe\": \"high\"}",
            "`m.json`, `sharpe`: the value \"high\" is not a number",
        ),
        ("{\"sharpe\": NaNs}", "`m.json`, row 1 is not JSON: "),
        (
            "{\"name\": \"a\", \"value\": 1}\n\n{\"name\": \"a\", \"value\": 2}\n",
            "`m.json`, row 3: a second value of `a` at step 0; the first is `m.json`, row 1",
        ),
        (
            "{\"name\": \"a\", \"step\": -1, \"value\": 1}\n",
            "`m.json`, row 1: the step -1 is not a whole number",
        ),
        ("{\"name\": \"a\"}", "`m.json`, row 1: has no `value`"),
        (
            "{\"name\": \"a\", \"value\": 1, \"time\": 2}",
            "`m.json`, row 1: has `time`, which metrics do not have",
        ),
        ("7", "`m.json`, row 1: is not an object"),
        ("[1]", "`m.json`, item 1: is not an object"),
        ("{\"\": 1}", "`m.json`, ``: the name of a metric is empty"),
    ] {
        let found = stored(&[text]).unwrap_err();
        assert!(found.starts_with(wanted), "{text}\n{found}\n{wanted}");
    }
}

#[derive(Default)]
struct Said(std::sync::Mutex<Vec<String>>);

impl EventSink for Said {
    fn emit(&self, event: StageEvent) {
        if let StageEvent::Warning { message, .. } = event {
            self.0.lock().unwrap().push(message);
        }
    }
}

/// The summary of a program's metrics, and what is said of them.
fn summary(text: &str) -> (serde_json::Value, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let (store, said) = (Store::open(dir.path()).unwrap(), Said::default());
    let files = [file("m.json", text)];
    let (ty, none) = (PortType::Metrics, BTreeMap::new());
    let digest = write(&store, ty, &files, &none, &[], &|| Ok(()), &said).unwrap();
    let summary = store.artifact(digest).unwrap().meta["summary"].clone();
    (summary, said.0.into_inner().unwrap())
}

/// A value that is no number in the metrics of a program is null, and said once with its place; a name that
/// only looks like one is not changed.
#[test]
fn figures_that_are_no_numbers_are_read_as_null_and_said() {
    let words = [
        "NaN",
        "-NaN",
        "nan",
        "Infinity",
        "-Infinity",
        "inf",
        "-inf",
        "\"NaN\"",
        "\"-Infinity\"",
        "\"inf\"",
    ];
    let (mut tried, mut told) = (0, 0);
    for word in words {
        for (place, text) in [
            ("`m.json`, `sharpe`", format!("{{\"sharpe\": {word}, \"NaN\": 1}}")),
            (
                "`m.json`, item 1",
                format!("[{{\"name\": \"sharpe\", \"value\": {word}}}, {{\"name\": \"NaN\", \"value\":1}}]"),
            ),
            (
                "`m.json`, row 2",
                format!(
                    "{{\"name\": \"NaN\", \"value\": 1}}\n\
                    {{\"value\":{word},\"step\":0,\"name\":\"sharpe\"}}\n"
                ),
            ),
        ] {
            let (summary, said) = summary(&text);
            assert_eq!(summary, serde_json::json!({ "NaN": 1.0, "sharpe": null }));
            let shown = word.trim_matches('"');
            assert_eq!(
                said,
                [format!(
                    "{place}: the value of `sharpe` is {shown}, and is read as null"
                )]
            );
            (tried, told) = (tried + 1, told + 1);
        }
    }
    let (_, said) = summary("{\"a\": NaN, \"b\\\" NaN\": Infinity, \"c\": 3, \"d\": -1e-3}");
    assert_eq!(
        said,
        ["`m.json`, `a`: the value of `a` is NaN, and is read as null, and so are 1 more"]
    );
    println!("figures that are no numbers: tried {tried}, told {told}, right {tried}, silent 0");
}
