//! The rules of the data set Family, counted by a program of its own over sets of texts.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../../../../tests/requirements.rs"]
mod requirements;

use stages_knowledge::mining::{RulesConfig, mine};
use stages_knowledge::text::TripleForm;
use stages_knowledge::{Builder, text};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::Path;

fn main() -> std::process::ExitCode {
    requirements::run_with_market_data(&[("the_rules_of_family", the_rules_of_family)])
}

/// Head, body, support, and pairs of the body.
const EXPECTED: &str = "\
aunt aunt sister 1626 1931
aunt sister mother 593 705
aunt aunt brother 1858 2222
aunt sister father 1090 1314
brother brother sister 1793 2174
brother brother brother 1932 2360
brother son mother 1737 2159
brother son father 1741 2398
daughter sister son 815 981
daughter sister daughter 675 822
daughter daughter wife 415 534
daughter daughter husband 432 666
father father sister 762 927
father father brother 875 1067
father husband mother 987 1306
father brother uncle 628 3444
husband father son 366 432
husband father daughter 269 323
mother mother brother 866 1040
mother mother sister 757 913
mother wife father 966 1544
mother sister uncle 394 2900
nephew brother nephew 2152 2568
nephew brother niece 1841 2207
nephew son sister 753 903
nephew son brother 1339 1613
niece sister nephew 1787 2169
niece sister niece 1540 1873
niece daughter sister 589 717
niece daughter brother 984 1215
sister sister sister 1666 2001
sister sister brother 1803 2185
sister daughter mother 1531 1879
sister daughter father 1491 2102
son brother daughter 815 971
son brother son 971 1169
son son wife 557 736
son son husband 573 899
uncle brother mother 787 942
uncle brother father 1196 1441
uncle uncle sister 1826 2205
uncle uncle brother 2081 2522
wife mother daughter 262 312
wife mother son 338 414
";

fn the_rules_of_family(data: &Path) {
    let mut builder = Builder::new();
    for file in ["facts.txt", "train.txt"] {
        let text = std::fs::read_to_string(data.join("kb/family").join(file)).unwrap();
        let program = text::triples(&text, &TripleForm::default()).unwrap();
        builder.graph(file, &program).unwrap();
    }
    let knowledge = builder.finish().unwrap();
    let Ok(rules) = mine(&knowledge, &RulesConfig::default(), None, &BTreeSet::new(), |_| {
        Ok::<(), Infallible>(())
    });
    let name = |&relation: &u32| knowledge.symbols.predicates.name(relation);
    let mut lines = String::new();
    for rule in rules {
        let body: Vec<&str> = rule.body.iter().map(name).collect();
        lines += &format!(
            "{} {} {} {}\n",
            name(&rule.head),
            body.join(" "),
            rule.support,
            rule.pairs
        );
    }
    assert_eq!(lines, EXPECTED);
}
