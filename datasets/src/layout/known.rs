//! The supported layouts, and the one that a header belongs to.

use super::description::{Layout, Table, normal};
use super::{bars, chain, rates};

/// Every supported layout of a table.
pub fn known(table: Table) -> &'static [Layout] {
    match table {
        Table::Chain => &chain::LAYOUTS,
        Table::Bars => &bars::LAYOUTS,
        Table::Rates => &rates::LAYOUTS,
    }
}

/// The layout of that name.
pub fn find(table: Table, name: &str) -> Option<&'static Layout> {
    known(table).iter().find(|layout| layout.name == name)
}

/// The layout whose files have this header.
pub fn recognise(table: Table, header: &[String]) -> Option<&'static Layout> {
    let header: Vec<_> = header.iter().map(|name| normal(name)).collect();
    let mut best: Option<&Layout> = None;
    for layout in known(table) {
        let fits = !layout.recognise.is_empty()
            && layout.recognise.iter().all(|name| header.contains(&normal(name)))
            && layout
                .columns
                .iter()
                .any(|column| !matches!(&*column.ours, "date" | "symbol") && header.contains(&normal(&column.theirs)));
        if fits && best.is_none_or(|best| layout.recognise.len() > best.recognise.len()) {
            best = Some(layout);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(line: &str) -> Vec<String> {
        line.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn headers_are_recognised() {
        let name = |table, line: &str| recognise(table, &header(line)).map(|layout| layout.name.to_string());
        assert_eq!(
            name(
                Table::Chain,
                "underlying,underlying_last,exchange,optionroot,type,expiration,quotedate,strike,last,net,bid,ask,volume,openinterest,impliedvol,delta,gamma"
            )
            .as_deref(),
            Some("cboe_quote_table")
        );
        assert_eq!(
            name(
                Table::Chain,
                "underlying,underlying_last, exchange,optionroot,optionext,type,expiration,quotedate,strike,last,bid,ask,volume,openinterest,impliedvol,delta,gamma,theta,vega,optionalias"
            )
            .as_deref(),
            Some("historicaloptiondata")
        );
        assert_eq!(
            name(Table::Chain, "quote_date,type,expiration,strike,close").as_deref(),
            Some("sse_50etf_close")
        );
        assert_eq!(
            name(Table::Bars, "Date,Open,High,Low,Close,Adj Close,Volume").as_deref(),
            Some("yahoo")
        );
        assert_eq!(
            name(Table::Bars, "date,tic,open,high,low,close,adj_close,volume").as_deref(),
            Some("yahoo_panel")
        );
        assert_eq!(name(Table::Bars, "DATE,OPEN,HIGH,LOW,CLOSE").as_deref(), Some("plain"));
        assert_eq!(
            name(Table::Rates, "date,BC_1MONTH,BC_3MONTH,BC_10YEAR").as_deref(),
            Some("us_treasury_xml")
        );
        assert_eq!(name(Table::Rates, "date,a,b"), None);
        assert_eq!(name(Table::Chain, ""), None);
    }

    #[test]
    fn layouts_are_consistent() {
        for table in [Table::Chain, Table::Bars, Table::Rates] {
            for layout in known(table) {
                assert_eq!(layout.table, table, "{}", layout.name);
                assert_eq!(find(table, &layout.name), Some(layout), "names are unique");
                for name in layout.recognise.iter() {
                    assert_eq!(*name, normal(name));
                }
                let schema = match table {
                    Table::Chain => crate::schema::OPTION_CHAIN,
                    Table::Bars => crate::schema::BARS,
                    Table::Rates => crate::schema::RATES,
                };
                for column in layout.columns.iter() {
                    assert!(
                        schema.iter().any(|c| c.name == column.ours),
                        "{} {}",
                        layout.name,
                        column.ours
                    );
                    assert_eq!(column.tenor_years.is_some(), column.ours == "rate");
                }
            }
        }
    }
}
