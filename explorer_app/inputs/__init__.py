"""Live inputs and outputs: OSC, MIDI, gamepads. No Qt, no torch; threads of their own write to a `ValueBoard`."""
