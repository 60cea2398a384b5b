//! With certificates, only those who have one of the same authority are heard, at every port.

use std::path::Path;

use granary_instance::client::{ClientError, Connection, Target};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};

use crate::cluster::{Manager, on_one_thread, spec};

fn authority() -> (String, Issuer<'static, KeyPair>) {
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let pem = parameters.self_signed(&key).unwrap().pem();
    (pem, Issuer::new(parameters, key))
}

fn write_files(directory: &Path, trusted: &str, issuer: &Issuer<'static, KeyPair>) {
    std::fs::create_dir_all(directory).unwrap();
    let mut parameters = CertificateParams::new(vec!["longhorn-backend.longhorn-system".to_owned()]).unwrap();
    parameters.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let certificate = parameters.signed_by(&key, issuer).unwrap();
    std::fs::write(directory.join("ca.crt"), trusted).unwrap();
    std::fs::write(directory.join("tls.crt"), certificate.pem()).unwrap();
    std::fs::write(directory.join("tls.key"), key.serialize_pem()).unwrap();
}

#[test]
fn only_those_with_a_certificate_are_heard() {
    on_one_thread(async {
        let home = tempfile::tempdir().unwrap();
        let (pem, issuer) = authority();
        let tls = home.path().join("tls");
        write_files(&tls, &pem, &issuer);
        let (_, stranger) = authority();
        let strange = home.path().join("strange");
        write_files(&strange, &pem, &stranger);
        let manager = Manager::in_home(home, &["--create-keys", "--tls-dir", tls.to_str().unwrap()]);

        let replicas = manager.replicas("v", 1).await;
        let engine = manager.engine("v", &replicas, &[]).await;
        let connection = manager.connection();
        connection.check().await.unwrap();
        let versions = connection.versions().await.unwrap();
        let client =
            granary_instance::client::engine_client(&connection, versions, &manager.engine_at("v", &engine));
        client.create_snapshot("one", &Default::default()).await.unwrap();

        for tls_dir in [None, Some(strange)] {
            let intruder = Connection::new(Target { tls_dir, ..manager.target() });
            assert!(matches!(intruder.check().await, Err(ClientError::Unavailable(_))));
            assert!(matches!(intruder.versions().await, Err(ClientError::Unavailable(_))));
            assert!(intruder.proxy().unwrap().ping(()).await.is_err());
            assert!(intruder.instances().unwrap().instance_list(()).await.is_err());
        }
        assert!(manager.create(spec("v-e", &[], &[])).await.is_err());
    });
}

#[test]
fn a_manager_that_everybody_could_reach_does_not_start() {
    let home = tempfile::tempdir().unwrap();
    let refused = |flags: &[&str]| {
        let mut command = std::process::Command::new(crate::cluster::GRANARY);
        command.args(["instance-manager", "--listen", "0.0.0.0:18500"]).args(flags);
        command.arg("--state-dir").arg(home.path().join("state"));
        let output = command.output().unwrap();
        assert!(!output.status.success() && output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    };
    let said = refused(&[]);
    assert!(said.contains("--tls-dir") && said.contains("other machines"), "{said}");
    let said = refused(&["--tls-dir", home.path().to_str().unwrap()]);
    assert!(said.contains("ca.crt"), "{said}");
}
