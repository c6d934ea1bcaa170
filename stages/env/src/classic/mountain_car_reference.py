# Made `mountain_car_reference.csv` with gymnasium 1.4.0 and numpy 2.4.6: one episode of MountainCarContinuous-v0 under pushes along the velocity, and some
# steps at the walls. Rows: position, velocity and force before a step; position, velocity, reward and the end after it.
import gymnasium, numpy

random = numpy.random.default_rng(7)
print("position,velocity,force,next_position,next_velocity,reward,terminated")
for position, velocity, steps in [(-0.5, 0.0, 200), (-1.19, -0.06, 3), (0.44, 0.069, 1), (-1.1, 0.01, 5)]:
    env = gymnasium.make("MountainCarContinuous-v0").unwrapped
    env.reset(seed=0)
    env.state = numpy.array([position, velocity], dtype=numpy.float32)
    for _ in range(steps):
        before = env.state
        sign = -1 if before[1] < 0 else 1
        force = (sign * random.uniform(0.5, 1, size=1)).astype(numpy.float32)
        obs, reward, terminated, *_ = env.step(force)
        print(",".join(repr(float(x)) for x in [*before, force[0], *obs, reward, terminated]))
        if terminated:
            break
