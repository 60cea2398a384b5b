//! One engine process goes, the next one goes on with its users' connections. The old one closes the volume before it
//! lets go of them, so that the two never write at once; until it has let go, it can take everything back.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use granary_block::engine::CommandError;
use granary_block::wire::address::Address;
use granary_enginectl::v1::HandoverRequest;
use granary_frontend::FrozenFrontends;
use rustix::net::{RecvFlags, recv};
use tokio::io::Interest;
use tokio::net::{UnixListener, UnixStream};

use super::arguments::EngineArgs;
use super::control::Answer;
use super::serve::{Process, close};

/// How long the old engine may take for its last requests and for closing the volume.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a process gets from the one before.
pub struct Inherited {
    pub frontends: FrozenFrontends,
    /// Where each is reached.
    pub places: Vec<String>,
}

/// The new process's part: asks the engine behind `old` for its frontends. On an error the old one goes on.
pub async fn take(arguments: &EngineArgs, old: &Address) -> anyhow::Result<Inherited> {
    let Address::Unix(path) = old else {
        bail!("--takeover needs the unix:///path of the old engine's control, not {old}");
    };
    let parent = path.parent().context("the control socket has no directory")?;
    let place = Place::make(parent)?;
    let listener = UnixListener::bind(parent.join(&place.socket))
        .with_context(|| format!("cannot listen in {}", parent.display()))?;
    let request = HandoverRequest {
        volume: arguments.volume.clone(),
        frontends: arguments.frontends.iter().map(ToString::to_string).collect(),
        socket: place.socket.display().to_string(),
        control: arguments.control.to_string(),
        size: arguments.size.unwrap_or(0),
    };
    let mut client = granary_enginectl::connect(old).await?;
    let accepted = client
        .handover(request)
        .await
        .map_err(|status| anyhow::anyhow!("the engine at {old} does not hand over: {}", status.message()))?;
    let received = async {
        let (stream, _) = listener.accept().await?;
        // It says nothing before it has closed the volume, and its socket then has a shorter patience.
        first_word(&stream).await?;
        let stream = blocking(stream)?;
        tokio::task::spawn_blocking(move || FrozenFrontends::receive(&stream)).await?
    };
    let received = tokio::time::timeout(PATIENCE, received).await;
    let frontends = received
        .context("the old engine did not let go in time")?
        .context("the old engine did not let go, and goes on by itself; look at its log")?;
    Ok(Inherited { frontends, places: accepted.into_inner().frontends })
}

/// The old process's part. True: the next one serves now, and this one must end without touching anything.
pub async fn give(
    process: &mut Process<'_>,
    request: &HandoverRequest,
    answer: Answer,
) -> anyhow::Result<bool> {
    let prepared = match check(process, request) {
        Ok(socket) => meet(&socket).await,
        Err(error) => Err(error),
    };
    let stream = match prepared {
        Ok(stream) => {
            // The next process now waits at its socket; if it has gone, that shows there.
            drop(answer.send(Ok(())));
            stream
        }
        Err(error) => {
            drop(answer.send(Err(error)));
            return Ok(false);
        }
    };
    tracing::info!("handing over to another process");
    let Some(frontends) = process.frontends.take() else { bail!("there are no frontends to hand over") };
    let frozen = frontends.freeze().await.context("the frontends could not be frozen")?;
    let closed = close(&process.running).await;
    let failed = match closed {
        Ok(()) => {
            let sending = tokio::task::spawn_blocking(move || {
                let sent = frozen.send(&stream);
                (frozen, sent)
            });
            match sending.await? {
                (_, Ok(())) => {
                    if process.control.address.to_string() != request.control {
                        process.control.remove_socket();
                    }
                    tracing::info!("handed over");
                    return Ok(true);
                }
                (frozen, Err(error)) => (frozen, anyhow::Error::from(error)),
            }
        }
        Err(error) => (frozen, error),
    };
    let (frozen, error) = failed;
    tracing::warn!(error = format!("{error:#}"), "the handover failed; going on");
    process.go_on(frozen).await.context("could not go on after a handover that failed")?;
    Ok(false)
}

/// Everything that would make the next process fail once it is too late to take back.
fn check(process: &Process<'_>, request: &HandoverRequest) -> Result<PathBuf, CommandError> {
    let invalid = |message: String| Err(CommandError::Invalid(message));
    let own = process.arguments;
    if request.volume != own.volume {
        return invalid(format!("this engine serves volume {}, not {}", own.volume, request.volume));
    }
    let frontends: Vec<_> = process.specs.iter().map(ToString::to_string).collect();
    if frontends != request.frontends {
        return invalid(format!("start the next engine with the same frontends: {}", frontends.join(" ")));
    }
    let size = *process.running.volume().size().borrow();
    if request.size != 0 && request.size != size {
        return invalid(format!("the volume has {size} bytes, not {}; leave --size out", request.size));
    }
    let Address::Unix(control) = &process.control.address else {
        return invalid("frontends are handed over only where control is a unix socket".to_owned());
    };
    let parent = control.parent().unwrap_or(Path::new("/"));
    Ok(parent.join(&request.socket))
}

async fn meet(socket: &Path) -> Result<std::os::unix::net::UnixStream, CommandError> {
    let met = async { blocking(UnixStream::connect(socket).await?) }.await;
    met.map_err(|error| {
        CommandError::Failed(format!("cannot reach the next engine at {}: {error}", socket.display()))
    })
}

/// Waits until there is something to read, and leaves it there. Being told that a socket may be readable is not enough.
async fn first_word(stream: &UnixStream) -> std::io::Result<()> {
    let peek = || Ok(recv(stream, &mut [0], RecvFlags::PEEK | RecvFlags::DONTWAIT).map(drop)?);
    loop {
        stream.readable().await?;
        match stream.try_io(Interest::READABLE, peek) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            looked => return looked,
        }
    }
}

fn blocking(stream: UnixStream) -> std::io::Result<std::os::unix::net::UnixStream> {
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// A directory beside the control socket, because that is one which both processes see, closed to everybody else.
struct Place {
    directory: PathBuf,
    socket: PathBuf,
}

impl Place {
    fn make(parent: &Path) -> anyhow::Result<Self> {
        let name = PathBuf::from(format!(".takeover-{}", std::process::id()));
        let directory = parent.join(&name);
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        Ok(Self { directory, socket: name.join("socket") })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.directory) {
            tracing::warn!(directory = %self.directory.display(), %error, "not removed");
        }
    }
}
