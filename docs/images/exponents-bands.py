"""Draws exponents-bands.svg: the exponents that sums of a slice can have, per least distance."""

from matplotlib.patches import Rectangle
from style import plt, save

UNITS, TERMS = 4, 128
PLACES = {0: 0, 1: 1, 2: 2, 29: 3.6, 30: 4.6}  # distances 3 to 28 are left out of the picture
figure, axes = plt.subplots(figsize=(9, 3.2), layout="constrained")
for s, x in PLACES.items():
    low = 256 - 2 * UNITS - 2 * UNITS * s
    high = low + TERMS.bit_length() - 1
    axes.add_patch(Rectangle((x + 0.04, 0), 0.92, 0.55, fc="#4c78a8", alpha=0.35, ec="none"))
    axes.text(x + 0.5, 0.65, f"s = {s}", ha="center", weight="bold")
    axes.text(x + 0.5, 0.36, f"128 terms: {high}", ha="center")
    axes.text(x + 0.5, 0.10, f"1 term: {low}", ha="center")
axes.text(3.3, 0.25, "...", ha="center", fontsize=16)
axes.text(5.7, 0.65, "s > 30", weight="bold")
axes.text(5.7, 0.36, "7 at most")
axes.annotate("", (0, -0.12), (6.5, -0.12), arrowprops={"arrowstyle": "->"})
axes.text(3.2, -0.27, "stored exponent of the float32 sum (bias 127) grows", ha="center")
axes.set(xlim=(-0.05, 6.6), ylim=(-0.33, 0.8))
axes.set_title("Slices of 128: each least sum s has a band of exponents of its own")
axes.axis("off")
save(figure, __file__)
