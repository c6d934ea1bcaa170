//! Products and gradients against their definition, on every instructions that the machine has.

use super::*;
use crate::kernels::gradient::{gradient, outer, unpack_gates};
use crate::kernels::operands::{Inputs, Right};
use crate::kernels::panel_layout::columns;
use stages_numerics::random::Random;

fn draw(random: &mut Random, len: usize) -> Vec<f32> {
    (0..len).map(|_| random.normal() as f32).collect()
}

#[test]
fn products_match_their_definition() {
    let mut random = Random::new(&[1]);
    for (rows, k, n) in [
        (1, 1, 1),
        (1, 70, 250),
        (2, 70, 200),
        (3, 300, 100),
        (4, 9, 64),
        (5, 3, 40),
        (6, 8, 32),
        (7, 33, 48),
        (16, 70, 64),
        (13, 300, 33),
        (32, 257, 64),
        (27, 40, 96),
        (3, 600, 1),
    ] {
        let (a, w, c) = (
            draw(&mut random, rows * k),
            draw(&mut random, k * n),
            draw(&mut random, rows * n),
        );
        let exact: Vec<f64> = (0..rows * n)
            .map(|e| {
                let (r, j) = (e / n, e % n);
                f64::from(c[e])
                    + (0..k)
                        .map(|i| f64::from(a[r * k + i]) * f64::from(w[i * n + j]))
                        .sum::<f64>()
            })
            .collect();
        let mut panels = Panels::default();
        let transposed: Vec<f32> = (0..k * n).map(|e| w[(e % k) * n + e / k]).collect();
        for instructions in InstructionSet::available() {
            for turn in [false, true] {
                if turn {
                    panels.pack_transposed(&transposed, k, n);
                } else {
                    panels.pack(&w, k, n);
                }
                let mut out = c.clone();
                multiply(instructions, &a, &panels, Start::Current, &mut out);
                for (x, y) in out.iter().zip(&exact) {
                    assert!(
                        (f64::from(*x) - y).abs() < 1e-4 * (k as f64).sqrt(),
                        "{instructions:?} {rows} {k} {n}: {x} {y}"
                    );
                }
                // Each element is one chain over k, whatever the block that it lies in.
                let fused =
                    instructions != InstructionSet::Portable || stages_numerics::dispatch::PORTABLE_FMA;
                for (e, found) in out.iter().enumerate() {
                    let (r, j) = (e / n, e % n);
                    let chain = (0..k).fold(c[e], |sum, i| match (a[r * k + i], w[i * n + j]) {
                        (x, w) if fused => x.mul_add(w, sum),
                        (x, w) => x * w + sum,
                    });
                    assert_eq!(*found, chain, "{instructions:?} {rows} {k} {n}");
                }
                // A part of the rows gives the same bits as all of them.
                let part = rows.div_ceil(2);
                let mut some = c[..part * n].to_vec();
                multiply(instructions, &a[..part * k], &panels, Start::Current, &mut some);
                assert_eq!(some, out[..part * n]);
                // From a row of zeros and from nothing it is the same too, to the last bit, and into panels.
                let (mut zero, mut row) = (vec![9.0; rows * n], vec![9.0; rows * n]);
                let left = Left::rows(&a, rows, k, k);
                product(instructions, left, &panels, Start::Zero, Out::rows(&mut zero, n));
                product(
                    instructions,
                    left,
                    &panels,
                    Start::Row(&vec![0.0; n]),
                    Out::rows(&mut row, n),
                );
                assert_eq!(zero, row);
                for last_first in [false, true] {
                    let mut apart = vec![9.0; n.div_ceil(WIDTH) * WIDTH * rows];
                    let out = Out::panels(&mut apart, 0, rows).last_first(last_first);
                    product(instructions, left, &panels, Start::Zero, out);
                    for (e, value) in zero.iter().enumerate() {
                        let (r, j) = (e / n, e % n);
                        assert_eq!(*value, apart[(j / WIDTH * rows + r) * WIDTH + j % WIDTH]);
                    }
                }
            }
        }
    }
}

/// The index of column j of the gates `[4 hidden]` in panels.
fn place(j: usize, hidden: usize, rows: usize, row: usize) -> usize {
    let (gate, unit) = (j / hidden, j % hidden);
    let panel = 2 * (unit / 16) + gate / 2;
    (panel * rows + row) * WIDTH + gate % 2 * 16 + unit % 16
}

#[test]
fn gates_go_into_panels_and_back() {
    let mut random = Random::new(&[2]);
    for (rows, d, hidden) in [(3, 5, 11), (7, 4, 16), (13, 9, 40)] {
        let k = d + hidden;
        let (w, a) = (draw(&mut random, k * 4 * hidden), draw(&mut random, rows * k));
        let mut forward = Panels::default();
        forward.pack_gates(&w, k, hidden);
        for instructions in InstructionSet::available() {
            let mut back = Panels::default();
            back.pack_gates_transposed(&w[d * 4 * hidden..], hidden);
            let mut z = vec![0.0; forward.n * rows];
            let left = Left::rows(&a, rows, k, k);
            product(instructions, left, &forward, Start::Zero, Out::panels(&mut z, 0, rows));
            for r in 0..rows {
                for j in 0..4 * hidden {
                    let exact: f64 = (0..k)
                        .map(|i| f64::from(a[r * k + i]) * f64::from(w[i * 4 * hidden + j]))
                        .sum();
                    assert!((f64::from(z[place(j, hidden, rows, r)]) - exact).abs() < 1e-4);
                }
            }
            // The inputs first and then the states: the same, as it is one chain over k.
            let mut parts = vec![9.0; forward.n * rows];
            let (x, h) = (Left::rows(&a, rows, d, k), Left::rows(&a[d..], rows, hidden, k));
            product_over(
                instructions,
                x,
                (&forward, 0..d),
                Start::Zero,
                Out::panels(&mut parts, 0, rows),
            );
            product_over(
                instructions,
                h,
                (&forward, d..k),
                Start::Current,
                Out::panels(&mut parts, 0, rows),
            );
            assert_eq!(z, parts);
            // Rows 1.. alone go back, as they would from within a taller panel.
            let mut dh = vec![0.0; hidden.div_ceil(WIDTH) * WIDTH * (rows - 1)];
            let left = Left::panels(&z, 1, rows - 1, back.k, rows);
            product(
                instructions,
                left,
                &back,
                Start::Zero,
                Out::panels(&mut dh, 0, rows - 1),
            );
            for r in 1..rows {
                for i in 0..hidden {
                    let exact: f64 = (0..4 * hidden)
                        .map(|j| {
                            f64::from(z[place(j, hidden, rows, r)]) * f64::from(w[(d + i) * 4 * hidden + j])
                        })
                        .sum();
                    let found = dh[(i / WIDTH * (rows - 1) + r - 1) * WIDTH + i % WIDTH];
                    assert!((f64::from(found) - exact).abs() < 2e-3, "{found} {exact}");
                }
            }
            let mut sum = vec![9.0; k * forward.n];
            let inputs = Inputs {
                data: &a,
                stride: k,
                rows,
                width: k,
            };
            gradient(instructions, inputs, Right::gates(&z, hidden, rows), false, &mut sum);
            let mut dw = w.clone();
            for (first, dw) in dw.chunks_mut(2 * 4 * hidden).enumerate() {
                unpack_gates([&*sum].into_iter(), k, hidden, |i| 2 * first + i, dw);
            }
            for i in 0..k {
                for j in 0..4 * hidden {
                    let exact: f64 = (0..rows)
                        .map(|r| f64::from(a[r * k + i]) * f64::from(z[place(j, hidden, rows, r)]))
                        .sum();
                    assert!((f64::from(dw[i * 4 * hidden + j]) - exact).abs() < 1e-3);
                }
            }
        }
        assert_eq!(columns(1, 1, hidden), (3 * hidden, hidden.min(16)));
    }
}

#[test]
fn gradients_match_their_definition() {
    let mut random = Random::new(&[3]);
    for (rows, m, n, stride) in [
        (1, 1, 1, 1),
        (5, 40, 3, 48),
        (300, 13, 33, 13),
        (17, 30, 64, 31),
        (600, 3, 5, 3),
    ] {
        let (x, dy, dw) = (
            draw(&mut random, rows * stride),
            draw(&mut random, rows * n),
            draw(&mut random, m * n),
        );
        for instructions in InstructionSet::available() {
            let mut found = dw.clone();
            let inputs = Inputs {
                data: &x,
                stride,
                rows,
                width: m,
            };
            gradient(instructions, inputs, Right::rows(&dy, n), true, &mut found);
            for e in 0..m * n {
                let exact = f64::from(dw[e])
                    + (0..rows)
                        .map(|r| f64::from(x[r * stride + e / n]) * f64::from(dy[r * n + e % n]))
                        .sum::<f64>();
                assert!(
                    (f64::from(found[e]) - exact).abs() < 1e-3,
                    "{instructions:?} {} {exact}",
                    found[e]
                );
            }
        }
    }
    let mut dw = vec![0.0; 6];
    outer(&[1.0, 2.0], &[3.0, 4.0, 5.0], 2, 3, &mut dw);
    assert_eq!(dw, [3.0, 4.0, 5.0, 6.0, 8.0, 10.0]);
}
