//! The first words on a connection: versions, the volume's name, and a mutual proof of the volume's key.
//! Neither side does anything for the other before this is over; it never sends the key or anything derived from it
//! alone.
//!
//! ```text
//! engine → replica   hello      versions offered, engine's nonce, volume
//! replica → engine   challenge  version chosen, replica's nonce
//! engine → replica   proof      HMAC(key, "engine",  versions, both nonces, volume)
//! replica → engine   welcome    HMAC(key, "replica", versions, both nonces, volume)   or refused
//! ```
//!
//! The engine proves itself first, so that whoever merely connects to a replica learns nothing that the key went
//! into. Both nonces are in both proofs: an old proof fits no new connection. The role is in the proof: what one
//! side says is of no use for pretending to be it towards the other.

use std::ops::RangeInclusive;

use bytes::{Buf, BufMut, Bytes};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::io::{AsyncRead, AsyncWrite};

use super::frame::{Frame, Limits};
use super::key::Key;
use super::talk::{Talk, TalkError};

/// What the messages mean. A new meaning gets a new number; old ones stay understood for a release.
/// 2: replicas let snapshots be read.
pub const VERSIONS: RangeInclusive<u16> = 1..=2;

/// From this one on replicas know [`SnapshotRead`](super::message::Control::SnapshotRead).
pub const SNAPSHOT_READS: u16 = 2;

/// The longest name of a volume: what a label or an object's name can be.
pub const MAX_NAME: usize = 253;

const NONCE: usize = 32;

mod kind {
    pub const HELLO: u8 = 0x41;
    pub const CHALLENGE: u8 = 0x42;
    pub const PROOF: u8 = 0x43;
    pub const WELCOME: u8 = 0x44;
    pub const REFUSED: u8 = 0x45;
}

/// Why a replica will not talk to an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    #[error("the engine did not prove that it has the replica's key; start both with the same key file")]
    Key,
    #[error("the key is right, but the replica belongs to another volume")]
    Volume,
    #[error("there is no version of the protocol that both know")]
    Version,
    #[error("as many connections as it allows are open")]
    Busy,
}

#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    #[error(transparent)]
    Talk(#[from] TalkError),
    #[error("the peer does not follow the handshake")]
    Unexpected,
    #[error("the peer knows versions {} to {} of the protocol, this side {} to {}",
        .theirs.start(), .theirs.end(), VERSIONS.start(), VERSIONS.end())]
    Version { theirs: RangeInclusive<u16> },
    #[error("refused: {0}")]
    Refused(Refusal),
    #[error("the replica did not prove that it has the volume's key")]
    Impostor,
    #[error("a volume's name has 1 to {MAX_NAME} bytes")]
    Name,
}

impl From<std::io::Error> for HandshakeError {
    fn from(error: std::io::Error) -> Self {
        Self::Talk(TalkError::Io(error))
    }
}

/// What both sides have said so far; the proofs are over all of it.
struct Transcript {
    offered: (u16, u16),
    version: u16,
    engine: [u8; NONCE],
    replica: [u8; NONCE],
    volume: String,
}

enum Role {
    Engine,
    Replica,
}

impl Transcript {
    /// Everything but the name has a fixed size and the name comes last, so that no two transcripts look alike.
    fn words(&self, role: &Role) -> Vec<u8> {
        let mut words = Vec::with_capacity(128 + self.volume.len());
        words.put_slice(match role {
            Role::Engine => b"granary wire, engine \0",
            Role::Replica => b"granary wire, replica\0",
        });
        words.put_u16_le(self.offered.0);
        words.put_u16_le(self.offered.1);
        words.put_u16_le(self.version);
        words.put_slice(&self.engine);
        words.put_slice(&self.replica);
        words.put_slice(self.volume.as_bytes());
        words
    }

    fn prove(&self, role: &Role, key: &Key) -> Vec<u8> {
        hmac::sign(key.hmac(), &self.words(role)).as_ref().to_vec()
    }

    /// In constant time.
    fn is_proved(&self, role: &Role, key: &Key, proof: &[u8]) -> bool {
        hmac::verify(key.hmac(), &self.words(role), proof).is_ok()
    }
}

/// The engine's side. Returns the version both agreed on; the stream is ready for requests.
pub async fn engine<S: AsyncRead + AsyncWrite + Unpin>(
    talk: &mut Talk<S>,
    key: &Key,
    volume: &str,
) -> Result<u16, HandshakeError> {
    if volume.is_empty() || volume.len() > MAX_NAME {
        return Err(HandshakeError::Name);
    }
    let offered = (*VERSIONS.start(), *VERSIONS.end());
    let nonce = nonce();
    let mut hello = Vec::new();
    hello.put_u16_le(offered.0);
    hello.put_u16_le(offered.1);
    hello.put_slice(&nonce);
    hello.put_slice(volume.as_bytes());
    talk.say(kind::HELLO, hello).await?;

    let mut challenge = expect(talk, kind::CHALLENGE, 2 + NONCE..=2 + NONCE).await?;
    let version = challenge.get_u16_le();
    if !VERSIONS.contains(&version) {
        return Err(HandshakeError::Version { theirs: version..=version });
    }
    let volume = volume.to_owned();
    let transcript = Transcript { offered, version, engine: nonce, replica: array(&mut challenge), volume };
    talk.say(kind::PROOF, transcript.prove(&Role::Engine, key)).await?;

    let welcome = expect(talk, kind::WELCOME, 0..=usize::MAX).await?;
    if !transcript.is_proved(&Role::Replica, key, &welcome) {
        return Err(HandshakeError::Impostor);
    }
    trust(talk);
    Ok(version)
}

/// The replica's side. `judge` is asked once the key is proved whether the volume is the right one and there is room.
/// Returns the volume's name; refusals have been said to the peer.
pub async fn replica<S: AsyncRead + AsyncWrite + Unpin>(
    talk: &mut Talk<S>,
    key: &Key,
    judge: impl FnOnce(&str) -> Result<(), Refusal>,
) -> Result<String, HandshakeError> {
    let mut hello = expect(talk, kind::HELLO, 2 + 2 + NONCE + 1..=2 + 2 + NONCE + MAX_NAME).await?;
    let offered = (hello.get_u16_le(), hello.get_u16_le());
    let nonce_of_engine = array(&mut hello);
    let volume = String::from_utf8(hello.into()).map_err(|_| HandshakeError::Unexpected)?;
    let version = offered.1.min(*VERSIONS.end());
    if version < offered.0 || !VERSIONS.contains(&version) {
        refuse(talk, Refusal::Version).await?;
        return Err(HandshakeError::Version { theirs: offered.0..=offered.1 });
    }

    let nonce = nonce();
    let mut challenge = Vec::new();
    challenge.put_u16_le(version);
    challenge.put_slice(&nonce);
    talk.say(kind::CHALLENGE, challenge).await?;

    let proof = expect(talk, kind::PROOF, 0..=usize::MAX).await?;
    let transcript = Transcript { offered, version, engine: nonce_of_engine, replica: nonce, volume };
    let judged = if transcript.is_proved(&Role::Engine, key, &proof) {
        judge(&transcript.volume)
    } else {
        Err(Refusal::Key)
    };
    if let Err(refusal) = judged {
        refuse(talk, refusal).await?;
        return Err(HandshakeError::Refused(refusal));
    }
    talk.say(kind::WELCOME, transcript.prove(&Role::Replica, key)).await?;
    trust(talk);
    Ok(transcript.volume)
}

/// From here on the peer may send whole requests.
fn trust<S>(talk: &mut Talk<S>) {
    talk.incoming.trust(Limits::SESSION);
}

async fn expect<S: AsyncRead + AsyncWrite + Unpin>(
    talk: &mut Talk<S>,
    kind: u8,
    len: RangeInclusive<usize>,
) -> Result<Bytes, HandshakeError> {
    let Frame { header, payload, .. } = talk.hear().await?;
    if header.kind == kind::REFUSED && kind != kind::HELLO && kind != kind::PROOF {
        return Err(refused(payload));
    }
    if header.kind != kind || !len.contains(&payload.len()) {
        return Err(HandshakeError::Unexpected);
    }
    Ok(payload)
}

async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(
    talk: &mut Talk<S>,
    refusal: Refusal,
) -> std::io::Result<()> {
    let mut words = vec![match refusal {
        Refusal::Key => 1,
        Refusal::Volume => 2,
        Refusal::Version => 3,
        Refusal::Busy => 4,
    }];
    words.put_u16_le(*VERSIONS.start());
    words.put_u16_le(*VERSIONS.end());
    talk.say(kind::REFUSED, words).await
}

fn refused(mut words: Bytes) -> HandshakeError {
    if words.len() != 5 {
        return HandshakeError::Unexpected;
    }
    match words.get_u8() {
        1 => HandshakeError::Refused(Refusal::Key),
        2 => HandshakeError::Refused(Refusal::Volume),
        3 => HandshakeError::Version { theirs: words.get_u16_le()..=words.get_u16_le() },
        4 => HandshakeError::Refused(Refusal::Busy),
        _ => HandshakeError::Unexpected,
    }
}

fn nonce() -> [u8; NONCE] {
    let mut nonce = [0; NONCE];
    SystemRandom::new().fill(&mut nonce).expect("the kernel's random numbers do not fail once it is up");
    nonce
}

fn array(from: &mut Bytes) -> [u8; NONCE] {
    let mut nonce = [0; NONCE];
    from.copy_to_slice(&mut nonce);
    nonce
}

#[cfg(test)]
mod tests;
