"""What a plan guarantees and why: as facts, text, picture and page."""
