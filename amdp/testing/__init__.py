"""Conformance checks that authors of planning oracles, projection oracles and learners run on their own classes.

    @pytest.mark.parametrize("check", amdp.testing.oracle_checks(), ids=lambda check: check.__name__)
    def test_my_oracle(check):
        check(MyOracle())

    @pytest.mark.parametrize("check", amdp.testing.learner_checks(), ids=lambda check: check.__name__)
    def test_my_learner(check):
        check(lambda task: MyLearner.tuned(task.domain, task.rounds))

A check raises `AssertionError` with the reason. Sample domains that the oracle or the learner does not support are
skipped, but it must support at least one of them. No check judges how well a learner learns: measure its regret.

`planning.py` checks planning oracles, `projections.py` projection oracles, `learners.py` learners; `samples.py` has the
small domains on which all of them run. A new check is a function in one of these files and an entry of its list.
"""

from amdp.testing.learners import (
    LearnerCheck,
    check_distributions_are_values,
    check_it_plays_policies,
    check_late_feedback_is_taken,
    check_learners_travel,
    check_seeds_reproduce_a_run,
    check_weights_fit_the_segment,
    learner_checks,
)
from amdp.testing.planning import (
    OracleCheck,
    check_a_batch_is_its_singles,
    check_any_size_of_costs,
    check_it_is_a_recipe,
    check_it_is_right,
    check_it_refuses_other_domains,
    check_planners_travel,
    check_solves_leave_no_trace,
    check_ties_go_to_the_first_action,
    check_wrong_costs_are_refused,
    oracle_checks,
)
from amdp.testing.projections import (
    ProjectionCheck,
    check_a_measure_is_its_own_projection,
    check_projections_are_right,
    check_projections_come_from_a_recipe,
    check_projections_leave_no_trace,
    check_projections_refuse_other_domains,
    check_projectors_travel,
    check_wrong_points_are_refused,
    projection_checks,
)
from amdp.testing.samples import sample_domains

__all__ = [
    "LearnerCheck",
    "OracleCheck",
    "ProjectionCheck",
    "check_a_batch_is_its_singles",
    "check_a_measure_is_its_own_projection",
    "check_any_size_of_costs",
    "check_distributions_are_values",
    "check_it_is_a_recipe",
    "check_it_is_right",
    "check_it_plays_policies",
    "check_it_refuses_other_domains",
    "check_late_feedback_is_taken",
    "check_learners_travel",
    "check_planners_travel",
    "check_projections_are_right",
    "check_projections_come_from_a_recipe",
    "check_projections_leave_no_trace",
    "check_projections_refuse_other_domains",
    "check_projectors_travel",
    "check_seeds_reproduce_a_run",
    "check_solves_leave_no_trace",
    "check_ties_go_to_the_first_action",
    "check_weights_fit_the_segment",
    "check_wrong_costs_are_refused",
    "check_wrong_points_are_refused",
    "learner_checks",
    "oracle_checks",
    "projection_checks",
    "sample_domains",
]
