use super::*;
use crate::form::json_part;
use arrow_schema::DataType;
use datasets::Date;
use datasets::layout::{Form, JsonRows};
use datasets::layout::{Mapping, Unit};
use proptest::prelude::*;

fn packed(bytes: &[u8]) -> Packed {
    Packed {
        place: "t.csv".to_owned(),
        stem: "t".to_owned(),
        path: "t.csv".to_owned(),
        bytes: bytes.to_vec().into(),
        part: None,
        format: Format::Csv,
        numbering: Numbering::Lines(0),
        lines: None,
        raw: None,
        notes: Default::default(),
    }
}

fn number(theirs: &'static str) -> Mapping {
    Mapping {
        absolute: false,
        ours: "x".to_owned(),
        theirs: theirs.to_owned(),
        unit: Unit::AsIs,
        plus_hours: None,
        tenor_years: None,
        optional: false,
    }
}

/// The form of a JSON document that is a list.
fn json_form() -> Form {
    Form {
        json: Some(JsonRows::default()),
        ..Form::default()
    }
}

#[test]
fn columns_by_name_in_any_order() {
    for text in [
        "a, B ,\"c d\"\n1,2,x\n\n3,,\"y,z\"\n",
        "\u{feff}a;B;c d\r\n1;2;x\r\n3;;y,z\r\n",
    ] {
        let packed = packed(text.as_bytes());
        let frame = Frame::read(&packed, |name| name != "q").unwrap();
        assert_eq!(frame.rows(), 2);
        assert_eq!(frame.numbers(&number("A")).unwrap(), [1.0, 3.0]);
        assert!(frame.numbers(&number("b")).unwrap()[1].is_nan());
        let mut texts = Vec::new();
        frame
            .texts("C D", |_, text| {
                texts.push(text.to_owned());
                Ok(())
            })
            .unwrap();
        assert_eq!(texts, ["x", "y,z"]);
        assert!(!frame.has("q"));
    }
}

/// Numbers in text and JSON are parsed exactly as Rust does, to the last bit.
#[test]
fn decimals_are_correctly_rounded() {
    let mut state = 1_u64;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 11
    };
    let decimal = |_| format!("{}.{}e{}", random(), random(), random() % 60).replace("e5", "e-2");
    let decimals: Vec<String> = (0..100_000).map(decimal).collect();
    let wanted: Vec<u64> = decimals
        .iter()
        .map(|text| text.parse::<f64>().unwrap().to_bits())
        .collect();
    let csv = format!(
        "a,b\n{}",
        decimals.iter().map(|text| format!("{text},x\n")).collect::<String>()
    );
    let packed = packed(csv.as_bytes());
    let bits = |frame: &Frame| -> Vec<u64> {
        let numbers = frame.numbers(&number("a")).unwrap();
        numbers.into_iter().map(f64::to_bits).collect()
    };
    let numbers = Frame::read_with_numbers(&packed, |name| name == "a", |_| true).unwrap();
    assert!(*numbers.columns[0].data_type() == DataType::Float64 && bits(&numbers) == wanted);
    let texts = Frame::read(&packed, |name| name == "a").unwrap();
    assert!(texts.columns[0].is_text() && bits(&texts) == wanted);
    let rows: Vec<String> = decimals.iter().map(|text| format!("{{\"a\":{text}}}")).collect();
    let json = Packed {
        bytes: format!("[{}]", rows.join(",")).into_bytes().into(),
        ..packed
    };
    let part = json_part(&json, &json_form()).unwrap();
    let json = Packed {
        part: Some(Arc::new(part)),
        format: Format::Json,
        ..json
    };
    assert!(bits(&Frame::read(&json, |_| true).unwrap()) == wanted);
}

#[test]
fn texts_of_json_keep_their_quotes() {
    let json = br#"[{"a":"6\" x \"b, c\"\nd"}]"#;
    let part = json_part(&packed(json), &json_form()).unwrap();
    let frame = Frame::read(
        &Packed {
            part: Some(Arc::new(part)),
            ..packed(json)
        },
        |_| true,
    )
    .unwrap();
    let mut texts = Vec::new();
    frame
        .texts("a", |_, text| {
            texts.push(text.to_owned());
            Ok(())
        })
        .unwrap();
    assert_eq!(texts, ["6\" x \"b, c\"\nd"]);
}

#[test]
fn errors_name_file_row_and_column() {
    let read = |text: &str| -> Result<Vec<Date>, StageError> {
        let packed = packed(text.as_bytes());
        let frame = Frame::read(&packed, |_| true)?;
        frame.numbers(&number("b"))?;
        frame.dates("d", &["%Y-%m-%d".to_owned()], "")
    };
    let message = |text: &str| read(text).map_err(|err| err.message);
    assert_eq!(message("b,d\n1,2019-01-02\n").unwrap(), [Date(17_898)]);
    assert_eq!(
        message("b,d\n1,2019-01-02\n\nx,2019-01-02\n").unwrap_err(),
        "`t.csv`, row 4, column `b`: `x` is not a number"
    );
    assert_eq!(
        message("b,d\n1,01:02:2019\n").unwrap_err(),
        "`t.csv`, row 2, column `d`: `01:02:2019` is not a date as %Y-%m-%d"
    );
    assert_eq!(
        message("b,d\n1,\n").unwrap_err(),
        "`t.csv`, row 2, column `d`: the date is missing"
    );
    assert_eq!(
        message("b,d\n1,2019-01-02,3\n").unwrap_err(),
        "`t.csv`, row 2: 3 fields under a header of 2"
    );
    assert_eq!(
        message("b,d\n1,2019-01-02\n1").unwrap_err(),
        "`t.csv`, row 3: 1 fields under a header of 2"
    );
    assert_eq!(message("b\n1\n").unwrap_err(), "`t.csv` has no column `d`");
    assert!(message("").unwrap_err().contains("no header"));
    assert!(message("b,d\n").unwrap().is_empty());
}

#[test]
fn a_repeated_column_is_an_error() {
    let read = |text: &str| {
        let packed = packed(text.as_bytes());
        Frame::read(&packed, |name| matches!(name, "b" | "d"))
            .map(drop)
            .map_err(|err| err.message)
    };
    assert_eq!(
        read("b,x,d, B\n1,2,3,4\n").unwrap_err(),
        "`t.csv` has two columns `B`: the columns 1 and 4"
    );
    // Columns that are not read may have any name.
    read("b,,d,,x,x\n1,2,3,4,5,6\n").unwrap();
}

#[test]
fn bad_bytes_are_errors() {
    let bad = packed(b"b,d\n1,2\n\xff,2\n");
    assert!(Frame::read(&bad, |_| true).err().unwrap().message.contains("row 3"));
    let mut parquet = packed(b"PAR1 this is no parquet file PAR1");
    parquet.format = Format::Parquet;
    assert!(header(&parquet).is_err());
    assert!(Frame::read(&parquet, |_| true).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in prop::collection::vec(prop::sample::select(b"ab,;\"\n\r 1.\xc3\xa9-".to_vec()), 0..80)) {
        let packed = packed(&bytes);
        if let Ok(frame) = Frame::read(&packed, |_| true) {
            for name in frame.names.clone() {
                let _ = frame.numbers(&number("a"));
                let _ = frame.dates(&name, &["%Y-%m-%d".to_owned()], "");
            }
        }
    }
}
