"""The local model: finds the topics of a sentence.

The client holds the vectors of a few hundred topic words. A sentence's vector is the weighted mean
of its words' vectors, with a larger weight for rare words. Its topics are the nearest by angle.
"""

from collections.abc import Callable
from importlib.resources import files

import numpy as np

from .._arrays import Array
from ._data import Vocabulary


class TopicModel:
    """Topic words and their vectors, which the client holds.

    topics      the words
    directions  (topics, d) float64: their vectors, normalized to length 1
    scorer      multiplies directions with a vector (d,); may be replaced by low-bit weights
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        words = files(__package__).joinpath("topics.txt").read_text(encoding="utf-8").split()
        self.topics = [word for word in words if word in vocabulary.rows]
        vectors = vocabulary.vectors[[vocabulary.rows[word] for word in self.topics]]
        self.directions = _directions(vectors)
        self.scorer: Callable[[Array], Array] = self.directions.__matmul__

    def nearest(self, vectors: Array, rows: Array, count: int = 5) -> list[tuple[str, float]]:
        """Finds the topics nearest to a sentence and their cosines, best first.

        `vectors` are those of its words, of shape (n, d). `rows` are the words' rows in a table
        sorted by frequency; a word's weight is the logarithm of its rank.
        """
        if not self.topics or not len(vectors):
            return []
        weights = np.log(2.0 + np.asarray(rows, np.float64))
        sentence = _directions(weights @ np.asarray(vectors, np.float64))
        cosines = self.scorer(sentence)
        best = np.argsort(-cosines)[:count]
        return [(self.topics[i], round(float(cosines[i]), 3)) for i in best]


def _directions(vectors: Array) -> Array:
    """Normalizes vectors to length 1; a zero vector stays zero."""
    wide = np.asarray(vectors, np.float64)
    lengths = np.linalg.norm(wide, axis=-1, keepdims=True)
    scaled: Array = wide / np.maximum(lengths, np.finfo(np.float64).tiny)
    return scaled
