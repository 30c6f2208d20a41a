#!/bin/sh
# mctsvs drives a program: no Python to write. QUICK=1: a few evaluations only.
cd "$(dirname "$0")" || exit
budget=150
[ -z "$QUICK" ] || budget=12
exec mctsvs run --command './simulate.sh {pressure} {angle} {valve}' --space space.toml --timeout 60 --budget "$budget" "$@"
