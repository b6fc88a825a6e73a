#!/bin/sh
# Try learning rates on scripts/line_fit.tx: each program is put together in a pipe.
set -eu
here=$(dirname -- "$0")

for rate in 0.001 0.01 0.1; do
    { echo "rate, steps = $rate, 100"; cat "$here/line_fit.tx"; } | "$here/tensorcli" run -
done
