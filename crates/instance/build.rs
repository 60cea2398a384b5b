//! Compiles the services' definitions without needing any tool besides cargo, and keeps them for reflection.

use std::error::Error;
use std::path::PathBuf;

use prost::Message;

const FILES: [&str; 3] = ["process.proto", "proxy.proto", "instance.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let definitions = protox::compile(FILES, ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("definitions.bin"), definitions.encode_to_vec())?;
    tonic_prost_build::configure().btree_map(".").compile_fds(definitions)?;
    Ok(())
}
