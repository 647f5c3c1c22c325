"""Made-up ratings in the format of ml-20m."""

import numpy as np


def written(folder, seed):
    """Writes ratings by users who like one of four kinds of films; returns the folder."""
    random = np.random.default_rng(seed)
    lines = ["userId,movieId,rating,timestamp"]
    for user in range(120):
        rated = random.permutation(240)[: random.integers(20, 160)]
        likes = random.random(len(rated)) < np.where(rated % 4 == user % 4, 0.9, 0.2)
        ratings = zip(rated, np.where(likes, 4.5, 2.0), range(len(rated)), strict=True)
        lines += [f"{user + 1},{film + 1},{rating},{time}" for film, rating, time in ratings]
    folder.mkdir()
    (folder / "ratings.csv").write_text("\n".join(lines) + "\n")
    titles = [f'{film + 1},"Film, the {film}th (2001)",Drama' for film in range(240)]
    (folder / "movies.csv").write_text("\n".join(["movieId,title,genres", *titles]) + "\n")
    return folder
