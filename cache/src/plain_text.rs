//! Untrusted text in messages.

/// Escapes control characters and invisible characters as `\u{1b}`: a terminal shows the text and does not
/// interpret it.
pub fn plain_text(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if is_deceptive(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
        out
    })
}

/// True for control characters, invisible characters and characters that change the direction of a text: they
/// can make a text look like another one.
pub(crate) fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}
