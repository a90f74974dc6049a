"""Whole numbers as people and links write them."""

MOST_DIGITS = 9
"""Every such number fits every database's columns; Python itself reads 4,300 digits at most."""


def is_whole(text: str) -> bool:
    """Whether `text` is a number of 0 or more that anything here can have or count."""
    return text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
