//! Where the time of the main job's shapes goes; run by hand:
//! `cargo test --release -p stages-policy -- --ignored --nocapture profile`

use super::{Level, cell, elementwise, matmul};

/// Nanoseconds that this thread has run, which other processes do not disturb.
fn ran() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

fn time(name: &str, operations: f64, mut run: impl FnMut()) {
    run();
    let mut best = f64::INFINITY;
    for _ in 0..10 {
        let before = ran();
        for _ in 0..4 {
            run();
        }
        best = best.min((ran() - before) / 4.0);
    }
    println!("{name:40} {:9.1} us {:7.1} G/s", best / 1e3, operations / best);
}

#[test]
#[ignore = "prints times"]
fn profile() {
    let level = Level::detect();
    let (d, h, b, t) = (240, 448, 32, 32);
    let n = b * t;
    let x = vec![0.5_f32; n * 4 * h];
    let w = vec![0.01_f32; 4 * h * h.max(d)];
    let mut y = vec![0.0_f32; n * 4 * h];
    let mut panels = matmul::Panels::default();
    time("pack h x 4h", (h * 4 * h) as f64, || {
        panels.pack(&w[..h * 4 * h], h, 4 * h)
    });
    for rows in [8, 12, 16, 24, 32, 36, 64] {
        let name = format!("step forward {rows} rows");
        time(&name, 2.0 * (rows * h * 4 * h) as f64, || {
            matmul::multiply(level, &x[..rows * h], &panels, &mut y[..rows * 4 * h]);
        });
    }
    time("pack transposed 4h x h", (h * 4 * h) as f64, || {
        panels.pack_transposed(&w[..h * 4 * h], 4 * h, h)
    });
    for rows in [16, 32] {
        let name = format!("step backward {rows} rows");
        time(&name, 2.0 * (rows * h * 4 * h) as f64, || {
            matmul::multiply(level, &x[..rows * 4 * h], &panels, &mut y[..rows * h]);
        });
    }
    panels.pack(&w[..d * 4 * h], d, 4 * h);
    time("input projection", 2.0 * (n * d * 4 * h) as f64, || {
        matmul::multiply(level, &x[..n * d], &panels, &mut y)
    });
    let mut dw = vec![0.0_f32; h * 4 * h];
    time("gradient of recurrent weights", 2.0 * (n * h * 4 * h) as f64, || {
        matmul::outer(&x[..n * h], &x, h, 4 * h, &mut dw);
    });
    time("gradient of input weights", 2.0 * (n * d * 4 * h) as f64, || {
        matmul::outer(&x[..n * d], &x, d, 4 * h, &mut dw[..d * 4 * h]);
    });
    let (mut z, c) = (vec![0.1_f32; 4 * h * b], vec![0.1_f32; h * b]);
    let (mut c2, mut tc, mut hh) = (c.clone(), c.clone(), c.clone());
    time("cell forward 32 rows (elements)", (b * h) as f64, || {
        for r in 0..b {
            let row = r * h..(r + 1) * h;
            cell::forward(
                level,
                &mut z[4 * r * h..4 * (r + 1) * h],
                &c[row.clone()],
                &mut c2[row.clone()],
                &mut tc[row.clone()],
                &mut hh[row],
            );
        }
    });
    time("cell backward 32 rows (elements)", (b * h) as f64, || {
        for r in 0..b {
            let row = r * h..(r + 1) * h;
            cell::backward(
                level,
                &mut z[4 * r * h..4 * (r + 1) * h],
                &c[row.clone()],
                &tc[row.clone()],
                &hh[row.clone()],
                &c[row.clone()],
                &mut c2[row],
                1.0,
            );
        }
    });
    time("column sums", (n * 4 * h) as f64, || {
        elementwise::column_sums(level, &x, &mut dw[..4 * h])
    });
    let (mut p, g, mut m, mut v) = (
        vec![0.1_f32; 1 << 20],
        vec![0.1_f32; 1 << 20],
        vec![0.1_f32; 1 << 20],
        vec![0.1_f32; 1 << 20],
    );
    let step = elementwise::AdamStep {
        gradient_scale: 1.0,
        rate: 1e-3,
        second_correction: 1.0,
        beta1: 0.9,
        beta2: 0.99,
        epsilon: 1e-5,
    };
    time("adam, 2^20", (1 << 20) as f64, || {
        elementwise::adam(level, step, &mut p, &g, &mut m, &mut v)
    });
    let mut sum = 0.0;
    time("squares, 2^20", (1 << 20) as f64, || {
        elementwise::squares(level, &g, &mut sum)
    });
}
