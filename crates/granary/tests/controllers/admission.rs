//! Hooks that a part of the process registers, and who the process says is asking.

use std::sync::Arc;

use futures::FutureExt;
use granary_apiserver::admission::{Hook, Operation, Phase};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::admission::AdmissionResponse;
use kube::{Api, ResourceExt};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::config_map;
use super::support::{Granary, Place};

type Seen = Arc<Mutex<Vec<Value>>>;

const ALL: &[Operation] = &[Operation::Create, Operation::Update, Operation::Delete];

/// A hook that notes what it is asked and answers with `answer`.
fn noting(
    seen: &Seen,
    phase: Phase,
    answer: impl Fn(&granary_apiserver::admission::Request) -> AdmissionResponse + Send + Sync + 'static,
) -> Hook {
    let seen = seen.clone();
    Hook::new("test.granary.io", phase, "", &["configmaps"], ALL, move |request| {
        seen.lock().push(json!({
            "operation": format!("{:?}", request.operation),
            "name": request.name,
            "namespace": request.namespace,
            "user": request.user_info.username,
            "dryRun": request.dry_run,
            "object": request.object.is_some(),
            "oldObject": request.old_object.is_some(),
        }));
        let response = answer(&request);
        async move { response }.boxed()
    })
}

fn status(error: kube::Error) -> (u16, String, String) {
    let kube::Error::Api(status) = error else { panic!("{error}") };
    (status.code, status.reason.clone(), status.message.clone())
}

#[tokio::test]
async fn hooks_see_every_write_with_its_author() {
    let granary = Granary::start(Place::InProcess).await;
    let seen = Seen::default();
    granary.server().api.admission.register(noting(&seen, Phase::Validate, |r| AdmissionResponse::from(r)));
    let maps: Api<ConfigMap> = Api::default_namespaced(granary.client("image-controller").await);
    maps.create(&PostParams::default(), &config_map("a", &[])).await.unwrap();
    let change = json!({ "data": { "k": "v" } });
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    maps.patch("a", &dry, &Patch::Merge(&change)).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let user = "system:granary:image-controller";
    let event = |operation: &str, dry: bool, object: bool, old: bool| {
        json!({
            "operation": operation, "name": "a", "namespace": "default", "user": user,
            "dryRun": dry, "object": object, "oldObject": old,
        })
    };
    let wanted = [
        event("Create", false, true, false),
        event("Update", true, true, true),
        event("Delete", false, false, true),
    ];
    assert_eq!(seen.lock().as_slice(), wanted);
}

#[tokio::test]
async fn a_mutating_hook_changes_what_is_stored_and_a_validating_one_sees_that() {
    let granary = Granary::start(Place::InProcess).await;
    let admission = &granary.server().api.admission;
    let seen = Seen::default();
    admission.register(noting(&seen, Phase::Mutate, |request| {
        let allowed = AdmissionResponse::from(request);
        if request.object.is_none() {
            return allowed;
        }
        let operations = json!([{ "op": "add", "path": "/data", "value": { "from": "hook" } }]);
        allowed.with_patch(serde_json::from_value(operations).unwrap()).unwrap()
    }));
    let checked = Seen::default();
    let note = checked.clone();
    admission.register(noting(&seen, Phase::Validate, move |request| {
        if let Some(object) = &request.object {
            note.lock().push(object.data["data"]["from"].clone());
        }
        let mut response = AdmissionResponse::from(request);
        response.warnings = Some(vec!["mind the gap".into()]);
        response
    }));
    let maps: Api<ConfigMap> = Api::default_namespaced(granary.client("c").await);
    let made = maps.create(&PostParams::default(), &config_map("a", &[])).await.unwrap();
    assert_eq!(made.data.unwrap()["from"], "hook");
    assert_eq!(checked.lock().as_slice(), ["hook"]);
    let stored = maps.get("a").await.unwrap();
    assert_eq!(stored.data.as_ref().unwrap()["from"], "hook");
    let fields = stored.managed_fields().iter().find(|m| m.manager.as_deref() == Some("c")).unwrap();
    assert!(json!(fields.fields_v1).to_string().contains("f:from"), "what a hook sets belongs to the writer");
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let deletions = seen.lock().iter().filter(|s| s["operation"] == "Delete").count();
    assert_eq!(deletions, 2, "both hooks are asked about a deletion");
}

#[tokio::test]
async fn a_refusal_has_the_hooks_code_and_words_and_nothing_happens() {
    let granary = Granary::start(Place::InProcess).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(granary.client("c").await);
    maps.create(&PostParams::default(), &config_map("kept", &[])).await.unwrap();
    let seen = Seen::default();
    let hook = noting(&seen, Phase::Validate, |request| {
        let mut refused = AdmissionResponse::from(request).deny("storage network is in use");
        if request.name == "conflict" {
            refused.result.code = 409;
        }
        refused
    });
    granary.server().api.admission.register(hook);
    let words = "admission webhook \"test.granary.io\" denied the request: storage network is in use";
    let refused = status(maps.create(&PostParams::default(), &config_map("a", &[])).await.unwrap_err());
    assert_eq!(refused, (403, "Forbidden".into(), words.into()));
    let refused =
        status(maps.create(&PostParams::default(), &config_map("conflict", &[])).await.unwrap_err());
    assert_eq!(refused, (409, "Conflict".into(), words.into()));
    let change = json!({ "data": { "k": "v" } });
    let kept = maps.patch("kept", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap_err();
    assert_eq!(status(kept).0, 403);
    // Even a change that changes nothing is asked about.
    let same = maps.patch("kept", &PatchParams::default(), &Patch::Merge(&json!({}))).await.unwrap_err();
    assert_eq!(status(same).0, 403);
    assert_eq!(status(maps.delete("kept", &DeleteParams::default()).await.unwrap_err()).0, 403);
    let left = maps.list(&kube::api::ListParams::default()).await.unwrap();
    assert_eq!(left.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["kept"]);
    assert!(left.items[0].data.is_none());
}

#[tokio::test]
async fn an_object_that_may_not_be_deleted_keeps_its_namespace_which_says_so() {
    use k8s_openapi::api::core::v1::Namespace;
    let granary = Granary::start(Place::InProcess).await;
    let client = granary.client("c").await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let doomed: Namespace = serde_json::from_value(json!({ "metadata": { "name": "doomed" } })).unwrap();
    namespaces.create(&PostParams::default(), &doomed).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "doomed");
    for name in ["a-plain", "guarded", "z-plain"] {
        maps.create(&PostParams::default(), &config_map(name, &[])).await.unwrap();
    }
    let open = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let gate = open.clone();
    let hook = noting(&Seen::default(), Phase::Validate, move |request| {
        let allowed = AdmissionResponse::from(request);
        let guarded = request.name == "guarded" && !gate.load(std::sync::atomic::Ordering::SeqCst);
        if guarded { allowed.deny("in use by a machine") } else { allowed }
    });
    granary.server().api.admission.register(hook);
    namespaces.delete("doomed", &DeleteParams::default()).await.unwrap();
    let why = super::support::eventually("the namespace to say why it stays", || async {
        let conditions = namespaces.get("doomed").await.unwrap().status?.conditions?;
        let failure = conditions.into_iter().find(|c| c.type_ == "NamespaceDeletionContentFailure")?;
        failure.message
    })
    .await;
    assert!(why.contains("in use by a machine"), "{why}");
    let left = maps.list(&kube::api::ListParams::default()).await.unwrap();
    assert_eq!(left.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["guarded"]);
    open.store(true, std::sync::atomic::Ordering::SeqCst);
    super::support::eventually("the namespace to go", || async {
        namespaces.get_opt("doomed").await.unwrap().is_none().then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_generated_name_that_is_taken_is_drawn_again() {
    let granary = Granary::start(Place::InProcess).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(granary.client("c").await);
    maps.create(&PostParams::default(), &config_map("taken", &[])).await.unwrap();
    let draws = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counted = draws.clone();
    // Stands for bad luck: the first three draws give a name that is taken.
    let hook = noting(&Seen::default(), Phase::Mutate, move |request| {
        let allowed = AdmissionResponse::from(request);
        if counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst) >= 3 {
            return allowed;
        }
        let operations = json!([{ "op": "replace", "path": "/metadata/name", "value": "taken" }]);
        allowed.with_patch(serde_json::from_value(operations).unwrap()).unwrap()
    });
    granary.server().api.admission.register(hook);
    let object: ConfigMap = serde_json::from_value(json!({ "metadata": { "generateName": "g-" } })).unwrap();
    let made = maps.create(&PostParams::default(), &object).await.unwrap();
    assert!(made.name_any().starts_with("g-"));
    assert_eq!(draws.load(std::sync::atomic::Ordering::SeqCst), 4);
}

#[tokio::test]
async fn a_part_of_the_process_is_known_by_its_name() {
    let granary = Granary::start(Place::InProcess).await;
    let client = granary.client("volume-controller").await;
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let request = http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .header("content-type", "application/json")
        .body(review.to_string().into_bytes())
        .unwrap();
    let answer: Value = client.request(request).await.unwrap();
    assert_eq!(answer["status"]["userInfo"]["username"], "system:granary:volume-controller");
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let mut object = config_map("a", &[]);
    object.data = Some([("k".to_string(), "v".to_string())].into());
    let made = maps.create(&PostParams::default(), &object).await.unwrap();
    assert_eq!(made.managed_fields()[0].manager.as_deref(), Some("volume-controller"));
}
