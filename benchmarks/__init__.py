"""Side-by-side runs against peers: `python -m benchmarks all`."""
