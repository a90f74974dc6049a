"""Colours that mean something, the same in every chart, light or dark.

Okabe and Ito's colours, told apart under every common colour blindness.
Source: M. Okabe, K. Ito, "Color Universal Design", 2008.
"""

FORWARD = "#0072B2"
BACKWARD = "#E69F00"
BACKWARD_INPUT = "#56B4E9"
BACKWARD_WEIGHT = "#009E73"
RECOMPUTE = "#A99BF5"  # lavender
OPTIMIZER = "#CC79A7"
COMMUNICATION = "#F0E442"
SYNCHRONISATION = "#D55E00"
CHECKPOINT = "#7A1F3D"  # wine
DATA = "#5B3A8E"  # violet; with wine darker than every other hue: told apart by lightness too

CURVE = "#9C6B3F"  # what is measured over minibatches, beside the actions of a timeline
PAIR = (RECOMPUTE, SYNCHRONISATION)
"""Two things laid beside each other where neither action is shown."""
LIMIT = "#D62839"  # red: what a device has, and more than that
IDLE = "rgba(128, 138, 152, 0.18)"
NEUTRAL = "#808A98"  # legible on white and on near-black
GRID = "rgba(128, 138, 152, 0.18)"
STAGES = ("#C9CED6", "#A3ABB7")
"""Two greys by turns: a stage has its number, and the hues are for what stages do."""
SERIES = ("#446C70", "#9C6B3F", "#944420", "#8A8F2E", "#C4626E")
"""Runs, stages as lines, and what memory holds: slate, brown, rust, olive, rose. No action has one
of them, so that charts may stand beside a timeline. Chosen by their distance from the actions'
colours and the contrast on both grounds."""


COLOURS = {
    "forward": FORWARD,
    "backward": BACKWARD,
    "backward, inputs": BACKWARD_INPUT,
    "backward, weights": BACKWARD_WEIGHT,
    "recompute": RECOMPUTE,
    "loading data": DATA,
    "optimizer": OPTIMIZER,
    "send": COMMUNICATION,
    "receive": COMMUNICATION,
    "all-reduce": SYNCHRONISATION,
    "averaging": SYNCHRONISATION,
    "checkpoint": CHECKPOINT,
    "waiting": NEUTRAL,
    "idle": IDLE,
}


MEMORY = {
    "weights": NEUTRAL,
    "older versions": SERIES[2],
    "gradients": SERIES[1],
    "optimizer": OPTIMIZER,
    "activations": SERIES[0],
    "messages": COMMUNICATION,
    "layer at work": SERIES[4],
    "frozen weights and buffers": SERIES[3],
    "process": STAGES[0],
}
"""What a device holds, by the words of `backend.pipeline.memory`; weights as the parameters of the
layers' charts, and in the colours of actions what is theirs alone."""


def on(colour: str) -> str:
    """Black or white, whichever reads better on `colour`."""
    return "#FFFFFF" if colour in (FORWARD, BACKWARD_WEIGHT, SYNCHRONISATION) else "#1B2430"


def stage(number: int) -> str:
    """The grey of a stage; it only ever fills backgrounds and swatches."""
    return STAGES[number % len(STAGES)]
