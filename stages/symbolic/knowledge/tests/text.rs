//! Prolog text: what is read, and what is refused with its place.

#![allow(clippy::unwrap_used, reason = "tests")]

use stages_knowledge::sections::Section as _;
use stages_knowledge::{Program, print, text, word};

fn clauses(program: &Program) -> Vec<String> {
    let names = &program.symbols;
    let mut rules = program.rules().peekable();
    let mut facts = program.facts();
    (0..program.clauses)
        .map(|clause| match rules.next_if(|rule| rule.clause == clause) {
            Some(rule) => {
                let mut text = print::terms(names, rule.head).join("");
                if !rule.body.is_empty() {
                    text += &format!(" :- {}", print::terms(names, rule.body).join(", "));
                }
                if rule.confidence < 1.0 {
                    text = format!("{}::{text}", rule.confidence);
                }
                text
            }
            None => print::terms(names, facts.next().unwrap()).join(""),
        })
        .collect()
}

fn read(text: &str) -> Vec<String> {
    clauses(&text::prolog(text, false).unwrap())
}

fn refused(text: &str) -> String {
    let err = text::prolog(text, false).unwrap_err();
    format!("{err} ({})", err.hint)
}

#[test]
fn clauses_are_read() {
    let text = "% a remark. with(a, dot).\nedge(a, 'New York'). /* two\n lines, p(q). */ edge('it''s', -3).\n\
                path(X, Z) :-\n    edge(X, Y),   % end\n    path(Y, Z).\n\
                l([], [a, b|T], [X, \"s\\n\", []], f(g(X, _), 007, _, T)).\nt. 0.25::p(X) :- q(X), \\+ \
                r(X), not s(X).\n\
                'B c'('\\x41\\b', 0'a, 0x1F, 'naïve', naïve, 上证). 1.0::u.";
    assert_eq!(
        read(text),
        [
            "edge(a,'New York')",
            "edge('it\\'s',-3)",
            "path(A,B) :- edge(A,C), path(C,B)",
            "l([],[a,b|A],[B,\"s\\n\",[]],f(g(B,C),7,D,A))",
            "t",
            "0.25::p(A) :- q(A), \\+r(A), \\+s(A)",
            "'B c'('Ab',97,31,naïve,naïve,上证)",
            "u"
        ]
    );
    let program = text::prolog(
        "?- p(X), q(X, b).\np(a).\n:- dynamic q/2.\n:- discontiguous p/1, q/2.\n",
        false,
    )
    .unwrap();
    let goals: Vec<Vec<String>> = program
        .goals
        .iter()
        .map(|goal| print::terms(&program.symbols, goal))
        .collect();
    assert_eq!(goals, [["p(A)", "q(A,b)"]]);
    assert_eq!((program.clauses, program.rules().len()), (1, 0));
    let lines: Vec<u32> = text::prolog("\n\np(X) :- q(X).\nq(a). r(X,\n X).\n", false)
        .unwrap()
        .rules()
        .map(|rule| rule.line)
        .collect();
    assert_eq!(lines, [3, 4]);
}

#[test]
fn names_with_hyphens() {
    let program = text::prolog("locatedIn(timor-leste,south-eastern_asia).", true).unwrap();
    assert_eq!(clauses(&program), ["locatedIn('timor-leste','south-eastern_asia')"]);
    assert_eq!(
        refused("a(b,c).\nlocatedIn(timor-leste,south-eastern_asia)."),
        "line 2, column 16: the operator `-` is not supported here (write a name with a hyphen in quotation \
         marks ('south-eastern'), or name the file .nl, where names may \
         hold hyphens)"
    );
}

#[test]
fn what_is_not_supported_is_refused_with_its_place() {
    let cases = [
        (
            "p(a).\n  q(X) :- X > 3.",
            "line 2, column 11: the variable `X` stands for an atom",
        ),
        ("p(X) :- q(X), !.", "line 1, column 15: the cut `!` is not supported"),
        (
            "p(X) :- q(X) ; r(X).",
            "line 1, column 14: the operator `;` is not supported here (write two rules)",
        ),
        (
            "p(X) :- q(X) -> r(X).",
            "line 1, column 14: the operator `->` is not supported here",
        ),
        (
            "p(X) --> q(X).",
            "line 1, column 6: the operator `-->` is not supported here",
        ),
        (
            "p(X) :- findall(Y, q(Y), X).",
            "line 1, column 9: the built-in predicate `findall/3` is not supported",
        ),
        (
            "p(X) :- (q(X), r(X)).",
            "line 1, column 9: conditions in parentheses are not supported",
        ),
        ("p(1.5).", "line 1, column 3: the number `1.5` has a fraction"),
        ("p({a}).", "line 1, column 3: terms in braces are not supported"),
        ("p(a + b).", "line 1, column 5: the operator `+` is not supported here"),
        (
            ":- use_module(library(lists)).",
            "line 1, column 4: a directive is not supported",
        ),
        (
            "p(a",
            "line 1, column 4: expected `,` or `)`, found the end of the text",
        ),
        (
            "p(a).\nq([a, b).",
            "line 2, column 8: expected `,`, `|` or `]`, found `)`",
        ),
        ("p(a)\nq(b).", "line 2, column 1: expected `.` or `:-`, found `q`"),
        ("p('a\n').", "line 1, column 3: the quotation mark is not closed"),
        ("/* p(a).", "line 1, column 1: the comment is not closed"),
        (
            "p(é, É, a\u{301}, ¿).",
            "line 1, column 13: the character '¿' has no meaning here",
        ),
        ("2::p(a).", "line 1, column 1: `2` is not a confidence"),
        ("p().", "line 1, column 3: expected a term, found `)`"),
        (
            "p(`a`).",
            "line 1, column 3: a text in back quotation marks is not supported",
        ),
        ("p(3a).", "line 1, column 3: a name begins with a digit"),
        ("p('\\q').", "line 1, column 4: not an escape sequence that is known"),
    ];
    for (text, expected) in cases {
        let found = refused(text);
        assert!(found.starts_with(expected), "{text}\n{found}\n{expected}");
        assert!(found.contains(" (") && !found.ends_with("()"), "no hint: {found}");
    }
    let many = format!("p({}).", vec!["a"; 256].join(","));
    assert!(refused(&many).starts_with("line 1, column 1: `p` has 256 arguments"));
    assert_eq!(read(&format!("p({}).", vec!["a"; 255].join(","))).len(), 1);
}

#[test]
fn deep_terms_and_long_lists_need_no_stack() {
    let run = || {
        let depth = 1_000_000;
        let text = format!(
            "p({}X{}).\nq([{}c]).",
            "s(".repeat(depth),
            ")".repeat(depth),
            "a,".repeat(depth)
        );
        let program = text::prolog(&text, false).unwrap();
        let rules: Vec<_> = program.rules().collect();
        assert_eq!(rules[0].head.len(), depth + 2);
        assert_eq!(rules[1].head.len(), 2 * depth + 4);
        assert_eq!(word::end(rules[0].head, 0), depth + 2);
        let printed = print::terms(&program.symbols, rules[1].head).join("");
        assert_eq!(printed.len(), "q([])".len() + 2 * depth + 1);
        let unclosed = format!("p({}", "f([".repeat(depth));
        assert!(text::prolog(&unclosed, false).is_err());
    };
    std::thread::Builder::new()
        .stack_size(128 << 10)
        .spawn(run)
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn a_program_comes_back_from_its_file() {
    let program = text::prolog("p(a, [X]) :- q(X).\nq(b).\n?- p(a, Y).", false).unwrap();
    let mut file = Vec::new();
    program.write(&mut file).unwrap();
    let again = Program::open(file.clone().into()).unwrap();
    assert_eq!(clauses(&again), clauses(&program));
    assert_eq!(again.goals.len(), 1);
    for cut in [0, 10, 100, file.len() - 1] {
        assert!(Program::open(file[..cut].to_vec().into()).is_err());
    }
}
