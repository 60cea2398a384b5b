//! The process service. It translates; what is done about processes is the registry's business.

use tonic::{Request, Response, Status};

use super::stream::{self, Answers};
use crate::process::{Registry, Spec, View};
use crate::wire::process::process_manager_service_server::ProcessManagerService;
use crate::wire::process::{
    LogRequest, LogResponse, ProcessCreateRequest, ProcessDeleteRequest, ProcessGetRequest,
    ProcessListRequest, ProcessListResponse, ProcessReplaceRequest, ProcessResponse, ProcessSpec,
    ProcessStatus, VersionResponse,
};
use crate::{Refusal, version};

#[derive(Clone)]
pub struct Processes(pub Registry);

type Reply<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl ProcessManagerService for Processes {
    type ProcessLogStream = Answers<LogResponse>;
    type ProcessWatchStream = Answers<ProcessResponse>;

    async fn process_create(&self, request: Request<ProcessCreateRequest>) -> Reply<ProcessResponse> {
        let view = self.0.create(spec(request.into_inner().spec)?)?;
        Ok(Response::new(response(view)))
    }

    async fn process_delete(&self, request: Request<ProcessDeleteRequest>) -> Reply<ProcessResponse> {
        let ProcessDeleteRequest { name, uuid } = request.into_inner();
        Ok(Response::new(response(self.0.delete(&name, &uuid)?)))
    }

    async fn process_get(&self, request: Request<ProcessGetRequest>) -> Reply<ProcessResponse> {
        Ok(Response::new(response(self.0.get(&request.into_inner().name)?)))
    }

    async fn process_list(&self, _: Request<ProcessListRequest>) -> Reply<ProcessListResponse> {
        let processes =
            self.0.list().into_iter().map(|view| (view.spec.name.clone(), response(view))).collect();
        Ok(Response::new(ProcessListResponse { processes }))
    }

    async fn process_log(&self, request: Request<LogRequest>) -> Reply<Self::ProcessLogStream> {
        let lines = stream::lines(&self.0, &request.into_inner().name, |line| LogResponse { line })?;
        Ok(Response::new(lines))
    }

    async fn process_watch(&self, _: Request<()>) -> Reply<Self::ProcessWatchStream> {
        Ok(Response::new(stream::changes(self.0.clone(), response)))
    }

    async fn process_replace(&self, request: Request<ProcessReplaceRequest>) -> Reply<ProcessResponse> {
        let ProcessReplaceRequest { spec: wanted, terminate_signal } = request.into_inner();
        let view = self.0.replace(spec(wanted)?, &terminate_signal).await?;
        Ok(Response::new(response(view)))
    }

    async fn version_get(&self, _: Request<()>) -> Reply<VersionResponse> {
        Ok(Response::new(VersionResponse {
            version: version::RELEASE.to_owned(),
            git_commit: String::new(),
            build_date: String::new(),
            instance_manager_api_version: version::API,
            instance_manager_api_min_version: version::API_MIN,
            instance_manager_proxy_api_version: version::PROXY_API,
            instance_manager_proxy_api_min_version: version::PROXY_API_MIN,
        }))
    }
}

fn spec(spec: Option<ProcessSpec>) -> Result<Spec, Refusal> {
    let ProcessSpec { name, binary, args, port_count, port_args } =
        spec.ok_or_else(|| Refusal::Invalid("the spec is missing".into()))?;
    Ok(Spec { port_count: ports(&name, port_count)?, name, binary, args, port_args })
}

pub fn ports(name: &str, count: i32) -> Result<u16, Refusal> {
    u16::try_from(count)
        .map_err(|_| Refusal::Invalid(format!("process {name}: {count} is no number of ports")))
}

fn response(view: View) -> ProcessResponse {
    let status = ProcessStatus {
        state: view.status.state.name().to_owned(),
        error_msg: view.status.error,
        port_start: view.port_start.into(),
        port_end: view.port_end.into(),
        conditions: view.status.conditions,
        uuid: view.run,
    };
    let Spec { name, binary, args, port_count, port_args } = view.spec;
    let spec = ProcessSpec { name, binary, args, port_count: port_count.into(), port_args };
    ProcessResponse { spec: Some(spec), status: Some(status), deleted: view.deleted }
}
