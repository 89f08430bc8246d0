"""Numbers as a reader wants them: three figures, a unit that keeps them short."""


def three(value: float) -> str:
    """Three significant figures, no exponent above 0.001: 0.0412, 4.12, 41.2, 412, 4,120."""
    if value == 0:
        return "0"
    if abs(value) >= 999.5:
        return f"{value:,.0f}"
    return f"{value:#.3g}".rstrip(".")


def size(nbytes: float) -> str:
    """Bytes in the decimal unit that fits: 512 B, 4.72 MB."""
    for unit in ("B", "kB", "MB"):
        if abs(nbytes) < 999.5:
            return f"{nbytes:.0f} B" if unit == "B" else f"{three(nbytes)} {unit}"
        nbytes /= 1000
    return f"{three(nbytes)} GB"
