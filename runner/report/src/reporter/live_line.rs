//! The lines that are redrawn on a terminal while a run goes on: its progress as a whole, and a line for each
//! running stage. What matters least is left out where the terminal is narrow.

use super::StageProgress;
use runner_engine::text;
use std::time::Duration;

/// The lengths of bars, where there is room and where there is little, and of spark lines, in columns.
const BAR: usize = 20;
const SHORT_BAR: usize = 10;
const SPARK: usize = 16;

/// The least number of columns in which the beginning of a message says something.
const TELLING: usize = 12;

/// The contents of a line.
#[derive(Clone, Debug, Default)]
pub(super) struct LiveLine {
    /// The name of the stage, or the number of stages that are over.
    pub name: String,
    /// The columns for names.
    pub name_width: usize,
    /// The share done, from 0 to 1.
    pub share: Option<f64>,
    /// The time left, in seconds.
    pub left: Option<f64>,
    /// The expected duration where only the history tells, in seconds.
    pub expected: Option<f64>,
    /// The values of a metric so far, with its name and last value.
    pub curve: Option<String>,
    /// The activity, in the stage's words.
    pub message: String,
    /// Speed and resource use.
    pub figures: String,
}

impl LiveLine {
    /// Takes over the progress of the line's stage.
    pub(super) fn take(&mut self, progress: &StageProgress) {
        self.share = progress.share();
        self.left = progress.left();
        self.curve = progress.curve(SPARK);
        self.message = text::visible_line(&progress.message).into_owned();
        self.figures = progress.figures();
    }

    /// The time left as text; at the end of the counted work and of the expected time, what is going on.
    fn time_left(&self, elapsed: f64) -> String {
        let left = self.left.or_else(|| self.expected.map(|expected| expected - elapsed));
        match (self.share, left) {
            (Some(share), _) if share >= 1.0 => "finishing".to_owned(),
            (_, Some(left)) if left >= 59.5 => format!("{} left", text::duration(left.round())),
            (_, Some(left)) if left >= 0.5 => format!("{left:.0} s left"),
            _ => String::new(),
        }
    }

    /// The line, of at most `width` columns.
    pub(super) fn render(&self, elapsed: Duration, width: usize, colour: bool) -> String {
        let seconds = elapsed.as_secs_f64();
        let spinner = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
        let spinner = spinner[(elapsed.as_millis() / 200) as usize % spinner.len()];
        let name_width = self.name_width.min(width / 3).max(1);
        let name = cut(&self.name, name_width);
        let head = format!(" {spinner} {name:<name_width$} {:>8}", clock(seconds));
        let bar = self.share.map(|share| bar_of(share, BAR));
        let percent = self.share.map(|share| format!("{:>3.0} %", (share * 100.0).floor()));
        let left = self.time_left(seconds);
        // In the order of the line, each with its rank.
        let parts = [
            (3, bar.unwrap_or_default()),
            (0, percent.unwrap_or_default()),
            (1, left),
            (2, self.curve.clone().unwrap_or_default()),
            (4, self.message.clone()),
            (5, self.figures.clone()),
        ];
        let mut free = width.saturating_sub(columns(&head) + 1);
        let mut shown: [Option<String>; 6] = Default::default();
        let mut ranked: Vec<(usize, &(u8, String))> = parts.iter().enumerate().collect();
        ranked.sort_by_key(|(_, (rank, _))| *rank);
        for (at, (_, part)) in ranked.into_iter().filter(|(_, (_, part))| !part.is_empty()) {
            let room = free.saturating_sub(2);
            let part = match (at, self.share) {
                (0, Some(share)) if columns(part) > room => bar_of(share, SHORT_BAR),
                (4, _) if room >= TELLING => cut(part, room),
                _ => part.clone(),
            };
            if columns(&part) > room {
                continue;
            }
            free -= columns(&part) + 2;
            shown[at] = Some(part);
        }
        let mut line = head;
        for (at, part) in shown.iter().enumerate() {
            if let Some(part) = part {
                let part = if colour && at == 0 {
                    format!("\u{1b}[36m{part}\u{1b}[0m")
                } else {
                    part.clone()
                };
                line.push_str(&format!("  {part}"));
            }
        }
        line
    }
}

fn columns(text: &str) -> usize {
    text.chars().count()
}

/// The first `most` characters, the last of them an ellipsis where there are more.
fn cut(text: &str, most: usize) -> String {
    match columns(text) > most {
        true => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// The time since the start in whole seconds: a line that is redrawn needs no fractions.
fn clock(seconds: f64) -> String {
    let whole = seconds as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{}:{:02} min", whole / 60, whole % 60),
        _ => format!("{}:{:02} h", whole / 3600, whole % 3600 / 60),
    }
}

fn bar_of(share: f64, length: usize) -> String {
    let full = ((share * length as f64).floor() as usize).min(length);
    format!("{}{}", "█".repeat(full), "░".repeat(length - full))
}

/// A curve in one line, of at most `most` characters: from the lowest to the highest value.
pub(super) fn spark(values: &[f64], most: usize) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let count = values.len().min(most);
    let means: Vec<f64> = (0..count)
        .map(|i| &values[i * values.len() / count..(i + 1) * values.len() / count])
        .map(|some| some.iter().sum::<f64>() / some.len() as f64)
        .collect();
    let (low, high) = means
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), mean| {
            (low.min(*mean), high.max(*mean))
        });
    let level = |mean: &f64| match high > low {
        true => LEVELS[(((mean - low) / (high - low)) * 7.0).round() as usize],
        false => LEVELS[0],
    };
    means.iter().map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_and_say_what_matters_first() {
        let mut line = LiveLine {
            name: "train[seed=1,lr=0.0003]".to_owned(),
            name_width: 23,
            share: Some(0.426),
            left: Some(125.0),
            curve: Some("return ▁▂▃▅▆▇█ 0.512".to_owned()),
            figures: "12.3 it/s, policy loss -0.012, 350 % CPU, 1.2 GiB".to_owned(),
            ..LiveLine::default()
        };
        let elapsed = Duration::from_secs(83);
        let mut drawn = String::new();
        for width in [140, 100, 80, 60, 40] {
            let text = line.render(elapsed, width, false);
            assert!(columns(&text) <= width, "{width}: {text}");
            drawn += &format!("{}\n", text.trim_start());
        }
        // The counted work is done, the stage is not.
        line.share = Some(1.0);
        line.left = Some(0.0);
        drawn += &format!("{}\n", line.render(elapsed, 80, false).trim_start());
        line.message = "writing the policy".to_owned();
        drawn += &format!("{}\n", line.render(elapsed, 80, false).trim_start());
        // Only the history tells, and then it does not.
        let mut line = LiveLine {
            name: "greeks".to_owned(),
            name_width: 8,
            ..LiveLine::default()
        };
        line.expected = Some(90.0);
        drawn += &format!("{}\n", line.render(elapsed, 80, false).trim_start());
        drawn += line.render(Duration::from_secs(3725), 80, false).trim_start();
        insta::assert_snapshot!(drawn, @"
        ⠴ train[seed=1,lr=0.0003] 1:23 min  ████████░░░░░░░░░░░░   42 %  2 min 05 s left  return ▁▂▃▅▆▇█ 0.512
        ⠴ train[seed=1,lr=0.0003] 1:23 min  ████░░░░░░   42 %  2 min 05 s left  return ▁▂▃▅▆▇█ 0.512
        ⠴ train[seed=1,lr=0.0003] 1:23 min  ████░░░░░░   42 %  2 min 05 s left
        ⠴ train[seed=1,lr=0.0… 1:23 min   42 %  2 min 05 s left
        ⠴ train[seed=1… 1:23 min   42 %
        ⠴ train[seed=1,lr=0.0003] 1:23 min  100 %  finishing  return ▁▂▃▅▆▇█ 0.512
        ⠴ train[seed=1,lr=0.0003] 1:23 min  100 %  finishing  return ▁▂▃▅▆▇█ 0.512
        ⠴ greeks   1:23 min  7 s left
        ⠴ greeks     1:02 h
        ");
    }

    #[test]
    fn a_curve_spans_its_values() {
        assert_eq!(spark(&[0.0, 1.0, 2.0, 3.5, 7.0], 16), "▁▂▃▅█");
        assert_eq!(spark(&[1.0; 3], 16), "▁▁▁");
        let long: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!(spark(&long, 8), "▁▂▃▄▅▆▇█");
        assert_eq!(spark(&[], 8), "");
    }
}
