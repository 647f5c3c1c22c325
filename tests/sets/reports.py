"""Checks of the reports of applications."""


def check_private(report):
    """Exact mode loses nothing; relaxed layouts lose what they may. Which one it is takes times."""
    exact, relaxed = report["private"]["exact"], report["private"]["relaxed"]
    assert exact["equal"]
    assert exact["missing_percent"] == 0
    assert exact["quality"] == report["private"]["plain"]["quality"]
    assert report["private"]["separate"]["equal"]
    assert 0 <= relaxed["missing_percent"] < 100
    for way in (exact, relaxed):
        assert 2 * (way["bytes_up"] + way["bytes_down"]) <= 300_000
    rated = report["layouts"]["quality_of_rating"]
    assert rated["relaxed"] >= 0.995 * rated["plain"]
