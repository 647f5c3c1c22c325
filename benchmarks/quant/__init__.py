"""The experiments of chapter 3 of the thesis: products and networks with weights of few bits."""
