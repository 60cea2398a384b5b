//! Settings: which there are and what they may be ([`catalogue`]), their values ([`Values`]), and the rules for
//! changing one ([`hook`]).

mod admission;
pub mod catalogue;
mod ensure;
mod network;
mod values;

pub use admission::hook;
pub use ensure::ensure;
pub use values::Values;
