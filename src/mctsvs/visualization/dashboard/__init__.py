"""Studies on a page that follows them while they run: `mctsvs watch run.db`.

Files are only read. The server is Starlette on uvicorn: small, maintained, with tested handling of hosts, methods and
headers, and plain functions for the pages, which it runs beside each other in threads.
"""
