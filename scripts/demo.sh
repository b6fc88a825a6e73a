#!/bin/sh
# The examples, one after another, then tensors in ordinary shell work.
set -eu
cd -- "$(dirname -- "$0")"

for program in *.tx; do
    echo "== $program"
    ./tensorcli run "$program"
done

echo "== numbers from a pipe"
printf '3\n1\n4\n1\n5\n' | paste -sd, - | sed 's/.*/x = tensor([&.])\nx.mean(), x.std()/' | ./tensorcli run -

echo "== an exit status to branch on"
if ./tensorcli eval "assert torch.allclose(torch.tensor(0.1) + 0.2, torch.tensor(0.3))" >/dev/null; then
    echo "close enough"
fi
