//! A replica's bytes: one directory with a metadata file that is replaced atomically and a tree of sparse layers.
//! Knows nothing of engines, generations' meaning or the network; never changes a frozen layer's content.
