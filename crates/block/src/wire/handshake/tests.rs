//! Right keys meet; everything else is told apart or learns nothing.

use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;
use crate::wire::frame::{FrameError, HEADER, Header, Parsed, parse};

fn key(secret: &str) -> Key {
    Key::from_bytes(secret.as_bytes()).unwrap()
}

const RIGHT: &str = "the right key of this volume";
const WRONG: &str = "the key of some other volume";

/// The words of one frame, for peers that do not play by the rules.
async fn overhear(stream: &mut DuplexStream) -> Frame {
    let mut bytes = BytesMut::zeroed(HEADER);
    stream.read_exact(&mut bytes).await.unwrap();
    let Ok(Parsed::NeedBytes(total)) = parse(&mut bytes, Limits::HANDSHAKE) else { panic!("no words") };
    bytes.resize(total, 0);
    stream.read_exact(&mut bytes[HEADER..]).await.unwrap();
    let Ok(Parsed::Frame(frame)) = parse(&mut bytes, Limits::HANDSHAKE) else { panic!("cut short") };
    frame
}

async fn say(stream: &mut DuplexStream, kind: u8, payload: &[u8]) {
    let header = Header {
        kind,
        payload_len: payload.len() as u32,
        body_crc: crate::wire::checksum::crc32c(payload),
        ..Header::default()
    };
    stream.write_all(&header.encode()).await.unwrap();
    stream.write_all(payload).await.unwrap();
}

type Outcome = (Result<u16, HandshakeError>, Result<String, HandshakeError>);

async fn meet(engine_key: &str, replica_key: &str, judge: fn(&str) -> Result<(), Refusal>) -> Outcome {
    let (near, far) = duplex(4096);
    let (mut near, mut far) = (Talk::with_stranger(near), Talk::with_stranger(far));
    let (engine_key, replica_key) = (key(engine_key), key(replica_key));
    tokio::join!(engine(&mut near, &engine_key, "vol-1"), replica(&mut far, &replica_key, judge))
}

#[tokio::test]
async fn the_same_key_opens_and_names_the_volume() {
    let (engine, replica) = meet(RIGHT, RIGHT, |_| Ok(())).await;
    assert_eq!(engine.unwrap(), 1);
    assert_eq!(replica.unwrap(), "vol-1");
}

#[tokio::test]
async fn a_wrong_key_is_refused_and_the_engine_is_told() {
    let (engine, replica) = meet(WRONG, RIGHT, |_| panic!("strangers are not judged")).await;
    assert!(matches!(engine, Err(HandshakeError::Refused(Refusal::Key))));
    assert!(matches!(replica, Err(HandshakeError::Refused(Refusal::Key))));
}

#[tokio::test]
async fn another_volume_with_the_right_key_is_refused_as_such() {
    let (engine, replica) = meet(RIGHT, RIGHT, |_| Err(Refusal::Volume)).await;
    assert!(matches!(engine, Err(HandshakeError::Refused(Refusal::Volume))));
    assert!(matches!(replica, Err(HandshakeError::Refused(Refusal::Volume))));
}

/// Records what a real engine says, for use in the attacks below.
async fn recorded(replica_nonce: [u8; NONCE]) -> (Bytes, Bytes) {
    let (near, mut attacker) = duplex(4096);
    let engine_key = key(RIGHT);
    let mut near = Talk::with_stranger(near);
    let listen = async {
        let hello = overhear(&mut attacker).await.payload;
        let mut challenge = 1u16.to_le_bytes().to_vec();
        challenge.extend_from_slice(&replica_nonce);
        say(&mut attacker, kind::CHALLENGE, &challenge).await;
        let proof = overhear(&mut attacker).await.payload;
        drop(attacker);
        (hello, proof)
    };
    let (outcome, words) = tokio::join!(engine(&mut near, &engine_key, "vol-1"), listen);
    assert!(outcome.is_err());
    words
}

#[tokio::test]
async fn a_recorded_proof_is_of_no_use_later() {
    let (hello, proof) = recorded([7; NONCE]).await;
    let (mut attacker, far) = duplex(4096);
    let replica_key = key(RIGHT);
    let mut far = Talk::with_stranger(far);
    let attack = async {
        say(&mut attacker, kind::HELLO, &hello).await;
        assert_eq!(overhear(&mut attacker).await.header.kind, kind::CHALLENGE);
        say(&mut attacker, kind::PROOF, &proof).await;
        overhear(&mut attacker).await.header.kind
    };
    let (outcome, answer) = tokio::join!(replica(&mut far, &replica_key, |_| Ok(())), attack);
    assert!(matches!(outcome, Err(HandshakeError::Refused(Refusal::Key))));
    assert_eq!(answer, kind::REFUSED);
}

#[tokio::test]
async fn an_engine_cannot_be_fooled_with_its_own_words() {
    let (near, mut attacker) = duplex(4096);
    let engine_key = key(RIGHT);
    let mut near = Talk::with_stranger(near);
    let attack = async {
        let hello = overhear(&mut attacker).await.payload;
        let mut challenge = 1u16.to_le_bytes().to_vec();
        challenge.extend_from_slice(&hello[4..4 + NONCE]);
        say(&mut attacker, kind::CHALLENGE, &challenge).await;
        let proof = overhear(&mut attacker).await.payload;
        say(&mut attacker, kind::WELCOME, &proof).await;
    };
    let (outcome, ()) = tokio::join!(engine(&mut near, &engine_key, "vol-1"), attack);
    assert!(matches!(outcome, Err(HandshakeError::Impostor)), "{outcome:?}");
}

#[tokio::test]
async fn a_replica_says_nothing_secret_before_the_engine_has_proved_itself() {
    let (mut attacker, far) = duplex(4096);
    let replica_key = key(RIGHT);
    let mut far = Talk::with_stranger(far);
    let attack = async {
        let mut hello = vec![1, 0, 1, 0];
        hello.extend_from_slice(&[0; NONCE]);
        hello.extend_from_slice(b"vol-1");
        say(&mut attacker, kind::HELLO, &hello).await;
        let challenge = overhear(&mut attacker).await;
        say(&mut attacker, kind::PROOF, b"").await;
        let refusal = overhear(&mut attacker).await;
        (challenge.payload.len(), refusal.payload.len())
    };
    let (outcome, said) = tokio::join!(replica(&mut far, &replica_key, |_| Ok(())), attack);
    assert!(outcome.is_err());
    assert_eq!(said, (2 + NONCE, 5), "a nonce and a refusal, nothing that the key went into");
}

#[tokio::test]
async fn versions_without_overlap_are_told_to_both() {
    let (mut attacker, far) = duplex(4096);
    let replica_key = key(RIGHT);
    let mut far = Talk::with_stranger(far);
    let newer = async {
        let mut hello = vec![7, 0, 9, 0];
        hello.extend_from_slice(&[0; NONCE]);
        hello.extend_from_slice(b"vol-1");
        say(&mut attacker, kind::HELLO, &hello).await;
        refused(overhear(&mut attacker).await.payload)
    };
    let (outcome, told) = tokio::join!(replica(&mut far, &replica_key, |_| Ok(())), newer);
    assert!(matches!(outcome, Err(HandshakeError::Version { theirs }) if theirs == (7..=9)));
    assert!(matches!(told, HandshakeError::Version { theirs } if theirs == VERSIONS));
}

#[tokio::test]
async fn garbage_and_half_words_end_the_conversation() {
    for (garbage, name) in
        [(&b"GET / HTTP/1.1\r\nHost: storage\r\nAccept: */*\r\n\r\n"[..], "http"), (&[0; 64], "zeros")]
    {
        let (mut attacker, far) = duplex(4096);
        attacker.write_all(garbage).await.unwrap();
        let outcome = replica(&mut Talk::with_stranger(far), &key(RIGHT), |_| Ok(())).await;
        let refused = matches!(
            outcome,
            Err(HandshakeError::Talk(TalkError::Frame(FrameError::Magic(_) | FrameError::HeaderChecksum)))
        );
        assert!(refused, "{name}: {outcome:?}");
    }
    let (mut attacker, far) = duplex(4096);
    attacker.write_all(&Header { kind: kind::HELLO, ..Header::default() }.encode()[..20]).await.unwrap();
    drop(attacker);
    let outcome = replica(&mut Talk::with_stranger(far), &key(RIGHT), |_| Ok(())).await;
    assert!(matches!(outcome, Err(HandshakeError::Talk(TalkError::Closed))));
}

#[tokio::test]
async fn a_stranger_may_not_announce_a_large_message() {
    let (mut attacker, far) = duplex(4096);
    let header = Header { kind: kind::HELLO, payload_len: 1 << 20, ..Header::default() };
    attacker.write_all(&header.encode()).await.unwrap();
    let outcome = replica(&mut Talk::with_stranger(far), &key(RIGHT), |_| Ok(())).await;
    let refused = matches!(outcome, Err(HandshakeError::Talk(TalkError::Frame(FrameError::TooLarge { .. }))));
    assert!(refused, "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_says_one_byte_now_and_then_runs_into_the_deadline() {
    let (mut attacker, far) = duplex(4096);
    let replica_key = key(RIGHT);
    let mut far = Talk::with_stranger(far);
    let dribble = async {
        for byte in (Header { kind: kind::HELLO, payload_len: 40, ..Header::default() }).encode() {
            attacker.write_all(&[byte]).await.unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let patience = tokio::time::timeout(Duration::from_secs(5), replica(&mut far, &replica_key, |_| Ok(())));
    tokio::select! {
        outcome = patience => assert!(outcome.is_err(), "the deadline is for the whole handshake"),
        () = dribble => panic!("it was listened to for all of its bytes"),
    }
}
