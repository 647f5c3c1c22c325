"""Models as plans of two parties: quality, costs, files, and models that another party has."""
