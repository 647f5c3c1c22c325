"""The clients' side: requests that are repeated, and the versions of a table."""
