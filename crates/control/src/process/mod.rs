//! What engines and replicas have in common: a process of an instance manager, and the status that tells of it.

mod advance;
mod lifecycle;
mod status;

pub use advance::advance;
pub use lifecycle::Wanted;
#[cfg(test)]
pub use status::failed;
pub use status::{address, seconds, time};

use granary_instance::client::{ClientError, Connection};
use granary_instance::wire::process::{
    ProcessCreateRequest, ProcessDeleteRequest, ProcessGetRequest, ProcessResponse, ProcessSpec,
};

/// The process as its instance manager has it now.
async fn get(connection: &Connection, name: &str) -> Result<Option<ProcessResponse>, ClientError> {
    let request = ProcessGetRequest { name: name.to_owned() };
    match connection.processes()?.process_get(request).await {
        Ok(response) => Ok(Some(response.into_inner())),
        Err(status) => match connection.told(&status) {
            ClientError::NotFound(_) => Ok(None),
            error => Err(error),
        },
    }
}

async fn create(connection: &Connection, spec: ProcessSpec) -> Result<ProcessResponse, ClientError> {
    let request = ProcessCreateRequest { spec: Some(spec) };
    let response = connection.processes()?.process_create(request).await;
    response.map(tonic::Response::into_inner).map_err(|status| connection.told(&status))
}

/// One that is gone already is fine.
async fn delete(connection: &Connection, name: &str, uuid: &str) -> Result<(), ClientError> {
    let request = ProcessDeleteRequest { name: name.to_owned(), uuid: uuid.to_owned() };
    match connection.processes()?.process_delete(request).await {
        Ok(_) => Ok(()),
        Err(status) => match connection.told(&status) {
            ClientError::NotFound(_) => Ok(()),
            error => Err(error),
        },
    }
}
