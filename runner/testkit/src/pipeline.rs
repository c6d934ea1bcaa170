//! The text of pipeline files, stage by stage.

use std::fmt::{self, Display, Formatter, Write as _};

/// The text of a pipeline file. What is called after [`PipelineText::run`] or [`PipelineText::uses`] belongs
/// to that stage. Values are written as they stand: YAML, on one line.
#[derive(Clone, Debug)]
pub struct PipelineText {
    name: String,
    blocks: Vec<(String, String)>,
    params: Vec<(String, String)>,
    stages: Vec<Stage>,
}

/// A stage: its settings, and its maps in the order of [`MAPS`].
#[derive(Clone, Debug)]
struct Stage {
    name: String,
    settings: Vec<(String, String)>,
    maps: [Vec<(String, String)>; MAPS.len()],
}

/// The keys of a stage whose values are maps.
const MAPS: [&str; 4] = ["needs", "matrix", "with", "outputs"];

/// A pipeline without stages.
pub fn pipeline(name: &str) -> PipelineText {
    PipelineText {
        name: name.to_owned(),
        blocks: Vec::new(),
        params: Vec::new(),
        stages: Vec::new(),
    }
}

impl PipelineText {
    /// Sets a parameter.
    pub fn param(mut self, name: &str, value: impl Display) -> Self {
        put(&mut self.params, name, value);
        self
    }

    /// Sets a key of the file, such as `profiles` or `schedule`.
    pub fn block(mut self, key: &str, value: impl Display) -> Self {
        put(&mut self.blocks, key, value);
        self
    }

    /// Adds a stage that runs a command. An output that the command names as `${outputs.NAME}` is the file
    /// `NAME.txt`, unless [`PipelineText::output`] names another.
    pub fn run(self, stage: &str, command: &str) -> Self {
        let quoted = serde_json::to_string(command).unwrap();
        let mut text = self.stage(stage, "run", &quoted);
        for part in command.split("${outputs.").skip(1) {
            if let Some((name, _)) = part.split_once('}') {
                text = text.output(name, format!("{name}.txt"));
            }
        }
        text
    }

    /// Adds a stage of a kind.
    pub fn uses(self, stage: &str, kind: &str) -> Self {
        self.stage(stage, "uses", kind)
    }

    /// Connects an input of the stage.
    pub fn needs(self, port: &str, reference: impl Display) -> Self {
        self.entry(0, port, reference)
    }

    /// Adds an axis to the matrix of the stage.
    pub fn matrix(self, axis: &str, values: impl Display) -> Self {
        self.entry(1, axis, values)
    }

    /// Sets a field of the configuration of the stage.
    pub fn with(self, key: &str, value: impl Display) -> Self {
        self.entry(2, key, value)
    }

    /// Names the file or directory of an output of the stage.
    pub fn output(self, name: &str, file: impl Display) -> Self {
        self.entry(3, name, file)
    }

    /// Sets any other key of the stage, such as `files` or `timeout`.
    pub fn set(mut self, key: &str, value: impl Display) -> Self {
        put(&mut self.last().settings, key, value);
        self
    }

    fn stage(mut self, name: &str, key: &str, value: &str) -> Self {
        self.stages.push(Stage {
            name: name.to_owned(),
            settings: vec![(key.to_owned(), value.to_owned())],
            maps: Default::default(),
        });
        self
    }

    fn entry(mut self, map: usize, key: &str, value: impl Display) -> Self {
        put(&mut self.last().maps[map], key, value);
        self
    }

    fn last(&mut self) -> &mut Stage {
        self.stages.last_mut().expect("`run` or `uses` comes first")
    }
}

/// Sets a key, in place if it is there already.
fn put(entries: &mut Vec<(String, String)>, key: &str, value: impl Display) {
    match entries.iter_mut().find(|(known, _)| known == key) {
        Some((_, old)) => *old = value.to_string(),
        None => entries.push((key.to_owned(), value.to_string())),
    }
}

impl Display for PipelineText {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut text = format!("version: 1\nname: {}\n", self.name);
        let mut write = |depth: usize, key: &str, value: &str| {
            let space = if value.is_empty() { "" } else { " " };
            writeln!(text, "{:1$}{key}:{space}{value}", "", 2 * depth)
        };
        for (key, value) in &self.blocks {
            write(0, key, value)?;
        }
        if !self.params.is_empty() {
            write(0, "params", "")?;
        }
        for (name, value) in &self.params {
            write(1, name, value)?;
        }
        write(0, "stages", "")?;
        for stage in &self.stages {
            write(1, &stage.name, "")?;
            for (key, value) in &stage.settings {
                write(2, key, value)?;
            }
            for (map, entries) in MAPS.iter().zip(&stage.maps).filter(|(_, entries)| !entries.is_empty()) {
                write(2, map, "")?;
                for (key, value) in entries {
                    write(3, key, value)?;
                }
            }
        }
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_with_everything() {
        let text = pipeline("example")
            .block("profiles", "{ quick: { n: 1 } }")
            .param("n", 3)
            .uses("env", "env/classic")
            .with("id", "CartPole-v1")
            .run("a", "echo \"${params.n}\" > ${outputs.x}\ncp -r t ${outputs.tree}")
            .matrix("seed", "[1, 2]")
            .set("files", "[t]")
            .output("tree", "tree")
            .run("b", "cat ${needs.x} > ${outputs.y}")
            .needs("x", "a[*].x");
        insta::assert_snapshot!(text, @r#"
        version: 1
        name: example
        profiles: { quick: { n: 1 } }
        params:
          n: 3
        stages:
          env:
            uses: env/classic
            with:
              id: CartPole-v1
          a:
            run: "echo \"${params.n}\" > ${outputs.x}\ncp -r t ${outputs.tree}"
            files: [t]
            matrix:
              seed: [1, 2]
            outputs:
              x: x.txt
              tree: tree
          b:
            run: "cat ${needs.x} > ${outputs.y}"
            needs:
              x: a[*].x
            outputs:
              y: y.txt
        "#);
    }
}
