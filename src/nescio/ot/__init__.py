"""Silent oblivious transfer."""
