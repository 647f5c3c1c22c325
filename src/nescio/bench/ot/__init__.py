"""`nescio bench ot`: oblivious transfer between two processes."""
