"""Markov decision processes: kernels, domains of policies, confidence sets, and facts about them.

- `transitions`: transition kernels, dense and sparse.
- `dynamics`: what an oracle asks of a kernel, or of a set of kernels.
- `domains`: the policies that are chosen from, Markov or stationary; `budgets`: limits on what they may use;
  `endless`: for ever, discounted or on average; `several_models`: one policy for several kernels.
- `evaluation`: occupancy, values, least visits.
- `confidence` and `l1_ball`: sets of kernels that data have not ruled out.
- `segments`: parts of a trajectory; `chains`: state distributions of stationary policies, initial distributions.
- `end_components`: where a walk may stay for ever.
- `connectivity`, `hitting`, `mixing`: diameter, period, hitting times, mixing time, least shares of steps.
- `walk_graphs`: closed walks of deterministic kernels.

New dynamics follow `dynamics.Dynamics`. Ready worlds are in `amdp.instances`.
"""
