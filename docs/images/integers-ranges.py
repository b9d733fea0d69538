"""Draws integers-ranges.svg: what a stored int16 means."""

from style import plt, save

NO_EDGE = 2**15 // 2 - 1
QUARTER = NO_EDGE // 4
BLUE, GREY, ORANGE = "#9dbce6", "#d9d9d9", "#f3c48b"
ROWS = {
    "no negative weight": [
        (0, NO_EDGE, BLUE, "distances"),
    ],
    "some weight negative": [
        (-QUARTER, NO_EDGE - 2 * QUARTER, BLUE, "distances"),
        (NO_EDGE - 2 * QUARTER, NO_EDGE, GREY, "no path"),
        (-NO_EDGE, -QUARTER, ORANGE, "refused"),
    ],
}

figure, axes = plt.subplots(figsize=(8.8, 3.2))
for row, (name, parts) in enumerate(ROWS.items()):
    y = 1 - row
    for low, high, colour, text in parts:
        axes.barh(
            y, high - low, left=low, height=0.42, color=colour, edgecolor="black", linewidth=0.8
        )
        axes.text((low + high) / 2, y, text, ha="center", va="center", fontsize=11)
    axes.text(-17000, y + 0.36, name, ha="left", va="center")
axes.plot([NO_EDGE, NO_EDGE], [-0.35, 1.3], color="black", linewidth=1.4)
axes.text(NO_EDGE, 1.45, "no_edge = 16383", ha="right", va="center")
for value in (-NO_EDGE, -QUARTER, 0, NO_EDGE - 2 * QUARTER, NO_EDGE):
    axes.text(
        value,
        -0.52,
        f"{value}".replace("-", "\N{MINUS SIGN}"),
        ha="center",
        va="center",
        fontsize=11,
    )
    axes.plot([value, value], [-0.37, -0.27], color="black", linewidth=1)
axes.set(xlim=(-17500, 18500), ylim=(-0.75, 1.7))
axes.axis("off")
figure.suptitle("int16: beside negative weights, values from 8193 on mean no path")
figure.tight_layout()
save(figure, __file__)
