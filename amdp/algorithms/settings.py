"""The settings of learners by name, in words. One name means the same for all learners.

A recipe has a keyword for each of its settings; None stands for what theory says. It takes its values from
`Task.setting` and `Task.rate`, which computes each in one place and lets `amdp.settings` show it.
"""

WHAT = {
    "rate": "learning rate; the multiplier scales it, and nothing else",
    "gamma": "implicit exploration: added to the visit chances by which losses are divided",
    "barrier": "weight of the log-barrier, which keeps all masses away from zero",
    "exploration": "share of every choice that is spread evenly over the actions",
    "delta": "chance of failure that the tuning allows for; it decides theory's rate and gamma",
    "bonus": "factor of the bonus for what is rarely visited or not well known",
    "share": "weight of the first measure, with which each round's prior is mixed",
    "rates": "learners that run side by side, each with twice the rate of the one before; `rate` is the least",
    "choosing": "rate at which one of them is chosen",
    "changes": "changes of the best policy that the tuning allows for",
    "limit": "most resampling trials of a step",
    "leaders": "leaders that are drawn for each step of a round",
    "perturbation": "law of the noise: laplace, exponential, gumbel or gaussian",
    "first": "least sum of gaps that an adaptive rate assumes",
    "plans": "noises by which the gap of a round is measured, two plans each",
    "guess": "first guess of the rounds or of the total delay; it is doubled when it proves too small",
    "most_policies": "most policies that may be listed",
    "lookback": "steps that an estimate looks back, and waits until it is used",
    "block": "steps of a block, in which one closed walk is followed",
    "longest": "most pairs of a closed walk; if not given, as many as there are states",
    "epochs": "epochs of the stream, in each of which one policy is followed",
    "window": "first steps of an epoch that estimates ignore",
    "theorem": "whether the theorem's parameters are taken instead of practical ones",
    "exact": "whether estimates know the chance that a policy was entered, instead of ignoring a window",
}

# The confidence sets of a learner's own paper, where they are not those of the FTPL paper: see `amdp.game.games`.
OWN_SETS = {"uob-reps": "jin-2020", "dilated-bonus": "luo-2021", "uc-o-reps": "l1"}
