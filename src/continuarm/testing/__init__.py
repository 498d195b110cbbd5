"""The contracts of the package, for whoever writes a policy, a learner, a partition, a problem
or a store.

Each check raises an AssertionError that says what is broken; they need no test runner.

>>> from continuarm import testing
>>> testing.check_policy("fixed")
"""

from continuarm.testing.learner import check_learner
from continuarm.testing.partition import check_partition
from continuarm.testing.policy import check_policy
from continuarm.testing.problem import check_problem
from continuarm.testing.store import check_store

__all__ = ["check_learner", "check_partition", "check_policy", "check_problem", "check_store"]
