"""Environments for Gymnasium and stable-baselines3."""

import threading
import warnings

import gymnasium
import numpy
import pytest
from gymnasium.utils.env_checker import check_env

import runner
import runner.gymnasium

ENVS = ["lookup", "cartpole", "pendulum", "options"]


def artifact(run, name):
    return run[f"{name}.env"]


@pytest.mark.parametrize("name", [*ENVS, "hedging", "stocks", "table"])
def test_check_env(run, name):
    with warnings.catch_warnings():
        # Observations are unbounded, and an environment outside the registry has no spec.
        warnings.simplefilter("ignore")
        check_env(runner.gymnasium.Env(artifact(run, name)), skip_render_check=True)


def actions_of(envs, random):
    """Allowed actions, drawn."""
    space, masks = envs.single_action_space, envs.action_masks()
    if isinstance(space, gymnasium.spaces.Discrete):
        return numpy.array([random.choice(numpy.flatnonzero(mask)) for mask in masks])
    return random.uniform(space.low, space.high, envs.action_space.shape).astype(numpy.float32)


@pytest.mark.parametrize("name", ENVS)
def test_an_environment_depends_on_seed_and_number_alone(run, name):
    few = runner.load_env(artifact(run, name), 3, seed=7)
    many = runner.load_env(artifact(run, name), 50)
    assert few.metadata["autoreset_mode"] == gymnasium.vector.AutoresetMode.SAME_STEP
    obs, _ = few.reset()
    others, _ = many.reset(seed=7)
    assert few.observation_space.contains(obs)
    assert (obs == others[:3]).all()
    random = numpy.random.default_rng(1)
    for _ in range(60):
        actions = actions_of(many, random)
        assert many.action_space.contains(actions.astype(many.action_space.dtype))
        outcome, others = few.step(actions[:3]), many.step(actions)
        for mine, other in zip(outcome[:4], others[:4]):
            assert (mine == other[:3]).all()
        assert (few.action_masks() == many.action_masks()[:3]).all()


@pytest.mark.parametrize("name", ["lookup", "cartpole"])
def test_a_single_environment_is_one_of_a_batch(run, name):
    batch = runner.load_env(artifact(run, name), 1)
    single = runner.gymnasium.Env(artifact(run, name))
    shown, _ = batch.reset(seed=3)
    obs, _ = single.reset(seed=3)
    random = numpy.random.default_rng(1)
    ended = 0
    for _ in range(300):
        assert (shown[0] == obs).all()
        action = actions_of(batch, random)
        shown, rewards, terminated, truncated, info = batch.step(action)
        obs, reward, is_terminated, is_truncated, _ = single.step(action[0])
        assert (reward, is_terminated, is_truncated) == (rewards[0], terminated[0], truncated[0])
        if is_terminated or is_truncated:
            ended += 1
            assert info["_final_obs"][0]
            assert (info["final_obs"][0] == obs).all()
            with pytest.raises(runner.Error, match="the episode has ended"):
                single.step(action[0])
            obs, _ = single.reset()
        else:
            assert info == {}
    assert ended > 3


def test_cartpole_is_gymnasiums(run):
    """The same state and actions give Gymnasium's rewards, ends and, within rounding to 32 bits, states."""
    ours = runner.gymnasium.Env(artifact(run, "cartpole"))
    theirs = gymnasium.make("CartPole-v1").unwrapped
    theirs.reset(seed=0)
    random = numpy.random.default_rng(2)
    for seed in range(5):
        obs, _ = ours.reset(seed=seed)
        theirs.reset()
        theirs.state = obs.astype(numpy.float64)
        ended = False
        while not ended:
            action = int(random.integers(2))
            obs, reward, ended, _, _ = ours.step(action)
            state, other_reward, other_ended, _, _ = theirs.step(action)
            assert (reward, ended) == (other_reward, other_ended)
            numpy.testing.assert_allclose(obs, state, rtol=1e-4, atol=1e-5)


def test_registry(run):
    single = gymnasium.make("runner/Lookup-v0", artifact=artifact(run, "lookup"))
    obs, _ = single.reset(seed=4)
    many = gymnasium.make_vec("runner/Lookup-v0", num_envs=2, artifact=artifact(run, "lookup"))
    others, _ = many.reset(seed=4)
    assert (others[0] == obs).all()
    assert isinstance(many, runner.gymnasium.VectorEnv)
    for name in ENVS:
        family = "Classic" if name in ("cartpole", "pendulum") else name.capitalize()
        envs = gymnasium.make_vec(f"runner.gymnasium:runner/{family}-v0", num_envs=2, artifact=artifact(run, name))
        assert envs.num_envs == 2


def test_views(run):
    envs = runner.load_env(artifact(run, "lookup"), 4, copy=False)
    obs, _ = envs.reset()
    shown = obs.copy()
    again, *_ = envs.step(numpy.zeros(4, int))
    assert numpy.shares_memory(obs, again)
    assert (obs != shown).any()
    with pytest.raises(ValueError, match="read-only"):
        obs[0] = 1.0
    del envs
    # The view keeps its memory alive.
    assert numpy.isfinite(obs).all()


def test_another_thread_runs_during_a_step(run):
    envs = runner.load_env(artifact(run, "lookup"), 4096, copy=False)
    envs.reset()
    actions, ticks, done = numpy.zeros(4096, int), [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(1)

    other = threading.Thread(target=tick)
    other.start()
    for _ in range(50):
        envs.step(actions)
    done.set()
    other.join()
    assert len(ticks) > 10


def test_masks_of_options(run):
    env = runner.gymnasium.Env(artifact(run, "options"))
    env.reset(seed=1)
    masks = env.action_masks()
    assert masks.dtype == numpy.bool_
    assert masks.shape == (env.action_space.n,)
    assert masks[0]


def test_test_split(run):
    envs = runner.load_env(artifact(run, "options"), 1, split="test")
    assert envs.evaluation_episodes == 1
    assert runner.load_env(artifact(run, "cartpole")).evaluation_episodes is None


def test_errors(run):
    with pytest.raises(runner.Error, match="not an environment"):
        runner.load_env(run["train.policy"])
    with pytest.raises(runner.Error, match="0 environments"):
        runner.load_env(artifact(run, "cartpole"), 0)
    with pytest.raises(runner.Error, match="no split `tset`"):
        runner.load_env(artifact(run, "cartpole"), split="tset")
    with pytest.raises(runner.Error, match="no validation data"):
        runner.load_env(artifact(run, "options"), split="validation").reset()
    envs = runner.load_env(artifact(run, "cartpole"), 2)
    envs.reset()
    with pytest.raises(runner.Error, match=r"shape \(\), not \(2,\)"):
        envs.step(1)
    with pytest.raises(runner.Error, match="not integers"):
        envs.step(numpy.zeros(2))
    swings = runner.load_env(artifact(run, "pendulum"), 2)
    swings.reset()
    with pytest.raises(runner.Error, match="environment 1 of 2 is not finite"):
        swings.step(numpy.array([[0.0], [numpy.nan]]))


@pytest.mark.parametrize("name", ["lookup", "cartpole", "options"])
def test_stable_baselines3(run, name):
    pytest.importorskip("stable_baselines3")
    from stable_baselines3 import PPO

    from runner.stable_baselines3 import VecEnv

    envs = VecEnv(artifact(run, name), 4, seed=1)
    masks = envs.env_method("action_masks")
    assert len(masks) == 4
    assert (numpy.stack(masks) == envs.action_masks()).all()
    assert envs.has_attr("action_masks")
    model = PPO("MlpPolicy", envs, n_steps=64, batch_size=64, n_epochs=1, seed=0, device="cpu")
    model.learn(512)
    assert model.num_timesteps == 512
    assert len(model.ep_info_buffer) > 0 or name == "options"


def test_other_libraries_take_the_buffers(run):
    envs = runner.load_env(run["cartpole"], 3, copy=False)
    obs, _ = envs.reset(seed=1)
    shared = numpy.from_dlpack(obs)
    assert shared.__array_interface__["data"][0] == obs.__array_interface__["data"][0]


@pytest.mark.parametrize("copy", [True, False])
def test_torch_takes_the_buffers(run, copy):
    torch = pytest.importorskip("torch")
    obs, _ = runner.load_env(run["cartpole"], 3, copy=copy).reset(seed=1)
    try:
        shared = torch.from_dlpack(obs)
    except BufferError:
        # A view is read-only, and a torch that asks for DLPack before 1.0 is given none.
        assert not copy
        return
    assert shared.data_ptr() == obs.__array_interface__["data"][0]


@pytest.mark.parametrize("name", [*ENVS, "hedging", "stocks", "table"])
def test_check_env_of_stable_baselines3(run, name):
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common import env_checker

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env_checker.check_env(runner.gymnasium.Env(artifact(run, name)), skip_render_check=True)
