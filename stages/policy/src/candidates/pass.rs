//! The forward and the backward pass over a few rows, in buffers that are reused.

use super::Network;
use super::kernels::{Bags, PlacesGradient, atoms, grad_atoms, pool, scores, share, weighted_sum};
use super::linear::{BLOCK, LinearScores};
use super::recurrent::{Recurrent, RecurrentRun};
use crate::kernels::elementwise;
use crate::mlp::MlpRun;
use crate::model::Minibatch;
use crate::objective::{Objective, Sums};
use stages_env::CandidateBatch;
use std::ops::Range;

/// The buffers of one task.
#[derive(Default)]
pub(super) struct Pass {
    /// The gradient with respect to all parameters `[P]`, and the sums of the objective.
    pub gradient: Vec<f32>,
    pub sums: Sums,
    /// The logits of the candidates of each row, and the index where those of each row begin.
    pub logits: Vec<f32>,
    pub starts: Vec<u32>,
    pub vf: MlpRun,
    pi: MlpRun,
    actor: RecurrentRun,
    critic: RecurrentRun,
    /// The atoms of the rows' states, their embeddings, and the index where those of each row begin.
    atoms: Vec<u32>,
    embedded: Vec<f32>,
    bags: Vec<usize>,
    /// The embeddings of states `[n, E]`, and their gradient.
    x: Vec<f32>,
    grad_x: Vec<f32>,
    /// The gradient of the inputs of the actor and of the critic.
    grad_actor: Vec<f32>,
    grad_critic: Vec<f32>,
    /// The outputs of the actor `[n, E]`.
    query: Vec<f32>,
    candidates: Candidates,
    keep: Vec<f32>,
    samples: Vec<u32>,
    scratch: Vec<f32>,
}

/// The buffers for the candidates of a block of states.
#[derive(Default)]
struct Candidates {
    /// The embeddings of atoms and of candidates, where atoms are squashed.
    atoms: Vec<f32>,
    pooled: Vec<f32>,
    /// The scores of candidates, where atoms are not squashed.
    linear: LinearScores,
}

/// The candidates of one environment of a batch: the tokens of their atoms, and the index of each candidate's
/// first atom.
fn candidates(batch: &CandidateBatch, env: usize) -> Bags<'_> {
    let range = batch.env_candidates[env] as usize..batch.env_candidates[env + 1] as usize;
    let starts = &batch.candidate_starts[range.start..=range.end];
    let (first, last) = (starts[0] as usize, starts[starts.len() - 1] as usize);
    (&batch.candidate_rows[first * batch.width..last * batch.width], starts)
}

impl Candidates {
    /// Appends the logits of the candidates of a block of states, and the index where those of each state
    /// end.
    fn score(
        &mut self,
        network: &Network,
        queries: &[f32],
        bags: &[Bags],
        logits: &mut Vec<f32>,
        ends: &mut Vec<u32>,
    ) {
        let scoring = network.scoring();
        let (instructions, places, e) = (scoring.instructions, scoring.places, scoring.places.len);
        let mut end = logits.len();
        for (_, starts) in bags {
            end += starts.len() - 1;
            ends.push(end as u32);
        }
        if !places.squashed {
            return self.linear.score(scoring, queries, bags, logits);
        }
        self.atoms.clear();
        self.pooled.clear();
        for ((tokens, starts), query) in bags.iter().zip(queries.chunks_exact(e)) {
            let (from, pooled, first) = (self.atoms.len(), self.pooled.len(), logits.len());
            self.atoms.resize(from + tokens.len() / places.width * e, 0.0);
            atoms(instructions, places, tokens, &mut self.atoms[from..]);
            self.pooled.resize(pooled + (starts.len() - 1) * e, 0.0);
            for (bag, out) in starts.windows(2).zip(self.pooled[pooled..].chunks_exact_mut(e)) {
                let rows = from + (bag[0] - starts[0]) as usize * e..from + (bag[1] - starts[0]) as usize * e;
                pool(instructions, scoring.pooling, &self.atoms[rows], out);
            }
            logits.resize(first + starts.len() - 1, 0.0);
            scores(
                instructions,
                query,
                &self.pooled[pooled..],
                scoring.by,
                &mut logits[first..],
            );
        }
    }

    /// The backward pass of the last scores, from the gradients of the logits: writes the gradients of the
    /// queries, and adds to those of the parameters.
    fn back(
        &mut self,
        network: &Network,
        queries: &[f32],
        bags: &[Bags],
        grad_logits: &[f32],
        grad_queries: &mut [f32],
        scratch: &mut Vec<f32>,
        gradient: &mut PlacesGradient,
    ) {
        let scoring = network.scoring();
        let (instructions, places) = (scoring.instructions, scoring.places);
        let (e, w) = (places.len, places.width);
        if !places.squashed {
            return self
                .linear
                .back(scoring, queries, bags, grad_logits, grad_queries, gradient);
        }
        // The first atom, and the first candidate, of the state in the block.
        let (mut first, mut done) = (0, 0);
        let rows = queries.chunks_exact(e).zip(grad_queries.chunks_exact_mut(e));
        for ((tokens, starts), (query, grad_query)) in bags.iter().zip(rows) {
            let count = starts.len() - 1;
            let grad_logits = &grad_logits[done..done + count];
            let pooled = &self.pooled[done * e..(done + count) * e];
            weighted_sum(instructions, grad_logits, pooled, scoring.by, grad_query);
            for (bag, grad_logit) in starts.windows(2).zip(grad_logits) {
                let bag = (bag[0] - starts[0]) as usize..(bag[1] - starts[0]) as usize;
                let embedded = &self.atoms[(first + bag.start) * e..(first + bag.end) * e];
                let by = grad_logit * scoring.by * share(scoring.pooling, bag.len());
                let tokens = &tokens[bag.start * w..bag.end * w];
                grad_atoms(instructions, places, tokens, embedded, query, by, scratch, gradient);
            }
            first += tokens.len() / w;
            done += count;
        }
    }
}

/// The episode starts as factors of the previous state: 0 where an episode starts, else 1.
fn keep(starts: impl Iterator<Item = bool>, to: &mut Vec<f32>) {
    to.clear();
    to.extend(starts.map(|start| if start { 0.0 } else { 1.0 }));
}

impl Pass {
    /// Embeds the states of rows.
    fn embed<'a>(&mut self, network: &Network, rows: impl Iterator<Item = (&'a CandidateBatch, usize)>) {
        let (places, instructions) = (network.places(0), network.instructions);
        let (w, e) = (places.width, places.len);
        self.atoms.clear();
        self.bags.clear();
        self.bags.push(0);
        for (batch, env) in rows {
            let bag = batch.state_starts[env] as usize * w..batch.state_starts[env + 1] as usize * w;
            self.atoms.extend_from_slice(&batch.state_rows[bag]);
            self.bags.push(self.atoms.len() / w);
        }
        self.embedded.resize(self.atoms.len() / w * e, 0.0);
        atoms(instructions, places, &self.atoms, &mut self.embedded);
        self.x.resize((self.bags.len() - 1) * e, 0.0);
        for (bag, out) in self.bags.windows(2).zip(self.x.chunks_exact_mut(e)) {
            let embedded = &self.embedded[bag[0] * e..bag[1] * e];
            pool(instructions, network.head.pooling, embedded, out);
        }
    }

    /// Runs one step for a few rows of a batch: leaves logits and values, and advances the states.
    pub(super) fn forward(
        &mut self,
        network: &Network,
        batch: &CandidateBatch,
        rows: Range<usize>,
        episode_start: &[bool],
        state: &mut [f32],
    ) {
        self.embed(network, rows.clone().map(|env| (batch, env)));
        keep(rows.clone().map(|env| episode_start[env]), &mut self.keep);
        let (instructions, n, s) = (network.instructions, rows.len(), network.state_len);
        let recurrent =
            |of: &Option<Recurrent>, run: &mut RecurrentRun, x: &[f32], keep: &[f32], state: &mut [f32]| {
                if let Some(of) = of {
                    of.forward(instructions, x, keep, state.chunks_exact(s), run);
                    of.store(run, state.chunks_exact_mut(s));
                }
            };
        recurrent(&network.actor, &mut self.actor, &self.x, &self.keep, state);
        recurrent(&network.critic, &mut self.critic, &self.x, &self.keep, state);
        let (actor_reads, critic_reads) = inputs(network, &self.x, &self.actor, &self.critic, n);
        network.vf.mlp.forward(critic_reads, &mut self.vf);
        let query = network.pi.mlp.forward(actor_reads, &mut self.pi);
        let e = network.head.embedding;
        self.logits.clear();
        self.starts.clear();
        self.starts.push(0);
        let bags: Vec<Bags> = rows.map(|env| candidates(batch, env)).collect();
        for (bags, queries) in bags.chunks(BLOCK).zip(query.chunks(BLOCK * e)) {
            self.candidates
                .score(network, queries, bags, &mut self.logits, &mut self.starts);
        }
    }

    /// Runs a forward and a backward pass: leaves the gradient and the sums.
    pub(super) fn backward(&mut self, network: &Network, minibatch: &Minibatch, objective: &dyn Objective) {
        let instructions = network.instructions;
        let (e, s) = (network.head.embedding, network.state_len);
        let envs = minibatch.candidates.first().map_or(1, CandidateBatch::len);
        self.gradient.clear();
        self.gradient.resize(network.len, 0.0);
        self.sums = Sums::default();
        self.samples.clear();
        self.samples.extend(minibatch.samples().map(|i| i as u32));
        let n = self.samples.len();
        let place = |i: usize| (&minibatch.candidates[i / envs], i % envs);
        self.embed(network, minibatch.samples().map(place));
        keep(minibatch.samples().map(|i| minibatch.episode_start[i]), &mut self.keep);
        let b = minibatch.indices.len();
        let recurrent = |of: &Option<Recurrent>, run: &mut RecurrentRun, x: &[f32], keep: &[f32]| {
            let Some(of) = of else { return };
            let rows = minibatch.indices.iter().map(|&first| minibatch.state_row(first));
            let states = rows.map(|row| &minibatch.state[row * s..(row + 1) * s]);
            of.forward(instructions, x, keep, states, run);
        };
        recurrent(&network.actor, &mut self.actor, &self.x, &self.keep);
        recurrent(&network.critic, &mut self.critic, &self.x, &self.keep);
        let (actor_reads, critic_reads) = inputs(network, &self.x, &self.actor, &self.critic, b);

        let value = network.vf.mlp.forward(critic_reads, &mut self.vf);
        objective.value(instructions, &self.samples, value, &mut self.sums);
        self.grad_critic.resize(critic_reads.len(), 0.0);
        let (embedding_gradient, others_gradient) = self.gradient.split_at_mut(network.at.len);
        let others = |range: &Range<usize>| range.start - network.at.len..range.end - network.at.len;
        network.vf.mlp.backward(
            critic_reads,
            &mut self.vf,
            Some(&mut others_gradient[others(&network.vf.params)]),
            Some(&mut self.grad_critic),
        );

        let query = network.pi.mlp.forward(actor_reads, &mut self.pi);
        self.query.clear();
        self.query.extend_from_slice(query);
        let (table, rest) = embedding_gradient.split_at_mut(network.head.tokens * e);
        let [state_places, candidate_places] = match network.at.atoms {
            None => [None, None],
            Some(_) => {
                let places = network.head.width * e;
                let (state, candidate) = rest.split_at_mut(places + e);
                [Some(state.split_at_mut(places)), Some(candidate.split_at_mut(places))]
            }
        };
        let mut candidates_gradient = PlacesGradient {
            table,
            learned: candidate_places,
        };
        let grad_query = self.pi.outputs();
        let mut bags: Vec<Bags> = Vec::with_capacity(BLOCK);
        let blocks = self.query.chunks(BLOCK * e).zip(grad_query.chunks_mut(BLOCK * e));
        for ((query, grad_query), samples) in blocks.zip(self.samples.chunks(BLOCK)) {
            self.logits.clear();
            self.starts.clear();
            self.starts.push(0);
            bags.clear();
            bags.extend(samples.iter().map(|&i| {
                let (batch, env) = place(i as usize);
                candidates(batch, env)
            }));
            self.candidates
                .score(network, query, &bags, &mut self.logits, &mut self.starts);
            let (logits, starts, sums) = (&mut self.logits, &self.starts, &mut self.sums);
            objective.candidates(instructions, samples, logits, starts, sums);
            let (scratch, gradient) = (&mut self.scratch, &mut candidates_gradient);
            self.candidates
                .back(network, query, &bags, &self.logits, grad_query, scratch, gradient);
        }
        self.grad_actor.resize(actor_reads.len(), 0.0);
        network.pi.mlp.backward(
            actor_reads,
            &mut self.pi,
            Some(&mut others_gradient[others(&network.pi.params)]),
            Some(&mut self.grad_actor),
        );

        // Without memory both read the embedding; a critic teaches an LSTM of its own alone.
        self.grad_x.clear();
        match &network.actor {
            None => {
                self.grad_x.extend_from_slice(&self.grad_actor);
                elementwise::add(instructions, &mut self.grad_x, &self.grad_critic);
            }
            Some(actor) => {
                self.grad_x.resize(n * e, 0.0);
                let both = [
                    (Some(actor), &mut self.actor, &self.grad_actor),
                    (network.critic.as_ref(), &mut self.critic, &self.grad_critic),
                ];
                for (recurrent, run, above) in both {
                    if let Some(recurrent) = recurrent {
                        let gradient = &mut others_gradient[others(&recurrent.params)];
                        recurrent.backward(instructions, &self.keep, above, run, gradient, &mut self.grad_x);
                    }
                }
            }
        }
        let mut states_gradient = PlacesGradient {
            table: candidates_gradient.table,
            learned: state_places,
        };
        let places = network.places(0);
        for (bag, above) in self.bags.windows(2).zip(self.grad_x.chunks_exact(e)) {
            let tokens = &self.atoms[bag[0] * places.width..bag[1] * places.width];
            let embedded = &self.embedded[bag[0] * e..bag[1] * e];
            let by = share(network.head.pooling, bag[1] - bag[0]);
            let (scratch, gradient) = (&mut self.scratch, &mut states_gradient);
            grad_atoms(instructions, places, tokens, embedded, above, by, scratch, gradient);
        }
    }
}

/// The inputs of the actor and of the critic for `b` columns: the embeddings of states, or the outputs of
/// their LSTM.
fn inputs<'a>(
    network: &Network,
    x: &'a [f32],
    actor: &'a RecurrentRun,
    critic: &'a RecurrentRun,
    b: usize,
) -> (&'a [f32], &'a [f32]) {
    let actor_reads = network.actor.as_ref().map_or(x, |of| of.outputs(actor, b));
    let critic_reads = match (&network.critic, &network.actor) {
        (Some(of), _) => of.outputs(critic, b),
        // It shares the actor's.
        (None, _) => actor_reads,
    };
    (actor_reads, critic_reads)
}
