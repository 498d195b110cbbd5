"""The attack on stores and servers, a module for each part; `benchmarks.attack` runs it."""
