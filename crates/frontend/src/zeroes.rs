//! Zeroes that are known to be zeroes: one static range that every hole is a slice of.
//! A volume answers a read of a hole with [`zeroes`]; a frontend that can say "hole" finds out with [`are_zeroes`]
//! by looking at the address, never at the bytes.

use bytes::{Bytes, BytesMut};

/// As large as the largest read a frontend passes on. It lies in `.bss`, so it costs address space, not memory:
/// reads map the kernel's zero page.
const LEN: usize = 32 << 20;
static ZEROES: [u8; LEN] = [0; LEN];

/// `len` zero bytes; without memory of their own up to 32 MiB.
pub fn zeroes(len: usize) -> Bytes {
    match ZEROES.get(..len) {
        Some(range) => Bytes::from_static(range),
        None => BytesMut::zeroed(len).freeze(),
    }
}

/// Whether these bytes came from [`zeroes`]. `false` says nothing about what they hold.
pub fn are_zeroes(bytes: &Bytes) -> bool {
    ZEROES.as_ptr_range().contains(&bytes.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_is_recognised_by_its_address_and_data_is_not() {
        assert!(are_zeroes(&zeroes(4096)));
        assert!(are_zeroes(&zeroes(LEN).slice(LEN - 1..)));
        assert!(!are_zeroes(&Bytes::from(vec![0; 4096])), "equal bytes are not known zeroes");
        assert_eq!(zeroes(LEN + 1).len(), LEN + 1);
    }
}
