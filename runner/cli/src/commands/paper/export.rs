//! `runner paper export`.

use super::show::read;
use crate::complete::{candidates, completed};
use crate::output;
use crate::session::Session;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use clap::{Args, ValueEnum};
use datasets::Date;
use runner_engine::{Failure, text};
use runner_history::paper::{Ledger, LedgerRow, RowCell};
use stages_table_file::Container;
use std::path::PathBuf;
use std::sync::Arc;

/// A format of an exported ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LedgerFormat {
    /// The entries as rows: nights, bookings, positions, orders, transfers, fills and the rest.
    Csv,
    /// The same as Parquet.
    Parquet,
    /// A statement as a broker writes one, as text: balances, cash flows by cause, trades, positions,
    /// performance by month.
    Statement,
}

/// Write the ledger of an account as a file for other programs.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  runner paper export desk-paper ledger.csv --format csv
  runner paper export desk-paper ledger.parquet --format parquet
  runner paper export desk-paper march.txt --format statement --from 2024-03-01 --to 2024-03-31
  runner paper export desk-paper - --format csv            # to standard output")]
pub(crate) struct PaperExportArgs {
    /// The name of an account.
    #[arg(add = completed(candidates::accounts))]
    pub name: String,
    /// The file to write to, which must not exist; `-` is standard output, of text.
    pub dest: PathBuf,
    /// The format of the file.
    #[arg(long, value_enum)]
    pub format: LedgerFormat,
    /// The first night of a statement.
    #[arg(long, value_name = "DATE")]
    pub from: Option<Date>,
    /// The last night of a statement.
    #[arg(long, value_name = "DATE")]
    pub to: Option<Date>,
}

pub(super) fn export(session: &Session, args: &PaperExportArgs) -> Result<(), Failure> {
    let is_statement = args.format == LedgerFormat::Statement;
    if (args.from.is_some() || args.to.is_some()) && !is_statement {
        return Err(Failure::usage("`--from` and `--to` are those of a statement")
            .hint("add `--format statement`; the rows of the other formats have a column `date`"));
    }
    let ledger = read(&session.home(None), &args.name)?;
    let bytes = match args.format {
        LedgerFormat::Csv => ledger.csv().into_bytes(),
        LedgerFormat::Statement => ledger.statement(args.from, args.to)?.into_bytes(),
        LedgerFormat::Parquet => parquet(&ledger)?,
    };
    if args.dest.as_os_str() == "-" {
        return match String::from_utf8(bytes) {
            Ok(text) => output::print_document(&text),
            Err(_) => Err(Failure::usage("Parquet cannot be written to standard output").hint("name a file")),
        };
    }
    let dest = session.current.join(&args.dest);
    output::write_new(&dest, &args.dest, &bytes)?;
    let (entries, size) = (ledger.entries().len(), bytes.len());
    if session.json {
        return output::print_json(&serde_json::json!({
            "name": args.name, "dest": dest, "entries": entries, "bytes": size,
        }));
    }
    output::print(&format!(
        "the ledger of {}, entries {entries}, {} in {}\n",
        args.name,
        text::size(size as u64),
        args.dest.display()
    ))
}

/// The rows of a ledger as Parquet.
fn parquet(ledger: &Ledger) -> Result<Vec<u8>, Failure> {
    let rows: Vec<Vec<RowCell>> = ledger.rows().iter().map(|row| row.cells().collect()).collect();
    let failed = |err: &dyn std::fmt::Display| {
        Failure::machine(format!(
            "cannot write the ledger of {} as Parquet: {err}",
            ledger.name()
        ))
    };
    let columns = LedgerRow::columns().enumerate();
    let columns = columns.map(|(i, name)| (name, column(rows.iter().map(|row| &row[i]))));
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)));
    let batch = batch.map_err(|err| failed(&err))?;
    Container::Parquet.write(&batch).map_err(|fault| failed(&fault.what))
}

/// A column, of the type of its first cell: all its cells have one type.
fn column<'c>(cells: impl ExactSizeIterator<Item = &'c RowCell> + Clone) -> ArrayRef {
    let texts = cells.clone().map(|cell| match cell {
        RowCell::Text(text) => text.as_deref(),
        _ => None,
    });
    let numbers = cells.clone().map(|cell| match cell {
        RowCell::Number(number) => *number,
        _ => None,
    });
    let counts = cells.clone().map(|cell| match cell {
        RowCell::Count(count) => *count as u64,
        _ => 0,
    });
    match cells.clone().next() {
        Some(RowCell::Number(_)) => Arc::new(Float64Array::from_iter(numbers)),
        Some(RowCell::Count(_)) => Arc::new(UInt64Array::from_iter_values(counts)),
        _ => Arc::new(StringArray::from_iter(texts)),
    }
}
