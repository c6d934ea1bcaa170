//! After the first rollout, collecting allocates nothing: neither for environments and policy nor for the
//! rollout buffer.

use super::*;
use stages_policy::{Precision, initial};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// The number of allocations of this thread.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

fn count() {
    // A thread that is ending has no count any more, and none is asked for.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

#[expect(unsafe_code, reason = "an allocator that counts")]
// SAFETY: the system's allocator, asked with what was asked.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller vouches.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as the caller vouches.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as the caller vouches.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The number of allocations of this thread so far.
pub(super) fn count_so_far() -> u64 {
    COUNT.get()
}

/// Allocations in the third rollout.
fn allocations(settings: &PpoSettings, context: &Context) -> u64 {
    let common = &settings.common;
    let architecture = common.network.architecture(open(settings, context).spec()).unwrap();
    let model = stages_policy::model(&architecture, common.rollouts.precision);
    let (mut ppo, mut learner) = ppo_with(settings, context, model, initial(&architecture, false, 4));
    // On one thread all of the work is this thread's.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        let mut counted = 0;
        for _ in 0..3 {
            let before = COUNT.get();
            ppo.collect(&mut learner).unwrap();
            learner.state.update += 1;
            counted = COUNT.get() - before;
        }
        // Episodes were cut off as well, so that their last values were asked for.
        assert!(learner.state.episodes > 20);
        counted
    })
}

#[test]
fn a_rollout_allocates_nothing() {
    let home = tempfile::tempdir().unwrap();
    let mut context = context(home.path());
    connect(&mut context, "CartPole-hidden-velocity");
    let mut config = hidden_velocity(10_000, 3);
    (config.training.n_envs, config.rollouts.batch_size) = (130, 64);
    for precision in [Precision::F32, Precision::Bf16] {
        config.rollouts.precision = precision;
        assert_eq!(allocations(&config.settings().unwrap(), &context), 0, "{precision:?}");
    }
    (config.ppo.normalize_obs, config.rollouts.precision) = (false, Precision::F32);
    assert_eq!(allocations(&config.settings().unwrap(), &context), 0);
    let mut config = cart_pole(10_000, 3);
    config.training.n_envs = 130;
    assert_eq!(allocations(&config.settings().unwrap(), &context), 0);
    // The count can fail.
    let before = COUNT.get();
    drop(vec![1_u8; 3]);
    assert_eq!(COUNT.get(), before + 1);
}
