//! The evaluation of a reasoning policy: the policy beside baselines and its blind copy, then a few proofs.

use super::finding;
use super::html::escape_content;
use cache::Store;
use runner_history::StageRun;

/// The maximum number of bytes of proofs on a page.
const MOST: usize = 32 << 10;

/// The files with a table for people, with proofs, paths or plans, and with verdicts by confidence, each with
/// its title.
const FILES: [(&str, &str); 3] = [
    (finding::TABLE, "In short"),
    ("proofs.txt", "What it proves, finds or plans"),
    ("calibration.csv", "Verdicts by confidence"),
];

/// The files beside the metrics of a stage; empty for other stages.
pub(super) fn files(stage: &StageRun, store: &Store) -> String {
    let read = |name: &str| {
        let artifact = store.artifact(*stage.outputs.get("metrics")?).ok()?;
        store.blob(artifact.entry(name)?.blob).ok()
    };
    FILES
        .iter()
        .filter_map(|(name, title)| Some(shown(title, &String::from_utf8_lossy(&read(name)?))))
        .collect()
}

/// A text with its title, truncated at the end of a line; empty without text.
fn shown(title: &str, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let cut = text
        .get(..text.floor_char_boundary(MOST))
        .filter(|cut| cut.len() < text.len());
    let (text, more) = match cut {
        None => (text, ""),
        Some(cut) => (
            cut.rsplit_once('\n').map_or(cut, |(whole, _)| whole),
            "<p class=\"dim\">and more, in the artifact</p>\n",
        ),
    };
    format!("<h3>{title}</h3>\n<pre>{}</pre>\n{more}", escape_content(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_at_a_line() {
        assert_eq!(shown("Proofs", ""), "");
        assert_eq!(shown("Proofs", "a <b\n"), "<h3>Proofs</h3>\n<pre>a &lt;b\n</pre>\n");
        let long = shown("Proofs", &"über\n".repeat(MOST));
        assert!(long.len() < MOST + 200 && long.contains("über</pre>\n<p class=\"dim\">and more"));
    }
}
