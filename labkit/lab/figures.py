"""Figures: one message each, said in the title. Every function returns the figure, and the table it was drawn from."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from labkit.measure.clock import Timeline
from labkit.measure.curve import Curve

BASE, VARIANT, OTHER = "#5f6770", "#0072b2", "#d55e00"  # grey, blue, vermilion: apart in any colour blindness
HEIGHT_PX = 320
Figure = tuple[go.Figure, list[str], list[list[Any]]]


def blank(title: str, x: str, y: str) -> go.Figure:
    """An empty figure in the lab's one style; transparent, so that it sits on a light and a dark page."""
    figure = go.Figure()
    grey = "rgba(128,128,128,.25)"
    figure.update_layout(
        title={"text": title, "font": {"size": 15}, "x": 0, "xref": "paper", "xanchor": "left"},
        height=HEIGHT_PX,
        margin={"l": 64, "r": 120, "t": 48, "b": 48},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": "#7a7f85", "size": 12},
        showlegend=False,
        hovermode="closest",
    )
    figure.update_xaxes(title=x, gridcolor=grey, zeroline=False)
    figure.update_yaxes(title=y, gridcolor=grey, zerolinecolor=grey)
    return figure


def token_times(timeline: Timeline) -> Figure:
    """Bars: the time of each token of a reply, the first apart."""
    gaps_ms = [1e3 * timeline.ttft_s, *(1e3 * timeline.gaps_s)]
    typical = float(np.median(gaps_ms[1:])) if len(gaps_ms) > 1 else gaps_ms[0]
    title = f"The first token took {gaps_ms[0]:.0f} ms, a later one {typical:.0f} ms"
    figure = blank(title, "token of the reply", "time, ms")
    colours = [OTHER] + [VARIANT] * (len(gaps_ms) - 1)
    figure.add_bar(
        x=list(range(1, len(gaps_ms) + 1)), y=gaps_ms, marker_color=colours, hovertemplate="token %{x}: %{y:.1f} ms<extra></extra>"
    )
    figure.add_annotation(x=1.5, y=gaps_ms[0], text="prefill and first token", showarrow=False, xanchor="left", yshift=-8)
    return figure, ["token", "ms"], [[i + 1, round(float(t), 2)] for i, t in enumerate(gaps_ms)]


def positions(naive: Sequence[int], cached: Sequence[int]) -> Figure:
    """Dots: which positions each step computes, without and with a cache. `naive[i]`: positions of step i."""
    title = f"{sum(naive)} positions computed without a cache, {sum(cached)} with one, for the same {len(naive)} tokens"
    figure = blank(title, "position in the text", "step")
    length = naive[-1]
    for step, (all_of_them, new) in enumerate(zip(naive, cached, strict=True), start=1):
        first = all_of_them - new + 1
        shown = [list(range(1, first)), list(range(first, all_of_them + 1))]
        for xs, colour, symbol, name in ((shown[0], BASE, "circle-open", "computed again"), (shown[1], VARIANT, "circle", "new")):
            figure.add_scatter(x=xs, y=[step] * len(xs), mode="markers", hovertemplate=f"step {step}, position %{{x}}: {name}<extra></extra>",
                               marker={"color": colour, "symbol": symbol, "size": 11, "line": {"width": 2}})  # fmt: skip
    for text, colour, y in (("● new", VARIANT, 1), ("○ computed again<br>without a cache", BASE, len(naive))):
        figure.add_annotation(x=length + 0.6, y=y, text=text, showarrow=False, xanchor="left", font={"color": colour}, align="left")
    figure.update_yaxes(autorange="reversed", dtick=1)
    figure.update_xaxes(range=[0.4, length + 0.6], dtick=max(1, length // 12))
    table = [[i + 1, n, c] for i, (n, c) in enumerate(zip(naive, cached, strict=True))]
    return figure, ["step", "positions without cache", "positions with cache"], table


def growth(cached: Curve, naive: Curve) -> Figure:
    """Milliseconds per token against context, both axes logarithmic, slopes written at the lines."""
    ends = [n for n in cached.contexts if n in naive.contexts]
    low, high = ends[0], ends[-1]
    times = {n: float(s) for n, s in zip(naive.contexts, naive.medians_s, strict=True)}
    title = f"Without a cache a token at {high:,} costs {times[high] / times[low]:.1f}× one at {low:,}; with a cache {_growth(cached, low, high):.2f}×"
    figure = blank(title, "context, tokens (logarithmic)", "time per token, ms (logarithmic)")
    for series, colour, name in ((naive, OTHER, "no cache"), (cached, VARIANT, "cache")):
        _line(figure, series, colour, name)
    figure.update_xaxes(type="log", tickvals=list(cached.contexts), ticktext=[f"{n:,}" for n in cached.contexts])
    marks = [step * 10**power for power in range(-2, 6) for step in (1, 2, 5)]
    figure.update_yaxes(type="log", tickvals=marks, ticktext=[f"{mark:,g}" for mark in marks])
    rows = [[n, name, round(1e3 * float(np.median(s)), 2), len(s)] for c, name in ((naive, "no cache"), (cached, "cache"))
            for n, s in zip(c.contexts, c.samples_s, strict=True)]  # fmt: skip
    return figure, ["context", "series", "median ms per token", "samples"], rows


def _growth(series: Curve, low: int, high: int) -> float:
    at = dict(zip(series.contexts, series.medians_s, strict=True))
    return float(at[high] / at[low])


def _line(figure: go.Figure, series: Curve, colour: str, name: str) -> None:
    x = [n for n, s in zip(series.contexts, series.samples_s, strict=True) for _ in s]
    y = [1e3 * t for s in series.samples_s for t in s]
    figure.add_scatter(x=x, y=y, mode="markers", marker={"color": colour, "opacity": 0.3, "size": 5}, hoverinfo="skip")
    figure.add_scatter(x=list(series.contexts), y=list(1e3 * series.medians_s), mode="lines+markers", name=name,
                       line={"color": colour, "width": 2}, hovertemplate=f"{name}, %{{x:,}} tokens: %{{y:.1f}} ms<extra></extra>")  # fmt: skip
    fit = series.fit()
    text = f"{name}<br>a + b·n^{fit.p:.2f}<br>[{fit.p_low:.2f}, {fit.p_high:.2f}]"
    figure.add_annotation(x=np.log10(series.contexts[-1]), y=float(np.log10(1e3 * series.medians_s[-1])), text=text, showarrow=False,
                          xanchor="left", xshift=8, align="left", font={"color": colour})  # fmt: skip


def memory(lengths: Sequence[int], kv_bytes: Sequence[int], peak_bytes: Sequence[int]) -> Figure:
    """KV bytes and the process's peak against the length of the reply."""
    per_token = (kv_bytes[-1] - kv_bytes[0]) / (lengths[-1] - lengths[0])
    title = f"Each further token keeps {per_token / 1024:.1f} KiB of keys and values"
    figure = blank(title, "tokens in all", "MB")
    for values, colour, name in ((kv_bytes, VARIANT, "keys and values"), (peak_bytes, BASE, "peak of the process")):
        y = [v / 1e6 for v in values]
        figure.add_scatter(
            x=list(lengths), y=y, mode="lines+markers", line={"color": colour}, hovertemplate=f"{name}: %{{y:.1f}} MB<extra></extra>"
        )
        figure.add_annotation(x=lengths[-1], y=y[-1], text=name, showarrow=False, xanchor="left", xshift=8, font={"color": colour})
    rows = [[n, round(k / 1e6, 3), round(p / 1e6, 1)] for n, k, p in zip(lengths, kv_bytes, peak_bytes, strict=True)]
    return figure, ["tokens", "keys and values, MB", "process peak, MB"], rows
