//! Two languages for how a volume is reached: the names that managers use, and our own specifications.

use granary_frontend::FrontendSpec;

use crate::Refusal;

/// What managers call a block device on the engine's machine.
const BLOCK_DEVICE: &str = "tgt-blockdev";
/// Where they look for it.
const DEVICES: &str = "/dev/longhorn";

/// `None`: the volume is not to be reached at all.
pub fn parse(text: &str, volume: &str) -> Result<Option<FrontendSpec>, Refusal> {
    let written = match text {
        "" => return Ok(None),
        BLOCK_DEVICE | "blockdev" => format!("device://{DEVICES}/{volume}"),
        "tgt-iscsi" | "iscsi" | "socket" | "rest" | "nvmf" | "ublk" => {
            return Err(Refusal::Unimplemented(format!(
                "volume {volume} cannot be reached by {text}; use {BLOCK_DEVICE}, nbd+unix:///PATH or nbd://HOST:PORT"
            )));
        }
        own => own.to_owned(),
    };
    written.parse().map(Some).map_err(|error| Refusal::Invalid(format!("volume {volume}: {error}")))
}

/// The name that managers compare with what they asked for.
pub fn name(spec: &FrontendSpec) -> String {
    match spec {
        FrontendSpec::Device { .. } => BLOCK_DEVICE.to_owned(),
        other => other.to_string(),
    }
}

/// Where managers find the volume: the link to a device is more use to them than the device.
pub fn endpoint(spec: &FrontendSpec, place: &str) -> String {
    match spec {
        FrontendSpec::Device { link: Some(link), .. } => link.display().to_string(),
        _ => place.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_languages_are_understood() {
        let spec = parse("tgt-blockdev", "v1").unwrap().unwrap();
        assert_eq!(spec.to_string(), "device:///dev/longhorn/v1");
        assert_eq!(
            (name(&spec).as_str(), endpoint(&spec, "/dev/loop3")),
            (BLOCK_DEVICE, "/dev/longhorn/v1".into())
        );
        let spec = parse("nbd+unix:///run/v.sock", "v1").unwrap().unwrap();
        assert_eq!(
            name(&spec),
            "nbd+unix:///?socket=/run/v.sock".parse::<FrontendSpec>().unwrap().to_string()
        );
        assert_eq!(parse("", "v1").unwrap(), None);
        assert!(
            matches!(parse("tgt-iscsi", "v1"), Err(Refusal::Unimplemented(message)) if message.contains("nbd"))
        );
        assert!(matches!(parse("carrier pigeon", "v1"), Err(Refusal::Invalid(_))));
    }
}
