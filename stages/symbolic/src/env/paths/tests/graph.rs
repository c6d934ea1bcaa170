//! Edges that lead to given entities.

use super::super::graph::{Edge, Graph};
use crate::env::batch::Vocabulary;
use stages_numerics::random::Random;
use std::collections::BTreeSet;

#[test]
fn edges_to_given_entities_are_found() {
    for world in 0..200 {
        let random = &mut Random::new(&[world]);
        let entities = 1 + random.below(40);
        let count = random.below(4 * entities);
        let edges: BTreeSet<Edge> = (0..count)
            .map(|_| {
                let [from, relation, to] = [entities, 3, entities].map(|most| random.below(most) as u32);
                (from, relation, to)
            })
            .collect();
        let edges: Vec<Edge> = edges.into_iter().collect();
        let vocabulary = Vocabulary {
            predicates: 3,
            constants: entities as u32,
            variables: 1,
            marks: 5,
            width: 3,
        };
        let most = [0, 4][world as usize % 2];
        let graph = Graph::new(&edges, &vocabulary, most);
        for entity in 0..entities as u32 {
            let row = graph.row(entity);
            let targets = &graph.targets[row.clone()];
            assert!(targets[0] == entity && targets[1..].is_sorted());
            assert!(most == 0 || targets.len() <= 1 + most);
            let share = random.uniform();
            let some: Vec<u32> = (0..entities as u32).filter(|_| random.uniform() < share).collect();
            let expected: Vec<(u32, u32)> = (1..targets.len() as u32)
                .map(|place| (targets[place as usize], place))
                .filter(|(to, _)| some.contains(to))
                .collect();
            let mut found = Vec::new();
            graph.each_leading_to(entity, &some, |to, places| {
                found.extend(places.map(|place| (to, place)))
            });
            assert_eq!(found, expected);
            for edge in row.skip(1) {
                let relation = graph.relation(edge).unwrap();
                assert_eq!(graph.find((entity, relation, graph.targets[edge])), Some(edge as u32));
                assert!(edges.contains(&(entity, relation, graph.targets[edge])));
            }
        }
        assert_eq!(graph.find((0, 3, 0)), None);
    }
}
