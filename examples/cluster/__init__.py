"""Two parties prepare on a cluster each: stores of private inferences, and oblivious transfers."""
