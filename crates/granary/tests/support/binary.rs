//! The real `granary up` as a child process on a free loopback port.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;
use tempfile::TempDir;

use super::eventually;

pub struct Binary {
    child: Child,
    dir: TempDir,
    address: SocketAddr,
}

impl Binary {
    pub async fn start(history: Duration) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let settings = format!("historySeconds: {}\n", history.as_secs().max(1));
        std::fs::write(dir.path().join("granary.yaml"), settings).unwrap();
        let child = spawn(dir.path(), "127.0.0.1:0");
        let mut binary = Self { child, dir, address: ([127, 0, 0, 1], 0).into() };
        binary.wait_until_ready().await;
        let server = binary.kubeconfig().clusters.remove(0).cluster.unwrap().server.unwrap();
        binary.address = server.trim_start_matches("https://").parse().unwrap();
        binary
    }

    pub fn data_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub fn kubeconfig(&self) -> Kubeconfig {
        Kubeconfig::read_from(self.data_dir().join("kubeconfig")).unwrap()
    }

    /// A client as the admin.
    pub async fn client(&self) -> Client {
        connect(self.kubeconfig(), true).await
    }

    /// A client as the admin that takes the first answer for an answer.
    pub async fn impatient_client(&self) -> Client {
        connect(self.kubeconfig(), false).await
    }

    /// An impatient client with another token, or none.
    pub async fn client_with_token(&self, token: Option<&str>) -> Client {
        let mut config = self.kubeconfig();
        let user = match token {
            Some(token) => json!({ "token": token }),
            None => json!({}),
        };
        config.auth_infos[0].auth_info = Some(serde_json::from_value(user).unwrap());
        connect(config, false).await
    }

    /// Makes a token with the binary's own command.
    pub fn make_token(&self, user: &str, role: &str) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_granary"))
            .args(["--data-dir".as_ref(), self.data_dir().as_os_str()])
            .args(["token", "create", user, "--role", role])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_string()
    }

    /// Ends the process as a power cut would.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts again on the same address and data.
    pub async fn start_again(&mut self) {
        self.child = spawn(self.dir.path(), &self.address.to_string());
        self.wait_until_ready().await;
    }

    async fn wait_until_ready(&mut self) {
        let data_dir = self.data_dir();
        let child = std::cell::RefCell::new(&mut self.child);
        eventually("granary up to be ready", || async {
            if let Some(status) = child.borrow_mut().try_wait().unwrap() {
                panic!("granary up ended with {status}");
            }
            let config = Kubeconfig::read_from(data_dir.join("kubeconfig")).ok()?;
            // A killed server leaves its kubeconfig behind; only an answer counts.
            connect(config, false).await.apiserver_version().await.ok()
        })
        .await;
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn spawn(dir: &Path, listen: &str) -> Child {
    let log = std::fs::OpenOptions::new().create(true).append(true).open(dir.join("log")).unwrap();
    Command::new(env!("CARGO_BIN_EXE_granary"))
        .arg("--data-dir")
        .arg(dir.join("data"))
        .args(["up", "--listen", listen, "--config"])
        .arg(dir.join("granary.yaml"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

/// `retries` is how client libraries come: they ask again when the server says it is not ready.
async fn connect(config: Kubeconfig, retries: bool) -> Client {
    let mut config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    config.default_retry = retries;
    Client::try_from(config).unwrap()
}
