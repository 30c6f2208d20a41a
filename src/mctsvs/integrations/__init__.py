"""mctsvs inside other people's programs."""
