//! Products in bf16 against their definition in double precision, and tiles against their specification, bit
//! by bit.

use super::*;
use stages_numerics::random::Random;

fn widen(half: u32) -> f64 {
    f64::from(f32::from_bits(half << 16))
}

#[test]
fn narrowing_is_to_the_nearest() {
    assert_eq!(narrow(1.0), 0x3f80);
    // Ties go to the even neighbour: 1 + 1/256 lies between 1 and 1 + 1/128.
    assert_eq!(narrow(1.0 + 1.0 / 256.0), 0x3f80);
    assert_eq!(narrow(1.0 + 3.0 / 256.0), 0x3f82);
    assert_eq!((narrow(-0.0), narrow(f32::INFINITY)), (0x8000, 0x7f80));
    assert!(widen(narrow(f32::NAN)).is_nan() && widen(narrow(f32::from_bits(0x7f80_0001))).is_nan());
    let mut random = Random::new(&[1]);
    let x: Vec<f32> = (0..4 * WIDTH).map(|_| random.normal() as f32).collect();
    for &x in &x {
        assert!((widen(narrow(x)) - f64::from(x)).abs() <= f64::from(x.abs()) / 256.0);
    }
    for instructions in InstructionSet::available() {
        let mut pairs = vec![0; 2 * WIDTH];
        narrow_row(instructions, &x, &mut pairs);
        let (mut by_column, mut by_row) = (pairs.clone(), pairs.clone());
        narrow_both(instructions, &x, &mut by_column, &mut by_row);
        assert_eq!(by_column, pairs);
        for (i, pair) in by_row.iter().enumerate() {
            let at = i / WIDTH * 2 * WIDTH + i % WIDTH;
            assert_eq!(*pair, narrow(x[at]) | narrow(x[at + WIDTH]) << 16);
        }
    }
}

#[test]
fn products_match_their_definition_and_tiles_their_order() {
    let mut random = Random::new(&[2]);
    for (rows, k, panels) in [(16, 32, 1), (8, 64, 2), (32, 96, 3), (48, 352, 2), (64, 64, 1)] {
        let mut draw = |len: usize| -> Vec<u32> {
            (0..len)
                .map(|_| narrow(random.normal() as f32) | narrow(random.normal() as f32) << 16)
                .collect()
        };
        let stride = k / 2 + 3;
        let (a, b) = (draw(rows * stride), draw(panels * k / 2 * WIDTH));
        let row: Vec<f32> = (0..panels * WIDTH).map(|i| i as f32).collect();
        let left = Left16 {
            data: &a,
            rows,
            stride,
            jump: PAIRS,
        };
        let right = Right16 {
            data: &b,
            k,
            panel: k / 2 * WIDTH,
            panels,
        };
        let mut all = Vec::new();
        for path in Path::available() {
            if !rows.is_multiple_of(path.rows()) {
                continue;
            }
            let mut c = vec![9.0; panels * rows * WIDTH];
            product16(path, left, right, Start::Row(&row), &mut c, rows * WIDTH);
            for (e, &found) in c.iter().enumerate() {
                let (p, r, j) = (e / (rows * WIDTH), e / WIDTH % rows, e % WIDTH);
                let exact: f64 = (0..k / 2)
                    .map(|i| {
                        let (x, y) = (a[r * stride + i], b[(p * k / 2 + i) * WIDTH + j]);
                        widen(x & 0xffff) * widen(y & 0xffff) + widen(x >> 16) * widen(y >> 16)
                    })
                    .sum();
                let exact = exact + f64::from(row[p * WIDTH + j]);
                assert!(
                    (f64::from(found) - exact).abs() < 2e-5 * (k as f64).sqrt(),
                    "{path:?} {found} {exact}"
                );
            }
            // In two halves of k it is the same, bit by bit.
            if k > GROUP {
                let mut parts = vec![0.0; c.len()];
                let first = Right16 { k: GROUP, ..right };
                product16(path, left, first, Start::Row(&row), &mut parts, rows * WIDTH);
                let rest = Left16 {
                    data: &a[PAIRS..],
                    ..left
                };
                let second = Right16 {
                    data: &b[PAIRS * WIDTH..],
                    k: k - GROUP,
                    ..right
                };
                product16(path, rest, second, Start::Current, &mut parts, rows * WIDTH);
                assert_eq!(parts, c, "{path:?}");
            }
            all.push((path, c));
        }
        let tiles = all.iter().filter(|(path, _)| path.order() == "bf16");
        for (path, c) in tiles {
            assert_eq!(c, &all[all.len() - 1].1, "{path:?}");
        }
    }
}

#[test]
fn rows_become_columns() {
    let (rows, stride, height) = (64, 5, 9);
    let pairs: Vec<u32> = (0..rows * stride as u32).map(|i| (2 * i) | (2 * i + 1) << 16).collect();
    let mut out = vec![0; rows as usize / GROUP * height * PAIRS];
    transpose(&pairs, stride, height, &mut out);
    let at = |r: usize, c: usize| (r * 2 * stride + c) as u32;
    for group in 0..2 {
        for c in 0..height {
            for i in 0..PAIRS {
                let r = group * GROUP + 2 * i;
                assert_eq!(out[(group * height + c) * PAIRS + i], at(r, c) | at(r + 1, c) << 16);
            }
        }
    }
}

#[test]
fn gates_are_packed_as_for_single_precision() {
    let mut random = Random::new(&[3]);
    for (inputs, hidden) in [(4, 16), (5, 11), (7, 40)] {
        let w: Vec<f32> = (0..(inputs + hidden) * 4 * hidden)
            .map(|_| random.normal() as f32)
            .collect();
        let mut forward = Panels16::default();
        forward.pack_gates(&w, inputs, hidden);
        let (gates, padded) = (4 * hidden.next_multiple_of(16), inputs.next_multiple_of(2));
        assert_eq!(forward.n, gates);
        let mut zeros = 0;
        let mut check = |panels: &Panels16, k: usize, j: usize, exact: f32| {
            let pair = panels.data[(j / WIDTH * panels.k / 2 + k / 2) * WIDTH + j % WIDTH];
            let half = if k.is_multiple_of(2) { pair & 0xffff } else { pair >> 16 };
            assert_eq!(half, narrow(exact), "{inputs} {hidden} {k} {j}");
            zeros += usize::from(half == 0);
        };
        // The index of column j of the gates.
        let place = |j: usize| {
            let (gate, unit) = (j / hidden, j % hidden);
            (2 * (unit / 16) + gate / 2) * WIDTH + gate % 2 * 16 + unit % 16
        };
        for i in 0..inputs + hidden {
            let k = if i < inputs { i } else { padded + i - inputs };
            for j in 0..4 * hidden {
                check(&forward, k, place(j), w[i * 4 * hidden + j]);
            }
        }
        let mut back = Panels16::default();
        back.pack_gates_transposed(&w[inputs * 4 * hidden..], hidden);
        for i in 0..hidden {
            for j in 0..4 * hidden {
                check(&back, place(j), i, w[(inputs + i) * 4 * hidden + j]);
            }
        }
        // The rest is zero.
        let nonzero: u32 = forward
            .data
            .iter()
            .map(|pair| u32::from(pair & 0xffff != 0) + u32::from(pair >> 16 != 0))
            .sum();
        assert!(nonzero as usize <= w.len());
    }
}
