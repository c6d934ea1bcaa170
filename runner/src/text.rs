//! Figures as people read them.

/// A duration: `0.42 s`, `12.3 s`, `4 min 05 s`, `2 h 03 min`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    if seconds < 9.995 {
        format!("{seconds:.2} s")
    } else if seconds < 119.95 {
        format!("{seconds:.1} s")
    } else if whole < 7200 {
        format!("{} min {:02} s", whole / 60, whole % 60)
    } else {
        format!("{} h {:02} min", whole / 3600, whole % 3600 / 60)
    }
}

/// A size: `512 B`, `4.0 KiB`, `1.2 GiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{bytes} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// A table, its columns aligned; the columns in `right` to the right. No blank stands at a line's end.
pub fn table(header: &[&str], rows: &[Vec<String>], right: &[usize]) -> String {
    let mut widths: Vec<usize> = header.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut text = String::new();
        for (i, cell) in cells.enumerate() {
            let width = widths.get(i).copied().unwrap_or(0);
            if i > 0 {
                text.push_str("  ");
            }
            if right.contains(&i) {
                text.push_str(&format!("{cell:>width$}"));
            } else {
                text.push_str(&format!("{cell:<width$}"));
            }
        }
        out.push_str(text.trim_end());
        out.push('\n');
    };
    line(&mut header.iter().copied());
    for row in rows {
        line(&mut row.iter().map(String::as_str));
    }
    out
}

/// `1 stage`, `2 stages`.
pub fn count(n: usize, what: &str) -> String {
    if n == 1 {
        format!("1 {what}")
    } else {
        format!("{n} {what}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        let durations: Vec<String> = [0.0, 0.123, 9.99, 10.0, 119.9, 119.96, 245.0, 7199.0, 7200.0, 7380.0]
            .map(duration)
            .into();
        assert_eq!(
            durations.join(", "),
            "0.00 s, 0.12 s, 9.99 s, 10.0 s, 119.9 s, 2 min 00 s, 4 min 05 s, 119 min 59 s, 2 h 00 min, 2 h 03 min"
        );
        assert_eq!(
            [0, 1023, 1024, 1 << 20, 5 << 29].map(size).join(", "),
            "0 B, 1023 B, 1.0 KiB, 1.0 MiB, 2.5 GiB"
        );
        let rows = [
            vec!["a".to_owned(), "1".to_owned()],
            vec!["long".to_owned(), "22".to_owned()],
        ];
        assert_eq!(table(&["name", "n"], &rows, &[1]), "name   n\na      1\nlong  22\n");
    }
}
