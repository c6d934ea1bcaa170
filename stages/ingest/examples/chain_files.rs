//! Writes a synthetic option chain:
//! `cargo run --release -p stages-ingest --example chain_files -- FOLDER DAYS ROWS_A_DAY DAYS_A_FILE [csv]`.

use stages_ingest::SyntheticChain;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [folder, days, rows, days_per_file, rest @ ..] = args.as_slice() else {
        return Err("FOLDER DAYS ROWS_A_DAY DAYS_A_FILE [csv]".into());
    };
    let chain = SyntheticChain {
        days: days.parse()?,
        rows: rows.parse()?,
        days_per_file: days_per_file.parse()?,
        csv: rest.iter().any(|arg| arg == "csv"),
    };
    chain.write(Path::new(folder))?;
    Ok(())
}
