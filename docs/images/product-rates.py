"""Draws product-rates.svg: rates of the product at n = 8192 beside their bounds, from reports/."""

from pathlib import Path

from style import plt, save

from reports.studies.rows import read_csv

REPORT = Path(__file__).resolve().parents[2] / "reports" / "nvidia-h200" / "bench.csv"
KINDS = [
    ("int16", "nonnegative", "int16"),
    ("float32", "nonnegative", "float32, no negative value"),
    ("int32", "nonnegative", "int32"),
    ("float32", "any", "float32, any sign"),
    ("float64", "nonnegative", "float64"),
    ("int64", "nonnegative", "int64"),
]
found = {
    (row["dtype"], row["sign"]): row
    for row in read_csv(REPORT)
    if (row["operation"], row["n"], row["batch"]) == ("min_plus", "8192", "1")
}
figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
for place, (dtype, sign, _) in enumerate(KINDS):
    row = found[dtype, sign]
    rate, share = float(row["ops_per_second"]) / 1e12, float(row["bound_fraction"])
    axes.barh(place, rate / share, 0.62, color="#dddddd")
    axes.barh(place, rate, 0.62, color="#4c78a8")
    axes.text(rate / share + 0.3, place, f"{rate:.1f} of {rate / share:.1f}", va="center")
    axes.text(rate - 0.25, place, f"{share:.0%}", va="center", ha="right", color="white")
axes.set_yticks(range(len(KINDS)), [label for _, _, label in KINDS])
axes.invert_yaxis()
axes.set(xlim=(0, 39), xlabel="T min-plus operations per second")
axes.set_title("min_plus, n = 8192, NVIDIA H200: measured (blue) and bound (grey)")
axes.spines[["top", "right"]].set_visible(False)
save(figure, __file__)
