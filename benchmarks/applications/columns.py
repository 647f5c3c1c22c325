"""The tables that the sweep prints."""

__all__ = ["CACHE", "NOTES", "PICKS", "SAVINGS"]

PICKS = [
    ("application", "application", ">11"),
    ("generator", "generator", ">9"),
    ("level", "level", ">7"),
    ("family", "family", ">9"),
    ("training", "training", ">8.4f"),
    ("quality", "held out", ">8.4f"),
    ("lost_percent", "lost %", ">6.2f"),
    ("retrieved", "rows", ">6.1%"),
    ("inferences_per_second", "inferences/s", ">12,.0f"),
    ("times_plain", "x plain", ">7.1f"),
    ("times_partial", "x bins", ">6.2f"),
    ("kilobytes", "KB", ">6.1f"),
    ("layout", "layout", ""),
]
SAVINGS = [
    ("measure", "least", ">15"),
    ("family", "family", ">9"),
    ("least", "", ">11,.1f"),
    ("times_partial", "x fewer than bins", ">17.2f"),
    ("layout", "layout", ""),
]
NOTES = """\
For each family, the fastest layout that gets all rows (full) of inferences of the training, has the
plain model's quality there (eco), or loses at most 0.5 % of an AUC or 5 % of a perplexity there
(relaxed). held out: quality on the test, and the part of the plain model's quality that is lost.
rows: share of the rows of the test that arrive. Families: whole lookups; bins; exact mode; bins,
hot rows and rows together as in the paper; all of these and several hashes. x plain, x bins:
inferences/s divided by those of the families plain and partial at the same level. Times are
measured in turns. KB: of an inference, to and from both servers, rows that arrive together
included."""
CACHE = """\
{level} with a cache of {cache_rows:,} rows, which leaves {fetched:.1%} of the accesses: \
{inferences_per_second:,.0f} inferences/s, {times_without:.2f} times as many, {times_bytes:.2f} \
times the bytes: {layout}"""
