//! Terms as SWI-Prolog writes them (`writeq`): names in quotation marks where they need them, no blank after
//! a comma, lists in brackets, variables as `A`, `B`, … by their numbers. Operators are written as any other
//! functor: `-(a,b)`.

use crate::program::{ConstantKind, LIST, Symbols};
use crate::text::continues_name;
use crate::word::{self, Word};
use std::fmt::Write as _;

/// Appends a variable's name: `A` to `Z`, then `A1` and so on.
pub fn variable(number: u32, out: &mut String) {
    out.push(char::from(b'A' + (number % 26) as u8));
    if number >= 26 {
        let _ = write!(out, "{}", number / 26);
    }
}

/// Appends an atom's name, in quotation marks where it needs them.
pub fn quoted(name: &str, out: &mut String) {
    let mut chars = name.chars();
    let is_bare = match chars.next() {
        Some(first) if first.is_alphabetic() && !first.is_uppercase() => chars.all(continues_name),
        Some(_) => {
            name.bytes().all(|byte| b"+-*/\\^<>=~:.?@#&$".contains(&byte))
                && name != "."
                && !name.starts_with("/*")
                || matches!(name, "!" | ";" | "{}")
        }
        None => false,
    };
    match is_bare {
        true => out.push_str(name),
        false => escaped(name, '\'', out),
    }
}

fn escaped(text: &str, mark: char, out: &mut String) {
    out.push(mark);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\u{b}' => out.push_str("\\v"),
            _ if c == mark => {
                out.push('\\');
                out.push(c);
            }
            _ if c.is_control()
                || matches!(c, '\u{a0}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}') =>
            {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    out.push(mark);
}

fn kind(names: &Symbols, number: u32) -> ConstantKind {
    ConstantKind::from_tag(names.constants.tag(number))
}

fn constant(names: &Symbols, number: u32, out: &mut String) {
    let name = names.constants.name(number);
    match kind(names, number) {
        ConstantKind::Atom => quoted(name, out),
        ConstantKind::String => escaped(name, '"', out),
        ConstantKind::Integer | ConstantKind::EmptyList => out.push_str(name),
    }
}

/// Appends the term or atom that `words` begin with, and returns its end.
pub fn term(names: &Symbols, words: &[Word], out: &mut String) -> usize {
    enum Todo {
        /// The rest of a compound term: the given number of further arguments, and then a parenthesis.
        Arguments(usize),
        /// The rest of a list after the element that is being written.
        Head,
        /// The bracket that closes a list after its tail.
        Tail,
    }
    let mut todo: Vec<Todo> = Vec::new();
    let mut at = 0;
    loop {
        let word = words[at];
        at += 1;
        let arity = word::arity(word);
        let is_list = word::is_functor(word) && arity == 2 && names.functors.name(word::number(word)) == LIST;
        if is_list {
            out.push('[');
            todo.push(Todo::Head);
            continue;
        }
        if word::is_variable(word) {
            variable(word::number(word), out);
        } else if word::is_constant(word) {
            constant(names, word::number(word), out);
        } else {
            if word::is_predicate(word) {
                if word::is_negated(word) {
                    out.push_str("\\+");
                }
                quoted(names.predicates.name(word::number(word)), out);
            } else {
                quoted(names.functors.name(word::number(word)), out);
            }
            if arity > 0 {
                out.push('(');
                todo.push(Todo::Arguments(arity - 1));
                continue;
            }
        }
        // A term is complete.
        loop {
            match todo.pop() {
                None => return at,
                Some(Todo::Arguments(0)) => out.push(')'),
                Some(Todo::Arguments(left)) => {
                    out.push(',');
                    todo.push(Todo::Arguments(left - 1));
                    break;
                }
                Some(Todo::Tail) => out.push(']'),
                Some(Todo::Head) => {
                    let tail = words[at];
                    if word::is_functor(tail)
                        && word::arity(tail) == 2
                        && names.functors.name(word::number(tail)) == LIST
                    {
                        out.push(',');
                        at += 1;
                        todo.push(Todo::Head);
                        break;
                    }
                    if word::is_constant(tail) && kind(names, tail) == ConstantKind::EmptyList {
                        at += 1;
                        out.push(']');
                        continue;
                    }
                    out.push('|');
                    todo.push(Todo::Tail);
                    break;
                }
            }
        }
    }
}

/// The terms or atoms of a slice, each as text.
pub fn terms(names: &Symbols, words: &[Word]) -> Vec<String> {
    word::parts(words)
        .map(|range| {
            let mut out = String::new();
            term(names, &words[range], &mut out);
            out
        })
        .collect()
}
