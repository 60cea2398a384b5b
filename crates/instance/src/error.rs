//! Why something was not done. Every kind has its gRPC code here and nowhere else.

use tonic::Status;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    NotFound(String),
    #[error("{0}")]
    Exists(String),
    /// Asked of somebody else, or at the wrong moment.
    #[error("{0}")]
    Precondition(String),
    #[error("{0}")]
    Exhausted(String),
    #[error("{0}")]
    Unavailable(String),
    #[error("{0}")]
    Unimplemented(String),
    #[error("{0}")]
    Internal(String),
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Invalid(message) => Self::invalid_argument(message),
            Refusal::NotFound(message) => Self::not_found(message),
            Refusal::Exists(message) => Self::already_exists(message),
            Refusal::Precondition(message) => Self::failed_precondition(message),
            Refusal::Exhausted(message) => Self::resource_exhausted(message),
            Refusal::Unavailable(message) => Self::unavailable(message),
            Refusal::Unimplemented(message) => Self::unimplemented(message),
            Refusal::Internal(message) => Self::internal(message),
        }
    }
}
