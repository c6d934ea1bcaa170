//! The program of a file, kept in the store: each file is parsed once.

use super::config::{Format, KnowledgeBaseConfig};
use bytes::Bytes;
use cache::{BlobDigest, BlobRef, canonical_json};
use serde_json::json;
use stages_core::{Context, Given, Memo, Source, StageError};
use stages_ingest::cuts::{decode, encode, kept};
use stages_ingest::files::unreadable;
use stages_ingest::unpack;
use stages_knowledge::sections::Section as _;
use stages_knowledge::text::{self, TextError};
use stages_knowledge::{Program, artifact};

/// The form in which a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Prolog; names may hold hyphens if true.
    Prolog(bool),
    Triples,
    NTriples,
}

fn form(config: &KnowledgeBaseConfig, name: &str) -> Form {
    let name = unpack::without_packing(name);
    let ending = name
        .rsplit_once('.')
        .map_or("", |(_, ending)| ending)
        .to_ascii_lowercase();
    let hyphens = ending == "nl";
    match config.format {
        Format::Prolog => Form::Prolog(hyphens),
        Format::Triples => Form::Triples,
        Format::NTriples => Form::NTriples,
        Format::Auto => match ending.as_str() {
            "pl" | "nl" | "dl" | "lp" | "prolog" | "datalog" => Form::Prolog(hyphens),
            "nt" => Form::NTriples,
            _ => Form::Triples,
        },
    }
}

/// The digest of a file's bytes. An unchanged file is not read.
fn content(given: &Given<'_>, source: &Source) -> Result<BlobDigest, StageError> {
    let file = given.store.hash_file(&source.path).map_err(|err| {
        let cause = std::error::Error::source(&err).map(|cause| format!(": {cause}"));
        StageError::new(format!("{err}{}", cause.unwrap_or_default()))
    })?;
    Ok(file.blob)
}

/// The memo of a file's program.
pub(super) fn memo(
    config: &KnowledgeBaseConfig,
    given: &Given<'_>,
    source: &Source,
) -> Result<(Memo, BlobDigest), StageError> {
    let content = content(given, source)?;
    let form = form(config, &source.name);
    let settings = canonical_json(&match form {
        Form::Prolog(hyphens) => json!(["prolog", hyphens]),
        Form::NTriples => json!(["n_triples"]),
        Form::Triples => json!(["triples", config.columns, config.separator, config.header]),
    });
    let parts: [&[u8]; 2] = [content.as_bytes(), settings.as_bytes()];
    let memo = Memo::new("ingest/knowledge_base file v1", &parts, source.name.clone());
    Ok((memo, content))
}

/// The program of a file, from its memo where it is cached.
///
/// # Errors
/// Fails when the file cannot be read, or its text is not supported.
pub(super) fn program(
    config: &KnowledgeBaseConfig,
    context: &Context,
    source: &Source,
) -> Result<Program, StageError> {
    let (memo, content) = memo(config, &context.given(), source)?;
    source.check(content)?;
    // The memo names the blob of the program: a large one is written as it is, not held a second time.
    let known = context.cached(&memo, |value| {
        let blob: BlobRef = decode(&context.store.blob(value.blob)?)?;
        let is_kept = context.store.memo(kept(&memo).key)? == Some(blob) && context.store.has(blob);
        Ok(is_kept.then_some(blob))
    })?;
    let blob = match known {
        Some(blob) => blob,
        None => {
            let mut written = None;
            context.compute_memo(&memo, || {
                let program = parse(config, source, content)?;
                let blob = artifact::put(&context.store, &program)?;
                context.store.put_memo(kept(&memo).key, blob)?;
                encode(written.insert(blob))
            })?;
            written.ok_or_else(|| StageError::new("the program of a file was not written"))?
        }
    };
    let file = Bytes::from_owner(context.store.blob(blob.blob)?);
    Program::open(file)
        .map_err(|err| StageError::new(format!("the memo of `{}` is damaged: {err}", source.name)))
}

fn parse(config: &KnowledgeBaseConfig, source: &Source, content: BlobDigest) -> Result<Program, StageError> {
    let bytes = cache::regular_file::read(&source.path).map_err(|err| unreadable(&source.path, &err))?;
    if BlobRef::of(&bytes).blob != content {
        return Err(source.changed());
    }
    let packed = unpack::unpack(&source.path, bytes)?;
    let [packed] = &packed[..] else {
        return Err(
            StageError::new(format!("`{}` holds {} files", source.path.display(), packed.len()))
                .hint("a file of a knowledge base is packed by itself"),
        );
    };
    let refused = |err: TextError| {
        let error = StageError::new(format!("`{}`, {err}", packed.place));
        match err.hint.as_str() {
            "" => error,
            hint => error.hint(hint),
        }
    };
    // What is made of tables, such as their encodings and the remarks below them, is not made of programs.
    let bytes = packed.raw.as_ref().unwrap_or(&packed.bytes);
    let text = std::str::from_utf8(bytes).map_err(|err| {
        let line = bytes[..err.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count() + 1;
        StageError::new(format!("`{}`, line {line}: the text is not UTF-8", packed.place))
            .hint("convert it to UTF-8")
    })?;
    match form(config, &source.name) {
        Form::Prolog(hyphens) => text::prolog(text, hyphens).map_err(refused),
        Form::NTriples => text::ntriples(text).map_err(refused),
        Form::Triples => text::triples(text, &config.form()?).map_err(refused),
    }
}
