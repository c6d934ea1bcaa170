//! Layouts of interest rates.

use super::description::{ISO, Layout, Mapping, Table, US_DATE, Unit, base, is, text};
use std::sync::LazyLock;

const fn percent(tenor_years: f64, theirs: &'static str) -> Mapping {
    Mapping {
        ours: text("rate"),
        theirs: text(theirs),
        unit: Unit::Times(0.01),
        tenor_years: Some(tenor_years),
    }
}

const MONTH: f64 = 1.0 / 12.0;

pub(super) static LAYOUTS: LazyLock<Vec<Layout>> = LazyLock::new(|| {
    vec![
        Layout {
            name: text("us_treasury_xml"),
            table: Table::Rates,
            about: text("US Treasury par yield curve under the names of its XML feed, percent"),
            recognise: vec![text("date"), text("bc_3month"), text("bc_10year")],
            columns: vec![
                is("date", "date"),
                percent(MONTH, "BC_1MONTH"),
                percent(2.0 * MONTH, "BC_2MONTH"),
                percent(0.25, "BC_3MONTH"),
                percent(4.0 * MONTH, "BC_4MONTH"),
                percent(0.5, "BC_6MONTH"),
                percent(1.0, "BC_1YEAR"),
                percent(2.0, "BC_2YEAR"),
                percent(3.0, "BC_3YEAR"),
                percent(5.0, "BC_5YEAR"),
                percent(7.0, "BC_7YEAR"),
                percent(10.0, "BC_10YEAR"),
                percent(20.0, "BC_20YEAR"),
                percent(30.0, "BC_30YEAR"),
            ],
            ..base()
        },
        Layout {
            name: text("us_treasury_csv"),
            table: Table::Rates,
            about: text("US Treasury par yield curve as its web site gives it, percent"),
            recognise: vec![text("date"), text("3 mo"), text("10 yr")],
            columns: vec![
                is("date", "Date"),
                percent(MONTH, "1 Mo"),
                percent(1.5 * MONTH, "1.5 Month"),
                percent(2.0 * MONTH, "2 Mo"),
                percent(0.25, "3 Mo"),
                percent(4.0 * MONTH, "4 Mo"),
                percent(0.5, "6 Mo"),
                percent(1.0, "1 Yr"),
                percent(2.0, "2 Yr"),
                percent(3.0, "3 Yr"),
                percent(5.0, "5 Yr"),
                percent(7.0, "7 Yr"),
                percent(10.0, "10 Yr"),
                percent(20.0, "20 Yr"),
                percent(30.0, "30 Yr"),
            ],
            dates: vec![US_DATE, ISO],
            ..base()
        },
        Layout {
            name: text("fred_daily"),
            table: Table::Rates,
            about: text("FRED's daily rates gathered in one table, percent: fed funds (overnight) and Treasury yields"),
            recognise: vec![text("date"), text("ust_3m"), text("fed_funds_eff")],
            columns: vec![
                is("date", "date"),
                percent(0.0, "fed_funds_eff"),
                percent(0.25, "ust_3m"),
                percent(2.0, "ust_2y"),
                percent(10.0, "ust_10y"),
            ],
            ..base()
        },
        Layout {
            name: text("fred_series"),
            table: Table::Rates,
            about: text("FRED's own CSV of Treasury constant-maturity series, percent"),
            recognise: vec![text("observation_date")],
            columns: vec![
                is("date", "observation_date"),
                percent(0.0, "DFF"),
                percent(MONTH, "DGS1MO"),
                percent(0.25, "DGS3MO"),
                percent(0.5, "DGS6MO"),
                percent(1.0, "DGS1"),
                percent(2.0, "DGS2"),
                percent(3.0, "DGS3"),
                percent(5.0, "DGS5"),
                percent(7.0, "DGS7"),
                percent(10.0, "DGS10"),
                percent(20.0, "DGS20"),
                percent(30.0, "DGS30"),
            ],
            ..base()
        },
    ]
});
