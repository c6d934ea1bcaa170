//! The evaluation of a reasoning policy: the policy beside baselines and its blind copy, then a few proofs.

use super::fold::Fold;
use super::html::escape_content;
use cache::Store;
use runner_history::StageRun;

/// The maximum number of bytes of proofs on a page.
const MOST: usize = 32 << 10;

/// The files with proofs, paths or plans, and with verdicts by confidence, each with its title.
const FILES: [(&str, &str); 2] = [
    ("proofs.txt", "What it proves, finds or plans"),
    ("calibration.csv", "Verdicts by confidence"),
];

/// The files beside the metrics of a stage; none for other stages.
pub(super) fn files(stage: &StageRun, store: &Store) -> Vec<Fold> {
    let read = |name: &str| {
        let artifact = store.artifact(*stage.outputs.get("metrics")?).ok()?;
        store.blob(artifact.entry(name)?.blob).ok()
    };
    FILES
        .iter()
        .filter_map(|(name, title)| {
            let blob = read(name)?;
            let text = String::from_utf8_lossy(&blob);
            let lines = format!("{} lines", text.lines().count());
            (!text.is_empty()).then(|| Fold::new(title, lines, shown(&text)))
        })
        .collect()
}

/// A text, truncated at the end of a line.
fn shown(text: &str) -> String {
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
    format!("<pre>{}</pre>\n{more}", escape_content(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_at_a_line() {
        assert_eq!(shown("a <b\n"), "<pre>a &lt;b\n</pre>\n");
        let long = shown(&"über\n".repeat(MOST));
        assert!(long.len() < MOST + 200 && long.contains("über</pre>\n<p class=\"dim\">and more"));
    }
}
