//! The life of processes: created, watched, stopped, forgotten; and the end of everything.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use granary_instance::wire::imrpc::{
    DataEngine, InstanceCreateRequest, InstanceGetRequest, InstanceSpec, ProcessInstanceSpec,
};
use granary_instance::wire::process::{LogRequest, ProcessSpec};
use tonic::Code;
use tonic_health::ServingStatus;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::cluster::{GRANARY, HANGS, Manager, on_one_thread, spec};

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
fn a_process_is_created_watched_and_deleted() {
    on_one_thread(async {
        let manager = Manager::new();
        let mut processes = manager.connection().processes().unwrap();
        let mut changes = processes.process_watch(()).await.unwrap().into_inner();
        let address = manager.replica("v", 0).await;
        let running = manager.get("v-r0").await.unwrap();
        let status = running.status.unwrap();
        assert_eq!(
            (status.port_start, status.port_end),
            (i32::from(manager.first_port()), i32::from(manager.first_port()))
        );
        assert!(address.ends_with(&status.port_start.to_string()));
        assert_eq!(
            running.spec.unwrap().port_args,
            ["--listen,127.0.0.1:"],
            "the spec is told as it was given"
        );
        let (pid, _) = manager.process_of(&status.uuid);
        assert!(is_alive(pid));

        let again = manager.create(spec("v-r0", &["replica"], &[])).await.unwrap_err();
        assert_eq!(again.code(), Code::AlreadyExists, "{again}");
        let stale = manager.delete("v-r0", "another-uuid").await.unwrap_err();
        assert_eq!(stale.code(), Code::NotFound, "{stale}");
        assert_eq!(manager.get("v-r0").await.unwrap().status.unwrap().state, "running");

        let mut lines = processes.process_log(LogRequest { name: "v-r0".into() }).await.unwrap().into_inner();
        let mut said = Vec::new();
        while let Some(line) = lines.message().await.unwrap() {
            said.push(line.line);
        }
        assert!(said.iter().any(|line| line.starts_with("ready ")), "{said:?}");

        let deleted = manager.delete("v-r0", &status.uuid).await.unwrap();
        assert!(deleted.deleted);
        manager.until_gone("v-r0").await;
        assert!(!is_alive(pid));
        assert_eq!(manager.delete("v-r0", "").await.unwrap_err().code(), Code::NotFound);
        let mut seen = Vec::new();
        while seen.last().is_none_or(|(_, deleted)| !deleted) {
            let change = tokio::time::timeout(HANGS, changes.message()).await.unwrap().unwrap().unwrap();
            seen.push((change.status.unwrap().state, change.deleted));
        }
        let expected = [("running", false), ("stopping", false), ("stopped", false), ("stopped", true)];
        assert_eq!(seen, expected.map(|(state, deleted)| (state.to_owned(), deleted)));
        manager.replica("v", 0).await;
    });
}

#[test]
fn what_cannot_start_is_in_error_and_says_why() {
    on_one_thread(async {
        let manager = Manager::new();
        let missing = manager.path("nowhere").display().to_string();
        let args = ["replica", "--volume", "v", "--dir", &missing];
        let created = manager.create(spec("r", &args, &["--listen,127.0.0.1:"])).await.unwrap();
        assert_eq!(created.status.unwrap().state, "starting");
        let status = manager.until("r", "error").await.status.unwrap();
        assert!(status.error_msg.contains("--size"), "{}", status.error_msg);
        manager.delete("r", "").await.unwrap();
        manager.until_gone("r").await;
    });
}

#[test]
fn ports_run_out_and_come_back() {
    on_one_thread(async {
        let manager = Manager::new();
        let wide = |name: &str| {
            let dir = manager.path(name).display().to_string();
            let args = ["replica", "--volume", "v", "--dir", &dir, "--size", "1MiB"];
            ProcessSpec { port_count: 25, ..spec(name, &args, &["--listen,127.0.0.1:"]) }
        };
        for name in ["a", "b"] {
            manager.create(wide(name)).await.unwrap();
            manager.until(name, "running").await;
        }
        let refused = manager.create(wide("c")).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
        assert!(refused.message().contains("--port-range"), "{refused}");
        assert_eq!(manager.names().await, ["a", "b"], "what was refused is not there");
        manager.delete("a", "").await.unwrap();
        manager.until_gone("a").await;
        manager.create(wide("c")).await.unwrap();
        manager.until("c", "running").await;
    });
}

#[test]
fn a_process_that_does_not_stop_is_killed() {
    on_one_thread(async {
        let manager = Manager::with_flags(&["--create-keys", "--stop-timeout", "1"]);
        manager.replica("v", 0).await;
        let run = manager.get("v-r0").await.unwrap().status.unwrap().uuid;
        let pid = rustix::process::Pid::from_raw(manager.process_of(&run).0 as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        manager.delete("v-r0", "").await.unwrap();
        manager.until_gone("v-r0").await;
    });
}

#[test]
fn the_end_of_the_manager_is_the_end_of_all() {
    on_one_thread(async {
        let mut manager = Manager::new();
        let replicas = manager.replicas("v", 2).await;
        let engine = manager.engine("v", &replicas, &["--frontend", &manager.nbd("v")]).await;
        let client = manager.client("v").await;
        let pid = manager.process_of(&engine.status.unwrap().uuid).0;
        let mut processes = manager.connection().processes().unwrap();
        let mut changes = processes.process_watch(()).await.unwrap().into_inner();
        drop(client);
        let ended = tokio::task::spawn_blocking(move || {
            manager.terminate();
            manager
        });
        while let Ok(Some(_)) = tokio::time::timeout(HANGS, changes.message()).await.unwrap() {}
        let manager = ended.await.unwrap();
        assert!(!is_alive(pid));
        let left: Vec<_> = std::fs::read_dir(manager.path("state"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["lock"], "only the lock file is left");
        let log = std::fs::read_to_string(manager.path("logs/v-r0.log")).unwrap();
        assert!(!log.contains("ERROR"), "{log}");
    });
}

#[test]
fn the_instance_service_shows_the_same_processes() {
    on_one_thread(async {
        let manager = Manager::new();
        let mut instances = manager.connection().instances().unwrap();
        let mut changes = instances.instance_watch(()).await.unwrap().into_inner();
        let dir = manager.path("r").display().to_string();
        let args = ["--volume-name", "v", "replica", &dir, "--size", "67108864", "--disableRevCounter"];
        let wanted = InstanceSpec {
            name: "v-r".into(),
            r#type: "replica".into(),
            volume_name: "v".into(),
            port_count: 10,
            port_args: vec!["--listen,0.0.0.0:".into()],
            process_instance_spec: Some(ProcessInstanceSpec {
                binary: "/engine-binaries/an-image/longhorn".into(),
                args: args.map(str::to_owned).to_vec(),
            }),
            ..Default::default()
        };
        instances.instance_create(InstanceCreateRequest { spec: Some(wanted.clone()) }).await.unwrap();
        tokio::time::timeout(HANGS, changes.message()).await.unwrap().unwrap().unwrap();
        manager.until("v-r", "running").await;
        let request =
            InstanceGetRequest { name: "v-r".into(), r#type: "replica".into(), ..Default::default() };
        let got = instances.instance_get(request).await.unwrap().into_inner();
        assert_eq!(got.spec.unwrap(), wanted);
        let status = got.status.unwrap();
        assert_eq!((status.state.as_str(), status.port_end - status.port_start), ("running", 9));
        let other = InstanceSpec { name: "x".into(), data_engine: DataEngine::V2 as i32, ..wanted };
        let refused =
            instances.instance_create(InstanceCreateRequest { spec: Some(other) }).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unimplemented, "{refused}");
        assert_eq!(instances.version_get(()).await.unwrap().into_inner().instance_manager_api_version, 6);
        tokio::time::sleep(Duration::from_millis(10)).await;
    });
}

#[test]
fn each_port_tells_its_health_and_describes_itself() {
    on_one_thread(async {
        let manager = Manager::new();
        let first = manager.target().port;
        let services = ["ProcessManagerService", "imrpc.ProxyEngineService", "imrpc.InstanceService"];
        for (port, service) in [first, first + 1, first + 3].into_iter().zip(services) {
            let endpoint =
                tonic::transport::Endpoint::from_shared(format!("http://127.0.0.1:{port}")).unwrap();
            let channel = endpoint.connect().await.unwrap();
            let request = HealthCheckRequest { service: service.into() };
            let health = HealthClient::new(channel.clone()).check(request).await.unwrap().into_inner();
            assert_eq!(health.status, ServingStatus::Serving as i32, "{service}");
            let message_request = Some(MessageRequest::FileContainingSymbol(service.into()));
            let asked = ServerReflectionRequest { host: String::new(), message_request };
            let mut client = ServerReflectionClient::new(channel);
            let answers = client.server_reflection_info(futures::stream::iter([asked])).await.unwrap();
            let answer = answers.into_inner().message().await.unwrap().unwrap().message_response.unwrap();
            assert!(matches!(answer, MessageResponse::FileDescriptorResponse(_)), "{service}: {answer:?}");
        }
    });
}

/// Any program that tells its health at its first port; here, another instance manager.
#[test]
fn a_program_of_others_runs_when_it_is_healthy() {
    on_one_thread(async {
        let home = tempfile::tempdir().unwrap();
        let binaries = home.path().join("bin");
        std::fs::create_dir(&binaries).unwrap();
        let script = |name: &str, text: &str| {
            let path = binaries.join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
            path.display().to_string()
        };
        let nested = home.path().join("nested").display().to_string();
        let healthy =
            script("healthy", &format!("exec {GRANARY} instance-manager --state-dir {nested} \"$@\""));
        let silent = script("silent", "exec sleep 1000");
        let flags = ["--binaries", binaries.to_str().unwrap(), "--start-timeout", "3"];
        let manager = Manager::in_home(home, &flags);
        let wanted = |name: &str, binary: &str, port_count| ProcessSpec {
            binary: binary.to_owned(),
            port_count,
            ..spec(name, &[], if port_count > 0 { &["--listen,127.0.0.1:"] } else { &[] })
        };
        manager.create(wanted("inner", &healthy, 4)).await.unwrap();
        manager.create(wanted("silent", &silent, 1)).await.unwrap();
        manager.create(wanted("simple", &silent, 0)).await.unwrap();
        manager.until("simple", "running").await;
        manager.until("inner", "running").await;
        let late = manager.until("silent", "error").await.status.unwrap();
        assert!(late.error_msg.contains("3 s"), "{}", late.error_msg);
        for name in ["inner", "silent", "simple"] {
            manager.delete(name, "").await.unwrap();
            manager.until_gone(name).await;
        }
    });
}
