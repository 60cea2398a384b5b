//! Formats of addresses: of machines, of people, of resources.
//!
//! Owns these checks only. Must never resolve anything.

use std::net::Ipv6Addr;
use std::sync::LazyLock;

use regex::Regex;

pub fn is_ip(text: &str) -> bool {
    is_ipv4(text) || text.parse::<Ipv6Addr>().is_ok()
}

/// Four decimal numbers; leading zeros are tolerated, as they are in old objects.
fn is_ipv4(text: &str) -> bool {
    let number = |part: &str| {
        let digits = part.trim_start_matches('0');
        !part.is_empty() && digits.len() <= 3 && part.bytes().all(|b| b.is_ascii_digit()) && {
            digits.is_empty() || digits.parse::<u16>().is_ok_and(|n| n <= 255)
        }
    };
    text.split('.').count() == 4 && text.split('.').all(number)
}

pub fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let limit = if is_ipv4(address) {
        32
    } else if address.parse::<Ipv6Addr>().is_ok() {
        128
    } else {
        return false;
    };
    !bits.is_empty()
        && bits.bytes().all(|b| b.is_ascii_digit())
        && bits.parse::<u32>().is_ok_and(|n| n <= limit)
}

pub fn is_mac(text: &str) -> bool {
    let groups = |separator: char, width: usize| {
        let parts: Vec<&str> = text.split(separator).collect();
        let hex = |part: &&str| part.len() == width && part.bytes().all(|b| b.is_ascii_hexdigit());
        parts.iter().all(hex) && [6, 8, 20].contains(&(parts.len() * width / 2))
    };
    groups(':', 2) || groups('-', 2) || groups('.', 4)
}

/// Labels of letters, digits and symbols, dashes inside; the last of several labels is letters only.
pub fn is_hostname(text: &str) -> bool {
    static ONE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^[a-zA-Z0-9\p{S}\p{L}](?:-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?$")
            .expect("a constant expression")
    });
    static MANY: LazyLock<Regex> = LazyLock::new(|| {
        let label = r"[a-zA-Z0-9\p{S}\p{L}](?:[a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?\.";
        Regex::new(&format!(r"^(?:{label})+[a-zA-Z\p{{L}}]{{2,63}}$")).expect("a constant expression")
    });
    text.len() <= 255
        && text.split('.').all(|label| label.len() <= 63)
        && (ONE.is_match(text) || MANY.is_match(text))
}

/// An absolute path, or a scheme with anything that is not obviously broken behind it.
pub fn is_request_uri(text: &str) -> bool {
    if text == "*" {
        return true;
    }
    if text.bytes().any(|b| b < 0x20 || b == 0x7f) || !percent_signs_are_escapes(text) {
        return false;
    }
    if text.starts_with('/') {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let scheme_ok = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    let authority_ok = match rest.strip_prefix("//") {
        None => true,
        Some(after) => {
            let authority = after.split(['/', '?']).next().unwrap_or_default();
            let host = authority.rsplit('@').next().unwrap_or_default();
            let port = host.rsplit_once(':').map_or("", |(_, p)| p);
            !host.contains([' ', '"', '<', '>', '\\', '^', '`', '{', '|', '}'])
                && (host.ends_with(']') || port.bytes().all(|b| b.is_ascii_digit()))
        }
    };
    scheme_ok && authority_ok
}

fn percent_signs_are_escapes(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes
        .iter()
        .enumerate()
        .filter(|(_, b)| **b == b'%')
        .all(|(at, _)| bytes.get(at + 1..at + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)))
}

/// `user@host`, with or without a display name around it.
pub fn is_email(text: &str) -> bool {
    let text = text.trim();
    let address = match text.strip_suffix('>') {
        Some(named) => match named.rsplit_once('<') {
            Some((_, address)) => address,
            None => return false,
        },
        None => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let atom = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_alphanumeric() || !c.is_ascii() || "!#$%&'*+-/=?^_`{|}~".contains(c))
    };
    let quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    let literal = domain.starts_with('[') && domain.ends_with(']') && is_ip(&domain[1..domain.len() - 1]);
    (quoted || local.split('.').all(atom)) && (literal || domain.split('.').all(atom))
}
