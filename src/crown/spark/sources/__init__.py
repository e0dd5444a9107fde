"""Sources of changes: files, Delta, Kafka, Debezium."""
