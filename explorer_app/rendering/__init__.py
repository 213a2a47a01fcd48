"""From requests to frames without ever holding up the window: mailboxes, the queue of exports, the rendering thread."""
