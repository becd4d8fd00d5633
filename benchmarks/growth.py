"""How time grows with depth and pairs, and memory with images and depth: curves of (x, y)."""

import numpy as np
from pairs import CHANNELS, FIVE, FIVE_FLAT, MYRTLE, SIDE, batch
from probe import peak_memory
from rounds import MB, interleave

TARGET_MEMORY = 50  # MB
GAP, FLAT = "5 conv + GAP", "5 conv + Flatten"
DEPTH = "conv + GAP, n = 8"


def measure_times(quick, rounds):
    """Seconds per pair by depth, and seconds of K(X, Y) by pairs."""
    depths = (1, 2, 5) if quick else (1, 2, 3, 5, 7, 10, 14, 20)
    gap = [(k, 16) for k in ((1, 2, 4) if quick else (2, 4, 8, 16, 32))]
    flat = [(k, k) for k in ((16, 32, 64) if quick else (32, 64, 128, 256, 512))]
    shape = (2, 8) if quick else (4, 8)
    contenders = {("depth", d, 1): batch("cr" * d + "go", "ntk", shape) for d in depths}
    contenders |= {(GAP, n * m, n * m): batch(FIVE, "ntk", (n, m)) for n, m in gap}
    contenders |= {(FLAT, n * m, n * m): batch(FIVE_FLAT, "ntk", (n, m)) for n, m in flat}
    curves = {"depth": [], GAP: [], FLAT: []}
    for (curve, x, times), s in interleave(contenders, rounds, settle=0.02, warm=False).items():
        curves[curve].append((x, times * s.min()))
    return {curve: np.array(points).T for curve, points in curves.items()}


def measure_memory(quick):
    """Peak MB beyond input and result of a symmetric call, by images and by depth; {} if hidden."""
    cases = {
        GAP: [(FIVE, n) for n in ((4, 8) if quick else (8, 16, 32, 64))],
        "20 conv + GAP": [("cr" * 20 + "go", n) for n in ((4,) if quick else (8, 16, 32))],
        "Myrtle-5": [(MYRTLE, n) for n in ((4,) if quick else (8, 16, 32, 64))],
        FLAT: [(FIVE_FLAT, n) for n in ((16, 64) if quick else (8, 32, 128, 512, 1024))],
        "20 conv + Flatten": [("cr" * 20 + "fo", n) for n in (() if quick else (8, 32, 128, 512))],
        DEPTH: [("cr" * d + "go", 8) for d in ((1, 5) if quick else (1, 2, 5, 10, 20))],
    }
    curves = {}
    for name, case in cases.items():
        x = [letters.count("c") if name == DEPTH else n for letters, n in case]
        peaks = [peak_memory(letters, "ntk", n, SIDE, SIDE, CHANNELS) for letters, n in case]
        if peaks and None not in peaks:
            curves[name] = np.array([x, np.array(peaks) / MB])
    return curves


def linear_fit(y, *terms):
    """Factors of ``y = sum of factor * term``, and the largest deviation relative to y."""
    a = np.stack([term * np.ones(len(y)) for term in terms], 1)
    factors = np.linalg.lstsq(a / y[:, None], np.ones(len(y)), rcond=None)[0]
    return *factors, float(abs(a @ factors / y - 1).max())


def power_slope(x, y):
    """Slope of log y against log x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def print_growth(times, peaks):
    print("\ngrowth (slope: of the logarithms)")
    x, y = times["depth"]
    start, slope, off = linear_fit(1e3 * y, 1, x)
    print(
        f"  depth {x[0]:.0f} to {x[-1]:.0f}, conv + GAP: {start:.3f} + {slope:.3f} depth", end=" "
    )
    print(f"ms per pair, within {off:.0%}; slope {power_slope(x, y):.3f}")
    for name in (GAP, FLAT):
        x, y = times[name]
        print(f"  {x[0]:.0f} to {x[-1]:.0f} pairs, {name}: slope {power_slope(x, y):.3f}", end="")
        if name == GAP:
            start, slope, off = linear_fit(1e3 * y, 1, x)
            print(f"; {start:.1f} + {slope:.3f} pairs ms, within {off:.0%}")
        else:
            image, pair, off = linear_fit(1e6 * y, 2 * np.sqrt(x), x)
            print(f"; {image:.0f} µs per image + {pair:.2f} µs per pair, within {off:.0%}")
    for name, (x, mb) in peaks.items():
        sizes, shown = ", ".join(f"{k:.0f}" for k in x), ", ".join(f"{k:.1f}" for k in mb)
        slope = f"; slope {power_slope(x, mb):.2f}" if len(x) > 1 else ""
        what = "depth" if name == DEPTH else "n"
        print(f"  memory, {name}, {what} = {sizes}: {shown} MB{slope}")


def draw(path, times, peaks, rows):
    """Three panels, as SVG and PNG; ``rows`` of the table give the peer's points."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams |= {"axes.spines.top": False, "axes.spines.right": False, "svg.fonttype": "none"}
    figure, panels = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
    draw_depth(panels[0], *times["depth"], [row for row in rows[:2] if "peer ratio" in row])
    draw_pairs(panels[1], times)
    draw_memory(panels[2], {name: curve for name, curve in peaks.items() if name != DEPTH})
    for axes in panels:
        axes.grid(alpha=0.25)
        columns = 1 + (axes is panels[2])
        axes.legend(fontsize=9, loc="upper left", frameon=False, ncols=columns)
    for suffix in (".svg", ".png"):
        figure.savefig(path.with_suffix(suffix), dpi=150)
    plt.close(figure)


DOTTED = {"ls": ":", "color": "0.45", "lw": 1.2}


def draw_depth(axes, x, y, peers):
    y = 1e3 * y
    top = y.max()
    for k, row in enumerate(peers):
        depth, ms = row["network"].count("c"), 1e3 * row["seconds"]["neural-tangents"].min()
        axes.plot(depth, ms, "s", color="C3", label=None if k else "neural-tangents")
        style = {"textcoords": "offset points", "ha": "center", "color": "C3", "fontsize": 9}
        axes.annotate(f"{row['peer ratio'][0]:.0f} times", (depth, ms), xytext=(0, -15), **style)
        top = max(top, ms)
    start, slope, _ = linear_fit(y, 1, x)
    fine = np.geomspace(x[0], x[-1], 50)
    axes.plot(x, y, "o", color="C0", label="kernelcore")
    axes.plot(fine, start + slope * fine, "C0", lw=1.2, label=f"{start:.2f} + {slope:.2f} × depth")
    axes.plot(fine, y[-1] / 2 * fine / x[-1], label="slope 1", **DOTTED)
    axes.set(xscale="log", yscale="log", title="Time against depth, NTK")
    axes.set(xlabel="depth (convolutions, then GAP)", ylabel="time per pair of images (ms)")
    axes.set_ylim(top=20 * top)
    axes.set_xticks(x, [f"{k:.0f}" for k in x])
    axes.xaxis.minorticks_off()


def draw_pairs(axes, times):
    for name, color in ((GAP, "C0"), (FLAT, "C2")):
        x, y = times[name]
        label = f"{name}, slope {power_slope(x, y):.2f}"
        axes.plot(x, y, "o-", color=color, lw=1.2, label=label)
        axes.plot(x, y[-1] / 2 * x / x[-1], **DOTTED)
    axes.plot([], [], label="slope 1", **DOTTED)
    axes.set(xscale="log", yscale="log", title="Time against pairs, NTK")
    axes.set(xlabel="pairs of images", ylabel="time (s)")
    axes.set_ylim(top=8 * max(times[name][1].max() for name in (GAP, FLAT)))


COLORS = ("C0", "C1", "C3", "C2", "C4")


def draw_memory(axes, peaks):
    for k, (name, (n, mb)) in enumerate(peaks.items()):
        axes.plot(n, mb, marker="osD^v"[k % 5], color=COLORS[k % 5], lw=1.2, label=name)
    axes.axhline(TARGET_MEMORY, ls="--", color="0.45", lw=1.2)
    style = {"textcoords": "offset points", "ha": "right", "color": "0.35", "fontsize": 9}
    place = {"xy": (0.99, TARGET_MEMORY), "xycoords": ("axes fraction", "data")}
    axes.annotate("target", xytext=(0, -12), **place, **style)
    axes.set(xscale="log", title="Memory against images, NTK")
    axes.set(xlabel="images n (Gram matrix n × n)", ylabel="peak memory beyond data (MB)")
    axes.set_ylim(0, 1.4 * max([TARGET_MEMORY, *(mb.max() for _, mb in peaks.values())]))
    ticks = sorted({k for n, _ in peaks.values() for k in n})
    axes.set_xticks(ticks, [f"{k:.0f}" for k in ticks])
    axes.xaxis.minorticks_off()
