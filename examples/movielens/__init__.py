"""A recommender over MovieLens whose lookups of films are private."""
