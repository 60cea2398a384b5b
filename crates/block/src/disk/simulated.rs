//! A file system in memory that loses what was not synced.
