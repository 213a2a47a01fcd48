"""Work of the render thread: tasks that do one bounded step at a time, and the queue that chooses the next. No Qt."""
