//! A real S3 server on loopback, one for each story: versitygw over a directory of its own.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use granary_backup::{Credentials, TargetUrl};

pub const BUCKET: &str = "backups";

pub struct S3Server {
    process: Child,
    endpoint: String,
    directory: tempfile::TempDir,
}

fn program() -> PathBuf {
    let cache = |variable: &str, below: &str| {
        std::env::var_os(variable).map(|value| PathBuf::from(value).join(below))
    };
    let cache = cache("GRANARY_CACHE", "")
        .or_else(|| cache("XDG_CACHE_HOME", "granary"))
        .or_else(|| cache("HOME", ".cache/granary"))
        .unwrap_or_default();
    let program = cache.join("s3/versitygw");
    assert!(program.exists(), "{} is missing: run scripts/s3-server.sh, which builds it", program.display());
    program
}

impl S3Server {
    /// `arguments` are added to the server's own.
    pub fn start(scheme: &str, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join(BUCKET)).unwrap();
        // Free for a moment at least; another try if somebody was quicker.
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let address = format!("127.0.0.1:{port}");
            let mut process = Command::new(program())
                .args([
                    "--access",
                    "tester",
                    "--secret",
                    "test secret",
                    "--port",
                    &address,
                    "--quiet",
                    "--keep-alive",
                ])
                .args(arguments)
                .arg("posix")
                .arg(directory.path())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            for _ in 0..400 {
                if TcpStream::connect(&address).is_ok() {
                    return Self { process, endpoint: format!("{scheme}://{address}"), directory };
                }
                if process.try_wait().unwrap().is_some() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(25));
            }
            stop(&mut process);
        }
        panic!("{} does not start", program().display());
    }

    pub fn target(&self) -> TargetUrl {
        format!("s3://{BUCKET}@us-east-1/some/prefix").parse().unwrap()
    }

    pub fn credentials(&self) -> Credentials {
        self.credentials_with(&[])
    }

    /// Later entries win.
    pub fn credentials_with(&self, more: &[&str]) -> Credentials {
        let endpoint = format!("AWS_ENDPOINTS={}", self.endpoint);
        let own = ["AWS_ACCESS_KEY_ID=tester", "AWS_SECRET_ACCESS_KEY=test secret", &endpoint];
        Credentials::from_entries(own.into_iter().chain(more.iter().copied())).unwrap()
    }

    /// What lies in the bucket, as files.
    pub fn bucket(&self) -> PathBuf {
        self.directory.path().join(BUCKET)
    }
}

fn stop(process: &mut Child) {
    process.kill().unwrap();
    process.wait().unwrap();
}

impl Drop for S3Server {
    fn drop(&mut self) {
        stop(&mut self.process);
    }
}
