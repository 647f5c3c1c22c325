"""The steps of private inference, each alone."""
