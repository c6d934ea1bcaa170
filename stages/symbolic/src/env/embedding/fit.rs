//! The fit of an embedding to the facts of a graph: cross-entropy of each fact's tail and head among
//! candidates with the nuclear 3-norm as penalty (Lacroix, Usunier and Obozinski, "Canonical tensor
//! decomposition for knowledge base completion", 2018), by Adagrad, on one thread.

use super::config::EmbeddingConfig;
use super::{Embedding, add_product, inner};
use stages_core::StageError;
use stages_knowledge::{KnowledgeBase, Word, word};
use stages_numerics::dispatch::InstructionSet;
use stages_numerics::kernel;
use stages_numerics::random::Random;

/// The names of the streams of random numbers.
const FIRST: u64 = 1;
const EPOCH: u64 = 2;
const FALSE: u64 = 3;
/// The standard deviation of the initial numbers.
const DEVIATION: f32 = 0.1;
/// The largest number of numbers in an embedding.
const MOST: usize = 1 << 28;
/// The bound beyond which numbers show that the fit diverges; the scores of smaller numbers are finite.
const LARGEST: f32 = 1e6;
/// The number of multiplications between two calls of `watch`: some tenths of a second.
const WATCHED: usize = 1 << 31;
/// The largest number of facts, and of false facts beside them, that calibrate scores as probabilities.
const CALIBRATED: usize = 10_000;
/// The number of attempts at drawing a false fact.
const DRAWS: usize = 16;
const NEWTON_STEPS: usize = 30;

/// A fact: predicate, head and tail by number.
type Fact = [u32; 3];

impl Embedding {
    /// The embedding of the graph's facts of two constants: (seed, settings, facts) determine it. `watch` is
    /// called several times a second with the number of the pass.
    ///
    /// # Errors
    /// When there is no such fact, the embedding is too large, or its numbers grow without end; those of
    /// `watch`.
    pub fn fit(
        knowledge: &KnowledgeBase,
        config: &EmbeddingConfig,
        watch: &mut dyn FnMut(u32) -> Result<(), StageError>,
    ) -> Result<Self, StageError> {
        let facts: Vec<Fact> = knowledge.pairs().collect();
        if facts.is_empty() {
            return Err(
                StageError::new("the graph has no facts of two constants, which an embedding is of")
                    .hint("remove `shaping:` or `soft_reward:`"),
            );
        }
        if (knowledge.constants() + knowledge.predicates()).saturating_mul(2 * config.dim as usize) > MOST {
            return Err(StageError::new("the embedding has more than 268,435,456 numbers")
                .hint("give its `dim` a smaller value"));
        }
        let mut embedding = Self::zero(knowledge, config);
        let width = embedding.width;
        for (row, vector) in embedding.vectors.chunks_exact_mut(width).enumerate() {
            let random = &mut Random::new(&[config.seed, FIRST, row as u64]);
            vector.fill_with(|| random.normal() as f32 * DEVIATION);
        }
        let mut entities: Vec<u32> = facts.iter().flat_map(|&[_, head, tail]| [head, tail]).collect();
        entities.sort_unstable();
        entities.dedup();
        let mut fit = Fit::new(embedding, config);
        let instructions = InstructionSet::detect();
        let mut order: Vec<u32> = (0..facts.len() as u32).collect();
        let mut batch: Vec<Fact> = Vec::new();
        for number in 0..config.epochs {
            let random = &mut Random::new(&[config.seed, EPOCH, u64::from(number)]);
            random.shuffle(&mut order);
            for numbers in order.chunks(config.batch_size as usize) {
                batch.clear();
                batch.extend(numbers.iter().map(|&fact| facts[fact as usize]));
                fit.draw(&batch, &entities, config.candidates as usize, random);
                fit.step(&batch, instructions, &mut || watch(number))?;
            }
        }
        let Fit { mut embedding, .. } = fit;
        // NaN is not within either.
        if !embedding.vectors.iter().all(|number| number.abs() <= LARGEST) {
            return Err(
                StageError::new("the embedding diverges: its numbers grow beyond 1,000,000")
                    .hint("give its `learning_rate` a smaller value"),
            );
        }
        embedding.calibration = calibrated(&embedding, knowledge, &facts, &entities, config.seed);
        Ok(embedding)
    }
}

/// The state of the optimiser, and buffers.
#[derive(Default)]
pub(super) struct Fit {
    pub(super) embedding: Embedding,
    pub(super) squares: Vec<f32>,
    rate: f32,
    penalty: f32,
    /// The constants of a batch: first those that are drawn as candidates, in order, then the other constants
    /// of its facts, in order.
    constants: Vec<u32>,
    /// The number of those that are drawn. An answer is told from these alone: all are drawn with the same
    /// probability, so that scores are logarithms of probabilities up to a constant.
    drawn: usize,
    /// The row of each constant in `constants`.
    rows: Vec<u32>,
    /// The vectors of the constants in `constants`.
    gathered: Vec<f32>,
    /// Gradients by `constants`, then by the predicates of `relations`.
    gradients: Vec<f32>,
    relations: Vec<u32>,
    logits: Vec<f32>,
}

impl Fit {
    pub(super) fn new(embedding: Embedding, config: &EmbeddingConfig) -> Self {
        Self {
            squares: vec![0.0; embedding.vectors.len()],
            rows: vec![0; embedding.constants],
            embedding,
            rate: config.learning_rate as f32,
            penalty: config.penalty as f32,
            ..Self::default()
        }
    }

    /// Draws the candidates of a batch, up to the configured number; all entities where there are no more.
    pub(super) fn draw(&mut self, batch: &[Fact], entities: &[u32], most: usize, random: &mut Random) {
        self.constants.clear();
        if entities.len() <= most {
            self.constants.extend(entities);
        } else {
            let drawn = (0..most).map(|_| entities[random.below(entities.len() as u64) as usize]);
            self.constants.extend(drawn);
            self.constants.sort_unstable();
            self.constants.dedup();
        }
        self.drawn = self.constants.len();
        let fact_constants = batch.iter().flat_map(|&[_, head, tail]| [head, tail]);
        let mut others: Vec<u32> = fact_constants
            .filter(|constant| self.constants.binary_search(constant).is_err())
            .collect();
        others.sort_unstable();
        others.dedup();
        self.constants.extend(others);
        for (row, &constant) in self.constants.iter().enumerate() {
            self.rows[constant as usize] = row as u32;
        }
        self.relations.clear();
        self.relations.extend(batch.iter().map(|fact| fact[0]));
        self.relations.sort_unstable();
        self.relations.dedup();
    }

    /// The candidates that were drawn.
    #[cfg(test)]
    pub(super) fn drawn(&self) -> &[u32] {
        &self.constants[..self.drawn]
    }

    /// A step of the optimiser on a batch whose candidates are drawn.
    pub(super) fn step<E>(
        &mut self,
        batch: &[Fact],
        instructions: InstructionSet,
        watch: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let width = self.embedding.width;
        self.gathered.clear();
        for &constant in &self.constants {
            self.gathered.extend_from_slice(self.embedding.row(constant as usize));
        }
        self.gradients.clear();
        let rows = self.constants.len() + self.relations.len();
        self.gradients.resize(rows * width, 0.0);
        let fact_products = 6 * (1 + self.drawn) * width;
        for facts in batch.chunks((WATCHED / fact_products).max(1)) {
            watch()?;
            gradients(instructions, self, facts);
        }
        update(instructions, self, batch.len());
        Ok(())
    }

    /// The row of a predicate's gradient.
    #[inline(always)]
    fn relation(&self, predicate: u32) -> usize {
        self.constants.len() + self.relations.partition_point(|&of| of < predicate)
    }
}

kernel![
    /// Adds the gradients of facts. No multiplication is fused: the bytes are the same on every CPU.
    fn gradients(fit: &mut Fit, facts: &[Fact]) {
        let width = fit.embedding.width;
        let mut query = vec![0.0; width];
        let mut slope = vec![0.0; width];
        for &[predicate, head, tail] in facts {
            let relation_row = fit.relation(predicate);
            let relation = fit.embedding.row(fit.embedding.relation(predicate));
            // The query `r(h, X)` is r h, and `r(X, t)` is the conjugate of r times t: the score of a
            // candidate is an inner product.
            for (known, answer, is_conjugate) in [(head, tail, false), (tail, head, true)] {
                let vector = fit.embedding.row(known as usize);
                query.fill(0.0);
                add_product(relation, is_conjugate, vector, &mut query);
                let answer = fit.rows[answer as usize] as usize;
                let scored = Scored {
                    vectors: &fit.gathered,
                    drawn: fit.drawn,
                    answer,
                };
                scored.softmax(&query, &mut fit.logits);
                slope.fill(0.0);
                for (at, &by) in fit.logits.iter().enumerate() {
                    let row = scored.row(at) * width;
                    let candidate = &fit.gathered[row..row + width];
                    let gradient = &mut fit.gradients[row..row + width];
                    for i in 0..width {
                        slope[i] += by * candidate[i];
                        gradient[i] += by * query[i];
                    }
                }
                let known = fit.rows[known as usize] as usize * width;
                add_product(
                    relation,
                    !is_conjugate,
                    &slope,
                    &mut fit.gradients[known..known + width],
                );
                let to = &mut fit.gradients[relation_row * width..(relation_row + 1) * width];
                match is_conjugate {
                    false => add_product(vector, true, &slope, to),
                    // By the conjugate of r the gradient is the conjugate of t times the slope.
                    true => add_product(&slope, true, vector, to),
                }
            }
            let vectors = [
                (relation, relation_row),
                (fit.embedding.row(head as usize), fit.rows[head as usize] as usize),
                (fit.embedding.row(tail as usize), fit.rows[tail as usize] as usize),
            ];
            for (vector, row) in vectors {
                add_penalty(vector, fit.penalty, &mut fit.gradients[row * width..(row + 1) * width]);
            }
        }
    }

    /// A step of Adagrad along the mean of the gradients of `facts` facts.
    fn update(fit: &mut Fit, facts: usize) {
        let width = fit.embedding.width;
        let scale = 1.0 / facts as f32;
        let relations = fit.relations.iter().map(|&predicate| fit.embedding.relation(predicate));
        let rows: Vec<usize> = fit.constants.iter().map(|&row| row as usize).chain(relations).collect();
        for (row, gradient) in rows.into_iter().zip(fit.gradients.chunks_exact(width)) {
            let range = row * width..(row + 1) * width;
            let (numbers, squares) = (&mut fit.embedding.vectors[range.clone()], &mut fit.squares[range]);
            for i in 0..width {
                let slope = scale * gradient[i];
                squares[i] += slope * slope;
                numbers[i] -= fit.rate * slope / (squares[i].sqrt() + 1e-10);
            }
        }
    }
];

/// The constants among which an answer is scored: those that were drawn, and the answer itself.
struct Scored<'a> {
    /// The vectors of a batch's constants.
    vectors: &'a [f32],
    drawn: usize,
    /// The row of the answer.
    answer: usize,
}

impl Scored<'_> {
    /// The row of a constant. The answer comes last if it was not drawn.
    #[inline(always)]
    fn row(&self, at: usize) -> usize {
        if at < self.drawn { at } else { self.answer }
    }

    /// Writes the probabilities of the constants, minus 1 for the answer: the gradient of the cross-entropy
    /// with respect to their scores.
    #[inline(always)]
    fn softmax(&self, query: &[f32], out: &mut Vec<f32>) {
        let width = query.len();
        let len = self.drawn + usize::from(self.answer >= self.drawn);
        let rows = (0..len).map(|at| self.row(at) * width);
        out.clear();
        out.extend(rows.map(|row| inner(query, &self.vectors[row..row + width])));
        let most = out.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut sum = 0.0_f32;
        for logit in &mut *out {
            *logit = libm::expf(*logit - most);
            sum += *logit;
        }
        out.iter_mut().for_each(|number| *number /= sum);
        out[self.answer.min(self.drawn)] -= 1.0;
    }
}

/// Adds the gradient of `penalty` times the sum of |z|^3 over the complex numbers z of a vector: 3 |z| z.
#[inline(always)]
fn add_penalty(vector: &[f32], penalty: f32, to: &mut [f32]) {
    let dim = vector.len() / 2;
    let (re, im) = vector.split_at(dim);
    let (to_re, to_im) = to.split_at_mut(dim);
    for i in 0..dim {
        let by = 3.0 * penalty * (re[i] * re[i] + im[i] * im[i]).sqrt();
        to_re[i] += by * re[i];
        to_im[i] += by * im[i];
    }
}

/// The logistic regression of whether a fact holds on its score, over facts and facts of which one constant
/// is exchanged (Platt, "Probabilistic outputs for support vector machines", 1999): slope and intercept.
fn calibrated(
    embedding: &Embedding,
    knowledge: &KnowledgeBase,
    facts: &[Fact],
    entities: &[u32],
    seed: u64,
) -> [f32; 2] {
    let mut scores: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    let score = |[predicate, head, tail]: Fact| embedding.score(predicate, head, tail).map_or(0.0, f64::from);
    let kept = facts.len().min(CALIBRATED);
    for at in 0..kept {
        let fact = facts[at * facts.len() / kept];
        scores[1].push(score(fact));
        let random = &mut Random::new(&[seed, FALSE, at as u64]);
        let false_fact = (0..DRAWS).find_map(|_| {
            let mut other = fact;
            other[1 + random.below(2) as usize] = entities[random.below(entities.len() as u64) as usize];
            let [predicate, head, tail] = other;
            let words: [Word; 3] = [
                word::predicate(predicate, 2),
                word::constant(head),
                word::constant(tail),
            ];
            (!knowledge.is_fact(&words)).then_some(other)
        });
        scores[0].extend(false_fact.map(score));
    }
    logistic(&scores)
}

/// Slope and intercept of the logistic regression of a label on numbers: those of the label 0, and of 1.
/// Targets are those of Platt, so that labels that can be told apart give finite numbers.
pub(super) fn logistic(numbers: &[Vec<f64>; 2]) -> [f32; 2] {
    let counts = numbers.each_ref().map(|numbers| numbers.len() as f64);
    let targets = [1.0 / (counts[0] + 2.0), (counts[1] + 1.0) / (counts[1] + 2.0)];
    let points = || {
        let of = numbers.iter().zip(targets);
        of.flat_map(|(numbers, target)| numbers.iter().map(move |&x| (x, target)))
    };
    let loss = |[slope, intercept]: [f64; 2]| -> f64 {
        points()
            .map(|(x, target)| {
                let z = slope * x + intercept;
                // ln(1 + e^z) - target z.
                z.max(0.0) + libm::log1p(libm::exp(-z.abs())) - target * z
            })
            .sum()
    };
    let mut at = [0.0, 0.0];
    for _ in 0..NEWTON_STEPS {
        let mut gradient = [0.0; 2];
        // A little on the diagonal: all numbers may be equal.
        let mut hessian = [1e-9, 0.0, 1e-9];
        for (x, target) in points() {
            let p = 1.0 / (1.0 + libm::exp(-(at[0] * x + at[1])));
            let weight = p * (1.0 - p);
            gradient[0] += (p - target) * x;
            gradient[1] += p - target;
            hessian[0] += weight * x * x;
            hessian[1] += weight * x;
            hessian[2] += weight;
        }
        let determinant = hessian[0] * hessian[2] - hessian[1] * hessian[1];
        let step = [
            (hessian[2] * gradient[0] - hessian[1] * gradient[1]) / determinant,
            (hessian[0] * gradient[1] - hessian[1] * gradient[0]) / determinant,
        ];
        let before = loss(at);
        // Halved until it goes down.
        let halved = (0..NEWTON_STEPS as i32).map(|halvings| libm::ldexp(1.0, -halvings));
        let next = halved
            .map(|by| [at[0] - by * step[0], at[1] - by * step[1]])
            .find(|&next| loss(next) < before);
        match next {
            Some(next) => at = next,
            None => break,
        }
    }
    at.map(|number| number as f32)
}
