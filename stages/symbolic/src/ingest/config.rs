//! The configuration of `ingest/knowledge_base`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stages_core::ConfigProblem;
use stages_ingest::files::Paths;
use stages_knowledge::Split;
use stages_knowledge::text::TripleForm;

stages_core::settings! {
/// Files of facts, rules and queries.
pub struct KnowledgeBaseConfig {
    /// A folder whose files have the usual names: `facts`, `graph`, `background` and `rules` are the graph,
    /// `train`, `valid` (or `dev`) and `test` the queries, with any ending of a form, and `.gz` or `.zst`.
    /// Other files are not read. Files of the fields below are added.
    pub folder: String = String::new(),
    /// The files of facts and rules that proofs and paths may use: a path, a glob, a URL, or a list of them;
    /// plain, `.gz`, `.zst` or `.zip`. Clauses are numbered in the order of the list, in each file from top
    /// to bottom.
    pub graph: Paths = Paths::default(),
    /// The files of queries to train on. A query is a fact, stated not to hold where `\+` stands before it or
    /// its label is 0; or a goal list, `?- p(X), q(X).`
    pub train: Paths = Paths::default(),
    /// The files of queries to choose settings by.
    pub valid: Paths = Paths::default(),
    /// The files of queries to test on.
    pub test: Paths = Paths::default(),
    /// The files of queries that do not hold.
    pub negatives: Negatives = Negatives::default(),
    /// True where the positive queries of `train` are facts of the graph, too.
    pub train_in_graph: bool = true,
    /// The form of the files.
    pub format: Format = Format::Auto,
    /// The places of the columns in files of triples.
    pub columns: Vec<TripleColumn> = vec![TripleColumn::Head, TripleColumn::Relation, TripleColumn::Tail],
    /// The character between the fields of triples.
    pub separator: Separator = Separator::Auto,
    /// True where the first line of a file of triples names its columns.
    pub header: bool = false,
    /// The treatment of facts of the graph that are given several times.
    pub duplicates: Duplicates = Duplicates::Keep,
}
}

/// The files of queries that do not hold, by split.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Negatives {
    /// Those to train on.
    pub train: Paths,
    /// Those to choose settings by.
    pub valid: Paths,
    /// Those to test on.
    pub test: Paths,
}

/// The form of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// By the name's ending: `.pl`, `.nl`, `.dl`, `.lp`, `.prolog` and `.datalog` are Prolog, `.nt` is
    /// N-Triples, all others are triples.
    #[default]
    Auto,
    /// Prolog or Datalog.
    Prolog,
    /// Lines of head, relation and tail.
    Triples,
    /// RDF N-Triples.
    NTriples,
}

/// A column of a file of triples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TripleColumn {
    /// The subject.
    Head,
    /// The predicate.
    Relation,
    /// The object.
    Tail,
    /// 1 for a fact, 0 for one that is stated not to hold.
    Label,
}

/// The character between the fields of triples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Separator {
    /// A tab where the first line has one, and else a comma.
    #[default]
    Auto,
    /// A tab.
    Tab,
    /// A comma; a field in double quotation marks may hold commas.
    Comma,
    /// One blank.
    Space,
}

/// The treatment of facts that are given several times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Duplicates {
    /// Each is a clause of its own, as in Prolog: a goal has its answer as often.
    #[default]
    Keep,
    /// The first of them stays.
    Drop,
}

/// The purpose of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Graph,
    Queries(Split),
    Negatives(Split),
}

impl KnowledgeBaseConfig {
    /// The fields that name files: the name, the purpose, the files.
    pub(super) fn roles(&self) -> [(&'static str, Role, &Paths); 7] {
        [
            ("graph", Role::Graph, &self.graph),
            ("train", Role::Queries(Split::Train), &self.train),
            ("valid", Role::Queries(Split::Valid), &self.valid),
            ("test", Role::Queries(Split::Test), &self.test),
            ("negatives.train", Role::Negatives(Split::Train), &self.negatives.train),
            ("negatives.valid", Role::Negatives(Split::Valid), &self.negatives.valid),
            ("negatives.test", Role::Negatives(Split::Test), &self.negatives.test),
        ]
    }

    /// Returns whether a folder or a file is named.
    pub(super) fn names_files(&self) -> bool {
        !self.folder.is_empty() || self.roles().iter().any(|(_, _, paths)| !paths.is_empty())
    }

    /// Refuses files without a graph, and columns that are no triple. Whether a folder has a graph is known
    /// once it is searched.
    pub(super) fn validate(&self) -> Result<(), ConfigProblem> {
        if self.folder.is_empty() && !self.has_graph() {
            return Err(ConfigProblem::new("graph", "no facts are given").hint(
                "write `graph: data/facts.pl`, or `train: data/train.txt` for a graph of the facts to train \
                on",
            ));
        }
        self.form().map(|_| ())
    }

    /// Returns whether the files that are named have a graph.
    pub(super) fn has_graph(&self) -> bool {
        !self.graph.is_empty() || (self.train_in_graph && !self.train.is_empty())
    }

    /// The form of files of triples.
    pub(super) fn form(&self) -> Result<TripleForm, ConfigProblem> {
        let place = |column: TripleColumn| {
            let places: Vec<usize> = (0..self.columns.len())
                .filter(|&at| self.columns[at] == column)
                .collect();
            match places[..] {
                [place] => Ok(place),
                _ => Err(
                    ConfigProblem::new("columns", "head, relation and tail are not each named once")
                        .hint("write `columns: [head, relation, tail]`, with `label` where there is one"),
                ),
            }
        };
        if self.columns.len() > 4 {
            return Err(ConfigProblem::new("columns", "more than four columns are named")
                .hint("a triple has head, relation and tail, and perhaps a label"));
        }
        Ok(TripleForm {
            columns: [
                place(TripleColumn::Head)?,
                place(TripleColumn::Relation)?,
                place(TripleColumn::Tail)?,
            ],
            separator: match self.separator {
                Separator::Auto => None,
                Separator::Tab => Some(b'\t'),
                Separator::Comma => Some(b','),
                Separator::Space => Some(b' '),
            },
            header: self.header,
        })
    }
}
