"""The schedule: a pure function of the seed, and its shortening after a violation."""
import itertools
import random
import time

SHRINK_SECONDS = 600


class Step:
    """One fault or act. What it chooses depends on the seed and its number only, so that a step stays the same in a shorter schedule."""

    def __init__(self, seed, number, act):
        self.seed, self.number, self.act, self.name = seed, number, act, act.__name__

    def perform(self, world, traffic):
        self.act(world, traffic, random.Random(f"{self.seed} {self.number}"))


def steps(seed, table, only=(), numbers=None):
    """Yields the steps of a seed without end, or those with the numbers."""
    acts = [act for act in table if not only or act.__name__ in only]
    choice = random.Random(seed)
    last = max(numbers, default=-1) if numbers is not None else None
    for number in itertools.count():
        if last is not None and number > last:
            return
        act = choice.choices(acts, [table[act] for act in acts])[0]
        if numbers is None or number in numbers:
            yield Step(seed, number, act)


def shrink(options, last, table, only, numbers, run):
    """Returns the shortest schedule found that still has a violation: halves, quarters and so on are left out as long as it has."""
    shown = [step for step in steps(options.seed, table, only, numbers if numbers is not None else range(last + 1))]
    end, size = time.monotonic() + SHRINK_SECONDS, max(1, len(shown) // 2)
    while size and len(shown) > 1 and time.monotonic() < end:
        for start in range(0, len(shown), size):
            rest = shown[:start] + shown[start + size:]
            if rest and run(options, rest, 300, quiet=True)[0].records.violations:
                shown = rest
                break
            if time.monotonic() > end:
                break
        else:
            size = 0 if size == 1 else (size + 1) // 2
        size = min(size, len(shown) // 2) or (1 if size and len(shown) > 1 else 0)
    return shown
