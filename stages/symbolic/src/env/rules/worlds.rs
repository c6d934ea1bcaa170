//! The worlds that come with their domain, and random problems of them.

use super::config::World;
use stages_numerics::random::Random;
use std::fmt::Write as _;

impl World {
    /// The text of the world's domain.
    pub fn domain(self) -> &'static str {
        match self {
            Self::Blocks => include_str!("worlds/blocks.pddl"),
            Self::Gripper => include_str!("worlds/gripper.pddl"),
            Self::Corridor => include_str!("worlds/corridor.pddl"),
        }
    }

    /// The text of a random problem of `size` blocks, balls or cells.
    pub fn problem(self, size: usize, random: &mut Random) -> String {
        match self {
            Self::Blocks => blocks(size, random),
            Self::Gripper => gripper(size, random),
            Self::Corridor => corridor(size, random),
        }
    }
}

/// The atoms of a random arrangement of blocks: each is put onto the table or onto a tower.
fn arrangement(size: usize, random: &mut Random) -> String {
    let mut order: Vec<usize> = (0..size).collect();
    random.shuffle(&mut order);
    let mut tops: Vec<usize> = Vec::new();
    let mut atoms = Vec::new();
    for block in order {
        let at = random.below(tops.len() as u64 + 1) as usize;
        atoms.push(match tops.get_mut(at) {
            Some(top) => format!(" (on b{block} b{})", std::mem::replace(top, block)),
            None => {
                tops.push(block);
                format!(" (ontable b{block})")
            }
        });
    }
    atoms.extend(tops.iter().map(|top| format!(" (clear b{top})")));
    // In an order that equal arrangements share.
    atoms.sort_unstable();
    atoms.concat()
}

fn blocks(size: usize, random: &mut Random) -> String {
    let (start, mut goal) = (arrangement(size, random), arrangement(size, random));
    while start == goal && size > 1 {
        goal = arrangement(size, random);
    }
    let names: String = (0..size).map(|block| format!(" b{block}")).collect();
    format!(
        "(define (problem blocks) (:domain blocks)\n(:objects{names})\n(:init (handempty){start})\n(:goal \
        (and{goal})))\n"
    )
}

fn gripper(size: usize, random: &mut Random) -> String {
    let names: String = (0..size).map(|ball| format!(" ball{ball}")).collect();
    let (mut init, mut goal) = (String::new(), String::new());
    for ball in 0..size {
        let from = random.below(2);
        // The first ball is to be moved, so that no problem is solved from the start.
        let to = if ball == 0 { 1 - from } else { random.below(2) };
        let _ = write!(init, " (at ball{ball} room{from})");
        let _ = write!(goal, " (at ball{ball} room{to})");
    }
    let robot = random.below(2);
    format!(
        "(define (problem gripper) (:domain gripper)\n(:objects room0 room1 - room left right - \
        gripper{names} - ball)\n\
        (:init (at-robby room{robot}) (free left) (free right){init})\n(:goal (and{goal})))\n"
    )
}

/// Cells in a row: the way leads from a cell to the last one; a third of the doors are locked, each with a
/// key in a cell before it.
fn corridor(size: usize, random: &mut Random) -> String {
    let cells: String = (0..=size).map(|cell| format!(" c{cell}")).collect();
    let (mut keys, mut init) = (String::new(), String::new());
    for cell in 0..size {
        let next = cell + 1;
        let _ = write!(init, " (next c{cell} c{next}) (next c{next} c{cell})");
        if random.below(3) == 0 {
            let key = random.below(cell as u64 + 1);
            let _ = write!(keys, " k{cell}");
            let _ = write!(
                init,
                " (lies k{cell} c{key}) (door c{cell} c{next} k{cell}) (door c{next} c{cell} k{cell})"
            );
            let _ = write!(init, " (locked c{cell} c{next}) (locked c{next} c{cell})");
        }
    }
    let keys = match keys.is_empty() {
        true => String::new(),
        false => format!("{keys} - key"),
    };
    format!(
        "(define (problem corridor) (:domain corridor)\n(:objects{cells} - cell{keys})\n(:init (here \
        c0){init})\n(:goal (here c{size})))\n"
    )
}
