"""Whether two kinds of calls take different time: Wilcoxon's signed-rank test on interleaved pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence


def signed_rank_z(differences: Sequence[float]) -> float:
    """The standard score of the signed-rank sum: 0 if the pairs differ by chance alone.

    Positive: the differences tend to be above zero. Zeros are left out, ties share their mean rank, and the
    variance is corrected for them. Good as a normal score from some 20 pairs on.
    """
    kept = sorted((abs(value), value > 0) for value in differences if value != 0)
    count = len(kept)
    if count == 0:
        return 0.0
    positive = tie_loss = 0.0
    start = 0
    while start < count:
        end = start
        while end < count and kept[end][0] == kept[start][0]:
            end += 1
        mean_rank = (start + 1 + end) / 2
        positive += mean_rank * sum(above for _, above in kept[start:end])
        tie_loss += (end - start) ** 3 - (end - start)
        start = end
    mean = count * (count + 1) / 4
    variance = count * (count + 1) * (2 * count + 1) / 24 - tie_loss / 48
    return (positive - mean) / math.sqrt(variance)
