//! The instance service: the same processes, in the words of its clients. The other data engine is not there.

use tonic::{Request, Response, Status};

use super::process::ports;
use super::stream::{self, Answers};
use crate::process::{Registry, Role, Spec, View};
use crate::wire::imrpc::instance_service_server::InstanceService;
use crate::wire::imrpc::{
    DataEngine, InstanceCreateRequest, InstanceDeleteRequest, InstanceGetRequest, InstanceListResponse,
    InstanceLogRequest, InstanceReplaceRequest, InstanceResponse, InstanceSpec, InstanceStatus, LogResponse,
    ProcessInstanceSpec, VersionResponse,
};
use crate::{Refusal, frontend, version};

#[derive(Clone)]
pub struct Instances(pub Registry);

type Reply<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl InstanceService for Instances {
    type InstanceLogStream = Answers<LogResponse>;
    type InstanceWatchStream = Answers<()>;

    async fn instance_create(&self, request: Request<InstanceCreateRequest>) -> Reply<InstanceResponse> {
        let view = self.0.create(spec(request.into_inner().spec)?)?;
        Ok(Response::new(response(view)))
    }

    async fn instance_delete(&self, request: Request<InstanceDeleteRequest>) -> Reply<InstanceResponse> {
        let InstanceDeleteRequest { name, data_engine, uuid, .. } = request.into_inner();
        first_engine(&name, data_engine)?;
        Ok(Response::new(response(self.0.delete(&name, &uuid)?)))
    }

    async fn instance_get(&self, request: Request<InstanceGetRequest>) -> Reply<InstanceResponse> {
        let InstanceGetRequest { name, data_engine, .. } = request.into_inner();
        first_engine(&name, data_engine)?;
        Ok(Response::new(response(self.0.get(&name)?)))
    }

    async fn instance_list(&self, _: Request<()>) -> Reply<InstanceListResponse> {
        let instances =
            self.0.list().into_iter().map(|view| (view.spec.name.clone(), response(view))).collect();
        Ok(Response::new(InstanceListResponse { instances }))
    }

    async fn instance_log(&self, request: Request<InstanceLogRequest>) -> Reply<Self::InstanceLogStream> {
        let InstanceLogRequest { name, data_engine, .. } = request.into_inner();
        first_engine(&name, data_engine)?;
        Ok(Response::new(stream::lines(&self.0, &name, |line| LogResponse { line })?))
    }

    async fn instance_watch(&self, _: Request<()>) -> Reply<Self::InstanceWatchStream> {
        Ok(Response::new(stream::changes(self.0.clone(), drop)))
    }

    async fn instance_replace(&self, request: Request<InstanceReplaceRequest>) -> Reply<InstanceResponse> {
        let InstanceReplaceRequest { spec: wanted, terminate_signal } = request.into_inner();
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

fn first_engine(name: &str, data_engine: i32) -> Result<(), Refusal> {
    if data_engine == DataEngine::V1 as i32 {
        return Ok(());
    }
    Err(Refusal::Unimplemented(format!("instance {name}: only data engine v1 is run here")))
}

fn spec(spec: Option<InstanceSpec>) -> Result<Spec, Refusal> {
    let spec = spec.ok_or_else(|| Refusal::Invalid("the spec is missing".into()))?;
    first_engine(&spec.name, spec.data_engine)?;
    let process = spec.process_instance_spec.unwrap_or_default();
    Ok(Spec {
        port_count: ports(&spec.name, spec.port_count)?,
        name: spec.name,
        binary: process.binary,
        args: process.args,
        port_args: spec.port_args,
    })
}

fn response(view: View) -> InstanceResponse {
    let kind = match view.plan.role {
        Role::Engine { .. } => "engine",
        Role::Replica { .. } => "replica",
        Role::Other => "",
    };
    let (asked, place) = (view.plan.frontends().into_iter().next(), view.places.into_iter().next());
    let reached = place.map(|place| match &asked {
        Some(spec) => (frontend::endpoint(spec, &place), frontend::name(spec)),
        None => (place.clone(), place),
    });
    let (endpoint, frontend) = reached.unwrap_or_default();
    let status = InstanceStatus {
        state: view.status.state.name().to_owned(),
        error_msg: view.status.error,
        port_start: view.port_start.into(),
        port_end: view.port_end.into(),
        conditions: view.status.conditions,
        uuid: view.run,
        endpoint,
        frontend,
        ..InstanceStatus::default()
    };
    let spec = InstanceSpec {
        volume_name: view.plan.volume().unwrap_or_default().to_owned(),
        name: view.spec.name,
        r#type: kind.to_owned(),
        port_count: view.spec.port_count.into(),
        port_args: view.spec.port_args,
        process_instance_spec: Some(ProcessInstanceSpec { binary: view.spec.binary, args: view.spec.args }),
        ..InstanceSpec::default()
    };
    InstanceResponse { spec: Some(spec), status: Some(status), deleted: view.deleted }
}
