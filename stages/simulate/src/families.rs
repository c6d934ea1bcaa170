//! Simulated families over generations, fully determined by [`FamilyParameters`].
//!
//! The first generation consists of married couples. Each couple of a generation has children, who marry
//! among themselves: a man and a woman without a common parent or grandparent, in random pairs, until no such
//! pair is left; a fraction stays single. The last generation does not marry. Nobody marries twice, so two
//! people with one parent in common have both in common.
//!
//! A generation does not depend on later ones: more generations leave the earlier people unchanged.

use crate::Invalid;
use crate::limits::{whole, within};
use crate::stream;
use stages_numerics::random::Random;

/// The maximum number of people that the parameters may allow for.
pub const MOST_PEOPLE: u64 = 1_000_000;

/// The parameters of a simulation of families.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FamilyParameters {
    /// The seed.
    pub seed: u64,
    /// The number of couples in the first generation.
    pub couples: u32,
    /// The number of generations, including the first.
    pub generations: u32,
    /// The smallest and largest number of children of a couple; all numbers in between are equally likely.
    pub children: [u32; 2],
    /// The probability that a person does not marry.
    pub single: f64,
}

/// A person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Person {
    /// The person's generation, counted from 0.
    pub generation: u32,
    /// True for a man.
    pub is_male: bool,
    /// The indices of father and mother; `None` in the first generation.
    pub parents: Option<[usize; 2]>,
    /// The index of the husband or wife, if any.
    pub spouse: Option<usize>,
}

impl FamilyParameters {
    /// Checks every parameter.
    ///
    /// # Errors
    /// The first parameter that is out of range; or the sizes together, if more than [`MOST_PEOPLE`] people
    /// could be born.
    pub fn check(&self) -> Result<(), Invalid> {
        whole("couples", self.couples, 1, 100_000)?;
        whole("generations", self.generations, 2, 12)?;
        whole("children", self.children[0], 0, 20)?;
        whole("children", self.children[1], 1, 20)?;
        within("single", self.single, 0.0, 1.0)?;
        if self.children[0] > self.children[1] {
            return Err(Invalid {
                field: "children",
                message: format!("{} to {} children are not a range", self.children[0], self.children[1]),
                hint: "give the smaller number first: [1, 3]".to_owned(),
            });
        }
        let most = self.most_people();
        if most > MOST_PEOPLE {
            return Err(Invalid {
                field: "generations",
                message: format!("up to {most} people may be born, and {MOST_PEOPLE} are the limit"),
                hint: "give fewer `couples`, `generations` or `children`".to_owned(),
            });
        }
        Ok(())
    }

    /// The number of people if every couple has the largest number of children and everybody marries.
    fn most_people(&self) -> u64 {
        let (mut couples, mut people) = (u64::from(self.couples), 2 * u64::from(self.couples));
        for _ in 1..self.generations {
            let born = couples * u64::from(self.children[1]);
            people += born;
            couples = born / 2;
        }
        people
    }
}

/// Simulates the people, one generation after another; the first generation is listed as couples, the man
/// before the woman.
///
/// # Errors
/// When a parameter is out of range.
pub fn people(parameters: &FamilyParameters) -> Result<Vec<Person>, Invalid> {
    parameters.check()?;
    let mut people = Vec::new();
    for couple in 0..parameters.couples as usize {
        people.extend([true, false].map(|is_male| Person {
            generation: 0,
            is_male,
            parents: None,
            spouse: Some(2 * couple + usize::from(is_male)),
        }));
    }
    let mut before = 0..people.len();
    for generation in 1..parameters.generations {
        let random = &mut Random::new(&[parameters.seed, stream::FAMILIES, u64::from(generation)]);
        let first = people.len();
        for man in before {
            let Some(wife) = people[man].spouse.filter(|_| people[man].is_male) else {
                continue;
            };
            let [least, most] = parameters.children;
            for _ in 0..u64::from(least) + random.below(u64::from(most - least) + 1) {
                people.push(Person {
                    generation,
                    is_male: random.below(2) == 0,
                    parents: Some([man, wife]),
                    spouse: None,
                });
            }
        }
        before = first..people.len();
        if generation + 1 < parameters.generations {
            marry(&mut people, first, parameters.single, random);
        }
    }
    Ok(people)
}

/// Marries the people from index `first` on; `single` is the probability that one stays single.
fn marry(people: &mut [Person], first: usize, single: f64, random: &mut Random) {
    let (mut men, mut women) = (Vec::new(), Vec::new());
    for person in first..people.len() {
        if random.uniform() >= single {
            match people[person].is_male {
                true => men.push(person),
                false => women.push(person),
            }
        }
    }
    random.shuffle(&mut men);
    random.shuffle(&mut women);
    for man in men {
        // Few women are kin of a man, so the search is short.
        if let Some(at) = (0..women.len()).find(|&at| !are_kin(people, man, women[at])) {
            let woman = women.swap_remove(at);
            people[man].spouse = Some(woman);
            people[woman].spouse = Some(man);
        }
    }
}

/// Returns whether two people have a common parent or grandparent.
fn are_kin(people: &[Person], a: usize, b: usize) -> bool {
    let ancestors = |person: usize| {
        let parents = people[person].parents.into_iter().flatten();
        let grandparents = parents
            .clone()
            .filter_map(|parent| people[parent].parents)
            .flatten()
            .collect::<Vec<usize>>();
        parents.chain(grandparents)
    };
    ancestors(a).any(|of_a| ancestors(b).any(|of_b| of_a == of_b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters() -> FamilyParameters {
        FamilyParameters {
            seed: 3,
            couples: 15,
            generations: 5,
            children: [0, 4],
            single: 0.2,
        }
    }

    /// All ancestors up to two generations back.
    fn near(people: &[Person], person: usize) -> Vec<usize> {
        let mut all: Vec<usize> = people[person].parents.into_iter().flatten().collect();
        for parent in all.clone() {
            all.extend(people[parent].parents.into_iter().flatten());
        }
        all
    }

    #[test]
    fn people_have_parents_who_are_married_and_marry_no_kin() {
        for seed in 0..20 {
            let people = people(&FamilyParameters { seed, ..parameters() }).unwrap();
            let mut children = vec![0; people.len()];
            let (mut marriages, mut single) = (0, 0);
            for (number, person) in people.iter().enumerate() {
                match person.parents {
                    None => assert_eq!(person.generation, 0),
                    Some([father, mother]) => {
                        children[father] += 1;
                        assert!(people[father].is_male && !people[mother].is_male);
                        assert_eq!(people[father].spouse, Some(mother));
                        for parent in [father, mother] {
                            assert_eq!(people[parent].generation + 1, person.generation);
                        }
                    }
                }
                let Some(spouse) = person.spouse else {
                    single += usize::from((1..4).contains(&person.generation));
                    continue;
                };
                marriages += usize::from(person.generation > 0);
                assert_eq!(people[spouse].spouse, Some(number));
                assert_eq!(people[spouse].generation, person.generation);
                assert_ne!(people[spouse].is_male, person.is_male);
                assert!(person.generation < 4);
                let of_spouse = near(&people, spouse);
                assert!(near(&people, number).iter().all(|own| !of_spouse.contains(own)));
            }
            assert!(children.iter().all(|&count| count <= 4));
            assert!(marriages > 10 && single > 3, "{marriages} {single}");
        }
    }

    #[test]
    fn more_generations_leave_the_earlier_people() {
        let of = |generations| {
            people(&FamilyParameters {
                generations,
                ..parameters()
            })
            .unwrap()
        };
        let (short, long) = (of(3), of(5));
        assert!(long.len() > short.len());
        for (a, b) in short.iter().zip(&long) {
            // The last generation does not marry.
            let spouse = if a.generation == 2 { None } else { b.spouse };
            assert_eq!(*a, Person { spouse, ..*b });
        }
        let other = people(&FamilyParameters {
            seed: 4,
            ..parameters()
        })
        .unwrap();
        assert_ne!(other, long);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let check = |change: fn(&mut FamilyParameters)| {
            let mut parameters = parameters();
            change(&mut parameters);
            let invalid = people(&parameters).unwrap_err();
            (invalid.field, invalid.message)
        };
        assert_eq!(check(|p| p.couples = 0).0, "couples");
        assert_eq!(check(|p| p.generations = 1).0, "generations");
        assert_eq!(check(|p| p.children = [3, 2]).1, "3 to 2 children are not a range");
        assert_eq!(check(|p| p.children = [0, 0]).0, "children");
        assert_eq!(check(|p| p.single = f64::NAN).0, "single");
        let (field, message) = check(|p| (p.couples, p.generations, p.children) = (100, 12, [2, 20]));
        assert_eq!(field, "generations");
        assert!(
            message.ends_with("people may be born, and 1000000 are the limit"),
            "{message}"
        );
    }

    #[test]
    fn no_more_are_born_than_the_limit_says() {
        let parameters = FamilyParameters {
            children: [4, 4],
            single: 0.0,
            ..parameters()
        };
        let people = people(&parameters).unwrap();
        assert!(people.len() as u64 <= parameters.most_people());
    }
}
