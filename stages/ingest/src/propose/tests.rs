use super::*;
use datasets::layout::Table;

fn of(text: &str) -> Proposal {
    let mut lines = text
        .lines()
        .map(|line| line.split(';').map(str::to_owned).collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let rows: Vec<_> = lines.collect();
    let columns: Vec<(String, Vec<String>)> = header
        .into_iter()
        .enumerate()
        .map(|(i, name)| (name, rows.iter().map(|row| row[i].clone()).collect()))
        .collect();
    propose(&columns, &Form::default()).remove(0)
}

#[test]
fn names_and_values_make_a_mapping() {
    let proposal = of("Tag;Verfall;Basispreis Strike;CP;Best_Bid;Best_Ask;IV \
        %;n\n19.01.2024;16.02.2024;480;C;5.1;5.2;18.5;1\n22.01.2024;16.02.2024;480;P;5.1;5.2;19.5;2\n");
    assert_eq!(proposal.table(), Some(Table::Chain));
    let pairs: Vec<_> = proposal
        .columns
        .iter()
        .map(|(ours, theirs, _)| format!("{ours}={theirs}"))
        .collect();
    assert_eq!(
        pairs,
        [
            "date=Tag",
            "expiry=Verfall",
            "strike=Basispreis Strike",
            "call=CP",
            "bid=Best_Bid",
            "ask=Best_Ask",
            "implied_volatility=IV %"
        ]
    );
    assert_eq!(
        proposal.layout,
        ["date_format: \"%d.%m.%Y\"", "percent: [implied_volatility]"]
    );
    assert!(proposal.missing.is_empty());
    let yaml = proposal.yaml("data/x.csv", &[]);
    assert!(
        yaml.contains("          date: Tag  # by the earliest dates\n"),
        "{yaml}"
    );
    assert!(yaml.contains("          implied_volatility: \"IV %\"\n"), "{yaml}");
}

#[test]
fn times_of_day() {
    let pairs = |text: &str| {
        let proposal = of(text);
        let pairs = proposal
            .columns
            .iter()
            .take(2)
            .map(|(ours, theirs, _)| format!("{ours}={theirs}"));
        (
            pairs.collect::<Vec<_>>().join(" "),
            proposal.doubts.iter().any(|doubt| doubt.contains("`zone: ")),
        )
    };
    let rows = "2024-02-16;480;C;5.1;5.2";
    assert_eq!(
        pairs(&format!(
            "date;time;expiry;strike;cp;bid;ask\n2024-01-19;15:45:00;{rows}\n"
        )),
        ("date=date time=time".to_owned(), true)
    );
    assert_eq!(
        pairs(&format!(
            "timestamp;expiry;strike;cp;bid;ask\n2024-01-19 15:45:00;{rows}\n"
        )),
        ("date=timestamp expiry=expiry".to_owned(), true)
    );
    assert_eq!(
        pairs(&format!("date;expiry;strike;cp;bid;ask\n2024-01-19;{rows}\n")),
        ("date=date expiry=expiry".to_owned(), false)
    );
}

#[test]
fn symbols_of_contracts_and_bars() {
    let proposal =
        of("contract;when;px\nSPY240216C00480000;1705676400000;5.1\nSPY240216P00480000;1705676400000;5.2\n");
    assert_eq!(
        proposal.layout,
        [
            "date_format: \"epoch_ms\"",
            "contract_symbol: { column: contract, format: occ }"
        ]
    );
    assert_eq!(proposal.missing, ["bid", "ask"]);
    let proposal = of("Day;Settle\n20240119;480\n20240122;481\n");
    assert_eq!((proposal.table(), proposal.missing.len()), (Some(Table::Bars), 0));
    assert_eq!(proposal.layout, ["date_format: \"%Y%m%d\""]);
}

#[test]
fn a_chain_names_its_underlying() {
    let rows = "2024-01-19;XYZ;2024-02-16;480;C;5.1;5.2;480\n2024-01-22;XYZ;2024-02-16;480;P;5.1;5.2;480\n";
    for name in ["und", "Underlying"] {
        let proposal = of(&format!("trade_dt;{name};exp;K;type;Bid Px;Ask Px;spot\n{rows}"));
        assert_eq!(proposal.columns[0], ("symbol".to_owned(), name.to_owned(), "its name"));
        assert!(
            !proposal.doubts.iter().any(|doubt| doubt.contains("underlying")),
            "{name}"
        );
    }
    // A price of the underlying is no symbol.
    let proposal = of("trade_dt;underlying;exp;K;type;bid;ask\n2024-01-19;480;2024-02-16;480;C;5.1;5.2\n");
    assert!(!proposal.columns.iter().any(|(ours, ..)| ours == "symbol"));
}

#[test]
fn the_order_of_day_and_month_by_another_column() {
    let proposal = of(
        "quote_date;expiration;K;type;bid;ask\n06/03/2019;01/17/2020;480;C;5.1;5.2\n\
         06/03/2019;07/19/2019;480;P;5.1;5.2\n",
    );
    assert_eq!(proposal.layout, ["date_format: \"%m/%d/%Y\""]);
    let proposal = of("quote_date;expiration;K;type;bid;ask\n03/06/2019;17/01/2020;480;C;5.1;5.2\n");
    assert_eq!(proposal.layout, ["date_format: \"%d/%m/%Y\""]);
    let open = |formats: &[&str]| is_open(&formats.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
    assert!(open(&["%Y-%m-%d", "%Y%m%d"]) && !open(&["%Y-%m-%d"]));
    assert!(!open(&["%m/%d/%Y", "%Y-%m-%d"]) && open(&["%m/%d/%Y", "%Y-%m-%d", "%d/%m/%Y"]));
}

#[test]
fn a_series_is_asked_for() {
    let months = |header: &str| {
        let rows = (1..=12).map(|month| format!("2020-{month:02}-01;{}\n", 200 + month));
        format!("{header}\n{}", rows.collect::<String>())
    };
    let is_asked = |text: &str| {
        let proposal = of(text);
        let asks = proposal.yaml("x.csv", &[]).contains("# choose: close: ");
        (proposal.kind, asks)
    };
    assert_eq!(is_asked(&months("day;CPIAUCSL")), ("ingest/bars", true));
    assert_eq!(is_asked(&months("day;close")), ("ingest/bars", false));
    let days = "2020-01-02;3.5\n2020-01-03;3.5\n2020-01-06;3.6\n";
    assert_eq!(is_asked(&format!("DATE;PCREDIT8\n{days}")), ("ingest/bars", true));
    assert_eq!(is_asked(&format!("day;FUND\n{days}")), ("ingest/bars", false));
    // A result of trades is no price.
    assert_ne!(of("day;FUND\n2020-01-02;-3.5\n2020-01-03;3.5\n").kind, "ingest/bars");
}

#[test]
fn columns_that_are_not_read_are_named() {
    let proposal = of("day;close;signal;Stück\n2020-01-02;3.5;0.1;100\n2020-01-03;3.5;-0.1;200\n");
    assert_eq!(proposal.left_out, ["signal"]);
    assert!(proposal.yaml("x.csv", &[]).contains("      # left out: signal\n"));
}

#[test]
fn names_for_a_file_without_a_header() {
    let names = |row: &str| names_of(&row.split(',').map(str::to_owned).collect::<Vec<_>>()).join(" ");
    for (row, wanted) in [
        ("2023-01-03,480", "date close"),
        ("2023-01-03,1,2,0.5,1.5,1000", "date open high low close volume"),
        (
            "2023-01-03,1,2,0.5,1.5,1.4,1000",
            "date open high low close adjusted_close volume",
        ),
        (
            "20230103,1,2,0.5,1.5,1000,70",
            "date open high low close volume column_7",
        ),
        ("2023-01-03,09:30,1,2,0.5,1.5", "date time open high low close"),
        ("AAPL,2023-01-03,1,2,0.5,1.5", "column_1 date open high low close"),
        ("14760000,1,2,0.5,1.5,1000", "open high low close volume column_6"),
    ] {
        assert_eq!(names(row), wanted, "{row}");
    }
}

/// Rows of a table: a header, and for each day these numbers, which rise a little.
fn days(header: &str, firsts: &[f64]) -> String {
    let row = |day: usize| {
        let grows = |(at, first): (usize, &f64)| {
            format!(";{:.2}", first * (1.0 + ((day * (at + 3)) % 7) as f64 / 300.0))
        };
        let values: String = firsts.iter().enumerate().map(grows).collect();
        format!("2024-01-{:02}{values}\n", day + 8)
    };
    format!("{header}\n{}", (0..5).map(row).collect::<String>())
}

/// The close of proposed bars: a column, `*`, or the choices of a question.
fn close(text: &str) -> String {
    let proposal = of(text);
    assert_eq!(proposal.kind, "ingest/bars", "{text}");
    let yaml = proposal.yaml("x.csv", &[]);
    let closes = yaml.lines().filter_map(|line| line.trim().split_once("close: "));
    let closes =
        closes.map(|(before, close)| format!("{before}{}", close.split("  ").next().unwrap_or_default()));
    closes.collect::<Vec<_>>().join(" ").replace(CHOOSE, "?")
}

#[test]
fn symbols_that_are_names_of_ours_make_a_wide_table() {
    let prices = [182.3, 55.1, 161.0, 371.4, 23.9, 48.6, 61.2, 15.7, 99.1, 33.3];
    for header in [
        "Date;AAPL;IBM;C;MSFT",
        "Date;C;IBM;MSFT",
        "Date;O;AAPL;IBM",
        "Date;H;L;C;O;V;T;AAPL;MSFT",
        "Date;K;C;GE;S",
        "Date;AAPL;OPEN;MSFT",
        "DATE;LOW;HD;TGT",
        "Date;VOL;SPY;QQQ",
        "Day;DATE;AAPL;MSFT;C",
        "Date;AAPL;IBM",
        "Date;ID;AAPL;NO;C;MSFT",
        "Date;BRK.B;C;^GSPC",
    ] {
        let count = header.matches(';').count();
        assert_eq!(close(&days(header, &prices[..count])), "\"*\"", "{header}");
    }
    for header in ["Date;AAPL;C", "Date;aapl;c;msft", "Date;C;Apple;Siemens"] {
        let count = header.matches(';').count();
        let asked = close(&days(header, &prices[..count]));
        assert!(
            asked.starts_with("?\"*\" ?") && asked.to_lowercase().ends_with('c'),
            "{header}: {asked}"
        );
    }
    // Bars stay bars.
    let bar = [100.0, 106.0, 94.0, 101.0, 1.5, 55.2, 31.0];
    for (header, name) in [
        ("DATE;OPEN;HIGH;LOW;CLOSE", "CLOSE"),
        ("DATE;O;H;L;C", "C"),
        ("DATE;O;H;L;C;V;VW;N", "C"),
        ("DATE;O;H;L;C;V;XYZ;ABC", "C"),
        ("Date;C", "C"),
        ("date;c;v", "c"),
        ("DATE;CLOSE;RSI14;SMA", "CLOSE"),
        ("DATE;C;RSI14;SMA20", "C"),
        ("date;close;signal;spread", "close"),
    ] {
        let count = header.matches(';').count().min(bar.len());
        let header = header.split(';').take(count + 1).collect::<Vec<_>>().join(";");
        assert_eq!(close(&days(&header, &bar[..count])), name, "{header}");
    }
    // Without a close to ask for, nothing is.
    for header in ["date;volume;foo;bar", "date;open;foo;bar"] {
        assert_ne!(of(&days(header, &prices[..3])).kind, "ingest/bars", "{header}");
    }
    // A volume is whole.
    let volume = "Date;SPY;VOL\n2024-01-08;470.2;8812000\n2024-01-09;471.3;7410500\n";
    assert_eq!(close(volume), "SPY");
}

#[test]
fn exact_names_are_kept_against_values() {
    let rows = "2024-01-02;100.5;103.2;99.8;101250\n2024-01-03;101.1;104.0;100.2;102500\n";
    assert_eq!(close(&format!("Date;Open;High;Low;Close\n{rows}")), "Close");
}

#[test]
fn a_rate_is_no_price() {
    for name in [
        "rate",
        "yield",
        "interest_rate",
        "libor",
        "EURIBOR",
        "tbill",
        "risk free",
        "RF",
        "Zinssatz",
    ] {
        let proposal = of(&days(&format!("date;{name}"), &[2.4]));
        assert_eq!(proposal.table(), Some(Table::Rates), "{name}");
        let yaml = proposal.yaml("x.csv", &[]);
        assert!(
            yaml.contains(&format!("# which maturity is `{name}`? (remove")),
            "{yaml}"
        );
        assert!(
            yaml.contains(&format!("{CHOOSE}\"0.25\": {}   # 3 months", scalar(name))),
            "{yaml}"
        );
        assert!(yaml.contains("percent: true\n") && !yaml.contains(LEFT_OUT), "{yaml}");
    }
    for name in ["SOFR", "3M", "tbill_3m", "10Y", "interest rate 3m"] {
        let proposal = of(&days(&format!("date;{name}"), &[2.4]));
        assert_eq!(
            (proposal.table(), proposal.of_columns.len()),
            (Some(Table::Rates), 0),
            "{name}"
        );
    }
    // In hundredths of a percent, or a share of people: asked.
    for (name, first) in [("rate", 240.0), ("unemployment_rate", 4.1)] {
        assert_eq!(close(&days(&format!("date;{name}"), &[first])), format!("?{name}"));
    }
    assert_eq!(close(&days("date;exchange_rate", &[1.08])), "exchange_rate");
}
