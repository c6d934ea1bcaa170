//! Scores of candidates whose atoms are not squashed, computed without the candidates' embeddings: the dot
//! product of a state's query with a candidate is a sum over the candidate's tokens, and the states of a
//! block have most tokens in common. Each token's share is computed once for the whole block.

use super::kernels::{Bags, Places, PlacesGradient, Scoring, share};
use crate::kernels::math::mul_add;
use stages_numerics::kernel;

/// The number of states that are scored together.
pub(super) const BLOCK: usize = 16;

/// The buffers for scoring a block of states.
#[derive(Default)]
pub(super) struct LinearScores {
    /// The row of each token of each candidate, padding left out, candidate by candidate.
    local: Vec<u32>,
    /// The place and token of each row: place x V + token.
    rows: Vec<u32>,
    /// The row of each place and token `[W x V]`, valid where `seen` holds the number of the current block.
    row_of: Vec<u32>,
    seen: Vec<u32>,
    block: u32,
    /// Each row's share of the score of each state, and in the backward pass its gradient `[rows, BLOCK]`.
    parts: Vec<f32>,
    /// The states' queries as each place weighs them: `[W, E, BLOCK]` and `[W, BLOCK, E]`.
    by_lane: Vec<f32>,
    by_state: Vec<f32>,
    /// `[W, E, BLOCK]`: for each place, the sum of the tokens' embeddings, each times its gradient.
    sums: Vec<f32>,
    /// `[BLOCK]`: the bias's share of each state's scores, and in the backward pass its gradient.
    bias_parts: [f32; BLOCK],
}

impl LinearScores {
    /// Appends the logits of each state's candidates: the dot products of the state's query `[n, E]` with the
    /// candidates' embeddings.
    pub(super) fn score(&mut self, scoring: Scoring, queries: &[f32], bags: &[Bags], logits: &mut Vec<f32>) {
        let (instructions, places) = (scoring.instructions, scoring.places);
        self.find_rows(places, bags);
        let (w, e) = (places.width, places.len);
        self.by_lane.clear();
        self.by_lane.resize(w * e * BLOCK, 0.0);
        self.by_state.clear();
        self.by_state.resize(w * e * BLOCK, 0.0);
        self.parts.resize(self.rows.len() * BLOCK, 0.0);
        self.bias_parts = [0.0; BLOCK];
        let (by_lane, by_state) = (&mut self.by_lane, &mut self.by_state);
        weigh(instructions, places, queries, by_lane, by_state, &mut self.bias_parts);
        parts(instructions, places, &self.rows, &self.by_lane, &mut self.parts);
        let mut local = self.local.iter();
        for (lane, (tokens, starts)) in bags.iter().enumerate() {
            for bag in starts.windows(2) {
                let count = (bag[1] - bag[0]) as usize;
                let mut sum = count as f32 * self.bias_parts[lane];
                for _ in atoms(tokens, starts, bag, w).iter().filter(|token| **token != 0) {
                    if let Some(&row) = local.next() {
                        sum += self.parts[row as usize * BLOCK + lane];
                    }
                }
                logits.push(scoring.by * share(scoring.pooling, count) * sum);
            }
        }
    }

    /// The backward pass of the last scores, from the gradients of the logits: writes the gradients of the
    /// queries `[n, E]`, and adds to those of the parameters.
    pub(super) fn back(
        &mut self,
        scoring: Scoring,
        queries: &[f32],
        bags: &[Bags],
        grad_logits: &[f32],
        grad_queries: &mut [f32],
        gradient: &mut PlacesGradient,
    ) {
        let (instructions, places) = (scoring.instructions, scoring.places);
        self.parts.fill(0.0);
        self.bias_parts = [0.0; BLOCK];
        let (mut local, mut grad_logits) = (self.local.iter(), grad_logits.iter());
        for (lane, (tokens, starts)) in bags.iter().enumerate() {
            for bag in starts.windows(2) {
                let count = (bag[1] - bag[0]) as usize;
                let grad_logit =
                    scoring.by * share(scoring.pooling, count) * grad_logits.next().copied().unwrap_or(0.0);
                self.bias_parts[lane] += grad_logit * count as f32;
                let tokens = atoms(tokens, starts, bag, places.width).iter();
                for _ in tokens.filter(|token| **token != 0) {
                    if let Some(&row) = local.next() {
                        self.parts[row as usize * BLOCK + lane] += grad_logit;
                    }
                }
            }
        }
        self.sums.clear();
        self.sums.resize(places.width * places.len * BLOCK, 0.0);
        let (sums, table) = (&mut self.sums, &mut *gradient.table);
        grad_parts(
            instructions,
            places,
            &self.rows,
            &self.parts,
            &self.by_state,
            sums,
            table,
        );
        grad_weigh(
            instructions,
            places,
            queries,
            sums,
            &self.bias_parts,
            grad_queries,
            gradient,
        );
    }

    /// Numbers the pairs of place and token that occur.
    fn find_rows(&mut self, places: Places, bags: &[Bags]) {
        let v = places.table.len() / places.len;
        if self.seen.len() != places.width * v || self.block == u32::MAX {
            self.seen.clear();
            self.seen.resize(places.width * v, 0);
            self.row_of.resize(places.width * v, 0);
            self.block = 0;
        }
        self.block += 1;
        self.rows.clear();
        self.local.clear();
        for (tokens, _) in bags {
            for (i, &token) in tokens.iter().enumerate().filter(|(_, token)| **token != 0) {
                let key = i % places.width * v + token as usize;
                if self.seen[key] != self.block {
                    self.seen[key] = self.block;
                    self.row_of[key] = self.rows.len() as u32;
                    self.rows.push(key as u32);
                }
                self.local.push(self.row_of[key]);
            }
        }
    }
}

/// The tokens of a candidate's atoms.
fn atoms<'a>(tokens: &'a [u32], starts: &[u32], bag: &[u32], width: usize) -> &'a [u32] {
    &tokens[(bag[0] - starts[0]) as usize * width..(bag[1] - starts[0]) as usize * width]
}

kernel![
    /// The queries `[n, E]`, weighted by each place, and their products with the bias.
    fn weigh(
        places: Places<'_>,
        queries: &[f32],
        by_lane: &mut [f32],
        by_state: &mut [f32],
        bias_parts: &mut [f32],
    ) {
        let e = places.len;
        for (lane, query) in queries.chunks_exact(e).enumerate() {
            for (place, weight) in places.weights.chunks_exact(e).enumerate() {
                let to = &mut by_state[(place * BLOCK + lane) * e..][..e];
                for i in 0..e {
                    to[i] = weight[i] * query[i];
                    by_lane[(place * e + i) * BLOCK + lane] = to[i];
                }
            }
            bias_parts[lane] = query.iter().zip(places.bias).map(|(x, y)| x * y).sum();
        }
    }

    /// The dot product of each row's embedding with all queries, weighted by the row's place.
    fn parts(places: Places<'_>, rows: &[u32], by_lane: &[f32], out: &mut [f32]) {
        let e = places.len;
        let v = places.table.len() / e;
        for (&key, out) in rows.iter().zip(out.chunks_exact_mut(BLOCK)) {
            let (place, token) = (key as usize / v, key as usize % v);
            let row = &places.table[token * e..][..e];
            let queries = &by_lane[place * e * BLOCK..][..e * BLOCK];
            let mut sums = [0.0_f32; BLOCK];
            for (&x, queries) in row.iter().zip(queries.chunks_exact(BLOCK)) {
                for lane in 0..BLOCK {
                    sums[lane] = mul_add::<FMA>(x, queries[lane], sums[lane]);
                }
            }
            out.copy_from_slice(&sums);
        }
    }

    /// The backward pass of [`parts`]: adds to the gradients of the tokens' embeddings, and sums the
    /// embeddings by place and state, each times its gradient.
    fn grad_parts(
        places: Places<'_>,
        rows: &[u32],
        grad_logits: &[f32],
        by_state: &[f32],
        sums: &mut [f32],
        table: &mut [f32],
    ) {
        let e = places.len;
        let v = places.table.len() / e;
        for (&key, grad_logits) in rows.iter().zip(grad_logits.chunks_exact(BLOCK)) {
            let (place, token) = (key as usize / v, key as usize % v);
            let row = &places.table[token * e..][..e];
            let grad_row = &mut table[token * e..][..e];
            let sums = &mut sums[place * e * BLOCK..][..e * BLOCK];
            for (&x, sums) in row.iter().zip(sums.chunks_exact_mut(BLOCK)) {
                for lane in 0..BLOCK {
                    sums[lane] = mul_add::<FMA>(x, grad_logits[lane], sums[lane]);
                }
            }
            for (lane, &grad_logit) in grad_logits
                .iter()
                .enumerate()
                .filter(|(_, grad_logit)| **grad_logit != 0.0)
            {
                let query = &by_state[(place * BLOCK + lane) * e..][..e];
                for i in 0..e {
                    grad_row[i] = mul_add::<FMA>(grad_logit, query[i], grad_row[i]);
                }
            }
        }
    }

    /// Writes the gradients of the queries, and adds to those of weights and bias.
    fn grad_weigh(
        places: Places<'_>,
        queries: &[f32],
        sums: &[f32],
        bias_parts: &[f32],
        grad_queries: &mut [f32],
        gradient: &mut PlacesGradient<'_>,
    ) {
        let e = places.len;
        for (lane, (query, to)) in queries
            .chunks_exact(e)
            .zip(grad_queries.chunks_exact_mut(e))
            .enumerate()
        {
            for i in 0..e {
                to[i] = bias_parts[lane] * places.bias[i];
            }
            for (place, weight) in places.weights.chunks_exact(e).enumerate() {
                for i in 0..e {
                    let sum = sums[(place * e + i) * BLOCK + lane];
                    to[i] = mul_add::<FMA>(weight[i], sum, to[i]);
                }
            }
            let Some((grad_weights, grad_bias)) = &mut gradient.learned else {
                continue;
            };
            for i in 0..e {
                grad_bias[i] = mul_add::<FMA>(bias_parts[lane], query[i], grad_bias[i]);
            }
            for (place, grad_weight) in grad_weights.chunks_exact_mut(e).enumerate() {
                for i in 0..e {
                    let sum = sums[(place * e + i) * BLOCK + lane];
                    grad_weight[i] = mul_add::<FMA>(query[i], sum, grad_weight[i]);
                }
            }
        }
    }
];
