"""The loop: ask for points, have them evaluated here or by workers, tell the values, and know when to stop."""
