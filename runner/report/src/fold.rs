//! Parts of a page that are collapsed after a line that sums them up.

use crate::html::escape;

/// A part of a page with a title, a summary in a line and a body. Summary and body are HTML.
pub(crate) struct Fold {
    pub title: String,
    pub summary: String,
    pub body: String,
}

impl Fold {
    /// Creates a part; the title is text.
    pub(crate) fn new(title: &str, summary: String, body: String) -> Self {
        Self {
            title: title.to_owned(),
            summary,
            body,
        }
    }

    /// The part as HTML, with a heading of this level. A link to the part's [`Self::id`] opens it.
    pub(crate) fn html(&self, level: u8, is_open: bool) -> String {
        // Browsers open a part for a link to what is inside.
        let id = match level {
            2 => format!(" id=\"{}\"", self.id()),
            _ => String::new(),
        };
        let open = if is_open { " open" } else { "" };
        format!(
            "<details class=\"fold\"{open}><summary><h{level}>{}</h{level}> <span class=\"dim\">{}</span></summary>\n\
            <div{id}>\n{}</div></details>\n",
            escape(&self.title),
            self.summary,
            self.body
        )
    }

    /// The name by which links lead to the part.
    pub(crate) fn id(&self) -> String {
        let keep = |letter: char| {
            if letter.is_ascii_alphanumeric() || letter == '_' {
                letter.to_ascii_lowercase()
            } else {
                '-'
            }
        };
        format!("part-{}", self.title.chars().map(keep).collect::<String>())
    }
}

/// Links to the parts of a page.
pub(crate) fn contents(folds: &[Fold]) -> String {
    let links: String = folds
        .iter()
        .map(|fold| format!("<li><a href=\"#{}\">{}</a></li>\n", fold.id(), escape(&fold.title)))
        .collect();
    format!("<nav class=\"contents\" aria-label=\"contents\"><ul>\n{links}</ul></nav>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_into_the_parts() {
        let fold = Fold::new("Is it <blind>?", "no".to_owned(), "<p>body</p>".to_owned());
        assert_eq!(fold.id(), "part-is-it--blind--");
        assert!(
            fold.html(2, false)
                .contains("<div id=\"part-is-it--blind--\">\n<p>body</p></div></details>")
        );
        assert!(
            fold.html(3, true)
                .starts_with("<details class=\"fold\" open><summary><h3>Is it &lt;blind")
        );
        assert!(contents(&[fold]).contains("<a href=\"#part-is-it--blind--\">Is it &lt;blind&gt;?</a>"));
    }
}
