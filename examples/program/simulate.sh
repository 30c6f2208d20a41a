#!/bin/sh
# A "simulation" in another language: takes settings as arguments, prints a log, and last the value.
# It fails where the pressure is too high, as programs do.
echo "pressure $1, angle $2, $(($# - 2)) valves" >&2
echo "$@" | awk '{
  if ($1 > 9.5) { print "pressure vessel burst" > "/dev/stderr"; exit 1 }
  drag = ($1 - 3.2) ^ 2 + 4 * ($2 - 0.7) ^ 2 + 2 * ($(2 + 12) - 0.4) ^ 2
  printf "drag: %.10g\n", drag
}'
