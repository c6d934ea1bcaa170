//! A slow, obvious interpreter, which the fast code is tested against: terms are trees, a substitution is a
//! list that never changes, the search is a recursion. It recurses over terms and proofs: run it on a thread
//! with a large stack.

use stages_knowledge::print;
use stages_knowledge::program::{LIST, Program, Symbols};
use stages_knowledge::word::{self, Word};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A term. Variables are unique over a whole search.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Term {
    /// A variable.
    Variable(u64),
    /// A constant, as it is printed.
    Constant(String),
    /// A compound term, or an atom: its name as it is printed, and its arguments.
    Compound(String, Vec<Rc<Term>>),
}

/// A clause: head and body.
#[derive(Clone, Debug)]
pub(crate) struct ReferenceClause {
    head: Rc<Term>,
    body: Vec<Rc<Term>>,
}

/// A substitution: a list of bindings, the last one first.
#[derive(Clone)]
enum Substitution {
    Empty,
    Bound(u64, Rc<Term>, Rc<Substitution>),
}

/// Where the search stands: what is left to prove, in order.
enum Goals {
    Nothing,
    /// An atom, and the depth that is left to it.
    Atom(Rc<Term>, usize, Rc<Goals>),
    /// The end of a clause's body: the clause, and the number of its conditions.
    Close(usize, usize, Rc<Goals>),
}

/// A proof: a clause, and the proofs of its conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    /// The clause, counted from 0 in the text.
    pub clause: usize,
    /// The proofs of its conditions, in order.
    pub children: Vec<Rc<Proof>>,
}

/// An answer: the values of the goal's variables, and the proofs of its atoms.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The values, as printed: free variables are `A`, `B`, … in order of appearance.
    pub values: Vec<String>,
    /// The proofs.
    pub proofs: Vec<Rc<Proof>>,
}

/// The result of a search.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// The answers, in order.
    pub answers: Vec<Answer>,
    /// True where an atom was reached below the bound.
    pub depth_cut: bool,
    /// True where a unification failed that would have passed without the occurs check.
    pub occurs_check: bool,
    /// The applications of clauses.
    pub uses: u64,
}

/// A program, as trees.
pub(crate) struct Interpreter {
    clauses: Vec<ReferenceClause>,
}

struct Search<'a> {
    clauses: &'a [ReferenceClause],
    found: Found,
    variables: Vec<Rc<Term>>,
    most: usize,
    next_variable: u64,
    most_uses: u64,
}

fn tree(symbols: &Symbols, words: &[Word], at: &mut usize) -> Rc<Term> {
    let start = *at;
    let word = words[start];
    *at += 1;
    let mut text = String::new();
    Rc::new(if word::is_variable(word) {
        Term::Variable(word::number(word).into())
    } else if word::is_constant(word) {
        print::term(symbols, &words[start..=start], &mut text);
        Term::Constant(text)
    } else {
        let name = match word::is_predicate(word) {
            true => symbols.predicates.name(word::number(word)),
            false => symbols.functors.name(word::number(word)),
        };
        print::quoted(name, &mut text);
        let arguments = (0..word::arity(word)).map(|_| tree(symbols, words, at)).collect();
        Term::Compound(text, arguments)
    })
}

/// The atoms of a goal list.
pub(crate) fn atoms(symbols: &Symbols, words: &[Word]) -> Vec<Rc<Term>> {
    let mut at = 0;
    let mut atoms = Vec::new();
    while at < words.len() {
        atoms.push(tree(symbols, words, &mut at));
    }
    atoms
}

fn look_up(substitution: &Substitution, variable: u64) -> Option<Rc<Term>> {
    match substitution {
        Substitution::Empty => None,
        Substitution::Bound(name, term, _) if *name == variable => Some(term.clone()),
        Substitution::Bound(_, _, rest) => look_up(rest, variable),
    }
}

fn resolved(term: &Rc<Term>, substitution: &Substitution) -> Rc<Term> {
    match **term {
        Term::Variable(name) => match look_up(substitution, name) {
            Some(bound) => resolved(&bound, substitution),
            None => term.clone(),
        },
        _ => term.clone(),
    }
}

fn occurs(variable: u64, term: &Rc<Term>, substitution: &Substitution) -> bool {
    match &*resolved(term, substitution) {
        Term::Variable(name) => *name == variable,
        Term::Constant(_) => false,
        Term::Compound(_, arguments) => arguments
            .iter()
            .any(|argument| occurs(variable, argument, substitution)),
    }
}

/// Unification by Robinson's algorithm.
fn unify(a: &Rc<Term>, b: &Rc<Term>, substitution: &Substitution) -> Option<Substitution> {
    let (a, b) = (resolved(a, substitution), resolved(b, substitution));
    match (&*a, &*b) {
        (Term::Variable(x), Term::Variable(y)) if x == y => Some(substitution.clone()),
        (Term::Variable(x), _) => match occurs(*x, &b, substitution) {
            true => None,
            false => Some(Substitution::Bound(*x, b.clone(), Rc::new(substitution.clone()))),
        },
        (_, Term::Variable(_)) => unify(&b, &a, substitution),
        (Term::Constant(x), Term::Constant(y)) => (x == y).then(|| substitution.clone()),
        (Term::Compound(f, xs), Term::Compound(g, ys)) if f == g && xs.len() == ys.len() => {
            let mut result = substitution.clone();
            for (x, y) in xs.iter().zip(ys) {
                result = unify(x, y, &result)?;
            }
            Some(result)
        }
        _ => None,
    }
}

/// Returns whether two terms unify without the occurs check, as terms that may contain themselves: pairs that
/// are under way count as equal.
fn unify_cyclic(
    a: &Rc<Term>,
    b: &Rc<Term>,
    bound: &mut BTreeMap<u64, Rc<Term>>,
    seen: &mut Vec<(Rc<Term>, Rc<Term>)>,
) -> bool {
    let follow = |term: &Rc<Term>, bound: &BTreeMap<u64, Rc<Term>>| {
        let mut term = term.clone();
        while let Term::Variable(name) = *term {
            match bound.get(&name) {
                Some(next) => term = next.clone(),
                None => break,
            }
        }
        term
    };
    let (a, b) = (follow(a, bound), follow(b, bound));
    match (&*a, &*b) {
        (Term::Variable(x), Term::Variable(y)) if x == y => true,
        (Term::Variable(x), _) => {
            bound.insert(*x, b.clone());
            true
        }
        (_, Term::Variable(y)) => {
            bound.insert(*y, a.clone());
            true
        }
        (Term::Constant(x), Term::Constant(y)) => x == y,
        (Term::Compound(f, xs), Term::Compound(g, ys)) if f == g && xs.len() == ys.len() => {
            if seen.iter().any(|(x, y)| Rc::ptr_eq(x, &a) && Rc::ptr_eq(y, &b)) {
                return true;
            }
            seen.push((a.clone(), b.clone()));
            xs.iter().zip(ys).all(|(x, y)| unify_cyclic(x, y, bound, seen))
        }
        _ => false,
    }
}

/// A term with its variables replaced by their values.
fn applied(term: &Rc<Term>, substitution: &Substitution) -> Rc<Term> {
    let term = resolved(term, substitution);
    match &*term {
        Term::Compound(name, arguments) => Rc::new(Term::Compound(
            name.clone(),
            arguments
                .iter()
                .map(|argument| applied(argument, substitution))
                .collect(),
        )),
        _ => term,
    }
}

fn renamed(term: &Rc<Term>, first: u64) -> Rc<Term> {
    match &**term {
        Term::Variable(name) => Rc::new(Term::Variable(first + name)),
        Term::Constant(_) => term.clone(),
        Term::Compound(name, arguments) => Rc::new(Term::Compound(
            name.clone(),
            arguments.iter().map(|argument| renamed(argument, first)).collect(),
        )),
    }
}

fn printed(term: &Rc<Term>, names: &mut BTreeMap<u64, String>, out: &mut String) {
    match &**term {
        Term::Variable(name) => {
            let next = names.len() as u32;
            let text = names.entry(*name).or_insert_with(|| {
                let mut text = String::new();
                print::variable(next, &mut text);
                text
            });
            out.push_str(text);
        }
        Term::Constant(text) => out.push_str(text),
        Term::Compound(name, arguments) if *name == format!("'{LIST}'") && arguments.len() == 2 => {
            out.push('[');
            printed(&arguments[0], names, out);
            let mut tail = arguments[1].clone();
            loop {
                match &*tail.clone() {
                    Term::Constant(text) if text == "[]" => break,
                    Term::Compound(other, parts) if other == name && parts.len() == 2 => {
                        out.push(',');
                        printed(&parts[0], names, out);
                        tail = parts[1].clone();
                    }
                    _ => {
                        out.push('|');
                        printed(&tail, names, out);
                        break;
                    }
                }
            }
            out.push(']');
        }
        Term::Compound(name, arguments) => {
            out.push_str(name);
            for (i, argument) in arguments.iter().enumerate() {
                out.push(if i == 0 { '(' } else { ',' });
                printed(argument, names, out);
            }
            out.push_str(if arguments.is_empty() { "" } else { ")" });
        }
    }
}

/// Terms as text, the variables named in order of appearance among all of them.
fn all_printed(terms: &[Rc<Term>]) -> Vec<String> {
    let mut names = BTreeMap::new();
    terms
        .iter()
        .map(|term| {
            let mut out = String::new();
            printed(term, &mut names, &mut out);
            out
        })
        .collect()
}

impl Interpreter {
    /// The interpreter of a program.
    pub(crate) fn new(program: &Program) -> Self {
        let mut clauses: Vec<Option<ReferenceClause>> = vec![None; program.clauses as usize];
        let symbols = &program.symbols;
        for rule in program.rules() {
            clauses[rule.clause as usize] = Some(ReferenceClause {
                head: atoms(symbols, rule.head)[0].clone(),
                body: atoms(symbols, rule.body),
            });
        }
        let mut facts = program.facts();
        let clauses = clauses
            .into_iter()
            .filter_map(|clause| {
                clause.or_else(|| {
                    facts.next().map(|fact| ReferenceClause {
                        head: atoms(symbols, fact)[0].clone(),
                        body: Vec::new(),
                    })
                })
            })
            .collect();
        Self { clauses }
    }

    /// Searches depth first, leftmost atom first, clauses in order, for `most` answers at most within a
    /// depth, and `most_uses` applications of clauses.
    pub(crate) fn solve(
        &self,
        goals: &[Rc<Term>],
        variables: u64,
        depth: usize,
        most: usize,
        most_uses: u64,
    ) -> Found {
        let mut search = Search {
            clauses: &self.clauses,
            found: Found::default(),
            variables: (0..variables).map(|name| Rc::new(Term::Variable(name))).collect(),
            most,
            next_variable: variables,
            most_uses,
        };
        let goals = goals.iter().rev().fold(Rc::new(Goals::Nothing), |rest, atom| {
            Rc::new(Goals::Atom(atom.clone(), depth, rest))
        });
        search.solve(&goals, &Substitution::Empty, &[]);
        search.found
    }

    /// The clauses whose heads unify with the first atom, in order, and the goal list after each, as text.
    pub(crate) fn resolvents(&self, goals: &[Rc<Term>], variables: u64) -> Vec<(usize, Vec<String>)> {
        let mut all = Vec::new();
        for (number, clause) in self.clauses.iter().enumerate() {
            let head = renamed(&clause.head, variables);
            if let Some(substitution) = unify(&goals[0], &head, &Substitution::Empty) {
                let body = clause.body.iter().map(|atom| renamed(atom, variables));
                let terms: Vec<_> = body
                    .chain(goals[1..].iter().cloned())
                    .map(|atom| applied(&atom, &substitution))
                    .collect();
                all.push((number, all_printed(&terms)));
            }
        }
        all
    }

    /// The least depth with a proof up to `depth`, 0 where there is none.
    pub(crate) fn min_depth(
        &self,
        goals: &[Rc<Term>],
        variables: u64,
        depth: usize,
        most_uses: u64,
    ) -> usize {
        (1..=depth)
            .find(|&depth| !self.solve(goals, variables, depth, 1, most_uses).answers.is_empty())
            .unwrap_or(0)
    }
}

impl Search<'_> {
    /// Returns false where the search is to end.
    fn solve(&mut self, goals: &Rc<Goals>, substitution: &Substitution, proofs: &[Rc<Proof>]) -> bool {
        match &**goals {
            Goals::Nothing => {
                let values: Vec<_> = self.variables.iter().map(|name| applied(name, substitution)).collect();
                self.found.answers.push(Answer {
                    values: all_printed(&values),
                    proofs: proofs.to_vec(),
                });
                self.found.answers.len() < self.most
            }
            Goals::Close(clause, count, rest) => {
                let (before, children) = proofs.split_at(proofs.len() - count);
                let proof = Rc::new(Proof {
                    clause: *clause,
                    children: children.to_vec(),
                });
                self.solve(rest, substitution, &[before, &[proof]].concat())
            }
            Goals::Atom(_, 0, _) => {
                self.found.depth_cut = true;
                true
            }
            Goals::Atom(atom, depth, rest) => {
                for (number, clause) in self.clauses.iter().enumerate() {
                    let first = self.next_variable;
                    let head = renamed(&clause.head, first);
                    let Some(next) = unify(atom, &head, substitution) else {
                        self.found.occurs_check |= self.passes_unchecked(atom, &head, substitution);
                        continue;
                    };
                    self.found.uses += 1;
                    if self.found.uses > self.most_uses {
                        return false;
                    }
                    self.next_variable += 1 + most_variable(clause);
                    let end = Rc::new(Goals::Close(number, clause.body.len(), rest.clone()));
                    let goals = clause.body.iter().rev().fold(end, |rest, atom| {
                        Rc::new(Goals::Atom(renamed(atom, first), depth - 1, rest))
                    });
                    if !self.solve(&goals, &next, proofs) {
                        return false;
                    }
                }
                true
            }
        }
    }

    fn passes_unchecked(&self, atom: &Rc<Term>, head: &Rc<Term>, substitution: &Substitution) -> bool {
        let (Term::Compound(f, xs), Term::Compound(g, ys)) = (&**atom, &**head) else {
            return false;
        };
        f == g
            && xs.len() == ys.len()
            && unify_cyclic(
                &applied(atom, substitution),
                head,
                &mut BTreeMap::new(),
                &mut Vec::new(),
            )
    }
}

fn most_variable(clause: &ReferenceClause) -> u64 {
    fn of(term: &Term) -> u64 {
        match term {
            Term::Variable(name) => *name,
            Term::Constant(_) => 0,
            Term::Compound(_, arguments) => arguments.iter().map(|argument| of(argument)).max().unwrap_or(0),
        }
    }
    clause
        .body
        .iter()
        .map(|atom| of(atom))
        .max()
        .unwrap_or(0)
        .max(of(&clause.head))
}

impl Proof {
    /// The proof as text: `t(clause,[children])`.
    pub(crate) fn text(&self) -> String {
        format!("t({},[{}])", self.clause, Self::texts(&self.children))
    }

    /// Proofs as text, separated by commas.
    pub(crate) fn texts(proofs: &[Rc<Self>]) -> String {
        let texts: Vec<String> = proofs.iter().map(|proof| proof.text()).collect();
        texts.join(",")
    }

    /// The number of applications of clauses.
    pub(crate) fn uses(&self) -> u64 {
        1 + self.children.iter().map(|child| child.uses()).sum::<u64>()
    }
}
