"""Check that Ray gives the same numbers as this process: `python -m benchmarks.check_ray`."""

import continuarm as ca


def main() -> None:
    """Run a small experiment twice and compare."""
    experiment = ca.Experiment(
        policies=["static-kwsa", "fixed"],
        problems=["two-communities"],
        horizons=[1000, 10_000],
        replications=4,
    )
    alone = experiment.run(workers=1).drop("seconds")
    there = experiment.run(workers=2, cluster="ray").drop("seconds")
    if not there.equals(alone):
        raise SystemExit("Ray gave other numbers")
    print(f"{there.height} passed, 0 failed")


if __name__ == "__main__":
    main()
