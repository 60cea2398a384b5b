//! UploadTokenRequest: asked once, answered at once with a token for one claim, and never stored.
//! Not a custom resource: the API server serves it itself, so it has no CustomResourceDefinition.

use std::fmt;

use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::wire::Extra;

#[derive(CustomResource, Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[kube(
    group = "upload.cdi.kubevirt.io",
    version = "v1beta1",
    kind = "UploadTokenRequest",
    plural = "uploadtokenrequests",
    namespaced,
    schema = "disabled",
    status = "UploadTokenRequestStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A request for a token that allows one upload."
)]
#[serde(rename_all = "camelCase")]
pub struct UploadTokenRequestSpec {
    /// The claim to upload to.
    pub pvc_name: String,
    #[serde(flatten)]
    pub extra: Extra,
}

#[skip_serializing_none]
#[derive(Clone, Default, Deserialize, PartialEq, Serialize)]
pub struct UploadTokenRequestStatus {
    /// Sent as a bearer token with the upload.
    pub token: Option<String>,
    #[serde(flatten)]
    pub extra: Extra,
}

impl fmt::Debug for UploadTokenRequestStatus {
    /// A token is a secret: logs learn only whether there is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = self.token.as_ref().map(|_| "hidden");
        f.debug_struct("UploadTokenRequestStatus").field("token", &token).finish_non_exhaustive()
    }
}
