//! `granary crds`.

use std::io::Write;
use std::process::ExitCode;

/// Prints all definitions as one YAML stream, ready for `kubectl apply --server-side -f -`.
pub fn print() -> ExitCode {
    let text = match granary_api::crds::yaml() {
        Ok(text) => text,
        Err(error) => {
            eprintln!("granary: the definitions cannot be written: {error}");
            return ExitCode::FAILURE;
        }
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("granary: {error}");
            ExitCode::FAILURE
        }
    }
}
