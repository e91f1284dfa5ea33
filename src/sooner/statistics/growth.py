"""How groups grow that were seen little: less than what is read, for groups not seen yet take a part of it.

Of groups of ten keys each, a fiftieth of the data shows a fifth, most of them by one key. Scaled up fifty
times each would be five times too large. DeepOLA (§3.5.1) lets rows per group grow as one power of the
progress; numbers of groups level off instead, and the power fitted to a tenth of the data misses the truth
three times over. What groups seen once more often tell needs no such form (Robbins 1956).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sooner.statistics.arrays import Floats

# Fewer groups seen equally often tell nothing of one another.
_ENOUGH = 20


def growth(seen: npt.NDArray[np.int64], progress: float, fewest: int) -> Floats:
    """What to multiply scaled totals with, by how many replicates each group was ``seen`` in.

    As much again would bring λ_r = (r + 1)·f_{r+1}/f_r more keys to a group seen r times, where f_r
    groups were: in all r + λ_r·(1 − t)/t, where scaling says r/t. Groups seen ``fewest`` times or more
    stand for themselves.

    >>> growth(np.repeat([1, 2, 5], [100, 25, 7]), 0.1, fewest=5)[[0, 100, 125]].round(2)
    array([0.55, 0.1 , 1.  ])
    """
    groups = np.bincount(seen, minlength=fewest + 1)
    factors = np.ones(len(groups))
    more = 1.0
    for times in range(1, fewest):
        if groups[times] >= _ENOUGH:
            more = (times + 1) * groups[times + 1] / (times * groups[times])
        factors[times] = progress + more * (1.0 - progress)
    return factors[seen]


def shared_growth(new: float, progress: float) -> float:
    """The same for all groups, from the share of groups in the last batch that were ``new``.

    What is not read yet brings as much to new groups; the others get the rest.
    """
    return 1.0 - (1.0 - progress) * new
