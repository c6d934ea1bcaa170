//! Ground problems: atoms are bits of a state, actions are lists of bits.

use super::pddl::{ActionSchema, Atom, Domain, EQUAL, GroundAtom, Problem, Term};
use stages_core::StageError;
use std::collections::{BTreeMap, BTreeSet};

/// A ground action.
#[derive(Clone, Debug)]
pub(crate) struct GroundAction {
    /// The number of the action's schema.
    pub schema: usize,
    /// The action's arguments, by the numbers of the problem's objects.
    pub arguments: Vec<usize>,
    /// Atoms that must hold.
    pub needs: Vec<u32>,
    /// Atoms that must not hold.
    pub needs_not: Vec<u32>,
    /// Atoms that hold afterwards.
    pub add: Vec<u32>,
    /// Atoms that no longer hold, unless they are added.
    pub delete: Vec<u32>,
}

/// A ground problem.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    /// The objects.
    pub objects: Vec<String>,
    /// The atoms: a predicate's number, and objects. Static ones that hold come first, then those that
    /// actions change.
    pub atoms: Vec<(usize, Vec<usize>)>,
    /// The actions, in the order of their schemas and arguments.
    pub actions: Vec<GroundAction>,
    /// The words of a state's bits at the start.
    pub init: Vec<u64>,
    /// The atoms that must hold at the end.
    pub goal: Vec<u32>,
}

/// The largest number of action instances that are tried for a problem.
const MOST_INSTANCES: usize = 4_000_000;
/// The largest number of ground actions of a problem.
const MOST_ACTIONS: usize = 200_000;

/// Returns whether a bit is set.
#[inline]
pub(crate) fn holds(state: &[u64], atom: u32) -> bool {
    state[atom as usize / 64] >> (atom % 64) & 1 == 1
}

fn set(state: &mut [u64], atom: u32, value: bool) {
    let bit = 1 << (atom % 64);
    match value {
        true => state[atom as usize / 64] |= bit,
        false => state[atom as usize / 64] &= !bit,
    }
}

impl GroundAction {
    /// Returns whether the preconditions hold.
    #[inline]
    pub(super) fn is_applicable(&self, state: &[u64]) -> bool {
        self.needs.iter().all(|&atom| holds(state, atom))
            && !self.needs_not.iter().any(|&atom| holds(state, atom))
    }

    /// Changes the state: deletes, then adds.
    pub(super) fn apply(&self, state: &mut [u64]) {
        self.delete.iter().for_each(|&atom| set(state, atom, false));
        self.add.iter().for_each(|&atom| set(state, atom, true));
    }
}

impl Ground {
    /// Returns whether the goal holds.
    #[inline]
    pub(super) fn is_solved(&self, state: &[u64]) -> bool {
        self.goal.iter().all(|&atom| holds(state, atom))
    }

    /// The actions whose preconditions hold, by their numbers.
    pub(super) fn applicable(&self, state: &[u64]) -> impl Iterator<Item = u32> {
        let actions = (0..).zip(&self.actions);
        actions
            .filter(|(_, action)| action.is_applicable(state))
            .map(|(number, _)| number)
    }

    /// The ground form of a problem.
    ///
    /// # Errors
    /// Fails when the problem has too many instances of actions.
    pub(super) fn new(domain: &Domain, problem: &Problem) -> Result<Self, StageError> {
        let predicate = |name: &str| {
            domain
                .predicates
                .iter()
                .position(|(other, _)| other == name)
                .unwrap_or(0)
        };
        let objects: Vec<String> = problem.objects.iter().map(|(name, _)| name.clone()).collect();
        let number: BTreeMap<&str, usize> =
            objects.iter().enumerate().map(|(n, name)| (name.as_str(), n)).collect();
        let fitting: Vec<Vec<usize>> = domain
            .actions
            .iter()
            .flat_map(|action| &action.parameters)
            .map(|wanted| {
                let fits = |&object: &usize| domain.is_a(&problem.objects[object].1, wanted);
                (0..objects.len()).filter(fits).collect()
            })
            .collect();
        let changed: BTreeSet<usize> = domain
            .actions
            .iter()
            .flat_map(|action| action.add.iter().chain(&action.delete))
            .map(|atom| predicate(&atom.predicate))
            .collect();
        let numbers = |atom: &GroundAtom| -> (usize, Vec<usize>) {
            let arguments = atom.1.iter().map(|object| number[object.as_str()]).collect();
            (predicate(&atom.0), arguments)
        };
        let init: BTreeSet<_> = problem.init.iter().map(numbers).collect();

        let mut atoms: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut places: BTreeMap<(usize, Vec<usize>), u32> = BTreeMap::new();
        let mut place = |atom: (usize, Vec<usize>)| -> u32 {
            *places.entry(atom.clone()).or_insert_with(|| {
                atoms.push(atom);
                atoms.len() as u32 - 1
            })
        };
        for atom in init.iter().filter(|atom| !changed.contains(&atom.0)) {
            place(atom.clone());
        }
        let mut actions = Vec::new();
        let (mut instances, mut types) = (0, fitting.as_slice());
        for (schema, action) in domain.actions.iter().enumerate() {
            let (candidates, rest) = types.split_at(action.parameters.len());
            types = rest;
            let binding = Binding {
                action,
                candidates,
                changed: &changed,
                init: &init,
                predicate: &predicate,
                number: &number,
            };
            let mut all = Vec::new();
            binding.extend(&mut Vec::new(), &mut instances, &mut all);
            if instances > MOST_INSTANCES || actions.len() + all.len() > MOST_ACTIONS {
                return Err(StageError::new(format!(
                    "problem `{}` has too many instances of `{}`",
                    problem.name, action.name
                ))
                .hint(format!("{MOST_INSTANCES} are tried, {MOST_ACTIONS} kept")));
            }
            for arguments in all {
                let atom = |atom: &Atom| binding.ground(atom, &arguments);
                let (mut needs, mut needs_not) = (Vec::new(), Vec::new());
                for (condition, is_positive) in
                    action.preconditions.iter().filter(|(c, _)| c.predicate != EQUAL)
                {
                    let atom = atom(condition);
                    if changed.contains(&atom.0) {
                        if *is_positive { &mut needs } else { &mut needs_not }.push(place(atom));
                    }
                }
                actions.push(GroundAction {
                    schema,
                    needs,
                    needs_not,
                    add: action.add.iter().map(|effect| place(atom(effect))).collect(),
                    delete: action.delete.iter().map(|effect| place(atom(effect))).collect(),
                    arguments,
                });
            }
        }
        let goal: Vec<u32> = problem.goal.iter().map(|atom| place(numbers(atom))).collect();
        let start: Vec<u32> = init.iter().map(|atom| place(atom.clone())).collect();
        let mut state = vec![0; atoms.len().div_ceil(64)];
        start.iter().for_each(|&atom| set(&mut state, atom, true));
        Ok(Self {
            objects,
            atoms,
            actions,
            init: state,
            goal,
        })
    }
}

/// The instantiation of a schema.
struct Binding<'a> {
    action: &'a ActionSchema,
    /// The objects that fit each parameter.
    candidates: &'a [Vec<usize>],
    /// The predicates that actions change.
    changed: &'a BTreeSet<usize>,
    init: &'a BTreeSet<(usize, Vec<usize>)>,
    predicate: &'a dyn Fn(&str) -> usize,
    number: &'a BTreeMap<&'a str, usize>,
}

impl Binding<'_> {
    /// The object of a term, where it is bound.
    fn object(&self, term: &Term, bound: &[usize]) -> Option<usize> {
        match term {
            Term::Parameter(parameter) => bound.get(*parameter).copied(),
            Term::Constant(name) => self.number.get(name.as_str()).copied(),
        }
    }

    fn ground(&self, atom: &Atom, bound: &[usize]) -> (usize, Vec<usize>) {
        let arguments = atom
            .arguments
            .iter()
            .filter_map(|term| self.object(term, bound))
            .collect();
        ((self.predicate)(&atom.predicate), arguments)
    }

    /// Returns whether a condition that no action changes fails, as far as its arguments are bound.
    fn fails(&self, condition: &(Atom, bool), bound: &[usize]) -> bool {
        let (atom, is_positive) = condition;
        let objects: Vec<usize> = atom
            .arguments
            .iter()
            .filter_map(|term| self.object(term, bound))
            .collect();
        if objects.len() < atom.arguments.len() {
            return false;
        }
        if atom.predicate == EQUAL {
            return (objects[0] == objects[1]) != *is_positive;
        }
        let predicate = (self.predicate)(&atom.predicate);
        !self.changed.contains(&predicate) && self.init.contains(&(predicate, objects)) != *is_positive
    }

    /// Appends all instances that begin with `bound` and whose unchanging conditions hold.
    fn extend(&self, bound: &mut Vec<usize>, instances: &mut usize, all: &mut Vec<Vec<usize>>) {
        *instances += 1;
        if *instances > MOST_INSTANCES || all.len() > MOST_ACTIONS {
            return;
        }
        if self
            .action
            .preconditions
            .iter()
            .any(|condition| self.fails(condition, bound))
        {
            return;
        }
        let Some(candidates) = self.candidates.get(bound.len()) else {
            all.push(bound.clone());
            return;
        };
        for &object in candidates {
            bound.push(object);
            self.extend(bound, instances, all);
            bound.pop();
        }
    }
}
