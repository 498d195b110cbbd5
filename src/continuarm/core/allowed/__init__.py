"""Where decisions may lie: values that are allowed, and limits that couple coordinates.

What is computed stands in modules that import nothing but `math`, over lists or arrays: `plain`
runs them as they are, `compiled` compiles the same lines. "eq. N" cites docs/guards.md.
"""
