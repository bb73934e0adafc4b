from __future__ import annotations


def error_of(action):
    """The message of the ValueError that an action raises, or None; any other error passes."""
    try:
        action()
    except ValueError as error:
        return str(error)
    return None
