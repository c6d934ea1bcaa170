//! Perceptrons against candle's autodiff.

use super::*;
use candle_core::{Device, Tensor, Var};

fn random(len: usize, seed: u64) -> Vec<f32> {
    let mut random = Random::new(&[seed]);
    (0..len).map(|_| random.normal() as f32).collect()
}

/// Outputs, and the derivatives of sum weight x output by parameters and input.
fn oracle(
    shape: &MlpShape,
    params: &[f32],
    input: &[f32],
    weight: &[f32],
) -> candle_core::Result<[Vec<f32>; 3]> {
    let rows = input.len() / shape.inputs;
    let x = Var::from_slice(input, (rows, shape.inputs), &Device::Cpu)?;
    let (_, layers) = shape.layers();
    let mut vars = Vec::new();
    let mut y = x.as_tensor().clone();
    for (i, layer) in layers.iter().enumerate() {
        let w = Var::from_slice(
            &params[layer.weight..layer.bias],
            (layer.inputs, layer.outputs),
            &Device::Cpu,
        )?;
        let b = Var::from_slice(&params[layer.bias..][..layer.outputs], layer.outputs, &Device::Cpu)?;
        y = y.matmul(&w)?.broadcast_add(&b)?;
        if i + 1 < layers.len() {
            y = match shape.activation {
                Activation::Tanh => y.tanh()?,
                Activation::Relu => y.relu()?,
            };
        }
        vars.extend([w, b]);
    }
    let loss = (&y * Tensor::from_slice(weight, y.shape(), &Device::Cpu)?)?.sum_all()?;
    let store = loss.backward()?;
    let flat = |var: &Var| store.get(var).unwrap().flatten_all()?.to_vec1::<f32>();
    let mut gradient = Vec::new();
    for var in &vars {
        gradient.extend(flat(var)?);
    }
    Ok([y.flatten_all()?.to_vec1()?, gradient, flat(&x)?])
}

fn assert_near(found: &[f32], wanted: &[f32], what: &str) {
    let norm = |x: &[f32]| x.iter().map(|x| f64::from(x * x)).sum::<f64>().sqrt();
    let difference: Vec<f32> = found.iter().zip(wanted).map(|(x, y)| x - y).collect();
    assert!(
        found.len() == wanted.len() && norm(&difference) < 1e-5 * norm(wanted) + 1e-6,
        "{what}"
    );
}

#[test]
fn outputs_and_gradients_are_those_of_autodiff() {
    for (hidden, activation) in [
        (vec![], Activation::Relu),
        (vec![33, 20], Activation::Relu),
        // So wide that zeros are skipped.
        (vec![160, 132], Activation::Relu),
        (vec![64, 5, 70], Activation::Tanh),
    ] {
        let shape = MlpShape {
            inputs: 7,
            hidden,
            outputs: 3,
            activation,
        };
        let (params, rows) = (shape.initial(&[1]), 48);
        let (input, weight) = (random(rows * 7, 2), random(rows * 3, 3));
        let [y, gradient, dx] = oracle(&shape, &params, &input, &weight).unwrap();
        let fused = InstructionSet::available()
            .into_iter()
            .map(|instructions| Mlp::with(&shape, true, instructions));
        let devices = crate::testing::devices();
        let on_devices = devices.iter().map(|device| Mlp::on(device, &shape, &Fault::default()));
        for mut mlp in fused.chain(on_devices) {
            mlp.load(&params);
            let mut run = MlpRun::default();
            let mut sum = vec![0.0; params.len()];
            let mut found_dx = vec![0.0; input.len()];
            // Rows in two shards, whose gradients add up.
            for (shard, rows) in [(0, 0..16), (1, 16..48)] {
                let x = &input[rows.start * 7..rows.end * 7];
                let outputs = mlp.forward(x, &mut run);
                assert_near(outputs, &y[rows.start * 3..rows.end * 3], "outputs");
                outputs.copy_from_slice(&weight[rows.start * 3..rows.end * 3]);
                let grad_input = &mut found_dx[rows.start * 7..rows.end * 7];
                let mut found = vec![9.0; params.len()];
                mlp.backward(x, &mut run, Some(&mut found), Some(grad_input));
                sum.iter_mut().zip(&found).for_each(|(sum, x)| *sum += x);
                if shard == 0 {
                    // A pass for the input alone gives the same, and leaves the weights' gradient.
                    let (mut again, before) = (vec![0.0; x.len()], found.clone());
                    mlp.forward(x, &mut run)
                        .copy_from_slice(&weight[rows.start * 3..rows.end * 3]);
                    mlp.backward(x, &mut run, None, Some(&mut again));
                    assert_eq!((&again[..], before), (&found_dx[..x.len()], found.clone()));
                }
            }
            assert_near(&sum, &gradient, "gradient");
            assert_near(&found_dx, &dx, "gradient of the input");
        }
    }
}

/// The outputs of a device that failed are of the right shape, and the first failure is kept.
#[test]
fn a_failure_of_a_device_is_kept() {
    let shape = MlpShape {
        inputs: 2,
        hidden: vec![4],
        outputs: 3,
        activation: Activation::Relu,
    };
    let fault = Fault::default();
    let mut mlp = Mlp::on(&Device::Cpu, &shape, &fault);
    mlp.load(&shape.initial(&[1]));
    let mut run = MlpRun::default();
    assert!(mlp.forward(&[1.0; 4], &mut run).iter().any(|&x| x != 0.0));
    fault.set("out of memory".to_owned());
    fault.set("another".to_owned());
    assert_eq!(mlp.forward(&[1.0; 4], &mut run), [0.0; 6]);
    let mut gradient = vec![1.0; shape.num_params()];
    mlp.backward(&[1.0; 4], &mut run, Some(&mut gradient), None);
    assert!(gradient.iter().all(|&x| x == 0.0));
    assert_eq!(fault.get(), Some("out of memory"));
}
