"""From requests to frames without blocking the GUI thread: mailboxes, the task queue, the render thread."""
