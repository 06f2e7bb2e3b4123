"""Dom, the set of possible individuals: a box, some of whose columns may be discrete, along some of whose directions
people may run further than its columns would let them.

    Dom = { M p + A z : p in the box, low <= z <= high },   M = I - A A^T             (A orthonormal, maybe empty)

One definition for training's search, audit, certificate and files.
"""

from evenhand.domain.box import Box
from evenhand.domain.free import FreeBox

__all__ = ["Box", "FreeBox"]
