//! When a process serves. Ours say so in their first line; others are asked for their health at their first port.

use std::time::Duration;

use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::log::Announcement;

/// A user waits for this.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const ASK_AGAIN: Duration = Duration::from_millis(100);
const ANSWER: Duration = Duration::from_secs(1);

pub enum Sign {
    /// It says so in its log.
    Announced(Announcement),
    /// It answers at this port.
    Health(u16),
    /// There is nothing to wait for.
    None,
}

impl Sign {
    /// Returns when the process serves, with what it said.
    pub async fn seen(&mut self) -> String {
        match self {
            Self::Announced(announcement) => loop {
                match announcement.look() {
                    Ok(Some(line)) => return line,
                    Ok(None) => {}
                    Err(error) => tracing::warn!(%error, "a log cannot be read"),
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            },
            Self::Health(port) => {
                while !is_healthy(*port).await {
                    tokio::time::sleep(ASK_AGAIN).await;
                }
                String::new()
            }
            Self::None => String::new(),
        }
    }
}

async fn is_healthy(port: u16) -> bool {
    let Ok(endpoint) = Endpoint::from_shared(format!("http://127.0.0.1:{port}")) else { return false };
    let asked = async {
        let channel = endpoint.connect().await.ok()?;
        let request = HealthCheckRequest { service: String::new() };
        let answer = HealthClient::new(channel).check(request).await.ok()?;
        Some(answer.into_inner().status())
    };
    matches!(tokio::time::timeout(ANSWER, asked).await, Ok(Some(ServingStatus::Serving)))
}
