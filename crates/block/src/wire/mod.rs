//! What engine and replica say to each other, and how it looks as bytes.
//! Messages here carry meaning only; the engine's and the replica's rules live with them.

pub mod message;
