//! Facts by predicate: columns of constants, posting lists for each argument, and a hash table of whole
//! facts.
//!
//! A posting list holds the rows with a constant at a place, in order. Where a relation mentions a good part
//! of all constants, the lists are found by the constant's number, otherwise by binary search among the
//! constants that occur.

use crate::sections::{Words, sections};
use crate::word::{self, TooMany, Word};

/// The facts of all predicates.
#[derive(Clone, Debug)]
pub struct Relations {
    /// The start of each predicate's entry in `directory`, and the end of the last entry.
    starts: Words,
    /// For each predicate: its first row among all facts, the number of rows, the start of its columns, the
    /// start and length of its hash table; and for each argument the start and number of its keys (0: by
    /// constant), of its lists' starts, and of its rows.
    directory: Words,
    columns: Words,
    postings: Words,
    table: Words,
    /// The clause of each fact.
    clauses: Words,
}

const ENTRY: usize = 5;
const PER_ARGUMENT: usize = 4;

/// The facts of one predicate.
#[derive(Clone, Copy, Debug)]
pub struct Relation<'a> {
    /// The number of the predicate's first fact among those of all predicates: the number of a fact is this
    /// plus its row.
    pub first: u32,
    /// The number of rows.
    pub rows: u32,
    columns: &'a [Word],
    clauses: &'a [u32],
    table: &'a [u32],
    entry: &'a [u32],
    postings: &'a [u32],
}

/// Rows of a relation, in order.
#[derive(Clone, Copy, Debug)]
pub enum Rows<'a> {
    /// All rows, as many as this number.
    All(u32),
    /// The rows of a posting list.
    Listed(&'a [u32]),
}

impl Rows<'_> {
    /// The number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::All(rows) => *rows as usize,
            Self::Listed(rows) => rows.len(),
        }
    }

    /// Returns whether there are no rows.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row at a place of the list.
    #[inline]
    pub fn get(&self, at: usize) -> u32 {
        match self {
            Self::All(_) => at as u32,
            Self::Listed(rows) => rows[at],
        }
    }
}

fn hash(constants: impl Iterator<Item = Word>) -> u32 {
    const K: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut state = 0_u64;
    for word in constants {
        state = (state.rotate_left(29) ^ u64::from(word)).wrapping_mul(K);
    }
    ((state ^ state >> 32).wrapping_mul(K) >> 32) as u32
}

/// The slot of a hash among `slots`.
fn slot(hash: u32, slots: usize) -> usize {
    ((u64::from(hash) * slots as u64) >> 32) as usize
}

impl<'a> Relation<'a> {
    /// The constants at one argument, row by row.
    #[inline]
    pub fn column(&self, argument: usize) -> &'a [Word] {
        let rows = self.rows as usize;
        &self.columns[argument * rows..(argument + 1) * rows]
    }

    /// The arity.
    pub fn arity(&self) -> usize {
        (self.entry.len() - ENTRY) / PER_ARGUMENT
    }

    /// The constants of a row.
    pub fn values(&self, row: u32) -> impl Iterator<Item = Word> + use<'a> {
        let (columns, rows) = (self.columns, self.rows as usize);
        (0..self.arity()).map(move |argument| columns[argument * rows + row as usize])
    }

    /// The clause of a row.
    #[inline]
    pub fn clause(&self, row: u32) -> u32 {
        self.clauses[row as usize]
    }

    /// The rows with a constant at an argument.
    #[inline]
    pub fn with(&self, argument: usize, constant: Word) -> &'a [u32] {
        let entry = &self.entry[ENTRY + PER_ARGUMENT * argument..][..PER_ARGUMENT];
        let (keys, count) = (entry[0] as usize, entry[1] as usize);
        let place = match count {
            0 => constant as usize,
            _ => match self.postings[keys..keys + count].binary_search(&constant) {
                Ok(place) => place,
                Err(_) => return &[],
            },
        };
        // By constant, the lists' starts end where the rows begin.
        let (starts, rows) = (entry[2] as usize, entry[3] as usize);
        if starts + place + 1 >= rows {
            return &[];
        }
        let start = self.postings[starts + place] as usize;
        let end = self.postings[starts + place + 1] as usize;
        &self.postings[rows + start..rows + end]
    }

    /// The rows that hold these constants, in order: several where the fact is given several times.
    #[inline]
    pub fn find<'b>(&'b self, constants: &'b [Word]) -> impl Iterator<Item = u32> + 'b {
        let slots = self.table.len();
        let mut at = match slots {
            0 => 0,
            _ => slot(hash(constants.iter().copied()), slots),
        };
        std::iter::from_fn(move || {
            // The table always has a free slot.
            loop {
                let row = self.table.get(at)?.checked_sub(1)?;
                at = if at + 1 == slots { 0 } else { at + 1 };
                if self.is_row(row, constants) {
                    return Some(row);
                }
            }
        })
    }

    /// Returns whether a row holds these constants.
    #[inline]
    pub fn is_row(&self, row: u32, constants: &[Word]) -> bool {
        let rows = self.rows as usize;
        constants
            .iter()
            .enumerate()
            .all(|(argument, &constant)| self.columns[argument * rows + row as usize] == constant)
    }

    /// Returns whether the fact with these constants is among the rows.
    #[inline]
    pub fn contains(&self, constants: &[Word]) -> bool {
        self.find(constants).next().is_some()
    }

    /// The rows that may match an atom's arguments, by the shortest posting list of those of the first
    /// `bound` words that are constants. Arguments are given as words; anything but a constant stands for any
    /// value. The other arguments of the rows need not match.
    #[inline]
    pub fn matching(&self, arguments: impl Iterator<Item = Word>) -> Rows<'a> {
        let mut best = Rows::All(self.rows);
        for (argument, word) in arguments.enumerate() {
            if word::is_constant(word) {
                let rows = self.with(argument, word);
                if rows.len() < best.len() {
                    best = Rows::Listed(rows);
                }
            }
        }
        best
    }
}

impl Relations {
    /// The number of predicates.
    pub fn predicates(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of facts.
    pub fn facts(&self) -> usize {
        self.clauses.len()
    }

    /// The facts of a predicate, by its number.
    #[inline]
    pub fn get(&self, predicate: u32) -> Relation<'_> {
        let predicate = predicate as usize;
        let entry = &self.directory[self.starts[predicate] as usize..self.starts[predicate + 1] as usize];
        let (first, rows, columns) = (entry[0], entry[1], entry[2] as usize);
        let arity = (entry.len() - ENTRY) / PER_ARGUMENT;
        Relation {
            first,
            rows,
            columns: &self.columns[columns..columns + rows as usize * arity],
            clauses: &self.clauses[first as usize..first as usize + rows as usize],
            table: &self.table[entry[3] as usize..entry[3] as usize + entry[4] as usize],
            entry,
            postings: &self.postings,
        }
    }

    /// The facts of each predicate, with its number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Relation<'_>)> + Clone {
        (0..self.predicates() as u32).map(|predicate| (predicate, self.get(predicate)))
    }

    /// Calls `each` with the predicate, the row and the constants of each fact.
    pub(crate) fn each_fact(&self, mut each: impl FnMut(u32, u32, &[Word])) {
        let mut values = Vec::new();
        for (predicate, relation) in self.iter() {
            for row in 0..relation.rows {
                values.clear();
                values.extend(relation.values(row));
                each(predicate, row, &values);
            }
        }
    }

    /// The largest number of a fact's clause.
    pub(crate) fn last_clause(&self) -> Option<u32> {
        self.clauses.iter().max().copied()
    }

    /// The predicate and row of a fact, by its number among all.
    pub fn locate(&self, fact: u32) -> (u32, u32) {
        let starts = &self.starts[..self.predicates()];
        let is_before = |start: &u32| self.directory[*start as usize] <= fact;
        let predicate = starts.partition_point(is_before).saturating_sub(1);
        (predicate as u32, fact - self.directory[starts[predicate] as usize])
    }

    /// The facts that are given before, by an earlier clause: their numbers, in order.
    pub fn repeated(&self) -> Vec<u32> {
        let mut repeated = Vec::new();
        self.each_fact(|predicate, row, values| {
            let relation = self.get(predicate);
            if relation.find(values).next() != Some(row) {
                repeated.push(relation.first + row);
            }
        });
        repeated
    }

    /// The facts without those of the given numbers, which must be in order.
    pub(crate) fn without(&self, dropped: &[u32], constants: usize) -> Result<Self, TooMany> {
        let is_kept =
            |relation: &Relation<'_>, row: &u32| dropped.binary_search(&(relation.first + row)).is_err();
        let mut kept = Columns::default();
        for (_, relation) in self.iter() {
            let rows: Vec<u32> = (0..relation.rows).filter(|row| is_kept(&relation, row)).collect();
            kept.sizes.push((relation.arity(), rows.len() as u32));
            kept.clauses.extend(rows.iter().map(|&row| relation.clause(row)));
            for argument in 0..relation.arity() {
                let column = relation.column(argument);
                kept.columns.extend(rows.iter().map(|&row| column[row as usize]));
            }
        }
        kept.index(constants)
    }
}

sections!(Relations [starts, directory, columns, postings, table, clauses] |relations| {
    !relations.starts.is_empty()
});

/// Facts that are to be indexed: for each predicate its arity, its rows one after another, and the clause of
/// each.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    /// The arity and the number of facts of each predicate.
    pub sizes: Vec<(usize, u32)>,
    /// The columns of each predicate, one after another.
    pub columns: Vec<Word>,
    /// The clause of each row.
    pub clauses: Vec<u32>,
}

impl Columns {
    /// Builds the indices; `constants` is the number of constants in the knowledge base.
    pub(crate) fn index(self, constants: usize) -> Result<Relations, TooMany> {
        let facts: u64 = self.sizes.iter().map(|&(_, rows)| u64::from(rows)).sum();
        if self.columns.len() as u64 >= u64::from(u32::MAX) / 4 || facts >= u64::from(u32::MAX) / 4 {
            return Err(TooMany);
        }
        let mut starts = Vec::with_capacity(self.sizes.len() + 1);
        let mut directory: Vec<u32> = Vec::new();
        let mut postings: Vec<u32> = Vec::with_capacity(self.columns.len() + self.columns.len() / 4);
        let mut table = Vec::with_capacity(self.clauses.len() * 4 / 3 + self.sizes.len());
        let (mut column, mut first) = (0, 0);
        for &(arity, rows) in &self.sizes {
            starts.push(directory.len() as u32);
            let count = rows as usize;
            let columns = &self.columns[column..column + arity * count];
            let slots = if count == 0 { 0 } else { count + count / 3 + 1 };
            directory.extend([first, rows, column as u32, table.len() as u32, slots as u32]);
            hash_rows(columns, count, slots, &mut table);
            for argument in 0..arity {
                let entry = posting_lists(
                    &columns[argument * count..(argument + 1) * count],
                    constants,
                    &mut postings,
                );
                directory.extend(entry);
            }
            column += arity * count;
            first += rows;
        }
        starts.push(directory.len() as u32);
        if postings.len() as u64 >= u64::from(u32::MAX) || table.len() as u64 >= u64::from(u32::MAX) {
            return Err(TooMany);
        }
        Ok(Relations {
            starts: starts.into(),
            directory: directory.into(),
            columns: self.columns.into(),
            postings: postings.into(),
            table: table.into(),
            clauses: self.clauses.into(),
        })
    }
}

/// Appends an open-addressing table of rows plus one. Equal facts lie in the order of their rows.
fn hash_rows(columns: &[Word], rows: usize, slots: usize, table: &mut Vec<u32>) {
    let start = table.len();
    table.resize(start + slots, 0);
    let table = &mut table[start..];
    let arity = columns.len().checked_div(rows).unwrap_or(0);
    for row in 0..rows {
        let mut at = slot(hash((0..arity).map(|argument| columns[argument * rows + row])), slots);
        while table[at] != 0 {
            at = if at + 1 == slots { 0 } else { at + 1 };
        }
        table[at] = row as u32 + 1;
    }
}

/// Appends the posting lists of a column, and returns their entry of the directory.
fn posting_lists(column: &[Word], constants: usize, postings: &mut Vec<u32>) -> [u32; PER_ARGUMENT] {
    let rows = column.len();
    if rows == 0 {
        let at = postings.len() as u32;
        return [at, 0, at, at];
    }
    if constants <= 4 * rows + 64 {
        // By constant: a counting sort.
        let starts = postings.len();
        let lists = starts + constants + 1;
        postings.resize(lists + rows, 0);
        let (counts, sorted) = postings[starts..].split_at_mut(constants + 1);
        for &constant in column {
            counts[constant as usize + 1] += 1;
        }
        for i in 0..constants {
            counts[i + 1] += counts[i];
        }
        for (row, &constant) in column.iter().enumerate().rev() {
            // Filled from the end, `counts[c + 1]` falls to the start of c's list: shifted by one afterwards.
            let to = &mut counts[constant as usize + 1];
            *to -= 1;
            sorted[*to as usize] = row as u32;
        }
        // Now `counts[c + 1]` is the start of c's list.
        counts.copy_within(1.., 0);
        counts[constants] = rows as u32;
        return [starts as u32, 0, starts as u32, lists as u32];
    }
    let mut order: Vec<u32> = (0..rows as u32).collect();
    order.sort_by_key(|&row| column[row as usize]);
    let runs = || order.chunk_by(|&a, &b| column[a as usize] == column[b as usize]);
    let (keys, count) = (postings.len(), runs().count() as u32);
    postings.extend(runs().map(|run| column[run[0] as usize]));
    let starts = postings.len();
    let mut start = 0;
    for run in runs() {
        postings.push(start);
        start += run.len() as u32;
    }
    postings.push(start);
    let lists = postings.len();
    postings.extend(order);
    [keys as u32, count, starts as u32, lists as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(constants: usize, rows: &[[u32; 2]]) {
        let columns = Columns {
            sizes: vec![(0, 0), (2, rows.len() as u32), (1, 0)],
            columns: rows
                .iter()
                .map(|row| row[0])
                .chain(rows.iter().map(|row| row[1]))
                .collect(),
            clauses: (10..10 + rows.len() as u32).collect(),
        };
        let relations = columns.index(constants).unwrap();
        let relation = relations.get(1);
        assert_eq!((relation.rows, relation.arity()), (rows.len() as u32, 2));
        for constant in (0..constants as u32).filter(|c| *c < 2000 || c % 97 == 0) {
            for argument in 0..2 {
                let expected: Vec<u32> = (0..rows.len() as u32)
                    .filter(|&row| rows[row as usize][argument] == constant)
                    .collect();
                assert_eq!(relation.with(argument, constant), expected);
                assert!(relations.get(2).with(0, constant).is_empty());
            }
        }
        for row in rows {
            let expected: Vec<u32> = (0..rows.len() as u32).filter(|&r| rows[r as usize] == *row).collect();
            assert_eq!(relation.find(row).collect::<Vec<_>>(), expected);
            assert!(relation.matching(row.iter().copied()).len() <= rows.len());
        }
        assert!(!relation.contains(&[constants as u32 - 1, constants as u32 - 1]));
        assert_eq!(relations.locate(0), (1, 0));
        assert_eq!(relations.locate(rows.len() as u32 - 1), (1, rows.len() as u32 - 1));
        assert!(!relations.get(0).contains(&[]));
    }

    #[test]
    fn lists_and_tables_find_every_row() {
        let rows: Vec<[u32; 2]> = (0..300_u32).map(|i| [i * 7919 % 23, i * 104_729 % 19]).collect();
        check(24, &rows);
        check(100_000, &rows);
        let rows: Vec<[u32; 2]> = (0..300_u32).map(|i| [i * 99_991 % 90_000, i * 331 % 7]).collect();
        check(100_000, &rows);
        check(3, &[[0, 1]]);
    }
}
