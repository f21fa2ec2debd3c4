"""Medians, quartiles and spreads of rounds: the noise rules in one place.

A ratio is formed within a round, so that a disturbance of the
machine affects both of its sides.
"""

import statistics

# An interquartile range above this share of the median makes a figure unstable.
UNSTABLE = 0.30


def summary(values):
    """Median, quartiles, extremes and spread of a list of figures, or None for an empty list."""
    if not values:
        return None
    ordered = sorted(values)
    median = statistics.median(ordered)
    if len(ordered) == 1:
        q1 = q3 = ordered[0]
    else:
        q1, _, q3 = statistics.quantiles(ordered, n=4, method="inclusive")
    spread = (q3 - q1) / median if median else 0.0
    return {"median": median, "q1": q1, "q3": q3, "min": ordered[0], "max": ordered[-1], "spread": spread,
            "rounds": len(ordered)}


def ratios(above, below):
    """Ratios of two {round: figure} maps over the rounds that both have."""
    return [above[r] / below[r] for r in sorted(above) if r in below and below[r] > 0]


def unstable(found):
    return found is not None and found["spread"] > UNSTABLE
