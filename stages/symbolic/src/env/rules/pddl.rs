//! The subset of PDDL that is read: STRIPS with types, equality and negative preconditions. Anything else is
//! refused with its place.

use stages_knowledge::text::TextError;
use std::collections::BTreeMap;

type Result<T> = std::result::Result<T, TextError>;

/// A place in a text: line, and column in bytes.
type Place = (usize, usize);

fn error<T>(place: Place, message: impl Into<String>) -> Result<T> {
    Err(TextError {
        line: place.0,
        column: place.1,
        message: message.into(),
        hint: String::new(),
    })
}

/// An S-expression. Names are in lower case, as PDDL does not tell cases apart.
#[derive(Clone, Debug)]
enum Expression {
    Name(String, Place),
    List(Vec<Self>, Place),
}

impl Expression {
    fn place(&self) -> Place {
        match self {
            Self::Name(_, place) | Self::List(_, place) => *place,
        }
    }

    fn name(&self) -> Result<&str> {
        match self {
            Self::Name(name, _) => Ok(name),
            Self::List(_, place) => error(*place, "a name is expected"),
        }
    }

    fn list(&self) -> Result<&[Self]> {
        match self {
            Self::List(items, _) => Ok(items),
            Self::Name(name, place) => error(*place, format!("`{name}` where a list is expected")),
        }
    }

    /// A list's first name, and the rest.
    fn head(&self) -> Result<(&str, &[Self])> {
        match self.list()?.split_first() {
            Some((first, rest)) => Ok((first.name()?, rest)),
            None => error(self.place(), "an empty list"),
        }
    }
}

/// The greatest depth of nested lists.
const DEEPEST: usize = 64;

fn read(text: &str) -> Result<Expression> {
    let (mut line, mut start) = (1, 0);
    let mut open: Vec<(Vec<Expression>, Place)> = Vec::new();
    let mut whole = None;
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let place = (line, at - start + 1);
        let byte = bytes[at];
        at += 1;
        match byte {
            b'\n' => (line, start) = (line + 1, at),
            b';' => at += bytes[at..].iter().take_while(|&&byte| byte != b'\n').count(),
            _ if byte.is_ascii_whitespace() => {}
            _ if whole.is_some() => return error(place, "text behind the end of the definition"),
            b'(' if open.len() == DEEPEST => return error(place, "lists are too deep"),
            b'(' => open.push((Vec::new(), place)),
            b')' => match open.pop() {
                None => return error(place, "a closing parenthesis too many"),
                Some((items, place)) => {
                    let list = Expression::List(items, place);
                    match open.last_mut() {
                        Some((outer, _)) => outer.push(list),
                        None => whole = Some(list),
                    }
                }
            },
            _ => {
                let ends = |byte: &u8| byte.is_ascii_whitespace() || b"();".contains(byte);
                let from = at - 1;
                at += bytes[at..].iter().take_while(|byte| !ends(byte)).count();
                let name = text[from..at].to_ascii_lowercase();
                match open.last_mut() {
                    Some((items, _)) => items.push(Expression::Name(name, place)),
                    None => return error(place, format!("`{name}` where `(define …)` is expected")),
                }
            }
        }
    }
    match (whole, open.last()) {
        (_, Some((_, place))) => error(*place, "a parenthesis is not closed"),
        (None, None) => error((1, 1), "an empty text"),
        (Some(whole), None) => Ok(whole),
    }
}

/// A term of an action: a parameter by its number, or an object by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    /// A parameter.
    Parameter(usize),
    /// A constant of the domain.
    Constant(String),
}

/// An atom over the parameters of an action; `=` is a predicate like others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Atom {
    /// The predicate.
    pub predicate: String,
    /// The arguments.
    pub arguments: Vec<Term>,
}

/// An action schema.
#[derive(Clone, Debug)]
pub struct ActionSchema {
    /// The name of the schema.
    pub name: String,
    /// The type of each parameter.
    pub parameters: Vec<String>,
    /// The atoms of the precondition, each with whether it must hold or must not.
    pub preconditions: Vec<(Atom, bool)>,
    /// Atoms that hold afterwards.
    pub add: Vec<Atom>,
    /// Atoms that no longer hold, unless they are added.
    pub delete: Vec<Atom>,
}

/// A domain.
#[derive(Clone, Debug)]
pub struct Domain {
    /// The name of the domain.
    pub name: String,
    /// The type above each type.
    parents: BTreeMap<String, String>,
    /// The constants and their types.
    pub constants: Vec<(String, String)>,
    /// The predicates and the types of their arguments.
    pub predicates: Vec<(String, Vec<String>)>,
    /// The actions.
    pub actions: Vec<ActionSchema>,
}

/// A ground atom: a predicate and objects.
pub type GroundAtom = (String, Vec<String>);

/// A problem of a domain.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The name of the problem.
    pub name: String,
    /// The objects and their types, the domain's constants among them.
    pub objects: Vec<(String, String)>,
    /// The atoms that hold at the start.
    pub init: Vec<GroundAtom>,
    /// The atoms that must hold at the end.
    pub goal: Vec<GroundAtom>,
}

/// The root type, of which all other types are subtypes.
const OBJECT: &str = "object";
/// The predicate of equality.
pub const EQUAL: &str = "=";

impl Domain {
    /// Reads a domain.
    ///
    /// # Errors
    /// With the place of what is not of the subset.
    pub fn read(text: &str) -> Result<Self> {
        let whole = read(text)?;
        let (name, sections) = definition(&whole, "domain")?;
        let mut domain = Self {
            name,
            parents: BTreeMap::new(),
            constants: Vec::new(),
            predicates: Vec::new(),
            actions: Vec::new(),
        };
        // Actions name what other sections declare, which may stand behind them.
        for pass in [false, true] {
            for section in sections {
                let (key, rest) = section.head()?;
                match (key, pass) {
                    (":action", true) => {
                        let action = domain.action(section.place(), rest)?;
                        domain.actions.push(action);
                    }
                    (":action", false) | (_, true) => {}
                    (":requirements", _) => requirements(rest)?,
                    (":types", _) => {
                        for (name, parent, place) in typed(rest)? {
                            if name == OBJECT {
                                continue;
                            }
                            if domain.parents.insert(name.clone(), parent).is_some() {
                                return error(place, format!("type `{name}` is declared twice"));
                            }
                        }
                    }
                    (":constants", _) => {
                        for (name, of, place) in typed(rest)? {
                            domain.check_type(&of, place)?;
                            domain.constants.push((name, of));
                        }
                    }
                    (":predicates", _) => {
                        for predicate in rest {
                            let (name, arguments) = predicate.head()?;
                            if name == EQUAL || domain.predicate(name).is_some() {
                                return error(
                                    predicate.place(),
                                    format!("predicate `{name}` is declared twice"),
                                );
                            }
                            let mut types = Vec::new();
                            for (_, of, place) in typed(arguments)? {
                                domain.check_type(&of, place)?;
                                types.push(of);
                            }
                            domain.predicates.push((name.to_owned(), types));
                        }
                    }
                    _ => return error(section.place(), format!("`{key}` is not of the STRIPS subset")),
                }
            }
        }
        Ok(domain)
    }

    /// Reads a problem of this domain.
    ///
    /// # Errors
    /// With the place of what is not of the subset, or does not fit the domain.
    pub fn problem(&self, text: &str) -> Result<Problem> {
        let whole = read(text)?;
        let (name, sections) = definition(&whole, "problem")?;
        let mut problem = Problem {
            name,
            objects: self.constants.clone(),
            init: Vec::new(),
            goal: Vec::new(),
        };
        for section in sections {
            let (key, rest) = section.head()?;
            match key {
                ":domain" => match rest {
                    [Expression::Name(name, _)] if *name == self.name => {}
                    _ => return error(section.place(), format!("the domain is not `{}`", self.name)),
                },
                ":requirements" => requirements(rest)?,
                ":objects" => {
                    for (name, of, place) in typed(rest)? {
                        self.check_type(&of, place)?;
                        if problem.objects.iter().any(|(other, _)| *other == name) {
                            return error(place, format!("object `{name}` is declared twice"));
                        }
                        problem.objects.push((name, of));
                    }
                }
                ":init" => {
                    for atom in rest {
                        let ground = self.ground_atom(atom, &problem.objects)?;
                        problem.init.push(ground);
                    }
                }
                ":goal" => {
                    let [goal] = rest else {
                        return error(section.place(), "a goal is one condition");
                    };
                    for (atom, is_positive) in conjuncts(goal)? {
                        if !is_positive {
                            return error(atom.place(), "a negative goal is not of the STRIPS subset");
                        }
                        let ground = self.ground_atom(atom, &problem.objects)?;
                        problem.goal.push(ground);
                    }
                }
                _ => return error(section.place(), format!("`{key}` is not of the STRIPS subset")),
            }
        }
        match problem.goal.is_empty() {
            true => error(whole.place(), "the problem has no goal"),
            false => Ok(problem),
        }
    }

    /// Returns whether a type is another or lies below it.
    pub fn is_a(&self, of: &str, wanted: &str) -> bool {
        // The number of types bounds the walk, should they be declared in a circle.
        let mut of = of;
        for _ in 0..=self.parents.len() {
            if of == wanted || wanted == OBJECT {
                return true;
            }
            match self.parents.get(of) {
                Some(parent) => of = parent,
                None => return false,
            }
        }
        false
    }

    fn predicate(&self, name: &str) -> Option<&[String]> {
        let found = self.predicates.iter().find(|(predicate, _)| predicate == name);
        found.map(|(_, types)| types.as_slice())
    }

    fn check_type(&self, of: &str, place: Place) -> Result<()> {
        match of == OBJECT || self.parents.contains_key(of) {
            true => Ok(()),
            false => error(place, format!("no type `{of}`")),
        }
    }

    fn ground_atom(&self, atom: &Expression, objects: &[(String, String)]) -> Result<GroundAtom> {
        let (name, arguments) = atom.head()?;
        let Some(types) = self.predicate(name) else {
            return error(atom.place(), format!("no predicate `{name}` that can hold here"));
        };
        if types.len() != arguments.len() {
            return error(atom.place(), format!("`{name}` takes {} arguments", types.len()));
        }
        let mut ground = Vec::new();
        for (argument, wanted) in arguments.iter().zip(types) {
            let object = argument.name()?;
            match objects.iter().find(|(name, _)| name == object) {
                None => return error(argument.place(), format!("no object `{object}`")),
                Some((_, of)) if !self.is_a(of, wanted) => {
                    return error(argument.place(), format!("`{object}` is a `{of}`, not a `{wanted}`"));
                }
                Some(_) => ground.push(object.to_owned()),
            }
        }
        Ok((name.to_owned(), ground))
    }

    fn action(&self, place: Place, rest: &[Expression]) -> Result<ActionSchema> {
        let Some((name, rest)) = rest.split_first() else {
            return error(place, "an action without a name");
        };
        let name = name.name()?.to_owned();
        if self.actions.iter().any(|action| action.name == name) || self.predicate(&name).is_some() {
            return error(place, format!("`{name}` is the name of an action or predicate before"));
        }
        let mut parts: BTreeMap<&str, &Expression> = BTreeMap::new();
        for pair in rest.chunks(2) {
            let [key, value] = pair else {
                return error(pair[0].place(), "a key without a value");
            };
            let key_name = key.name()?;
            if !matches!(key_name, ":parameters" | ":precondition" | ":effect") {
                return error(key.place(), format!("`{key_name}` is not of the STRIPS subset"));
            }
            if parts.insert(key_name, value).is_some() {
                return error(key.place(), format!("`{key_name}` is given twice"));
            }
        }
        let mut names = Vec::new();
        let mut parameters = Vec::new();
        if let Some(given) = parts.get(":parameters") {
            for (name, of, place) in typed(given.list()?)? {
                self.check_type(&of, place)?;
                if !name.starts_with('?') || names.contains(&name) {
                    return error(place, format!("`{name}` is not a new parameter"));
                }
                names.push(name);
                parameters.push(of);
            }
        }
        let mut preconditions = Vec::new();
        if let Some(given) = parts.get(":precondition") {
            for (atom, is_positive) in conjuncts(given)? {
                preconditions.push((self.lifted(atom, &names, true)?, is_positive));
            }
        }
        let Some(effect) = parts.get(":effect") else {
            return error(place, format!("action `{name}` has no effect"));
        };
        let (mut add, mut delete) = (Vec::new(), Vec::new());
        for (atom, is_positive) in conjuncts(effect)? {
            let atom = self.lifted(atom, &names, false)?;
            if is_positive { &mut add } else { &mut delete }.push(atom);
        }
        Ok(ActionSchema {
            name,
            parameters,
            preconditions,
            add,
            delete,
        })
    }

    fn lifted(&self, atom: &Expression, parameters: &[String], with_equality: bool) -> Result<Atom> {
        let (name, arguments) = atom.head()?;
        let arity = match self.predicate(name) {
            Some(types) => types.len(),
            None if name == EQUAL && with_equality => 2,
            None => return error(atom.place(), format!("no predicate `{name}` of the STRIPS subset")),
        };
        if arity != arguments.len() {
            return error(atom.place(), format!("`{name}` takes {arity} arguments"));
        }
        let mut terms = Vec::new();
        for argument in arguments {
            let term = argument.name()?;
            terms.push(match parameters.iter().position(|parameter| parameter == term) {
                Some(number) => Term::Parameter(number),
                None if self.constants.iter().any(|(constant, _)| constant == term) => {
                    Term::Constant(term.to_owned())
                }
                None => {
                    return error(
                        argument.place(),
                        format!("`{term}` is neither a parameter nor a constant"),
                    );
                }
            });
        }
        Ok(Atom {
            predicate: name.to_owned(),
            arguments: terms,
        })
    }
}

/// The name of `(define (domain NAME) …)`, and its sections.
fn definition<'a>(whole: &'a Expression, kind: &str) -> Result<(String, &'a [Expression])> {
    let (define, rest) = whole.head()?;
    let expected = || error(whole.place(), format!("`(define ({kind} NAME) …)` is expected"));
    let Some((title, sections)) = rest.split_first() else {
        return expected();
    };
    match (define, title.head()?) {
        ("define", (word, [name])) if word == kind => Ok((name.name()?.to_owned(), sections)),
        _ => expected(),
    }
}

fn requirements(given: &[Expression]) -> Result<()> {
    const KNOWN: [&str; 4] = [":strips", ":typing", ":equality", ":negative-preconditions"];
    for requirement in given {
        let name = requirement.name()?;
        if !KNOWN.contains(&name) {
            return error(
                requirement.place(),
                format!("the requirement `{name}` is not met: {} are", KNOWN.join(", ")),
            );
        }
    }
    Ok(())
}

/// Names with the types behind them: `a b - type c`.
fn typed(given: &[Expression]) -> Result<Vec<(String, String, Place)>> {
    let mut all: Vec<(String, String, Place)> = Vec::new();
    let mut untyped = 0;
    let mut rest = given.iter();
    while let Some(item) = rest.next() {
        let name = item.name()?;
        if name != "-" {
            all.push((name.to_owned(), OBJECT.to_owned(), item.place()));
            continue;
        }
        let Some(of) = rest.next() else {
            return error(item.place(), "a type is missing behind `-`");
        };
        let of = of.name()?;
        all[untyped..].iter_mut().for_each(|entry| entry.1 = of.to_owned());
        untyped = all.len();
    }
    Ok(all)
}

/// The literals of a conjunction: atoms, and whether they are positive.
fn conjuncts(given: &Expression) -> Result<Vec<(&Expression, bool)>> {
    if given.list()?.is_empty() {
        return Ok(Vec::new());
    }
    let (head, rest) = given.head()?;
    if head == "and" {
        let mut all = Vec::new();
        for item in rest {
            all.extend(conjuncts(item)?);
        }
        return Ok(all);
    }
    match (head, rest) {
        ("not", [atom]) => match atom.head()?.0 {
            "and" | "or" | "not" | "imply" | "exists" | "forall" => {
                error(atom.place(), "only an atom can be negated in the STRIPS subset")
            }
            _ => Ok(vec![(atom, false)]),
        },
        ("not" | "or" | "imply" | "exists" | "forall" | "when" | "increase" | "decrease" | "assign", _) => {
            error(given.place(), format!("`{head}` is not of the STRIPS subset"))
        }
        _ => Ok(vec![(given, true)]),
    }
}
