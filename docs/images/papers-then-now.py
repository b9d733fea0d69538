"""Draws papers-then-now.svg: time for n = 8192 by system, on the papers' GPUs and on an H200."""

from style import plt, save

# Seconds, from reports/nvidia-h200/implementations.md, float32, n = 8192.
SYSTEMS = (
    ("harish_narayanan", 208.6, "C1060", 1.95),
    ("recursive_plain", 55.7, "8800 Ultra", 0.326),
    ("katz_kider", 35.37, "C1060", 0.357),
    ("optimised_blocked", 16.39, "C1060", 0.189),
    ("recursive_tuned", 7.87, "8800 Ultra", 0.194),
    ("staged_load", 6.88, "C1060", 0.0959),
)
OURS = 0.0358
THEN, NOW, BLUE = "#8a8a8a", "#c8641b", "#1f4e9c"


def shown(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


figure, axes = plt.subplots(figsize=(8.8, 4.2))
for place, (_, then, gpu, now) in enumerate(SYSTEMS):
    y = -place
    axes.plot([now, then], [y, y], color="#cccccc", linewidth=2, zorder=1)
    axes.plot(then, y, "o", color=THEN, markersize=9)
    axes.plot(now, y, "o", color=NOW, markersize=9)
    axes.text(then * 1.3, y, f"{shown(then)}, {gpu}", ha="left", va="center", color="#555555")
    axes.text(now / 1.3, y, shown(now), ha="right", va="center", color=NOW)
y = -len(SYSTEMS)
axes.plot(OURS, y, "o", color=BLUE, markersize=9)
axes.text(OURS * 1.3, y, f"{shown(OURS)}, this project on the H200", va="center", color=BLUE)
axes.text(1.95, 0.62, "H200", ha="center", color=NOW)
axes.text(208.6, 0.62, "then", ha="center", color="#555555")
axes.set_xscale("log")
axes.set_xticks(
    [0.01, 0.1, 1, 10, 100, 1000], ["10 ms", "100 ms", "1 s", "10 s", "100 s", "1000 s"]
)
axes.minorticks_off()
axes.set_yticks(
    [-place for place in range(len(SYSTEMS))] + [y], [row[0] for row in SYSTEMS] + ["auto"]
)
axes.set(
    xlim=(0.01, 5000), ylim=(y - 0.6, 1.1), xlabel="time of a solve, n = 8192, float32 (log scale)"
)
axes.spines[["top", "right"]].set_visible(False)
figure.suptitle("The same systems, then and now: 41 to 171 times as fast")
figure.tight_layout()
save(figure, __file__)
