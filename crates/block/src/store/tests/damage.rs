//! Directories that something has happened to: open refuses, inspect tells, repair says what it would do.

use super::{as_disk, blocks, created, reopened};
use crate::disk::Disk;
use crate::disk::simulated::Simulated;
use crate::store::metadata::{FILE, TEMPORARY, mask_file};
use crate::store::segments;
use crate::store::{Action, OpenOptions, Problem, Store, inspect, plan_repair};

/// A volume with a snapshot, closed; and the name of its head's files.
fn closed_volume(disk: &Simulated) -> uuid::Uuid {
    let store = created(disk, 16);
    store.write_stamp(0, 1);
    store.take("s");
    store.write_stamp(1, 2);
    store.flush().unwrap();
    store.head().0
}

fn overwrite(disk: &Simulated, name: &str, bytes: &[u8]) {
    if disk.remove(name).is_ok() {
        disk.sync_names().unwrap();
    }
    disk.create(name).unwrap().write_at(0, bytes).unwrap();
}

fn refusal(disk: &Simulated) -> String {
    Store::open(as_disk(disk), OpenOptions::default()).err().unwrap().to_string()
}

#[test]
fn a_sound_directory_is_described_while_it_is_in_use_and_not_touched() {
    let disk = Simulated::new();
    closed_volume(&disk);
    let before = disk.changes();
    let report = inspect(&disk).unwrap();
    assert_eq!((report.problems.len(), report.in_use_by, disk.changes()), (0, None, before));
    assert_eq!(
        report.layers.iter().map(|layer| (layer.data, layer.is_head)).collect::<Vec<_>>(),
        [(4096, false), (4096, true)]
    );
    let _open = reopened(&disk);
    assert_eq!(inspect(&disk).unwrap().in_use_by, Some(std::process::id()));
    serde_json::to_string(&report).unwrap();
}

#[test]
fn what_is_missing_or_short_is_named_and_never_served() {
    type Harm = fn(&Simulated, uuid::Uuid);
    let cases: [(Harm, &str); 3] = [
        (|disk, head| disk.remove(&segments::name(head, 0)).unwrap(), ".img is missing"),
        (|disk, head| disk.remove(&mask_file(head)).unwrap(), ".mask is missing"),
        (|disk, head| disk.open(&segments::name(head, 0)).unwrap().set_len(8192).unwrap(), "8192 bytes"),
    ];
    for (harm, sign) in cases {
        let disk = Simulated::new();
        let head = closed_volume(&disk);
        harm(&disk, head);
        assert!(refusal(&disk).contains(sign), "{}", refusal(&disk));
        let report = inspect(&disk).unwrap();
        assert!(report.problems[0].to_string().contains(sign), "{:?}", report.problems);
        let plan = plan_repair(&report);
        assert_eq!(plan[0].action, Action::Nothing);
        assert!(plan[0].explanation.contains("rebuild"), "{}", plan[0].explanation);
    }
}

#[test]
fn metadata_of_another_format_or_of_nonsense_is_refused() {
    for (text, sign) in [
        (r#"{"format": 99}"#, "format 99"),
        ("{}", "not readable"),
        ("", "not readable"),
        (r#"{"format": 1}"#, "not readable"),
    ] {
        let disk = Simulated::new();
        closed_volume(&disk);
        overwrite(&disk, FILE, text.as_bytes());
        assert!(refusal(&disk).contains(sign), "{}", refusal(&disk));
        assert!(matches!(inspect(&disk).unwrap().problems[..], [Problem::MetadataUnreadable { .. }]));
    }
}

#[test]
fn an_interrupted_replacement_of_broken_metadata_is_finished_on_request() {
    let disk = Simulated::new();
    closed_volume(&disk);
    let file = disk.open(FILE).unwrap();
    let mut good = vec![0; file.size().unwrap() as usize];
    file.read_at(0, &mut good).unwrap();
    overwrite(&disk, FILE, b"torn");
    overwrite(&disk, TEMPORARY, &good);
    let plan = plan_repair(&inspect(&disk).unwrap());
    assert_eq!(
        plan.iter().map(|remedy| remedy.action).collect::<Vec<_>>(),
        [Action::FinishReplacement, Action::RemoveFile]
    );
    assert!(refusal(&disk).contains("not readable"), "a plan changes nothing");
    for remedy in plan {
        remedy.apply(&disk).unwrap();
    }
    assert_eq!(inspect(&disk).unwrap().problems, []);
    assert_eq!(reopened(&disk).read_stamps(blocks(0, 2)), [1, 2]);
}

#[test]
fn leftovers_and_a_lost_map_of_intents_are_put_right() {
    let disk = Simulated::new();
    closed_volume(&disk);
    overwrite(&disk, "layer-of-nobody.img", &[1; 4096]);
    overwrite(&disk, TEMPORARY, b"half");
    disk.remove("intents.map").unwrap();
    assert!(refusal(&disk).contains("intents.map is missing"));
    let report = inspect(&disk).unwrap();
    assert_eq!(report.problems.len(), 3, "{:?}", report.problems);
    for remedy in plan_repair(&report) {
        remedy.apply(&disk).unwrap();
    }
    assert_eq!(inspect(&disk).unwrap().problems, []);
    let store = reopened(&disk);
    assert_eq!(store.intents(), [crate::wire::message::Regions(0, 1)], "everything is to be compared");
    assert_eq!(store.read_stamps(blocks(0, 2)), [1, 2]);
}

#[test]
fn a_directory_with_somebodys_layers_is_not_made_a_new_volume() {
    let disk = Simulated::new();
    overwrite(&disk, "layer-of-somebody.img", &[1; 4096]);
    overwrite(&disk, "layer-of-nobody.img", &[]);
    let error = Store::create(as_disk(&disk), crate::store::CreateOptions::new(4096)).err().unwrap();
    assert!(error.to_string().contains("layer-of-somebody.img"), "{error}");
}
