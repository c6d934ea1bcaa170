//! Rows of option contracts: chains, Greeks, and features by contract.

use super::*;

/// Rows of contracts are features by contract, cut as a chain is, whether terms or symbols name the
/// contracts.
#[test]
fn features_by_contract() {
    let (artifact, tables) = of_text(PortType::Features, OF_CONTRACTS).unwrap();
    let paths: Vec<&str> = artifact.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(
        paths,
        ["SPX/2019-01-01_2019-01-31.parquet", "SPX/2019-02-01_2019-02-28.parquet"]
    );
    assert_eq!(
        artifact.meta,
        serde_json::json!({ "by": "contract", "features": ["score"], "rows": 3 })
    );
    let calls: Vec<bool> = table::bools(&tables[1], "call").unwrap().values().iter().collect();
    assert_eq!(calls, [true, false]);
    assert_eq!(
        table::floats(&tables[1], "score").unwrap(),
        &Float64Array::from(vec![None, Some(-1.0)])
    );
    let symbols = "date,contract,symbol,score\n2019-02-01,SPXW190315P02700000,SPX,-1\n\
                   2019-02-01,O:SPXW190315C02700000,SPX,\n2019-01-31,SPX   190315C02650500,SPX,2\n";
    assert_eq!(of_text(PortType::Features, symbols).unwrap().0, artifact);
    // Without a class it is the symbol.
    let (_, tables) = of_text(
        PortType::Features,
        "symbol,date,expiry,strike,call,score\nSPX,2019-02-01,2019-03-15,2700,1,0\n",
    )
    .unwrap();
    assert_eq!(table::texts(&tables[0], "root").unwrap().value(0), "SPX");
    // A feature may have the name of a column that is missing here, or of the contract's symbol.
    let (artifact, _) =
        of_text(PortType::Features, "symbol,date,strike,contract\nA,2019-02-01,3,4\n").unwrap();
    assert_eq!(
        artifact.meta,
        serde_json::json!({ "features": ["strike", "contract"], "rows": 1 })
    );
    // Files of a chain's partitions are these partitions; one without rows is left out.
    let header = OF_CONTRACTS.lines().next().unwrap();
    let files = [
        file("SPX/2019-01-01_2019-06-30.parquet", OF_CONTRACTS),
        file("SPX/2019-07-01_2019-12-31.parquet", header),
    ];
    let (artifact, _) = of(PortType::Features, &files).unwrap();
    assert_eq!(artifact.entries.len(), 1);
    assert_eq!(artifact.entries[0].path, "SPX/2019-01-01_2019-06-30.parquet");
    // Those of several symbols are none of a chain.
    let (artifact, _) = of(
        PortType::Features,
        &[file("A..Z/2019-01-01_2019-12-31.parquet", OF_CONTRACTS)],
    )
    .unwrap();
    assert_eq!(artifact.entries.len(), 2);
}

#[test]
fn features_by_contract_at_instants() {
    let text = "symbol,date,snapshot,expiry,strike,call,score\n\
                SPX,2019-02-01,2019-02-01T20:45:00Z,2019-03-15,2700,true,2\nSPX,2019-02-01,\
                2019-02-01T14:31:00Z,2019-03-15,2700,true,1\n";
    let (_, tables) = of_text(PortType::Features, text).unwrap();
    assert_eq!(table::floats_or_nan(&tables[0], "score").unwrap(), [1.0, 2.0]);
    let wrong = text.replace("2019-02-01T20:45", "2019-02-04T20:45");
    let err = of_text(PortType::Features, &wrong).unwrap_err();
    assert!(err.contains("the instant is not of the day 2019-02-01"), "{err}");
}

/// A partition from which pandas took all rows has lost the types of its columns.
#[test]
fn a_partition_without_rows_has_no_types() {
    let empty = |names: &[&str]| {
        let columns = names
            .iter()
            .map(|name| (*name, arrow_array::new_null_array(&arrow_schema::DataType::Null, 0)));
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)));
        table::to_parquet(&batch.unwrap()).unwrap()
    };
    let terms = empty(&["symbol", "date", "expiry", "root", "strike", "call", "score"]);
    let files = [
        file("SPX/2018-01-01_2018-12-31.parquet", terms),
        file("SPX/2019-01-01_2019-12-31.parquet", OF_CONTRACTS),
    ];
    assert_eq!(of(PortType::Features, &files).unwrap().0.entries.len(), 1);
    let symbols = empty(&["symbol", "date", "contract", "score"]);
    let files = [
        file("SPX/2018-01-01_2018-12-31.parquet", symbols),
        file(
            "SPX/2019-01-01_2019-12-31.parquet",
            "symbol,date,contract,score\nSPX,2019-02-01,SPXW190315P02700000,1\n",
        ),
    ];
    assert_eq!(of(PortType::Features, &files).unwrap().0.entries.len(), 1);
}

#[test]
fn greeks_are_in_the_order_of_a_chain() {
    let (artifact, tables) = of_text(PortType::Greeks, GREEKS).unwrap();
    let paths: Vec<&str> = artifact.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(
        paths,
        ["SPX/2019-01-01_2019-01-31.parquet", "SPX/2019-02-01_2019-02-28.parquet"]
    );
    let calls: Vec<bool> = table::bools(&tables[1], "call").unwrap().values().iter().collect();
    assert_eq!(calls, [true, false]);
    assert_eq!(table::floats_or_nan(&tables[1], "delta").unwrap(), [0.6, -0.4]);
    assert!(artifact.meta["columns"]["delta"].is_string());
    assert!(artifact.meta["columns"]["gamma"].is_null());
    let err = of_text(
        PortType::Greeks,
        &format!("{GREEKS}SPX,2019-02-01,2019-03-15,SPX,2700,true,0.7\n"),
    )
    .unwrap_err();
    assert!(err.contains("a second row of SPX"), "{err}");
    let err = of_text(PortType::Greeks, &GREEKS.replace("true", "yes")).unwrap_err();
    assert!(err.contains("`yes` is neither true nor false"), "{err}");
    let err = of_text(PortType::Greeks, &GREEKS.replace("-0.4", "inf")).unwrap_err();
    assert!(err.contains("infinite"), "{err}");
}

#[test]
fn greeks_in_files_of_the_chains_names_are_its_partitions() {
    let quarter = file("SPX/2019-01-01_2019-03-31.parquet", GREEKS);
    let (artifact, tables) = of(PortType::Greeks, &[quarter]).unwrap();
    assert_eq!(artifact.entries[0].path, "SPX/2019-01-01_2019-03-31.parquet");
    assert_eq!(tables[0].num_rows(), 3);
    let err = of(PortType::Greeks, &[file("SPX/2019-01-01_2019-01-31.parquet", GREEKS)]).unwrap_err();
    assert!(err.contains("a row of SPX on 2019-02-01 in the partition"), "{err}");
}

#[test]
fn greeks_of_several_snapshots_a_day() {
    let text = "symbol,date,snapshot,expiry,strike,call,delta\nBTC,2024-01-02,2024-01-02T10:00:00Z,\
        2024-03-29,50000,true,0.5\nBTC,2024-01-02,2024-01-02T09:00:00Z,2024-03-29,50000,true,0.4\n";
    let (_, tables) = of_text(PortType::Greeks, text).unwrap();
    assert_eq!(table::floats_or_nan(&tables[0], "delta").unwrap(), [0.4, 0.5]);
    assert_eq!(table::texts(&tables[0], "root").unwrap().value(0), "BTC");
}

#[test]
fn chains_have_the_form_of_those_from_files() {
    let (artifact, tables) = of_text(PortType::OptionChain, CHAIN).unwrap();
    let paths: Vec<&str> = artifact.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "SPX/2019-01-01_2019-01-31.parquet",
            "SPX/2019-02-01_2019-02-28.parquet",
            "XYZ/2019-02-01_2019-02-28.parquet",
        ]
    );
    assert_eq!(artifact.kind, "option_chain");
    let fields = tables[1].schema();
    let names: Vec<&str> = fields.fields().iter().map(|field| field.name().as_str()).collect();
    let of_chain = datasets::schema::OPTION_CHAIN.iter().map(|column| column.name);
    let expected: Vec<&str> = of_chain.chain(["forward", "discount_factor"]).collect();
    assert_eq!(names, expected, "the terms of contracts are in the metadata");
    let calls: Vec<bool> = table::bools(&tables[1], "call").unwrap().values().iter().collect();
    assert_eq!(calls, [true, false], "calls are before puts");
    assert_eq!(table::floats_or_nan(&tables[1], "forward").unwrap(), [2708.5, 2708.5]);
    let contracts = crate::contracts::read(&artifact.meta).unwrap();
    let of = |root: &str| serde_json::to_value(contracts.of(root, root).unwrap()).unwrap();
    assert_eq!(
        (&of("SPX")["exercise"], &of("SPX")["origin"]["exercise"]),
        (&"european".into(), &"file".into())
    );
    assert_eq!(of("SPX")["expires"], "am", "by the exchange's specification");
    assert_eq!(
        (&of("XYZ")["multiplier"], &of("XYZ")["origin"]["multiplier"]),
        (&10.0.into(), &"file".into())
    );
    assert_eq!(artifact.meta["symbols"], serde_json::json!(["SPX", "XYZ"]));
    assert_eq!(
        artifact.meta["has"]["columns"],
        serde_json::json!(["forward", "discount_factor"])
    );
}

/// The messages of warnings.
#[derive(Default)]
struct Warnings(std::sync::Mutex<Vec<String>>);

impl EventSink for Warnings {
    fn emit(&self, event: StageEvent) {
        if let StageEvent::Warning { message, .. } = event {
            self.0.lock().unwrap().push(message);
        }
    }
}

/// Terms that nothing states are warned of.
#[test]
fn assumed_terms_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let warnings = Warnings::default();
    let files = [file("c.csv", CHAIN)];
    write(
        &store,
        PortType::OptionChain,
        &files,
        &BTreeMap::new(),
        &[],
        &|| Ok(()),
        &warnings,
    )
    .unwrap();
    let found = warnings.0.into_inner().unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("nothing states these terms of the contracts of XYZ, they are assumed: "),
        "{found:?}"
    );
    assert!(
        found[0].contains("exercise: american") && !found[0].contains("multiplier"),
        "{found:?}"
    );
}

/// Terms that no row states are those of the chains at the inputs, where these don't assume them, and agree.
#[test]
fn the_terms_of_contracts_of_the_inputs_are_kept() {
    let terms = |kind: &str, contracts: &str| -> Vec<Input> {
        let (mut artifact, _) = of_text(PortType::OptionChain, CHAIN).unwrap();
        artifact.kind = kind.to_owned();
        artifact.meta["contracts"] = serde_json::from_str(contracts).unwrap();
        let digest = ArtifactDigest::from_bytes([7; 32]);
        vec![Input { digest, artifact }]
    };
    let one = terms(
        "option_chain",
        r#"{ "SPX": { "symbol": "SPX", "exercise": "american", "multiplier": 50, "expires": "pm", "origin": { "exercise": "config", "multiplier": "config", "expires": "config" } },
            "XYZ": { "symbol": "XYZ", "exercise": "european", "settlement": "cash", "currency": "EUR", "multiplier": 5, "deliverable": "5 XYZ",
                     "origin": { "exercise": "file", "settlement": "layout", "currency": "assumed", "multiplier": "config", "deliverable": "file" } } }"#,
    );
    let other = terms(
        "option_chain",
        r#"{ "XYZ": { "symbol": "XYZ", "exercise": "european", "settlement": "physical", "underlying_kind": "etf", "origin": { "exercise": "config", "settlement": "config", "underlying_kind": "layout" } } }"#,
    );
    let no_chain = terms(
        "greeks",
        r#"{ "XYZ": { "symbol": "XYZ", "calendar": "us", "origin": { "calendar": "config" } } }"#,
    );
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let adjusted = format!("{CHAIN}XYZ,2019-02-01,2019-03-15,XYZ@7,50,true,1,1.2,49,,,,\n");
    let known = |inputs: &[(&str, &Vec<Input>)]| {
        let warnings = Warnings::default();
        let inputs = inputs
            .iter()
            .map(|(port, inputs)| ((*port).to_owned(), (*inputs).clone()))
            .collect();
        let files = [file("c.csv", adjusted.as_str())];
        let digest = write(
            &store,
            PortType::OptionChain,
            &files,
            &inputs,
            &[],
            &|| Ok(()),
            &warnings,
        )
        .unwrap();
        let contracts = crate::contracts::read(&store.artifact(digest).unwrap().meta).unwrap();
        let of = |root: &str| {
            let facts = contracts.of(root.split('@').next().unwrap(), root).unwrap();
            let terms = facts.terms.stated().into_iter();
            let terms = terms.map(|(term, value)| {
                format!(
                    "{term} {value} {}",
                    serde_json::to_value(facts.origin[term]).unwrap().as_str().unwrap()
                )
            });
            terms.collect::<Vec<_>>().join(", ")
        };
        (["SPX", "XYZ", "XYZ@7"].map(of), warnings.0.into_inner().unwrap())
    };
    let ([spx, xyz, adjusted], warnings) = known(&[("a", &one), ("b", &no_chain)]);
    // Its columns state that it is European and the multiplier; the specification of SPX has `am`.
    assert!(
        spx.starts_with(
            "underlying_kind index specification, exercise european file, settlement cash \
        specification, expires pm config"
        ),
        "{spx}"
    );
    assert!(spx.contains("multiplier 100 file"), "{spx}");
    for term in [
        "exercise european file",
        "settlement cash layout",
        "multiplier 10 file",
        "deliverable 5 XYZ file",
        "currency USD assumed",
        "calendar weekends assumed",
    ] {
        assert!(xyz.contains(term), "{term}: {xyz}");
    }
    assert!(
        adjusted.contains("exercise european file, settlement cash layout"),
        "{adjusted}"
    );
    assert!(
        !adjusted.contains("deliverable") && !adjusted.contains("multiplier 5"),
        "{adjusted}"
    );
    assert!(
        warnings.iter().all(|warning| !warning.contains("exercise")),
        "{warnings:?}"
    );
    let ([_, xyz, _], warnings) = known(&[("a", &one), ("b", &other)]);
    for term in [
        "exercise european file",
        "settlement physical assumed",
        "underlying_kind etf layout",
    ] {
        assert!(xyz.contains(term), "{term}: {xyz}");
    }
    let disputed = "the chains at the inputs disagree on `settlement` of the contracts of XYZ: cash (`a`) \
        and physical (`b`); it is taken from neither";
    assert_eq!(
        warnings.iter().filter(|warning| *warning == disputed).count(),
        1,
        "{warnings:?}"
    );
    assert_eq!(known(&[]), known(&[("b", &no_chain)]));
}

#[test]
fn chains_that_do_not_fit_are_named() {
    let row =
        |row: &str| format!("symbol,date,expiry,strike,call,bid,ask,forward,exercise,multiplier\n{row}\n");
    for (text, wanted) in [
        (
            "symbol,date,strike,call\n".to_owned(),
            "`f.csv` has no column `expiry`, which `option_chain` needs",
        ),
        (
            "symbol,date,expiry,strike,call,iv\n".to_owned(),
            "`f.csv`, column `iv`: `option_chain` has no such column",
        ),
        (
            row("A,2019-01-02,2019-01-01,5,true,1,2,,,"),
            "`f.csv`, row 2, column `expiry`: 2019-01-01 is before the day of the row, 2019-01-02",
        ),
        (
            row("A,2019-01-02,2019-02-01,0,true,1,2,,,"),
            "`f.csv`, row 2, column `strike`: 0 is not above 0",
        ),
        (
            row("A,2019-01-02,2019-02-01,5,true,3,2,,,"),
            "`f.csv`, row 2, column `bid`: the bid 3 is above the ask 2",
        ),
        (
            row("A,2019-01-02,2019-02-01,5,true,-1,2,,,"),
            "`f.csv`, row 2, column `bid`: -1 is below 0",
        ),
        (
            row("A,2019-01-02,2019-02-01,5,true,1,2,-5,,"),
            "`f.csv`, row 2, column `forward`: -5 is not above 0",
        ),
        (
            row("A,2019-01-02,2019-02-01,5,call,1,2,,,"),
            "`f.csv`, row 2, column `call`: `call` is neither true nor false",
        ),
        (
            row("A,2019-01-02,2019-02-01,5,true,1,2,,bermudan,"),
            "`f.csv`, row 2: `bermudan` is none of european, american",
        ),
        (
            row("A,2019-01-02,2019-02-01,5,true,1,2,,,100\nA,2019-01-02,2019-02-01,6,true,1,2,,,10"),
            "`f.csv`, row 3, column `multiplier`: the contracts of A have 10 here and 100 in `f.csv`, row 2",
        ),
        (
            row("A,2019-01-02,2019-02-01,5,true,1,2,,,\nA,2019-01-02,2019-02-01,5,true,1,2,,,"),
            "`f.csv`, row 3: a second row of A (A, expiry 2019-02-01, strike 5, call) on 2019-01-02; the \
            first is `f.csv`, row 2",
        ),
        (
            "symbol,date,snapshot,expiry,strike,call\nA,2019-01-02,2019-01-05T10:00:00Z,2019-02-01,5,true\n"
                .to_owned(),
            "`f.csv`, row 2, column `snapshot`: the instant is not of the day 2019-01-02",
        ),
    ] {
        let found = of_text(PortType::OptionChain, &text).unwrap_err();
        assert!(found.starts_with(wanted), "{text}\n{found}\n{wanted}");
    }
    let parts = [
        file(
            "a.csv",
            "symbol,date,expiry,strike,call\nA,2019-01-02,2019-02-01,5,true\n",
        ),
        file(
            "b.csv",
            "symbol,date,expiry,strike,call,forward\nA,2019-01-02,2019-02-01,6,true,5\n",
        ),
    ];
    assert_eq!(
        of(PortType::OptionChain, &parts).unwrap_err(),
        "`b.csv` has the column `forward`, and `a.csv` has not"
    );
}

/// The same rows in any order, in files of other names; a big first day makes partitions of days, and names
/// of partitions are kept.
#[test]
fn partitions_of_chains() {
    let (whole, _) = of_text(PortType::OptionChain, CHAIN).unwrap();
    let mut lines: Vec<&str> = CHAIN.lines().collect();
    lines[1..].reverse();
    assert_eq!(of_text(PortType::OptionChain, &lines.join("\n")).unwrap().0, whole);
    let mut text = "symbol,date,expiry,strike,call\n".to_owned();
    for (day, strikes) in [("2019-01-02", 5001), ("2019-01-03", 3)] {
        for strike in 1..=strikes {
            text.push_str(&format!("A,{day},2019-02-01,{strike},true\n"));
        }
    }
    let (artifact, _) = of_text(PortType::OptionChain, &text).unwrap();
    let paths: Vec<&str> = artifact.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(
        paths,
        ["A/2019-01-02_2019-01-02.parquet", "A/2019-01-03_2019-01-03.parquet"]
    );
    let (artifact, _) = of(PortType::OptionChain, &[file("A/2019-01-01_2019-12-31.parquet", text)]).unwrap();
    assert_eq!(artifact.entries.len(), 1);
}
