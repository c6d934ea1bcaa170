//! The data-quality table of an artifact.

use datasets::quality::Finding;
use runner_engine::text;
use serde_json::Value;

/// The number of days that a line of the table lists.
const DAYS: usize = 3;

/// The table, with a line for each rule and example rows below; empty for artifacts without a data-quality
/// table.
pub fn quality_table(meta: &Value) -> String {
    let Ok(findings) = serde_json::from_value::<Vec<Finding>>(meta["quality"].clone()) else {
        return String::new();
    };
    if findings.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = findings
        .iter()
        .map(|finding| {
            let mut days: Vec<String> = finding.examples.iter().take(DAYS).map(ToString::to_string).collect();
            if finding.days as usize > days.len() {
                days.push("…".to_owned());
            }
            vec![
                finding.rule.clone(),
                finding.rows.to_string(),
                finding.days.to_string(),
                if finding.rows > 0 {
                    finding.action.clone()
                } else {
                    String::new()
                },
                days.join(" "),
            ]
        })
        .collect();
    let mut out = format!(
        "\ndata quality (docs/guides/data-quality.md explains it)\n{}",
        text::table(&["rule", "rows", "days", "action", "first days"], &rows, &[1, 2])
    );
    let samples: Vec<String> = findings
        .iter()
        .flat_map(|finding| {
            finding
                .sample
                .iter()
                .map(move |row| format!("  {}: {row}\n", finding.rule))
        })
        .collect();
    if !samples.is_empty() {
        out.push_str("\nexample rows\n");
        for sample in samples {
            out.push_str(&text::visible(&sample));
        }
    }
    out.push('\n');
    out
}
