//! Which API to talk to and as whom: finds the kubeconfig and builds the client.
//! It reads kubeconfig files and nothing else of a data directory, and it never writes.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, ValueEnum};
use http::{HeaderValue, header::USER_AGENT};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};

use crate::{
    environment::Environment,
    error::{CliError, Result, from_kube},
};

/// A local API answers at once; a distant one that needs longer than this is as good as gone.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Flags that every command of the program understands.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Connection", about = None, long_about = None)]
pub struct ConnectionArgs {
    /// Directory with the data of a standalone Granary; its kubeconfig is used
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// Kubeconfig file of the API to talk to
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,

    /// Namespace; without it the one of the context, else "default"
    #[arg(short, long, global = true, value_name = "NAME")]
    pub namespace: Option<String>,

    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColourChoice,
}

impl ConnectionArgs {
    /// The data directory of this machine's Granary: the named one or the default.
    pub fn data_dir(&self, env: &Environment) -> Option<PathBuf> {
        self.data_dir.clone().or_else(|| env.default_data_dir())
    }
}

/// `--color`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ColourChoice {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

/// Where an API was found, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The address, such as `https://127.0.0.1:8443`
    pub server: String,
    /// The file and context it came from
    pub description: String,
    /// How we identify ourselves, such as `token of user "admin"`
    pub credentials: String,
}

/// A client and the namespace to use with it.
pub struct Connected {
    pub client: Client,
    pub namespace: String,
    /// The namespace came from the command line, not from a default.
    pub namespace_is_explicit: bool,
    pub origin: Origin,
}

/// The place that won, before anything is read from it.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Files(Vec<PathBuf>),
    InCluster,
}

/// Finds the API and prepares a client; it does not talk to it yet.
pub async fn connect(args: &ConnectionArgs, env: &Environment) -> Result<Connected> {
    let (mut config, origin) = match locate(args, env)? {
        Found::Files(files) => from_files(&files, args.context.as_deref()).await?,
        Found::InCluster => in_cluster()?,
    };
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    // A person waits for the answer: an overloaded server is reported, not retried for minutes.
    config.default_retry = false;
    config
        .headers
        .push((USER_AGENT, HeaderValue::from_static(concat!("granary/", env!("CARGO_PKG_VERSION")))));
    let namespace = args.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let client = Client::try_from(config).map_err(|error| from_kube(&origin, error))?;
    Ok(Connected { client, namespace, namespace_is_explicit: args.namespace.is_some(), origin })
}

/// Flags first, then Granary's own variables, its default place, and last what other
/// Kubernetes tools use.
fn locate(args: &ConnectionArgs, env: &Environment) -> Result<Found> {
    if let Some(file) = &args.kubeconfig {
        return Ok(Found::Files(vec![file.clone()]));
    }
    if let Some(dir) = &args.data_dir {
        return existing(dir).ok_or_else(|| {
            no_api_in(dir, format!("start it with `granary up --data-dir {}`", dir.display()))
        });
    }
    if let Some(file) = &env.granary_kubeconfig {
        return Ok(Found::Files(vec![file.clone()]));
    }
    if let Some(found) = env.default_data_dir().as_deref().and_then(existing) {
        return Ok(found);
    }
    if let Some(dir) = &env.granary_data_dir {
        return Err(no_api_in(
            dir,
            "start it with `granary up` (GRANARY_DATA_DIR names this directory)".into(),
        ));
    }
    if let Some(files) = env.kubeconfig.as_deref().and_then(kubeconfig_list) {
        return Ok(Found::Files(files));
    }
    if let Some(file) = env.home.as_ref().map(|home| home.join(".kube/config")).filter(|file| file.exists()) {
        return Ok(Found::Files(vec![file]));
    }
    if env.in_cluster {
        return Ok(Found::InCluster);
    }
    let sudo = if env.belongs_to_root() { " (root's Granary: use sudo)" } else { "" };
    Err(CliError::NoApi {
        looked_in: "found no kubeconfig of Granary's, KUBECONFIG is not set, and ~/.kube/config is missing"
            .into(),
        hint: format!("start one with `granary up`, or pass --kubeconfig FILE{sudo}"),
    })
}

fn existing(data_dir: &Path) -> Option<Found> {
    let file = data_dir.join("kubeconfig");
    file.exists().then(|| Found::Files(vec![file]))
}

fn no_api_in(dir: &Path, hint: String) -> CliError {
    CliError::NoApi { looked_in: format!("{} does not exist", dir.join("kubeconfig").display()), hint }
}

/// Missing files of the list are skipped, as kubectl does; if all are missing the list counts as not set.
fn kubeconfig_list(value: &OsStr) -> Option<Vec<PathBuf>> {
    let files: Vec<PathBuf> = std::env::split_paths(value).filter(|path| path.exists()).collect();
    (!files.is_empty()).then_some(files)
}

async fn from_files(files: &[PathBuf], context: Option<&str>) -> Result<(Config, Origin)> {
    let path = files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(":");
    let unusable = |reason: String| CliError::Kubeconfig { path: path.clone(), reason };
    let mut merged = Kubeconfig::default();
    for file in files {
        let next = Kubeconfig::read_from(file).map_err(|error| match error {
            KubeconfigError::ReadConfig(cause, _) => unusable(cause.to_string()),
            other => unusable(other.to_string()),
        })?;
        merged = merged.merge(next).map_err(|error| unusable(error.to_string()))?;
    }
    let context = match context.map(str::to_owned).or_else(|| merged.current_context.clone()) {
        Some(context) if !context.is_empty() => context,
        _ => return Err(unusable(format!("it has no current context{}", contexts_of(&merged)))),
    };
    let Some(chosen) =
        merged.contexts.iter().find(|named| named.name == context).and_then(|named| named.context.clone())
    else {
        return Err(unusable(format!("it has no context {context:?}{}", contexts_of(&merged))));
    };
    let options = KubeConfigOptions { context: Some(context.clone()), ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(merged, &options)
        .await
        .map_err(|error| unusable(error.to_string()))?;
    let origin = Origin {
        server: config.cluster_url.to_string().trim_end_matches('/').to_owned(),
        description: format!("{path} (context {context:?})"),
        credentials: credentials(&config, chosen.user.as_deref().unwrap_or_default()),
    };
    Ok((config, origin))
}

fn contexts_of(kubeconfig: &Kubeconfig) -> String {
    if kubeconfig.contexts.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = kubeconfig.contexts.iter().map(|named| named.name.as_str()).collect();
    format!("; it has {}", names.join(", "))
}

fn credentials(config: &Config, user: &str) -> String {
    let auth = &config.auth_info;
    let means = if auth.token.is_some() || auth.token_file.is_some() {
        "token"
    } else if auth.client_certificate.is_some() || auth.client_certificate_data.is_some() {
        "certificate"
    } else if auth.exec.is_some() || auth.auth_provider.is_some() {
        "plug-in credentials"
    } else if auth.username.is_some() {
        "password"
    } else {
        return "missing credentials".into();
    };
    format!("{means} of user {user:?}")
}

fn in_cluster() -> Result<(Config, Origin)> {
    let config = Config::incluster().map_err(|error| CliError::Kubeconfig {
        path: "of this pod's service account".into(),
        reason: error.to_string(),
    })?;
    let origin = Origin {
        server: config.cluster_url.to_string().trim_end_matches('/').to_owned(),
        description: "this pod's service account".into(),
        credentials: "token".into(),
    };
    Ok((config, origin))
}

#[cfg(test)]
impl Origin {
    pub(crate) fn for_tests() -> Self {
        Self {
            server: "https://127.0.0.1:8443".into(),
            description: "/data/kubeconfig (context \"granary\")".into(),
            credentials: "token of user \"admin\"".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    fn home_with(files: &[&str]) -> (tempfile::TempDir, Environment) {
        let home = tempfile::tempdir().unwrap();
        for file in files {
            let path = home.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let env = Environment { home: Some(home.path().into()), ..Environment::default() };
        (home, env)
    }

    fn file_of(args: &ConnectionArgs, env: &Environment) -> PathBuf {
        match locate(args, env).expect("an API is found") {
            Found::Files(mut files) => files.remove(0),
            Found::InCluster => panic!("not in a cluster"),
        }
    }

    #[test]
    fn the_most_explicit_place_wins() {
        let (home, mut env) =
            home_with(&[".local/share/granary/kubeconfig", ".kube/config", "d/kubeconfig", "k"]);
        let at = |name: &str| home.path().join(name);

        assert_eq!(file_of(&ConnectionArgs::default(), &env), at(".local/share/granary/kubeconfig"));

        env.kubeconfig = Some(at("k").into());
        assert_eq!(
            file_of(&ConnectionArgs::default(), &env),
            at(".local/share/granary/kubeconfig"),
            "a Granary on this machine comes before other clusters"
        );

        env.granary_kubeconfig = Some(at("mine"));
        assert_eq!(file_of(&ConnectionArgs::default(), &env), at("mine"));

        let args = ConnectionArgs { data_dir: Some(at("d")), ..ConnectionArgs::default() };
        assert_eq!(file_of(&args, &env), at("d/kubeconfig"), "a flag comes before variables");

        let args = ConnectionArgs { kubeconfig: Some(at("flag")), ..args };
        assert_eq!(file_of(&args, &env), at("flag"));
    }

    #[test]
    fn without_a_granary_the_places_of_other_tools_are_used() {
        let (home, mut env) = home_with(&[".kube/config", "a", "b"]);
        assert_eq!(file_of(&ConnectionArgs::default(), &env), home.path().join(".kube/config"));

        let list = std::env::join_paths(["missing", "a", "b"].map(|name| home.path().join(name))).unwrap();
        env.kubeconfig = Some(list);
        assert_eq!(
            locate(&ConnectionArgs::default(), &env).unwrap(),
            Found::Files(vec![home.path().join("a"), home.path().join("b")])
        );
    }

    #[test]
    fn finding_nothing_says_how_to_get_an_api() {
        let (_home, env) = home_with(&[]);
        let error = locate(&ConnectionArgs::default(), &env).unwrap_err();
        assert_eq!(error.exit(), Exit::Unreachable);
        let hint = error.hint().unwrap();
        assert!(hint.contains("granary up") && hint.contains("--kubeconfig"), "{hint}");
    }

    #[test]
    fn a_named_data_directory_is_never_silently_replaced() {
        let (home, mut env) = home_with(&[".kube/config"]);
        let empty = home.path().join("empty");
        let args = ConnectionArgs { data_dir: Some(empty.clone()), ..ConnectionArgs::default() };
        assert_eq!(locate(&args, &env).unwrap_err().exit(), Exit::Unreachable);

        env.granary_data_dir = Some(empty);
        assert_eq!(locate(&ConnectionArgs::default(), &env).unwrap_err().exit(), Exit::Unreachable);
    }

    const TWO_CONTEXTS: &str = r#"
apiVersion: v1
kind: Config
current-context: here
clusters:
- {name: local, cluster: {server: "https://127.0.0.1:8443"}}
users:
- {name: admin, user: {token: secret}}
contexts:
- {name: here, context: {cluster: local, user: admin, namespace: lab}}
- {name: there, context: {cluster: local, user: nobody}}
"#;

    #[tokio::test]
    async fn messages_can_name_the_file_and_the_user_but_not_the_secret() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("kubeconfig");
        std::fs::write(&file, TWO_CONTEXTS).unwrap();

        let (config, origin) = from_files(std::slice::from_ref(&file), None).await.unwrap();
        assert_eq!(config.default_namespace, "lab");
        assert_eq!(origin.server, "https://127.0.0.1:8443");
        assert_eq!(origin.credentials, "token of user \"admin\"");
        assert!(origin.description.contains("kubeconfig") && !format!("{origin:?}").contains("secret"));

        let (_, origin) = from_files(std::slice::from_ref(&file), Some("there")).await.unwrap();
        assert_eq!(origin.credentials, "missing credentials");

        let error = from_files(std::slice::from_ref(&file), Some("gone")).await.err().unwrap();
        assert!(error.to_string().contains("it has here, there"), "{error}");
    }
}
