"""The report: facts, JSON, HTML and charts."""
