"""Crown keeps the answer of a SQL join query up to date while its tables change."""
