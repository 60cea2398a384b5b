//! Internet addresses and ranges in text.
//!
//! Owns what counts as a valid one, and the complaints about the others. Must never resolve a name.

use std::net::{IpAddr, Ipv4Addr};

const NOT_AN_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const NOT_A_RANGE: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// An address in strict form.
pub fn ip(text: &str) -> Vec<String> {
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(six)) if six.to_ipv4_mapped().is_some() => {
            vec!["must not be an IPv4-mapped IPv6 address".into()]
        }
        Ok(_) => Vec::new(),
        Err(_) if without_leading_zeros(text).is_some() => vec!["must not have leading 0s".into()],
        Err(_) => vec![NOT_AN_ADDRESS.into()],
    }
}

/// An address that others can connect to.
pub fn endpoint(text: &str) -> Vec<String> {
    let mut complaints = ip(text);
    let Some(address) = text.parse().ok().or_else(|| without_leading_zeros(text)) else {
        complaints.push("must be a valid IP address".into());
        return complaints;
    };
    let (link_local, link_local_multicast) = match address {
        IpAddr::V4(four) => (four.is_link_local(), four.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(six) => (six.is_unicast_link_local(), six.segments()[0] & 0xff0f == 0xff02),
    };
    if address.is_unspecified() {
        complaints.push(format!("may not be unspecified ({text})"));
    }
    if address.is_loopback() {
        complaints.push("may not be in the loopback range (127.0.0.0/8, ::1/128)".into());
    }
    if link_local {
        complaints.push("may not be in the link-local range (169.254.0.0/16, fe80::/10)".into());
    }
    if link_local_multicast {
        complaints.push("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".into());
    }
    complaints
}

/// A range as `address/length`, without bits beyond the length.
pub fn cidr(text: &str) -> Vec<String> {
    let parsed = text.split_once('/').and_then(|(address, length)| {
        let address = address.parse::<IpAddr>().ok()?;
        let digits =
            length.bytes().all(|c| c.is_ascii_digit()) && (length == "0" || !length.starts_with('0'));
        let length = length.parse::<u32>().ok().filter(|_| digits)?;
        Some((address, length))
    });
    match parsed {
        Some((IpAddr::V4(four), length @ 0..=32)) => beyond(u128::from(four.to_bits()), 32 - length),
        Some((IpAddr::V6(six), length @ 0..=128)) => beyond(six.to_bits(), 128 - length),
        _ => vec![NOT_A_RANGE.into()],
    }
}

fn beyond(bits: u128, free: u32) -> Vec<String> {
    let inside = u128::MAX.checked_shl(free).unwrap_or(0);
    match bits & !inside {
        0 => Vec::new(),
        _ => vec!["must not have bits set beyond the prefix length".into()],
    }
}

/// `010.0.0.1`, which programs read in different ways.
fn without_leading_zeros(text: &str) -> Option<IpAddr> {
    let parts: Vec<u8> = text
        .split('.')
        .map(|part| part.parse::<u8>().ok().filter(|_| part.bytes().all(|c| c.is_ascii_digit())))
        .collect::<Option<_>>()?;
    let octets: [u8; 4] = parts.try_into().ok()?;
    Some(IpAddr::V4(Ipv4Addr::from(octets)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for fine in ["10.9.8.7", "2001:db8::ffff", "::1"] {
            assert_eq!(ip(fine), [""; 0], "{fine}");
        }
        assert_eq!(ip("010.0.0.1"), ["must not have leading 0s"]);
        assert_eq!(ip("::ffff:1.2.3.4"), ["must not be an IPv4-mapped IPv6 address"]);
        for bad in ["", "10.0.0", "10.0.0.256", "host", "+1.2.3.4"] {
            assert_eq!(ip(bad), [NOT_AN_ADDRESS], "{bad}");
        }
        assert_eq!(endpoint("10.0.0.1"), [""; 0]);
        assert_eq!(endpoint("127.0.0.1"), ["may not be in the loopback range (127.0.0.0/8, ::1/128)"]);
        assert_eq!(endpoint("0.0.0.0"), ["may not be unspecified (0.0.0.0)"]);
        assert_eq!(endpoint("fe80::1"), ["may not be in the link-local range (169.254.0.0/16, fe80::/10)"]);
    }

    #[test]
    fn ranges() {
        for fine in ["10.9.8.0/24", "0.0.0.0/0", "10.0.0.1/32", "2001:db8::/64", "::/0"] {
            assert_eq!(cidr(fine), [""; 0], "{fine}");
        }
        assert_eq!(cidr("10.9.8.7/24"), ["must not have bits set beyond the prefix length"]);
        for bad in ["10.0.0.0", "10.0.0.0/33", "10.0.0.0/+8", "x/8", "::/129"] {
            assert_eq!(cidr(bad), [NOT_A_RANGE], "{bad}");
        }
    }
}
