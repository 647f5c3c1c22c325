"""Programs that use Nescio. Each is run by its path: `python examples/movielens/main.py`."""
