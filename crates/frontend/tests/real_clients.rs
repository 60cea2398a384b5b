//! The NBD server with the clients people use: libnbd's tools, QEMU's, and fio with verification.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::Path;
use std::time::Duration;

use granary_frontend::nbd::{Address, Export, Server, ServerTls, TlsFiles};
use granary_frontend::{FileVolume, Volume, VolumeError};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use support::{MIB, Served, on_one_thread, run, try_run, write_pattern};

#[test]
fn nbdinfo_sees_everything_the_server_can_do() {
    on_one_thread(async {
        let served = Served::new(64 * MIB).await;
        let url = served.url().to_string();
        let info = run("libnbd-bin", "nbdinfo", ["--json", &url]).await;
        for expected in [
            r#""protocol": "newstyle-fixed""#,
            r#""structured": true"#,
            r#""export-size": 67108864"#,
            r#""base:allocation""#,
            r#""can_multi_conn": true"#,
            r#""can_fua": true"#,
            r#""can_trim": true"#,
            r#""can_fast_zero": true"#,
            r#""can_df": true"#,
            r#""can_cache": true"#,
            r#""block_size_maximum": 33554432"#,
        ] {
            assert!(info.contains(expected), "{expected} is not in {info}");
        }
        let list = run("libnbd-bin", "nbdinfo", ["--list", &url]).await;
        assert!(list.contains("export=\"disk\""), "{list}");

        served.volume.inner.expand(128 * MIB).unwrap();
        let size = run("libnbd-bin", "nbdinfo", ["--size", &url]).await;
        assert_eq!(size.trim(), "134217728", "a client that connects anew sees the new size");
        served.server.stop().await;
    });
}

#[test]
fn nbdcopy_with_many_connections_brings_the_same_bytes_there_and_back() {
    on_one_thread(async {
        let served = Served::new(64 * MIB).await;
        let (url, image, back) = (served.url().to_string(), served.path("image"), served.path("back"));
        write_pattern(&image, 64 * MIB, 7);
        let (image, back) = (image.to_str().unwrap(), back.to_str().unwrap());
        run("libnbd-bin", "nbdcopy", ["--connections=4", "--flush", image, &url]).await;
        assert_ne!(served.volume.faults.flushes.get(), 0, "nbdcopy was asked to flush");
        run("libnbd-bin", "nbdcopy", ["--connections=4", &url, back]).await;
        run("diffutils", "cmp", [image, back]).await;
        served.server.stop().await;
    });
}

#[test]
fn qemu_img_converts_compares_maps_and_benches() {
    on_one_thread(async {
        let served = Served::new(64 * MIB).await;
        let url = served.url().to_string();
        let (image, qcow) = (served.path("image"), served.path("image.qcow2"));
        write_pattern(&image, 16 * MIB, 9);
        std::fs::File::options().write(true).open(&image).unwrap().set_len(64 * MIB).unwrap();
        let (image, qcow) = (image.to_str().unwrap(), qcow.to_str().unwrap());
        run("qemu-utils", "qemu-img", ["convert", "-n", "-f", "raw", "-O", "raw", image, &url]).await;
        run("qemu-utils", "qemu-img", ["compare", "-f", "raw", "-F", "raw", image, &url]).await;
        let map = run("qemu-utils", "qemu-img", ["map", "--output=json", "-f", "raw", &url]).await;
        assert!(
            map.contains(
                r#""start": 16777216, "length": 50331648, "depth": 0, "present": true, "zero": true"#
            ) || map.contains(
                r#""start": 16777216, "length": 50331648, "depth": 0, "present": false, "zero": true"#
            ),
            "the hole is not there: {map}"
        );
        run("qemu-utils", "qemu-img", ["convert", "-f", "raw", "-O", "qcow2", &url, qcow]).await;
        run("qemu-utils", "qemu-img", ["compare", qcow, image]).await;
        for direction in [&["-w"][..], &[]] {
            let bench = ["bench", "-c", "2000", "-d", "32", "-s", "4096", "-f", "raw", &url];
            run("qemu-utils", "qemu-img", [&bench[..1], direction, &bench[1..]].concat()).await;
        }
        served.server.stop().await;
    });
}

#[test]
fn qemu_io_writes_zeroes_discards_and_is_told_of_errors() {
    on_one_thread(async {
        let served = Served::new(64 * MIB).await;
        let url = served.url().to_string();
        let qemu_io = |commands: &[&str]| {
            let commands = commands.iter().flat_map(|command| ["-c".to_owned(), (*command).to_owned()]);
            let head = ["-t", "none", "-f", "raw"].map(str::to_owned);
            let arguments: Vec<_> = head.into_iter().chain(commands).chain([url.clone()]).collect();
            async move { try_run("qemu-utils", "qemu-io", arguments).await }
        };
        let (ok, output) = qemu_io(&[
            "write -P 7 0 1M",
            "write -f -P 8 1M 513",
            "write -z 64k 64k",
            "write -z -u 128k 64k",
            "discard 256k 64k",
            "flush",
            "read -P 7 0 64k",
            "read -P 0 64k 128k",
            "read -P 7 192k 64k",
            "read -P 0 256k 64k",
            "read -P 8 1M 513",
        ])
        .await;
        assert!(ok && !output.contains("failed"), "{output}");

        for (fault, message) in
            [(VolumeError::Io, "Input/output error"), (VolumeError::NoSpace, "No space left on device")]
        {
            served.volume.faults.writes.set(Some(fault));
            let (_, output) = qemu_io(&["write 0 4k"]).await;
            assert!(output.contains(message), "{output}");
        }
        served.volume.faults.writes.set(None);
        served.volume.faults.reads.set(Some(VolumeError::Io));
        let (_, output) = qemu_io(&["read 0 4k"]).await;
        assert!(output.contains("Input/output error"), "{output}");
        served.server.stop().await;
    });
}

/// fio arguments for a verified random load. Blocks have one size: fio does not keep track of writes that overlap.
fn fio(uri: &str, block: &str, seconds: u32) -> Vec<String> {
    let mut arguments: Vec<String> = [
        "--name=load",
        "--ioengine=nbd",
        "--rw=randrw",
        "--iodepth=32",
        "--size=48m",
        "--time_based",
        "--verify=crc32c",
        "--verify_fatal=1",
        "--verify_backlog=64",
        "--fsync=50",
        "--randseed=4711",
    ]
    .map(str::to_owned)
    .into();
    arguments.push(format!("--runtime={seconds}"));
    arguments.push(format!("--bs={block}"));
    arguments.push(format!("--uri={uri}"));
    arguments
}

#[test]
fn fio_verifies_what_it_wrote() {
    on_one_thread(async {
        let served = Served::new(64 * MIB).await;
        for block in ["512", "4k", "256k"] {
            run("fio", "fio", fio(&served.url().to_string(), block, 2)).await;
        }
        served.server.stop().await;
    });
}

#[test]
fn fio_does_not_notice_that_the_server_moves_between_processes() {
    on_one_thread(async {
        let served = Served::new(128 * MIB).await;
        let volume = served.volume.clone();
        let url = served.url().to_string();
        let load = tokio::task::spawn_local(async move {
            // Large writes are caught half-way more often than small ones.
            tokio::join!(
                run("fio", "fio", fio(&url, "4k", 4)),
                run("fio", "fio", [fio(&url, "256k", 4), vec!["--offset=64m".into()]].concat())
            );
        });
        let mut server = served.server;
        let mut moves = 0;
        while !load.is_finished() {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let frozen = server.freeze().await.unwrap();
            moves += frozen.clients();
            let moved = move_through_a_socket(&frozen).await;
            drop(frozen);
            server = moved.resume(Export::new("disk", volume.clone())).unwrap();
        }
        load.await.unwrap();
        assert!(moves > 10, "fio's connections moved only {moves} times");
        server.stop().await;
    });
}

async fn move_through_a_socket(
    frozen: &granary_frontend::nbd::FrozenServer,
) -> granary_frontend::nbd::FrozenServer {
    let (here, there) = std::os::unix::net::UnixStream::pair().unwrap();
    let parcel = frozen.to_parcel().unwrap();
    let sender = tokio::task::spawn_blocking(move || parcel.send(&here).map(|()| here));
    let received =
        tokio::task::spawn_blocking(move || granary_frontend::handover::Parcel::receive(&there)).await;
    sender.await.unwrap().unwrap();
    granary_frontend::nbd::FrozenServer::from_parcel(received.unwrap().unwrap()).unwrap()
}

/// An authority, and certificates signed by it, laid out as QEMU and libnbd look for them.
fn certificates(directory: &Path) {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(rcgen::DnType::CommonName, "test authority");
    let certificate = authority.self_signed(&authority_key).unwrap();
    std::fs::write(directory.join("ca-cert.pem"), certificate.pem()).unwrap();
    let issuer = Issuer::new(authority, authority_key);
    for name in ["server", "client"] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".into(), "127.0.0.1".into()]).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let certificate = params.signed_by(&key, &issuer).unwrap();
        std::fs::write(directory.join(format!("{name}-cert.pem")), certificate.pem()).unwrap();
        std::fs::write(directory.join(format!("{name}-key.pem")), key.serialize_pem()).unwrap();
    }
}

#[test]
fn tls_clients_come_in_with_a_certificate_and_nobody_else_does() {
    on_one_thread(async {
        let directory = tempfile::tempdir().unwrap();
        certificates(directory.path());
        let files = TlsFiles {
            certificate: directory.path().join("server-cert.pem"),
            key: directory.path().join("server-key.pem"),
            client_authority: Some(directory.path().join("ca-cert.pem")),
        };
        let volume = FileVolume::create(&directory.path().join("disk"), 16 * MIB).unwrap();
        let mut export = Export::new("disk", volume.clone());
        export.tls = ServerTls::Required(files.server_config().unwrap());
        let server = Server::new(export);
        let any_port = Address::Tcp { host: "127.0.0.1".into(), port: 0 };
        let Address::Tcp { port, .. } = server.listen(&any_port).await.unwrap() else { unreachable!() };

        let certificates = directory.path().display();
        let secure = format!("nbds://127.0.0.1:{port}/disk?tls-certificates={certificates}");
        let info = run("libnbd-bin", "nbdinfo", [&secure]).await;
        assert!(info.contains("with TLS") && info.contains("16777216"), "{info}");

        let image = directory.path().join("image");
        write_pattern(&image, 16 * MIB, 3);
        run("libnbd-bin", "nbdcopy", [image.to_str().unwrap(), &secure]).await;
        assert_eq!(volume.read(0, 16 << 20).await.unwrap(), std::fs::read(&image).unwrap());

        let tls = format!("tls-creds-x509,id=t,endpoint=client,dir={certificates}");
        let options = format!("driver=nbd,host=127.0.0.1,port={port},export=disk,tls-creds=t");
        let arguments = ["--object", &tls, "--image-opts", "-c", "read 0 4k", &options];
        run("qemu-utils", "qemu-io", arguments).await;

        let (ok, output) = try_run("libnbd-bin", "nbdinfo", [format!("nbd://127.0.0.1:{port}/disk")]).await;
        assert!(!ok && output.contains("TLS"), "a plain client was let in: {output}");
        let own = granary_frontend::nbd::client_config(&directory.path().join("ca-cert.pem"), None).unwrap();
        let url = format!("nbds://127.0.0.1:{port}/disk").parse().unwrap();
        let refused = granary_frontend::nbd::NbdClient::connect(&url, Some(own)).await;
        assert!(refused.is_err(), "a client without a certificate was let in");
        server.stop().await;
    });
}
