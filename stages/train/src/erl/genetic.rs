//! The genetic algorithm of evolutionary reinforcement learning (Khadka and Tumer, 2018), with fixed numbers
//! of changes as in EvoRL: tournaments choose parents, pairs exchange neurons, and weights mutate relative to
//! their size.

use super::settings::Genetic;
use stages_numerics::random::Random;
use stages_policy::Tensor;

/// The bound within which weights are kept.
const MOST: f32 = 1e6;

/// The members from the fittest to the least fit; the first in case of ties.
pub(super) fn ranking(fitness: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..fitness.len()).collect();
    order.sort_by(|&a, &b| fitness[b].total_cmp(&fitness[a]));
    order
}

/// The next generation of a population `[members, P]` of networks with these tensors: the elites as they are,
/// then offspring.
pub(super) fn next_generation(
    settings: &Genetic,
    tensors: &[Tensor],
    population: &[f32],
    fitness: &[f64],
    random: &mut Random,
) -> Vec<f32> {
    let members = fitness.len();
    let len = population.len() / members;
    let member = |i: usize| &population[i * len..(i + 1) * len];
    let mut next = Vec::with_capacity(population.len());
    for &elite in ranking(fitness).iter().take(settings.num_elites) {
        next.extend_from_slice(member(elite));
    }
    let offspring = next.len();
    while next.len() < population.len() {
        let parent = (0..settings.tournament_size)
            .map(|_| random.below(members as u64) as usize)
            .reduce(|best, other| if fitness[other] > fitness[best] { other } else { best });
        next.extend_from_slice(member(parent.unwrap_or_default()));
    }
    let mut children = next[offspring..].chunks_exact_mut(len);
    while let (Some(a), Some(b)) = (children.next(), children.next()) {
        cross(settings, tensors, a, b, random);
    }
    for child in next[offspring..].chunks_exact_mut(len) {
        mutate(settings, tensors, child, random);
    }
    next
}

fn share_of(share: f64, n: usize) -> usize {
    (share * n as f64).round() as usize
}

/// Copies some neurons, with all their inputs, from one parent to the other, in either direction.
fn cross(settings: &Genetic, tensors: &[Tensor], a: &mut [f32], b: &mut [f32], random: &mut Random) {
    for tensor in tensors {
        let Some(&outputs) = tensor.shape.last() else { continue };
        let (a, b) = (&mut a[tensor.range()], &mut b[tensor.range()]);
        for _ in 0..share_of(settings.num_crossover_frac, outputs) {
            let neuron = random.below(outputs as u64) as usize;
            let to_first = random.uniform() < 0.5;
            for at in (neuron..a.len()).step_by(outputs) {
                if to_first {
                    a[at] = b[at];
                } else {
                    b[at] = a[at];
                }
            }
        }
    }
}

/// Changes some of the weights of about half of the matrices: by a share of their size, by a multiple of it,
/// or to a new value.
fn mutate(settings: &Genetic, tensors: &[Tensor], member: &mut [f32], random: &mut Random) {
    for tensor in tensors.iter().filter(|tensor| tensor.shape.len() == 2) {
        let probability = 2.0 * random.uniform();
        if random.uniform() >= probability {
            continue;
        }
        let weights = &mut member[tensor.range()];
        for _ in 0..share_of(settings.num_mutation_frac, weights.len()) {
            let weight = &mut weights[random.below(tensor.range().len() as u64) as usize];
            let (kind, noise) = (random.uniform(), random.normal() as f32);
            let size = noise * weight.abs();
            let changed = if kind < settings.super_mut_prob {
                *weight + settings.super_mut_strength as f32 * size
            } else if kind < settings.super_mut_prob + settings.reset_prob {
                noise
            } else {
                *weight + settings.mut_strength as f32 * size
            };
            *weight = changed.clamp(-MOST, MOST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stages_policy::{ActionHead, Architecture};

    fn tensors() -> Vec<Tensor> {
        let architecture = Architecture {
            obs_dim: 3,
            head: ActionHead::Deterministic(2),
            pi: vec![20, 10],
            ..Architecture::default()
        };
        architecture.tensors()
    }

    /// The fittest survive as they are, offspring come from winners of tournaments, and biases do not mutate.
    #[test]
    fn elites_survive_and_offspring_are_of_the_fit() {
        let tensors = tensors();
        let len = tensors.last().unwrap().range().end;
        let population: Vec<f32> = (0..12).flat_map(|i| vec![1.0 + i as f32; len]).collect();
        let fitness: Vec<f64> = (0..12).map(|i| f64::from((i * 7) % 12)).collect();
        let settings = crate::ErlConfig::default().genetic().unwrap();
        let next = next_generation(&settings, &tensors, &population, &fitness, &mut Random::new(&[1]));
        assert_eq!(next.len(), population.len());
        let order = ranking(&fitness);
        assert_eq!(fitness[order[0]], 11.0);
        for (k, &elite) in order.iter().take(settings.num_elites).enumerate() {
            assert_eq!(next[k * len..(k + 1) * len], population[elite * len..(elite + 1) * len]);
        }
        let bias = tensors.iter().find(|tensor| tensor.shape.len() == 1).unwrap();
        let parents: Vec<f32> = next[settings.num_elites * len..]
            .chunks_exact(len)
            .map(|child| child[bias.range().start])
            .collect();
        let mean_fitness =
            parents.iter().map(|&value| fitness[value as usize - 1]).sum::<f64>() / parents.len() as f64;
        assert!(mean_fitness > 5.5, "{parents:?}");
        let changed = next.iter().filter(|&&x| x.fract() != 0.0).count() as f64 / next.len() as f64;
        assert!((0.01..0.1).contains(&changed), "{changed}");
        // The same numbers, the same generation.
        let again = next_generation(&settings, &tensors, &population, &fitness, &mut Random::new(&[1]));
        assert_eq!(next, again);
    }
}
