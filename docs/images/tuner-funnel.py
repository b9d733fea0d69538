"""Draws tuner-funnel.svg: how many configurations each step of the tuner leaves."""

from style import plt, save

# The product of the nvidia engine, float32, no negative weight, n = 4096, on an H200, with the
# quick effort: the counts of tri_apsp.tune.candidates.
STEPS = (
    ("combinations of the choices", 8640, ""),
    ("obey the engine's rules", 5994, "2646 cannot run"),
    ("fit registers, shared memory", 3204, "2790 do not fit"),
    ("differ from each other", 2700, "504 repeat another"),
    ("checked and timed", 300, "chosen by TPE"),
    ("in the final, at most", 5, "3 fastest, default, in use"),
    ("in the tuned file", 1, ""),
)

figure, axes = plt.subplots(figsize=(8.8, 3.9))
for place, (name, count, note) in enumerate(STEPS):
    y = -place
    axes.barh(y, count, height=0.6, color="#1f4e9c" if place < 4 else "#c8641b")
    axes.text(0.85, y, name, ha="right", va="center")
    axes.text(count * 1.15, y, f"{count:,}", ha="left", va="center")
    axes.text(50000, y, note, ha="left", va="center", fontsize=11, color="#444444")
axes.set_xscale("log")
axes.set(xlim=(0.9, 20_000_000), ylim=(-6.6, 0.6))
axes.axis("off")
figure.suptitle("Configurations of one product that remain after each step (log scale)")
figure.subplots_adjust(left=0.29, right=0.99, top=0.9, bottom=0.02)
save(figure, __file__)
