//! `granary version`: of this program and of the API it talks to.

use clap::Args;
use serde_json::{Value, json};

use crate::{
    error::Result,
    exit::Exit,
    format::{ReportFormat, write_report},
    output::Output,
    request::Address,
    session::Session,
};

#[derive(Debug, Args)]
pub struct VersionArgs {
    /// Only of this program; talks to nobody
    #[arg(long)]
    pub client: bool,

    /// How to show it; without it two lines
    #[arg(short, long, value_name = "FORMAT")]
    pub output: Option<ReportFormat>,
}

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Prints what it knows before it fails.
pub async fn run(session: &Session, args: &VersionArgs, output: &mut Output) -> Result<Exit> {
    let server = if args.client { Ok(None) } else { session.get(&Address::path("/version")).await.map(Some) };
    show(args.output, server.as_ref().ok().and_then(Option::as_ref), output)?;
    server?;
    Ok(Exit::Ok)
}

pub(super) fn show(format: Option<ReportFormat>, server: Option<&Value>, output: &mut Output) -> Result<()> {
    let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
    if let Some(format) = format {
        let mut report =
            json!({"clientVersion": {"gitVersion": format!("v{VERSION}"), "platform": platform}});
        if let Some(server) = server {
            report["serverVersion"] = server.clone();
        }
        return write_report(output, format, &report);
    }
    output.line(format_args!("Client: granary v{VERSION} ({platform})"))?;
    if let Some(server) = server {
        let text = |key: &str| server[key].as_str().unwrap_or("unknown");
        output.line(format_args!("Server: {} ({})", text("gitVersion"), text("platform")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::testing::captured;

    #[test]
    fn the_version_is_shown_for_people_and_for_programs() {
        let server = json!({"gitVersion": "v1.36.0", "platform": "linux/amd64", "major": "1"});
        let (mut output, out, _) = captured();
        show(None, Some(&server), &mut output).unwrap();
        assert!(out.text().ends_with("Server: v1.36.0 (linux/amd64)\n"), "{}", out.text());

        let (mut output, out, _) = captured();
        show(Some(ReportFormat::Json), Some(&server), &mut output).unwrap();
        let report: Value = serde_json::from_str(&out.text()).unwrap();
        assert_eq!(report["serverVersion"], server);
        assert_eq!(report["clientVersion"]["gitVersion"], format!("v{VERSION}"));

        let (mut output, out, _) = captured();
        show(Some(ReportFormat::Yaml), None, &mut output).unwrap();
        assert!(
            out.text().starts_with("clientVersion:\n") && !out.text().contains("server"),
            "{}",
            out.text()
        );
    }
}
