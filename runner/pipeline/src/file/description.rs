//! The description of a pipeline, in the comments of its file.

/// The maximum length of a description, in characters.
const LONGEST: usize = 400;

/// The first paragraph of comments at the top of a pipeline file's text, cut at a sentence; `None` if there
/// is none.
pub fn description(text: &str) -> Option<String> {
    let lines = text
        .lines()
        .map(|line| line.strip_prefix('#'))
        .skip_while(|line| line.is_some_and(|line| line.trim_start().starts_with("yaml-language-server")));
    // Indented lines are commands or lists.
    let words =
        lines.map_while(|line| line.filter(|line| !line.trim().is_empty() && !line.starts_with("   ")));
    let text = words.map(str::trim).collect::<Vec<_>>().join(" ");
    let cut = text.char_indices().nth(LONGEST).map_or(text.len(), |(at, _)| at);
    let whole = match text[..cut].rfind(". ") {
        Some(end) if cut < text.len() => &text[..=end],
        _ => &text[..cut],
    };
    (!whole.is_empty()).then(|| whole.trim_end_matches(':').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_is_the_first_paragraph_of_comments() {
        let head = "# yaml-language-server: $schema=x\n# Five seeds\n# of each task:\n#   runner exec \
            p.yaml\nversion: 1\n";
        assert_eq!(description(head).unwrap(), "Five seeds of each task");
        assert_eq!(description("version: 1\n# later\n"), None);
        let long = format!("# First. {}\n", "word ".repeat(200));
        assert_eq!(description(&long).unwrap(), "First.");
    }
}
