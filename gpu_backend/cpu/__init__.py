"""The CPU executor: runs plans with torch's CPU operations, in float32 and channels-last."""
