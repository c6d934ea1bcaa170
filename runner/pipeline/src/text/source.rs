//! The texts that errors refer to: the pipeline file, its included files, and command-line arguments.

use crate::text::error::PipelineError;
use crate::text::place::Place;
use crate::text::suggest::nearest;
use cache::regular_file;
use stages_core::visible::visible;
use std::cell::OnceCell;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// A span in one of the texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    /// The index of the text: 0 is the pipeline file.
    pub text: usize,
    /// The start of the span.
    pub place: Place,
    /// The number of characters that the span covers on its first line.
    pub width: usize,
}

impl Spot {
    /// The first character of a text.
    pub fn start(text: usize) -> Self {
        Self {
            text,
            place: Place { line: 1, column: 1 },
            width: 1,
        }
    }

    /// The whole of a single-line text.
    pub fn whole(text: usize, content: &str) -> Self {
        Self {
            width: content.chars().count().max(1),
            ..Self::start(text)
        }
    }
}

struct Text {
    name: PathBuf,
    content: String,
    /// The offset of each line in bytes; computed for the first message.
    lines: OnceCell<Vec<usize>>,
    /// True if the text comes from the command line.
    argument: bool,
}

/// The texts.
#[derive(Default)]
pub struct Texts(Vec<Text>);

impl Texts {
    /// The text of a file alone.
    pub(crate) fn of(name: &Path, content: String) -> Self {
        let mut texts = Self::default();
        texts.push(name.to_owned(), content);
        texts
    }

    /// Adds a file and returns its index.
    pub fn push(&mut self, name: PathBuf, content: String) -> usize {
        self.add(name, content, false)
    }

    /// Adds a command-line argument (`--set`) and returns its index.
    pub fn push_argument(&mut self, name: &str, content: String) -> usize {
        self.add(PathBuf::from(name), content, true)
    }

    fn add(&mut self, name: PathBuf, content: String, argument: bool) -> usize {
        self.0.push(Text {
            name,
            content,
            lines: OnceCell::new(),
            argument,
        });
        self.0.len() - 1
    }

    /// True if the text at `index` comes from the command line.
    pub fn is_argument(&self, index: usize) -> bool {
        self.0.get(index).is_some_and(|text| text.argument)
    }

    /// The name of the text at `index`.
    pub fn name(&self, index: usize) -> &Path {
        self.0.get(index).map_or(Path::new(""), |text| &text.name)
    }

    /// Describes the line of `spot` in a message about the text at `from`: `line 4`, or `common.yaml:4`.
    pub fn line(&self, spot: Spot, from: usize) -> String {
        if spot.text == from {
            format!("line {}", spot.place.line)
        } else {
            format!("{}:{}", self.name(spot.text).display(), spot.place.line)
        }
    }

    /// The text at `index`.
    pub fn content(&self, index: usize) -> &str {
        self.0.get(index).map_or("", |text| &text.content)
    }

    /// The lines of the text at `index`, starting with the zero-based line `first`.
    fn lines(&self, index: usize, first: usize) -> std::str::Lines<'_> {
        let Some(text) = self.0.get(index) else {
            return "".lines();
        };
        let begins = text.lines.get_or_init(|| {
            let ends = text.content.match_indices('\n').map(|(at, _)| at + 1);
            std::iter::once(0).chain(ends).collect()
        });
        let begin = begins.get(first).copied().unwrap_or(text.content.len());
        text.content[begin..].lines()
    }

    /// The characters of a span, as they stand in the text.
    pub(crate) fn written(&self, spot: Spot) -> String {
        let line = self.lines(spot.text, spot.place.line.saturating_sub(1)).next();
        let rest = line
            .unwrap_or_default()
            .chars()
            .skip(spot.place.column.saturating_sub(1));
        rest.take(spot.width).collect()
    }

    /// The first occurrence of `needle` at or after `spot`; `spot` itself if there is none.
    pub fn locate(&self, spot: Spot, needle: &str) -> Spot {
        let first = spot.place.line.saturating_sub(1);
        for (number, line) in (first..).zip(self.lines(spot.text, first)) {
            let from = if number == first {
                let skip = spot.place.column.saturating_sub(1);
                line.char_indices().nth(skip).map_or(line.len(), |(at, _)| at)
            } else {
                0
            };
            if let Some(at) = line[from..].find(needle) {
                return Spot {
                    text: spot.text,
                    place: Place {
                        line: number + 1,
                        column: line[..from + at].chars().count() + 1,
                    },
                    width: needle.chars().count(),
                };
            }
        }
        spot
    }

    /// Creates an error at `spot`.
    pub fn error(&self, spot: Spot, message: String, hint: String) -> PipelineError {
        // A parser may report a position after the last line; it is mapped to the end of the file.
        let (place, line) = match self.lines(spot.text, spot.place.line.saturating_sub(1)).next() {
            Some(line) => (spot.place, line),
            None => {
                let lines = || self.content(spot.text).lines();
                let line = lines().last().unwrap_or_default();
                let place = Place {
                    line: lines().count().max(1),
                    column: line.chars().count() + 1,
                };
                (place, line)
            }
        };
        PipelineError {
            file: self.0.get(spot.text).map(|text| text.name.clone()).unwrap_or_default(),
            place: Place {
                line: place.line,
                column: place.column.clamp(1, line.chars().count() + 1),
            },
            message: visible(&message).into_owned(),
            hint: Some(visible(&hint).into_owned()),
            excerpt: line
                .chars()
                .map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c })
                .collect(),
            width: spot.width.max(1),
        }
    }
}

/// The maximum length of a pipeline file, in bytes.
const LONGEST: u64 = 16 << 20;

/// Reads a pipeline file: UTF-8 without control characters, within the length limit.
pub(crate) fn read(file: &Path) -> Result<String, PipelineError> {
    let bytes = bytes(file).map_err(|(message, hint)| {
        let texts = Texts::of(file, String::new());
        texts.error(Spot::start(0), message, hint)
    })?;
    decode(file, bytes)
}

/// The YAML file with the most similar name in the directory of a missing file.
fn near(file: &Path) -> Option<PathBuf> {
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty());
    let entries = std::fs::read_dir(dir.unwrap_or(Path::new("."))).ok()?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names
        .filter(|name| name.ends_with(".yaml") || name.ends_with(".yml"))
        .collect();
    names.sort();
    let wanted = file.file_name()?.to_string_lossy();
    let found = nearest(&wanted, names.iter().map(String::as_str))?;
    Some(file.with_file_name(found))
}

/// Reads the bytes of a pipeline file; returns an error message and a hint if that fails.
pub(crate) fn bytes(file: &Path) -> Result<Vec<u8>, (String, String)> {
    let unreadable = |err: std::io::Error| {
        (
            format!("cannot read the pipeline file: {err}"),
            match (err.kind(), near(file)) {
                (std::io::ErrorKind::NotFound, Some(near)) => format!("did you mean `{}`?", near.display()),
                _ => "give the path of a YAML file, relative to the current directory, or `/dev/stdin`"
                    .to_owned(),
            },
        )
    };
    if file.is_dir() {
        return Err((
            "this is a directory, not a pipeline file".to_owned(),
            "give the path of a YAML file, such as `pipelines/rppo_options.yaml`".to_owned(),
        ));
    }
    let mut bytes = Vec::new();
    regular_file::open_or_stream(file)
        .map_err(unreadable)?
        .take(LONGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > LONGEST {
        return Err((
            format!("the file is longer than {} MiB", LONGEST >> 20),
            "a pipeline file names data, it does not hold them: move them to files that a stage reads"
                .to_owned(),
        ));
    }
    Ok(bytes)
}

/// Decodes the text of a pipeline file.
pub(crate) fn decode(file: &Path, bytes: Vec<u8>) -> Result<String, PipelineError> {
    let broken = |valid: &str, message: String, hint: &str| {
        let last = valid.rsplit('\n').next().unwrap_or_default();
        let mut spot = Spot::start(0);
        spot.place.line = valid.matches('\n').count() + 1;
        spot.place.column = last.chars().count() + 1;
        Texts::of(file, format!("{valid}\u{fffd}")).error(spot, message, hint.to_owned())
    };
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(broken(
            "",
            "the file is UTF-16, not UTF-8".to_owned(),
            "save it as UTF-8, for instance with `iconv -f UTF-16 -t UTF-8`",
        ));
    }
    let text = String::from_utf8(bytes).map_err(|err| {
        let valid = err.utf8_error().valid_up_to();
        let byte = err.as_bytes().get(valid).copied().unwrap_or_default();
        broken(
            &String::from_utf8_lossy(&err.as_bytes()[..valid]),
            format!("byte 0x{byte:02x} is not UTF-8"),
            "save the file as UTF-8",
        )
    })?;
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    };
    match text.find(|c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r')) {
        Some(at) => Err(broken(
            &text[..at],
            format!(
                "control character {} in the file",
                text[at..].chars().next().unwrap_or_default().escape_unicode()
            ),
            "remove it; inside double quotes it can be written as an escape such as `\\x07`",
        )),
        None => Ok(text),
    }
}
