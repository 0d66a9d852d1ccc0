"""Storage types, named by their role.

Changing a precision is one edit here and one in the kernels.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FEATURE = np.float32  # of X in data sets; float64 input is also scored, without rounding
LABEL = np.float64
WEIGHT = np.float64  # weights of documents and queries
SCORE = np.float64
NODE = np.int32  # numbers of features, nodes and leaves inside a tree
THRESHOLD = np.float64
LEAF_VALUE = np.float64
OFFSET = np.int64  # positions in arrays of documents, nodes and leaves

FeatureMatrix: TypeAlias = NDArray[np.float32]
FloatArray: TypeAlias = NDArray[np.float64]
NodeArray: TypeAlias = NDArray[np.int32]
OffsetArray: TypeAlias = NDArray[np.int64]
IndexArray: TypeAlias = NDArray[np.int64]
AnyArray: TypeAlias = NDArray[Any]
