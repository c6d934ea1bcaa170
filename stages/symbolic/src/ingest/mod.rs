//! `ingest/knowledge_base`: facts, rules and queries from Prolog and Datalog text, triples and RDF.
//!
//! A file is parsed once (`file`): its program is kept in the store under the digest of its bytes. The
//! knowledge base is made of the programs; `quality` counts what is suspicious in it.

mod config;
mod file;
mod folder;
mod quality;
mod stage;

pub use config::KnowledgeBaseConfig;
pub use quality::RULES;
pub use stage::KnowledgeBase;
