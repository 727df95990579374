"""The same seed, three oracles: the same policies, the same losses. Only the seconds differ."""

import numpy as np

import amdp

game = amdp.Game("tiny", losses="swap", rounds=40)

policies = {}
print("oracle        loss  trials  seconds")
for oracle in ("dp", "lp", "enumeration"):
    next(amdp.rounds(game, "ftpl-shared", oracle=oracle))  # loads compiled code before the clock runs
    played = list(amdp.rounds(game, "ftpl-shared", oracle=oracle))
    policies[oracle] = np.array([each.policy for each in played])
    loss, trials, seconds = (sum(getattr(each, key) for each in played) for key in ("paid", "trials", "seconds"))
    print(f"{oracle:11} {loss:6.2f} {trials:7} {seconds:8.3f}")

assert all(np.array_equal(policies["dp"], others) for others in policies.values())
print("all three played the same policies")
