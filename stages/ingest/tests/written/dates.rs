//! Formats of dates.

use super::*;

#[test]
fn dates_in_many_formats() {
    let mut counts = Counts::default();
    let formats = [
        "%Y/%m/%d",
        "%Y.%m.%d",
        "%Y%m%d",
        "%d/%m/%Y",
        "%m/%d/%Y",
        "%d.%m.%Y",
        "%d-%m-%Y",
        "%m-%d-%Y",
        "%d-%b-%Y",
        "%d-%b-%y",
        "%b %d, %Y",
        "%B %d, %Y",
        "%d %b %Y",
        "%d %B %Y",
        "%d/%m/%y",
        "%m/%d/%y",
        "%d.%m.%y",
        "%a %b %d %Y",
        "%Y年%m月%d日",
        "%-d/%-m/%Y",
        "%-m/%-d/%Y",
        "%Y-%m-%dT00:00:00",
        "%m/%d/%Y %H:%M",
        "%d.%m.%Y 00:00:00",
        "%Y-%m-%d 00:00:00+00:00",
    ];
    let write = |format: &'static str| {
        move |day: Date| {
            chrono::NaiveDate::from(day)
                .and_hms_opt(0, 0, 0)
                .unwrap()
                .format(format)
                .to_string()
        }
    };
    let price = |value: f64| format!("{value:.2}");
    let volume = |value: f64| format!("{value}");
    for format in formats {
        for (rows_, seed) in [(40, 1), (8, 2), (200, 3)] {
            let data = bars(seed, rows_, 50.0, 2);
            let csv = table(&data, &HEADER, ',', write(format), price, volume);
            counts.try_file(&format!("{format} {rows_}"), "x.csv", csv, &rows(&data));
            // Newest first, as many vendors write.
            let mut lines: Vec<String> = table(&data, &HEADER, ';', write(format), price, volume)
                .lines()
                .map(str::to_owned)
                .collect();
            lines[1..].reverse();
            counts.try_file(
                &format!("{format} {rows_} down"),
                "x.csv",
                lines.join("\r\n"),
                &rows(&data),
            );
        }
    }
    for unit in [1.0, 1e3, 1e6, 1e9] {
        let data = bars(5, 40, 50.0, 2);
        let time = |day: Date| format!("{}", i64::from(day.0) * 86_400 * unit as i64);
        let csv = table(&data, &HEADER, ',', time, price, volume);
        counts.try_file(&format!("epoch {unit}"), "x.csv", csv, &rows(&data));
    }
    let data = bars(5, 40, 50.0, 2);
    let serial = |day: Date| format!("{}", day.0 + 25_569);
    counts.try_file(
        "Excel",
        "x.csv",
        table(&data, &HEADER, ',', serial, price, volume),
        &rows(&data),
    );
    counts.finish("formats of dates", 150);

    // Month starts: both orders fit, and nothing decides.
    let mut counts = Counts::default();
    for (i, format) in ["%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%m-%d-%Y", "%d/%m/%y", "%m/%d/%y"]
        .into_iter()
        .enumerate()
    {
        for day in 1..5 {
            let mut data = bars(i as u64, 30, 50.0, 2);
            for (n, bar) in data.iter_mut().enumerate() {
                let (year, month) = (2019 + n as i32 / 12, n as u32 % 12 + 1);
                bar.0 = Date::from_ymd(year, month, day).unwrap();
            }
            let csv = table(&data, &HEADER, ',', write(format), price, volume);
            counts.try_file(&format!("{format} {day}"), "x.csv", csv, &rows(&data));
        }
    }
    counts.finish("day and month in either order", 24);
}
