//! The replica role: who may write (fencing by generation and connection), and the service over a store.
