//! The connections between the points of a stage and those of its producers.

use crate::InputRef;
use crate::matrix::{Folders, Matching, Point};
use crate::stage::{Needs, Reference};
use std::collections::BTreeMap;

/// The matching points of a stage and of its producers.
pub(crate) struct Connections<'s> {
    needs: &'s Needs,
    points: &'s [Vec<Point>],
    /// The matching of each reference of each port.
    matching: Vec<Vec<Matching>>,
}

impl<'s> Connections<'s> {
    /// Matches the points that the references of a stage select. `points` has the points of each stage, by
    /// index.
    pub(crate) fn new(needs: &'s Needs, points: &'s [Vec<Point>]) -> Self {
        let of = |reference: &Reference| Matching::new(reference, &points[reference.stage]);
        let ports = needs.ports.iter();
        Self {
            needs,
            points,
            matching: ports
                .map(|(_, references)| references.iter().map(of).collect())
                .collect(),
        }
    }

    /// The references of a port, each with its producer's points that match `point`.
    fn at<'c>(&'c self, port: usize, point: &'c Point) -> impl Iterator<Item = (&'s Reference, &'c [usize])> {
        let references = self.needs.ports[port].1.iter();
        references.zip(self.matching[port].iter().map(|matching| matching.of(point)))
    }

    /// The nodes whose outputs a point reads, by port. `first` has the index of the first node of each stage.
    pub(crate) fn inputs(&self, point: &Point, first: &[usize]) -> BTreeMap<String, Vec<InputRef>> {
        let of = |port| {
            let inputs = self.at(port, point).flat_map(|(reference, producers)| {
                producers.iter().map(|i| InputRef {
                    node: first[reference.stage] + i,
                    output: reference.output.clone(),
                })
            });
            inputs.collect()
        };
        let ports = self.needs.ports.iter().enumerate();
        ports.map(|(port, (name, _))| (name.clone(), of(port))).collect()
    }

    /// The directories of the inputs that a program collects at a point, by port: they are named by the axes
    /// in which the inputs differ.
    pub(crate) fn folders(&self, point: &Point) -> BTreeMap<String, Vec<String>> {
        let mut folders = BTreeMap::new();
        for (port, (name, references)) in self.needs.ports.iter().enumerate() {
            let collects = |reference: &Reference| {
                let select = &reference.select;
                let fans_out = self.points[reference.stage]
                    .first()
                    .is_some_and(|point| !point.is_empty());
                (select.all || !select.all_of.is_empty()) && fans_out
            };
            if !references.iter().any(collects) {
                continue;
            }
            let mut names = Folders::default();
            for (reference, producers) in self.at(port, point) {
                for &i in producers {
                    let producer = &self.points[reference.stage][i];
                    names.add(producer.iter().filter(|(axis, _)| !point.contains_key(*axis)));
                }
            }
            folders.insert(name.clone(), names.finish());
        }
        folders
    }
}
