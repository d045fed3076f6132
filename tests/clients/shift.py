"""How long the clients of a test work."""

import time


class Shift:
    """So many seconds, and then until there has been `enough()` to show something, which is later on a slow machine."""

    TIMES = 10  # more than a slow machine needs; whoever has done nothing by then does nothing

    def __init__(self, seconds, enough):
        self.seconds, self.enough, self.began = seconds, enough, time.monotonic()

    def goes_on(self):
        spent = time.monotonic() - self.began
        return spent < self.seconds or (spent < self.TIMES * self.seconds and not self.enough())
