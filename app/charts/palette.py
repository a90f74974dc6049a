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

CURVE = "#9C6B3F"  # brown: what is measured over minibatches, beside the actions of a timeline
PAIR = (RECOMPUTE, SYNCHRONISATION)
"""Two things laid beside each other where neither action is shown."""
LIMIT = "#D55E00"  # what a device has, and more than that
IDLE = "rgba(128, 138, 152, 0.18)"
NEUTRAL = "#808A98"  # legible on white and on near-black
GRID = "rgba(128, 138, 152, 0.18)"
STAGES = ("#56B4E9", "#009E73", "#CC79A7", "#D55E00", "#F0E442", "#808A98")


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
    "data": DATA,
    "checkpoint": CHECKPOINT,
    "waiting": NEUTRAL,
    "idle": IDLE,
}


MEMORY = {
    "weights": BACKWARD_WEIGHT,
    "older versions": DATA,
    "gradients": BACKWARD,
    "optimizer": OPTIMIZER,
    "activations": FORWARD,
    "bundles": COMMUNICATION,
    "layer at work": BACKWARD_INPUT,
    "frozen weights and buffers": CHECKPOINT,
    "process": NEUTRAL,
}
"""What a device holds, by the words of `backend.pipeline.memory`."""


def on(colour: str) -> str:
    """Black or white, whichever reads better on `colour`."""
    return "#FFFFFF" if colour in (FORWARD, BACKWARD_WEIGHT, SYNCHRONISATION) else "#1B2430"


def stage(number: int) -> str:
    """The hue of a stage; it only ever fills backgrounds and swatches."""
    return STAGES[number % len(STAGES)]
