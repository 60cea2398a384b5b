//! Compiles the API's definition without needing any tool besides cargo.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto/engine.proto");
    let definition = protox::compile(["engine.proto"], ["proto"])?;
    tonic_prost_build::configure()
        .btree_map(".")
        .type_attribute(".", "#[derive(serde::Serialize)]")
        .type_attribute(".", "#[serde(rename_all = \"camelCase\")]")
        .compile_fds(definition)?;
    Ok(())
}
