"""Measurements of this renderer beside its peers. torch may be used freely here; nothing else imports this package."""
