//! A place on a path, and the candidates that it has.

use super::counts::PathCounts;
use super::task::{NONE, PathQuery, PathTask};
use stages_numerics::random::Random;
use std::ops::Range;

/// A place on a path: the query, the steps so far, and the candidates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathState {
    /// The query.
    pub query: PathQuery,
    /// The entity at the end of the path so far.
    pub current: u32,
    /// The edges walked.
    walked: Vec<u32>,
    /// Ranges of the current entity's edges that are no candidates, in order, none touching another.
    left_out: Vec<[u32; 2]>,
    candidates: u32,
}

impl PathState {
    /// The start of a query's path.
    pub fn start(&mut self, task: &PathTask, query: PathQuery, counts: &mut PathCounts) {
        self.query = query;
        self.current = query.source;
        self.walked.clear();
        self.enter(task, counts);
    }

    /// Takes an action, the last one standing for larger numbers. At the end of the path there is none, and
    /// nothing changes.
    #[inline]
    pub fn walk(&mut self, task: &PathTask, action: u32, counts: &mut PathCounts) {
        if self.is_over(task) {
            return;
        }
        let row = task.graph.row(self.current);
        let mut edge = action.min(self.candidates - 1);
        for &[start, end] in &self.left_out {
            if edge < start {
                break;
            }
            edge += end - start;
        }
        // Staying is the first of the row.
        counts.stayed += u64::from(edge == 0);
        let edge = row.start as u32 + edge;
        self.go(task, edge, counts);
    }

    /// Walks an edge, or stays.
    #[inline]
    fn go(&mut self, task: &PathTask, edge: u32, counts: &mut PathCounts) {
        self.walked.push(edge);
        self.current = task.graph.targets[edge as usize];
        counts.steps += 1;
        match self.is_over(task) {
            true => {
                self.left_out.clear();
                self.candidates = task.graph.row(self.current).len() as u32;
                self.leave_out(0, self.candidates);
                counts.episodes += 1;
                counts.right += u64::from(self.is_right());
            }
            false => self.enter(task, counts),
        }
    }

    /// Replays edges that were walked from the start. Returns false where they are no path.
    pub(super) fn replay(&mut self, task: &PathTask, walked: &[u32], counts: &mut PathCounts) -> bool {
        walked.iter().all(|&edge| {
            let row = task.graph.row(self.current);
            let is_there = row.contains(&(edge as usize)) && !self.is_over(task);
            if is_there {
                self.go(task, edge, counts);
            }
            is_there
        })
    }

    /// Finds the candidates of the current entity.
    fn enter(&mut self, task: &PathTask, counts: &mut PathCounts) {
        let row = task.graph.row(self.current);
        let len = row.len() as u32;
        let cut = task.graph.cut(self.current);
        counts.states_cut += u64::from(cut > 0);
        counts.edges_cut += u64::from(cut);
        self.left_out.clear();
        self.candidates = len;
        if self.walked.len() + 1 == task.hops {
            self.mask(task);
            counts.masked += u64::from(len - self.candidates);
        }
        let [edge, inverse] = self.query.hidden;
        let hidden = [(edge, self.query.source), (inverse, self.query.answer)];
        for (edge, from) in hidden {
            if edge != NONE && from == self.current && self.hide(edge - row.start as u32) {
                counts.hidden += 1;
            }
        }
        if self.candidates == 0 {
            counts.nowhere += 1;
            self.left_out.clear();
            self.candidates = len;
            self.leave_out(1, len);
        }
    }

    /// Leaves out each candidate but staying and the edges to the answer with a probability; none where
    /// nothing would be left. `before` is a buffer.
    ///
    /// An answer that is often left out makes most episodes hopeless; one among few others is what there is
    /// to learn. A policy scores each candidate by itself, and cannot tell from the others which one was
    /// kept.
    pub(super) fn drop_edges(
        &mut self,
        task: &PathTask,
        probability: f64,
        random: &mut Random,
        before: &mut Vec<[u32; 2]>,
        counts: &mut PathCounts,
    ) {
        std::mem::swap(before, &mut self.left_out);
        self.left_out.clear();
        let candidates = self.candidates;
        let targets = &task.graph.targets[task.graph.row(self.current)];
        let len = targets.len() as u32;
        self.candidates = len;
        let mut next = 0;
        for &[start, end] in before.iter().chain([&[len, len]]) {
            for edge in next..start {
                let is_kept = edge == 0 || targets[edge as usize] == self.query.answer;
                if !is_kept && random.uniform() < probability {
                    self.leave_out(edge, edge + 1);
                }
            }
            if start < end {
                self.leave_out(start, end);
            }
            next = end;
        }
        if self.candidates == 0 {
            std::mem::swap(before, &mut self.left_out);
            self.candidates = candidates;
        }
        counts.dropped += u64::from(candidates - self.candidates);
    }

    /// Leaves out the edges that lead to other right answers.
    fn mask(&mut self, task: &PathTask) {
        let answers = task.answers(&self.query);
        if self.current != self.query.answer && answers.binary_search(&self.current).is_ok() {
            self.leave_out(0, 1);
        }
        task.graph.each_leading_to(self.current, answers, |answer, edges| {
            if answer != self.query.answer {
                self.leave_out(edges.start, edges.end);
            }
        });
    }

    /// Leaves out a range of edges that lies behind those left out so far.
    fn leave_out(&mut self, start: u32, end: u32) {
        self.candidates -= end - start;
        match self.left_out.last_mut() {
            Some(last) if last[1] == start => last[1] = end,
            _ => self.left_out.push([start, end]),
        }
    }

    /// Leaves out an edge of the row, and returns whether it was a candidate.
    fn hide(&mut self, edge: u32) -> bool {
        let at = self.left_out.partition_point(|range| range[1] <= edge);
        if self.left_out.get(at).is_some_and(|range| range[0] <= edge) {
            return false;
        }
        self.left_out.insert(at, [edge, edge + 1]);
        self.candidates -= 1;
        true
    }

    /// The number of candidates: 0 at the end of the path only.
    #[inline]
    pub fn candidates(&self) -> usize {
        self.candidates as usize
    }

    /// Returns whether all steps are taken.
    #[inline]
    pub fn is_over(&self, task: &PathTask) -> bool {
        self.walked.len() == task.hops
    }

    /// Returns whether the path so far ends at the answer.
    #[inline]
    pub fn is_right(&self) -> bool {
        self.current == self.query.answer
    }

    /// The numbers of the edges walked.
    #[inline]
    pub(super) fn walked(&self) -> &[u32] {
        &self.walked
    }

    /// The ranges of the current entity's edges that are candidates, as numbers of edges.
    #[inline]
    pub(super) fn kept<'a>(&'a self, task: &PathTask) -> impl Iterator<Item = Range<usize>> + 'a {
        let row = task.graph.row(self.current);
        let ends = self.left_out.len();
        (0..=ends).map(move |at| {
            let start = at.checked_sub(1).map_or(0, |before| self.left_out[before][1] as usize);
            let end = self.left_out.get(at).map_or(row.len(), |range| range[0] as usize);
            row.start + start..row.start + end
        })
    }

    /// The entity that each candidate leads to.
    pub fn targets<'a>(&'a self, task: &'a PathTask) -> impl Iterator<Item = u32> + 'a {
        self.kept(task)
            .flat_map(|edges| task.graph.targets[edges].iter().copied())
    }

    /// The steps so far: the relation (none where it stays) and the entity it leads to.
    pub fn path<'a>(&'a self, task: &'a PathTask) -> impl ExactSizeIterator<Item = (Option<u32>, u32)> + 'a {
        let graph = &task.graph;
        self.walked
            .iter()
            .map(|&edge| (graph.relation(edge as usize), graph.targets[edge as usize]))
    }
}
