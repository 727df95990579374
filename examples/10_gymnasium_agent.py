"""An agent from outside plays our adversaries through Gymnasium: tabular Q-learning, and its regret, measured.

It explores for ever, so against losses drawn from one distribution its regret a round stops falling. It follows losses
that change slowly, which no single policy does: against those its regret is below zero.
"""

import gymnasium
import numpy as np

from amdp.game.environment import AdversaryEnv, regret_of

ROUNDS, EXPLORATION, RATE = 3_000, 0.1, 0.1


def q_learning(env: gymnasium.Env[int, int], rng: np.random.Generator) -> list[float]:
    """Play all rounds; the sum of the losses of each."""
    q = np.zeros((env.observation_space.n, env.action_space.n))  # the last row: the round is over
    round_losses = []
    for k in range(ROUNDS):
        observation, info = env.reset(seed=1) if k == 0 else env.reset()
        done = False
        while not done:
            explores = rng.random() < EXPLORATION
            action = int(rng.integers(env.action_space.n) if explores else q[observation].argmax())
            following, reward, done, _, info = env.step(action)
            q[observation, action] += RATE * (reward + q[following].max() - q[observation, action])
            observation = following
        round_losses.append(info["paid"])
    return round_losses


print("losses        regret a round after 100, 1000, 3000 rounds")
for losses in ("bernoulli", "swap"):
    env = gymnasium.make("amdp.game.environment:amdp/Adversary-v0", instance="tiny", losses=losses, rounds=ROUNDS)
    inner = env.unwrapped
    assert isinstance(inner, AdversaryEnv)
    regret = regret_of(inner.game, q_learning(env, np.random.default_rng(0)), checkpoints=[100, 1_000, ROUNDS])
    print(f"{losses:14}", *(f"{value:8.3f}" for value in regret.low / regret.rounds))
