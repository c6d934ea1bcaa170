//! Writes synthetic daily bars, one CSV file a year: `cargo run --release -p stages-ingest --example
//! bars_files -- FOLDER YEARS SYMBOLS`.

use stages_numerics::random::Random;
use std::io::{BufWriter, Write as _};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [folder, years, symbols] = args.as_slice() else {
        return Err("FOLDER YEARS SYMBOLS".into());
    };
    let symbols: usize = symbols.parse()?;
    std::fs::create_dir_all(folder)?;
    let mut random = Random::new(&[1]);
    for year in 1990..1990 + years.parse::<u32>()? {
        let mut file = BufWriter::new(std::fs::File::create(Path::new(folder).join(format!("{year}.csv")))?);
        writeln!(file, "symbol,date,open,high,low,close,volume")?;
        for symbol in 0..symbols {
            let mut close: f64 = 50.0 + (symbol % 100) as f64;
            for day in 0..252 {
                let open = close;
                close *= 1.0 + 0.02 * (random.uniform() - 0.5);
                let (high, low) = (1.01 * open.max(close), 0.99 * open.min(close));
                let volume = (1e5 + 1e6 * random.uniform()).round();
                let (month, day) = (1 + day / 21, 1 + day % 21);
                writeln!(
                    file,
                    "S{symbol:05},{year}-{month:02}-{day:02},{open:.2},{high:.2},{low:.2},{close:.2},{volume}"
                )?;
            }
        }
        file.flush()?;
    }
    Ok(())
}
