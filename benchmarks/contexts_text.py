"""The page of what it brings that contexts earn their way in, made from the stored results."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.contexts_page import (
    DRAWN,
    HORIZON,
    KEPT_LIMIT,
    MEAN_LIMIT,
    RIVAL_LIMIT,
    WIDE_LIMIT,
    Suite,
    cell,
    cost_table,
    dimension_table,
    draw_contexts,
    draw_decisions,
    drawn_table,
    growth_table,
    power_table,
    rival_mean,
    seeds_of,
    verdict,
    wide_table,
)
from benchmarks.wrapping import wrapped


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def write_page(parts: dict[str, Any], marks: list[int], docs: Path) -> None:
    """Write docs/contexts.md and its figures, of the parts that were run."""
    suite, figures = Suite(parts["suite"]), docs / "figures"
    suite.draw(figures / "contexts-suite.png")
    sections = [_of_suite(suite, parts["suite"]), _of_rival(suite, docs)]
    makers: dict[str, Callable[[Any], str]] = {
        "wide": _of_wide,
        "drawn": _of_drawn,
        "growth": partial(_of_growth, marks=marks),
        "dimensions": partial(_of_dimensions, figures=figures),
        "decisions": partial(_of_decisions, figures=figures),
        "cost": _of_cost,
    }
    sections += [make(parts[name]) for name, make in makers.items() if name in parts]
    missing = [name for name in makers if name not in parts]
    if missing:
        sections.append(f"## Still to be measured\n\nThe parts {_listed(missing)} of the command.")
    (docs / "contexts.md").write_text(wrapped("\n\n".join([*sections, _losses(suite)])))


def _of_suite(suite: Suite, found: dict[str, Any]) -> str:
    others, gain = suite.gain()
    return f"""# Contexts, measured

Written by `python -m benchmarks.contexts --earlier FOLDER --write docs`, where FOLDER is the `src`
of the version before: commit 189784c, the recommended policy whose models are affine in the
context. Now, [terms earn their way in](recommended.md#terms-that-earn-their-way-in). Ratios are of
mean regrets after {HORIZON:,} decisions, paired by seed, with 95 % intervals. *At most* is what
was wanted; a limit inside an interval is *open*.

## The suite

{seeds_of(found)} seeds a problem, more where an interval straddled its limit. The geometric mean
over {len(suite.pairs)} problems is **{cell(suite.mean)}** (the interval is over problems). Wanted
was at most {MEAN_LIMIT}: {verdict(suite.mean, MEAN_LIMIT)}. Of these problems {others} are not as
before within 3 %; over these the mean is {cell(gain)}. Wanted was that none is surely above
{KEPT_LIMIT}, with Holm's correction for the number of problems; surely above it:
{_listed(suite.worse)}.

{suite.named().markdown()}

![Regret now, relative to before](figures/contexts-suite.png)

{suite.table().markdown()}

In the figure, intervals are cut at 0.1.

Many problems are at 1: their rules are affine in the context, or contexts matter so little that no
term ever earns its way in. There terms cost nothing, and there is nothing to gain. `constant`,
where every decision is best, has no ratio. The intervals shown are of each problem by itself,
without Holm's correction."""


def _of_rival(suite: Suite, docs: Path) -> str:
    page = (docs / "comparison.md").read_text()
    number, rival = rival_mean(suite, page)
    _, earlier = rival_mean(suite, page, before=True)
    said = verdict(rival, RIVAL_LIMIT)
    said += ", and the mean itself is above it" if rival.value > RIVAL_LIMIT > rival.low else ""
    return f"""## Against the rival

The rival is the best-in-hindsight adaptive KWSA of [the comparison](comparison.md#the-suite); its
regrets are those on that page, over 10 seeds. On the {number} problems that count there, the
geometric mean of the recommended policy's regret relative to the rival's is **{cell(rival)}**.
Wanted was at most {RIVAL_LIMIT}: {said}. With the policy before, the mean over the same problems
is {cell(earlier)}."""


def _of_wide(found: dict[str, Any]) -> str:
    return f"""## Contexts that do not matter

Ten more context dimensions, none of which matters, {seeds_of(found)} seeds. `one_matters(1)` is
the
world of `one-of-5` with the one context alone.

{wide_table(found).markdown()}

Wanted was at most {WIDE_LIMIT}. Three things spare contexts that do not matter: a gate of (11) for
each context by itself, of what is believed and not of what is tried; what the terms that have
entered say is taken off before a gate is asked; and halves that keep all need a larger lead,
because they win by chance, too. A gate that also stops trying cost `product-of-two` a factor of
1.3 to 1.8 (3 seeds)."""


def _of_drawn(found: dict[str, Any]) -> str:
    table, before, rival = drawn_table(found)
    return f"""## Worlds that nobody has chosen

`ca.problem("drawn", seed=...)` draws dimensions, which contexts matter and how, curvature, noise
and where contexts lie. The generator was written before this work began; the {len(DRAWN)} seeds
from {DRAWN[0]} on were chosen when it was finished, and this is the first and only run,
{seeds_of(found)} seeds each. (The seeds from 4100 on were those of an earlier version of this
work.) The rival is adaptive KWSA told the curvature, the best in
hindsight of
three widths and two rules of splitting. Geometric means: **{cell(before)}** of before,
**{cell(rival)}** of the rival.

{table.markdown()}"""


def _of_growth(found: dict[str, Any], marks: list[int]) -> str:
    return f"""## Growth

The slope of the logarithm of regret against that of decisions, between 10⁴ and 10⁶, fitted for
each
seed. Expected was ½, the rate of a parametric model, on `one_matters(1)`, where a few terms say
nearly all; and 0.6 (the paper's lower bound for one context dimension) to ⅔ (its upper bound)
on the
paper's problem, whose best decision has kinks that no polynomial follows.

{growth_table(found, marks).markdown()}

A slope below ½ between two finite times is no contradiction: what it costs until the terms have
entered is paid once, and weighs most at 10⁴."""


def _of_dimensions(found: dict[str, Any], figures: Path) -> str:
    draw_contexts(found, figures / "context-dimensions.png")
    kinds = {"one matters": "one matters", "all matter": "all matter"}
    return f"""## The open problem

The paper asks how to reduce what the dimension of the context costs, by something other than bins.
Here is regret against the number of context dimensions, {seeds_of(found)} seeds: where one of them
matters (a sine), and where all do alike. KWSA is adaptive, told the curvature, with the
corrections; the uniform algorithm is as the paper has it.

![Regret against the number of context dimensions](figures/context-dimensions.png)

{dimension_table(found, kinds, "dx").markdown()}

The dashed line is what the best decision costs that is the same for all contexts. Where one
context matters, the recommended policy pays the same whatever the number of the others: that part
of the problem is solved. Where all matter alike, each says less the more there are, and so does a
payoff about each of them. With 20 contexts that matter, 100,000 decisions are too few for any of
these policies: all are near that line, or above it. This part is open."""


def _of_decisions(found: dict[str, Any], figures: Path) -> str:
    draw_decisions(found, figures / "decision-dimensions.png")
    return f"""## The dimension of the decision

The title's claim, for the policy that people will use: the quadratic payoff of
[the reproduction](reproduction.md), {HORIZON:,} decisions, {seeds_of(found)} seeds. Static and
adaptive KWSA are told the curvature and probe alternately, the adaptive one with the inherited
count; the uniform algorithm is as the paper has it.

![Regret against the dimension of the decision](figures/decision-dimensions.png)

{dimension_table(found, {"quadratic": "quadratic"}, "dy").markdown()}

{power_table(found).markdown()}

The title's claim is about the growth in the number of decisions, whose exponent has no dy in it.
As a factor, dy costs a power near 1: about the same regret for each coordinate. In brackets are
95 % intervals over the dimensions."""


def _of_cost(found: list[dict[str, Any]]) -> str:
    return f"""## What it costs

`ask` and `tell` of one process, and the saved policy's size per bin: medians over 30,000
decisions,
three rounds by turns, each in a process of its own. A row of a bin has room for the terms that may
enter, and for what its rows say of the candidates; the rows of its 1 + 4dx challengers have the
same
width.

{cost_table(found).markdown()}

With many contexts, `tell` also turns the candidates' columns, and a model that has grown has more
coefficients: that is the price of fewer bins."""


def _losses(suite: Suite) -> str:
    return f"""## Where it loses, and why

Likelier worse than better (the interval is wholly above 1): {_listed(suite.losers())}. The first
reason below was seen in the bins; the others are what we take to be the reason.

- *Kinks and steps, which polynomials say nearly* (`step-and-slope`, `communities-quiet`). What a
  polynomial does not say of such a rule is so small that the halves of a bin, which share the
  polynomial, foresee payoffs hardly better, so the bin splits late. Affine models are so wrong
  that they split at once, near the kink. On `communities-quiet` with degree 5 the regret was 2.3
  times that before (4 seeds), and single bins never split; so with one context dimension the
  degree stops at 3.
- *Curvature that varies with the context* (`gentle-price`, `auction`). Terms are of the slopes
  alone. Where they enter first, a split, which would have fitted the curvature, too, has less to
  show.
- *A child knows nothing of how degrees that have not entered go with the rest*: its candidates
  begin anew, so payoffs of its parent count as if these terms were nothing. In a bin that does not
  split, all degrees are looked at from the start; before that was so, one seed of `one-of-10` lost
  3,224 instead of 417.
- *Products of contexts* (`product-of-two`) gain nothing. There are no terms u_i u_j v: they would
  be dx²/2 candidates. Bins have to say them, as before."""
