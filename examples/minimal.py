"""The paper's algorithms in plain NumPy: what the compiled package must equal.

Contexts and decisions live on unit cubes. Every policy has `ask(x)` and `tell(z)`, one after the
other. Run it: `python examples/minimal.py`.
"""

import numpy as np


class OneBin:
    """Algorithm 1: Kiefer-Wolfowitz, one gradient step per stencil."""

    def __init__(self, start, step, width, probe="forward", count=1):
        self.y, self.n, self.done = np.array(start, float), count, 0
        self.step, self.width, self.probe = step, width, probe
        self.points, self.payoffs = [], []

    def open(self):
        c, dy = self.width * self.n**-0.25, len(self.y)  # c_n = δ n^(-1/4)
        self.points = [] if self.probe == "central" else [self.y.copy()]
        for i in range(dy):
            if self.probe == "central":
                offsets = min(self.y[i] + c, 1) - self.y[i], max(self.y[i] - c, 0) - self.y[i]
            else:
                sign = -1 if self.probe == "alternate" and self.done % 2 else 1
                inside = 0 <= self.y[i] + sign * c <= 1
                offsets = (sign * c if inside else -sign * c,)
            self.points += [self.y + offset * np.eye(dy)[i] for offset in offsets]

    def ask(self, x=None):
        if not self.payoffs:
            self.open()
        return self.points[len(self.payoffs)]

    def tell(self, z):
        self.payoffs.append(z)
        if len(self.payoffs) < len(self.points):
            return
        z, y, dy = np.array(self.payoffs), self.points, len(self.y)
        pairs = [(2 * i, 2 * i + 1) if self.probe == "central" else (i + 1, 0) for i in range(dy)]
        g = np.array([(z[j] - z[k]) / (y[j][i] - y[k][i]) for i, (j, k) in enumerate(pairs)])
        self.y = np.clip(self.y + self.step / self.n * g, 0, 1)  # a_n = a/n, plus: f is maximised
        self.n, self.done, self.payoffs = self.n + 1, self.done + 1, []


class Static:
    """Algorithm 2: a fixed grid of bins."""

    def __init__(self, bins, new_bin):
        self.bins, self.new_bin, self.learners = bins, new_bin, {}

    def ask(self, x):
        edges = np.arange(1, self.bins) / self.bins  # half-open bins, the last one closed
        key = tuple(np.searchsorted(edges, x, side="right"))
        if key not in self.learners:
            self.learners[key] = self.new_bin()
        self.learner = self.learners[key]
        return self.learner.ask()

    def tell(self, z):
        self.learner.tell(z)


class Adaptive:
    """Algorithm 3: a bin splits into halves along each dimension after n_l stencils."""

    def __init__(self, split_after, new_bin, keep_count=False):
        self.split_after, self.new_bin, self.keep_count = split_after, new_bin, keep_count
        self.learners = {}

    def ask(self, x):
        level, parent = 0, None
        while True:
            key = level, tuple(np.minimum(np.floor(x * 2**level), 2**level - 1))
            if key not in self.learners:
                self.learners[key] = self.child(parent)
            learner = self.learners[key]
            whole = level == len(self.split_after) or len(x) == 0
            if whole or learner.done < self.split_after[level]:
                self.learner = learner
                return learner.ask()
            level, parent = level + 1, learner

    def child(self, parent):
        if parent is None:
            return self.new_bin()
        return self.new_bin(parent.y, parent.n if self.keep_count else 1)

    def tell(self, z):
        self.learner.tell(z)


class UCB:
    """The uniform algorithm in one bin: each arm once, then the highest index."""

    def __init__(self, arms, dy, scale=1.0):
        cells = np.meshgrid(*[(np.arange(arms) + 0.5) / arms] * dy, indexing="ij")
        self.points = np.stack([cell.ravel() for cell in cells], axis=1)
        self.sums, self.n, self.scale = np.zeros(arms**dy), np.zeros(arms**dy), scale

    def ask(self, x=None):
        self.arm = int(self.n.sum())
        if self.arm >= len(self.n):
            bonus = self.scale * np.sqrt(2 * np.log(self.n.sum()) / self.n)
            self.arm = int(np.argmax(self.sums / self.n + bonus))
        return self.points[self.arm]

    def tell(self, z):
        self.sums[self.arm] += z
        self.n[self.arm] += 1


if __name__ == "__main__":
    rng, regret = np.random.default_rng(0), 0.0
    policy = Static(8, lambda: OneBin([0.5], step=0.4, width=0.2))
    for x in rng.random((10_000, 1)):
        y = policy.ask(x)
        policy.tell(-((y[0] - x[0]) ** 2) + 0.1 * rng.standard_normal())
        regret += (y[0] - x[0]) ** 2
    print(f"regret of 10,000 decisions: {regret:.1f}")
