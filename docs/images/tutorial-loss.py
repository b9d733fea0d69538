"""Draws tutorial-loss.svg: the loss and the learned costs in the training step of the tutorial."""

import torch
from style import plt, save

from tri_apsp import shortest_paths

generator = torch.Generator().manual_seed(0)
batch, n = 16, 10
sizes = torch.randint(6, n + 1, (batch,), generator=generator)
is_edge = torch.rand(batch, n, n, generator=generator) < 0.4
features = torch.rand(batch, n, n, 3, generator=generator)
truth = torch.tensor([2.0, 1.0, 0.5])


def travel_times(cost):
    lengths = torch.where(is_edge, features @ cost, float("inf"))
    return shortest_paths(lengths, sizes=sizes).distances


observed = travel_times(truth)
known = observed.isfinite()
log_cost = torch.full((3,), -1.0, requires_grad=True)
optimizer = torch.optim.Adam([log_cost], lr=0.1)
losses, costs = [], []
for _ in range(100):
    optimizer.zero_grad()
    times = travel_times(log_cost.exp())
    loss = (times[known] - observed[known]).square().mean()
    loss.backward()
    costs.append(log_cost.detach().exp())
    optimizer.step()
    losses.append(loss.item())

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot(losses, color="#4c78a8")
left.set_yscale("log")
left.set(xlabel="step", ylabel="mean squared error, minutes²")
left.set_title("The loss falls")
for values, target, colour, name in zip(
    torch.stack(costs).T,
    truth.tolist(),
    ("#4c78a8", "#f58518", "#54a24b"),
    ("length", "climb", "traffic"),
    strict=True,
):
    right.plot(values, color=colour)
    right.hlines(target, 0, 100, color=colour, linestyle=":")
    right.text(102, target, name, color=colour, va="center", weight="bold")
right.set(
    xlabel="step", ylabel="minutes per unit", xlim=(0, 127), ylim=(0, 2.3), xticks=range(0, 101, 25)
)
right.set_title("Learned costs, and the true ones (dotted)")
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
save(figure, __file__)
