# Made `pendulum_reference.csv` with gymnasium 1.2.2 and numpy 2.4.6: three starts of Pendulum-v1, 20 steps of each, with torques
# beyond the limits among them. Rows: start, torque, cos, sin, angular velocity, reward; a start is angle and angular velocity.
import gymnasium, numpy

random = numpy.random.default_rng(7)
print("angle,velocity,torque,cos,sin,angular_velocity,reward")
for angle, velocity in [(3.0, 0.5), (-1.2, -1.0), (0.1, 7.9)]:
    env = gymnasium.make("Pendulum-v1").unwrapped
    env.reset(seed=0)
    env.state = numpy.array([angle, velocity])
    for _ in range(20):
        torque = random.uniform(-3, 3, size=1).astype(numpy.float32)
        before = env.state
        obs, reward, *_ = env.step(torque)
        print(",".join(repr(float(x)) for x in [*before, torque[0], *obs, reward]))
