"""Write docs/gallery.md and its figures: python -m tests.docs.gallery_page."""

from __future__ import annotations

import io
from pathlib import Path

from relaxdp.paper.lab import Lab, LabSettings
from relaxdp.paper.runner import CLAIMS, Run, figure_files, judge_all

PAGE = Path(__file__).parents[2] / "docs" / "gallery.md"
FIGURES = PAGE.parent / "figures"

_HEAD = """# Gallery: the paper, reproduced

`relaxdp reproduce` runs every table, figure and experiment of the paper again and gives a verdict for each of its
claims: holds, holds as corrected, does not hold, or not checkable here. In this repository `make reproduce` does it,
and `make reproduce-seeds` at ten different seeds.

```text
relaxdp reproduce                          all claims, in well under two minutes, into relaxdp-reproduce/
relaxdp reproduce --only market --out m    one claim
relaxdp reproduce --seed 7 --json          other randomness; the verdicts as JSON
```

The folder holds `report.html` (one file, figures included), `report.md`, each figure as PNG and SVG, and the numbers
behind it as CSV. The same seed gives the same bytes. Everything relaxed is drawn twice: on the keyed path and with
Algorithm 1. The figures show 100 runs, as the paper's do; the tests use 1,000. A check that chance enters fails correct
code with a probability of at most 10^-6, a whole run of them with less than 10^-4.

In all figures relaxation on the path is blue with round marks, with Algorithm 1 green with squares, noisy sampling
orange with triangles, the split budget pink; theory beside measurements is black and broken. Where relaxation and the
split budget stand side by side, colour tells the method, of theory as well, and the mark the sampler. Figures 1a to 1c
are theory alone: there colour tells the method, and the mark which parameter it was computed for.
"""


def gallery_page(run: Run) -> str:
    """Return the page: every figure with its caption and the command that makes it."""
    parts = [_HEAD]
    for each in run.judged:
        for name, picture in each.outcome.pictures.items():
            parts.append(
                f"## {each.claim.title}\n\n![{name}](figures/paper-{name}.png)\n\n"
                f"{picture.caption.replace(f'{run.settings.runs:,} runs', '1,000 runs')}\n\n"
                f"Made by `relaxdp reproduce --only {each.claim.name}`: `figures/{name}.png`.\n"
            )
    return "\n".join(parts)


def main() -> None:
    """Run everything at the default seed; figures are reduced to few colours, which halves their files."""
    from PIL import Image  # noqa: PLC0415

    run = judge_all(CLAIMS, Lab(LabSettings()))
    FIGURES.mkdir(exist_ok=True)
    for old in FIGURES.glob("paper-*.png"):
        old.unlink()
    for name, content in figure_files(run):
        if name.endswith(".png"):
            image = Image.open(io.BytesIO(content)).convert("RGB").quantize(64, dither=Image.Dither.NONE)
            image.save(FIGURES / f"paper-{Path(name).name}", optimize=True)
    PAGE.write_text(gallery_page(run), "utf-8")


if __name__ == "__main__":
    main()
