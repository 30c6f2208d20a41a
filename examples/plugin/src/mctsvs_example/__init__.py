"""Two methods and two problems for mctsvs; the entry points in pyproject.toml are all that makes them known."""
