//! Joins rows from files that each hold some of a contract's values (quotes, trades, open interest) into one
//! row for each contract and instant.

use super::columns::Chain;
use std::cmp::Ordering;

/// Joins `partial` rows of the same contract and instant if no value is present in two of them: the first row
/// takes the values of the others. Returns true for each row whose values were taken. Rows with a value in
/// common are left for the rule `duplicate_key`.
pub(super) fn partial_rows(chain: &mut Chain, partial: &[bool]) -> Vec<bool> {
    let mut is_joined = vec![false; chain.len()];
    let mut rows: Vec<usize> = (0..chain.len()).filter(|row| partial[*row]).collect();
    // Sorted by values too, so that the order of files does not matter.
    rows.sort_unstable_by(|a, b| order(chain, *a, *b).then_with(|| values(chain, *a, *b)));
    let keys: Vec<&[usize]> = rows.chunk_by(|a, b| order(chain, *a, *b).is_eq()).collect();
    for key_rows in keys {
        for (place, into) in key_rows.iter().enumerate() {
            if is_joined[*into] {
                continue;
            }
            for from in &key_rows[place + 1..] {
                if !is_joined[*from]
                    && columns(chain).all(|column| column[*into].is_nan() || column[*from].is_nan())
                {
                    for column in columns_mut(chain) {
                        if column[*into].is_nan() {
                            column[*into] = column[*from];
                        }
                    }
                    is_joined[*from] = true;
                }
            }
        }
    }
    is_joined
}

fn columns(chain: &Chain) -> impl Iterator<Item = &Vec<f64>> {
    chain.values.iter().chain(chain.stated.iter().flatten())
}

fn columns_mut(chain: &mut Chain) -> impl Iterator<Item = &mut Vec<f64>> {
    chain.values.iter_mut().chain(chain.stated.iter_mut().flatten())
}

/// Orders two rows by contract and instant.
fn order(chain: &Chain, a: usize, b: usize) -> Ordering {
    let key = |row: usize| {
        (
            chain.date[row],
            chain.symbol[row],
            chain.expiry[row],
            chain.root[row],
            chain.strike[row].to_bits(),
            chain.call[row],
            chain.time.get(row),
            chain.instant.get(row),
        )
    };
    key(a).cmp(&key(b))
}

fn values(chain: &Chain, a: usize, b: usize) -> Ordering {
    let of = columns(chain).map(|column| column[a].total_cmp(&column[b]));
    of.fold(Ordering::Equal, Ordering::then)
}
