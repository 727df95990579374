"""Losses: sequences that an oblivious adversary fixes before the game, and the adversaries that make them.

`FixedLosses(array)` holds losses `[k, h, s, a]`, `load` and `from_columns` read recorded ones, and `named` finds an
adversary by short name. A new adversary is a function in `adversaries` that returns a `LossSequence`; an entry
in `by_name` gives it a short name, for specs and the command line.
"""

from amdp.losses.adversaries import bernoulli as bernoulli
from amdp.losses.adversaries import beta as beta
from amdp.losses.adversaries import congestion as congestion
from amdp.losses.adversaries import corrupted as corrupted
from amdp.losses.adversaries import corrupted_at as corrupted_at
from amdp.losses.adversaries import multi_scale_walk as multi_scale_walk
from amdp.losses.adversaries import repeated as repeated
from amdp.losses.adversaries import seasonal as seasonal
from amdp.losses.adversaries import sinusoid as sinusoid
from amdp.losses.adversaries import spikes as spikes
from amdp.losses.adversaries import swap as swap
from amdp.losses.adversaries import switching as switching
from amdp.losses.adversaries import uniform as uniform
from amdp.losses.adversaries import wandering as wandering
from amdp.losses.base import CalledLosses as CalledLosses
from amdp.losses.base import CheckedLosses as CheckedLosses
from amdp.losses.base import FixedLosses as FixedLosses
from amdp.losses.base import GeneratedLosses as GeneratedLosses
from amdp.losses.base import LossSequence as LossSequence
from amdp.losses.by_name import named as named
from amdp.losses.entered import EnteredLosses as EnteredLosses
from amdp.losses.readers import from_columns as from_columns
from amdp.losses.readers import is_table as is_table
from amdp.losses.readers import load as load
