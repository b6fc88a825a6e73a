"""Array backends: each gives ``xp`` and the few functions that differ between devices."""
