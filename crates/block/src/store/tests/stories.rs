//! What a user of a volume meets, one behaviour at a time.
