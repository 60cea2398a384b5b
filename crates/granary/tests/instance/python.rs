//! A client in another language, written from the tables of the protocol alone.

use std::path::PathBuf;
use std::process::Command;

use crate::cluster::{Manager, on_one_thread};

/// A Python that speaks gRPC. Where it cannot be had, the terminal is told; a CI machine has no excuse.
fn python() -> Option<PathBuf> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/peers/python.sh");
    let output = Command::new(script).output().unwrap();
    if output.status.success() {
        return Some(String::from_utf8(output.stdout).unwrap().trim().into());
    }
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(std::env::var_os("CI").is_none(), "CI must run the client in Python: {why}");
    // Not by a macro, whose words are kept back from a test that passes.
    std::io::Write::write_all(
        &mut std::io::stderr(),
        format!("SKIPPED: the instance manager's client in Python; {why}\n").as_bytes(),
    )
    .ok();
    None
}

#[test]
fn a_client_in_python_drives_a_volume() {
    let Some(python) = python() else { return };
    on_one_thread(async {
        let manager = Manager::new();
        let target = manager.target();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/instance/client.py");
        let mut command = Command::new(python);
        command.args([script, &target.port.to_string()]).arg(manager.path("data"));
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(said.ends_with("all went well\n"), "{said}");
        assert!(manager.names().await.is_empty(), "it cleans up");
    });
}
