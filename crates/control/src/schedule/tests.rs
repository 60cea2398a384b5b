//! The scheduler against stories, and against a model that tries every way to place copies.

use proptest::prelude::*;

use super::{Copy, Disk, Node, Obstacle, Request, Rules, Where, place};

const GIB: u64 = 1 << 30;

fn disk(id: &str) -> Disk {
    Disk {
        name: format!("disk-{id}"),
        id: id.to_owned(),
        path: format!("/mnt/{id}"),
        ready: true,
        allows_scheduling: true,
        maximum: 100 * GIB,
        available: 100 * GIB,
        ..Disk::default()
    }
}

fn node(name: &str, zone: &str, disks: Vec<Disk>) -> Node {
    Node {
        name: name.to_owned(),
        zone: zone.to_owned(),
        ready: true,
        allows_scheduling: true,
        disks,
        ..Node::default()
    }
}

fn request() -> Request {
    Request { size: GIB, ..Request::default() }
}

fn copy(node: &str, disk: &str) -> Copy {
    Copy { node: node.to_owned(), disk: disk.to_owned(), evicting: false }
}

fn chosen(rules: &Rules, nodes: &[Node], copies: &[Copy]) -> String {
    place(&request(), rules, nodes, copies).unwrap().disk
}

#[test]
fn a_new_zone_comes_before_a_new_node_and_that_before_more_room() {
    let mut roomy = disk("b");
    roomy.maximum = 1000 * GIB;
    roomy.available = 1000 * GIB;
    let nodes =
        [node("n1", "z1", vec![disk("a")]), node("n2", "z1", vec![roomy]), node("n3", "z2", vec![disk("c")])];
    let mut copies = vec![copy("n1", "a")];
    assert_eq!(chosen(&Rules::default(), &nodes, &copies), "c");
    copies.push(copy("n3", "c"));
    assert_eq!(chosen(&Rules::default(), &nodes, &copies), "b");
}

#[test]
fn copies_that_may_share_a_node_still_take_different_disks() {
    let rules = Rules { share_node: true, ..Rules::default() };
    let mut roomy = disk("b");
    roomy.available = 99 * GIB;
    let nodes = [node("n1", "", vec![disk("a"), roomy])];
    assert_eq!(chosen(&rules, &nodes, &[]), "a");
    assert_eq!(chosen(&rules, &nodes, &[copy("n1", "a")]), "b");
}

#[test]
fn a_copy_that_leaves_gives_its_node_to_its_successor() {
    let nodes = [node("n1", "", vec![disk("a"), disk("b")])];
    let leaving = Copy { evicting: true, ..copy("n1", "a") };
    let rules = Rules { share_disk: false, ..Rules::default() };
    assert_eq!(chosen(&rules, &nodes, &[leaving]), "b");
}

/// Each rule, alone in the way.
#[test]
fn a_refusal_names_the_obstacle_and_the_setting() {
    type Change = fn(&mut Node, &mut Request, &mut Rules);
    let table: &[(Change, &str)] = &[
        (|n, _, _| n.ready = false, "node n1 is not ready"),
        (|n, _, _| n.allows_scheduling = false, "node n1 has allowScheduling off"),
        (|n, _, _| n.evicting = true, "node n1 is being evicted"),
        (
            |_, q, _| q.node_selector = vec!["fast".into()],
            "node n1 lacks the tags fast that the volume selects",
        ),
        (
            |_, q, _| q.only_node = Some("n9".into()),
            "node n1 is not n9, the only node this replica may be on",
        ),
        (
            |n, _, r| {
                n.tags = vec!["fast".into()];
                r.untagged_on_tagged_nodes = false;
            },
            "node n1 has tags and the volume selects none (allow-empty-node-selector-volume)",
        ),
        (|n, _, _| n.disks.clear(), "node n1 has no disks"),
        (|n, _, _| n.disks[0].ready = false, "disk disk-a of node n1 is not ready"),
        (|n, _, _| n.disks[0].id.clear(), "disk disk-a of node n1 is not ready"),
        (|n, _, _| n.disks[0].allows_scheduling = false, "disk disk-a of node n1 has allowScheduling off"),
        (|n, _, _| n.disks[0].evicting = true, "disk disk-a of node n1 is being evicted"),
        (
            |_, q, _| q.disk_selector = vec!["ssd".into()],
            "disk disk-a of node n1 lacks the tags ssd that the volume selects",
        ),
        (
            |n, _, r| {
                n.disks[0].tags = vec!["ssd".into()];
                r.untagged_on_tagged_disks = false;
            },
            "disk disk-a of node n1 has tags and the volume selects none (allow-empty-disk-selector-volume)",
        ),
        (
            |n, _, _| n.disks[0].scheduled = 100 * GIB - GIB / 2,
            "disk disk-a of node n1 has 512.0 MiB left to promise and 1.0 GiB are asked for \
             (storage-over-provisioning-percentage)",
        ),
        (
            |n, _, _| n.disks[0].available = 25 * GIB,
            "disk disk-a of node n1 has 25.0 GiB free and more than 25.0 GiB must be \
             (storage-minimal-available-percentage)",
        ),
        (
            |n, q, _| {
                n.disks[0].available = 35 * GIB;
                q.fill = 10 * GIB;
            },
            "disk disk-a of node n1 has 35.0 GiB free and more than 35.0 GiB must be \
             (storage-minimal-available-percentage)",
        ),
    ];
    for (change, expected) in table {
        let (mut node, mut request, mut rules) =
            (node("n1", "", vec![disk("a")]), request(), Rules::default());
        change(&mut node, &mut request, &mut rules);
        let refused = place(&request, &rules, &[node], &[]).unwrap_err();
        assert_eq!(refused.to_string(), format!("no disk can take a replica: {expected}"));
    }
}

#[test]
fn hard_rules_about_other_copies_are_named_too() {
    let nodes = [node("n1", "z1", vec![disk("a")])];
    let copies = [copy("n1", "a")];
    let obstacle = |rules: &Rules| place(&request(), rules, &nodes, &copies).unwrap_err().obstacles.remove(0);
    let node_place = Where::Node("n1".into());
    assert_eq!(obstacle(&Rules::default()), (node_place.clone(), Obstacle::NodeHasCopy));
    let rules = Rules { share_node: true, share_zone: false, ..Rules::default() };
    assert_eq!(obstacle(&rules), (node_place, Obstacle::ZoneHasCopy("z1".into())));
    let rules = Rules { share_node: true, share_disk: false, ..Rules::default() };
    let disk_place = Where::Disk { node: "n1".into(), disk: "disk-a".into() };
    assert_eq!(obstacle(&rules), (disk_place, Obstacle::DiskHasCopy));
}

#[test]
fn without_nodes_the_answer_says_what_to_add() {
    let refused = place(&request(), &Rules::default(), &[], &[]).unwrap_err();
    assert!(refused.to_string().contains("add one to nodes.longhorn.io"));
}

#[test]
fn a_long_list_of_obstacles_ends_with_a_count() {
    let nodes: Vec<Node> = (0..11).map(|n| node(&format!("n{n}"), "", Vec::new())).collect();
    let refused = place(&request(), &Rules::default(), &nodes, &[]).unwrap_err();
    assert!(refused.to_string().ends_with("node n7 has no disks; and 3 more"));
}

/// The rules as sentences about one copy among others, without any notion of order.
fn is_allowed(request: &Request, rules: &Rules, nodes: &[Node], copies: &[Copy], n: usize, d: usize) -> bool {
    let (node, disk) = (&nodes[n], &nodes[n].disks[d]);
    let zone_of = |name: &str| nodes.iter().find(|node| node.name == name).map(|node| node.zone.as_str());
    let open = node.ready && node.allows_scheduling && disk.ready && disk.allows_scheduling;
    let tagged = request.node_selector.iter().all(|tag| node.tags.contains(tag));
    let alone_on_node = copies.iter().all(|copy| copy.node != node.name);
    let alone_in_zone = copies.iter().all(|copy| zone_of(&copy.node) != Some(&node.zone));
    let alone_on_disk = copies.iter().all(|copy| copy.disk != disk.id);
    let promised =
        (disk.scheduled + request.size) * 100 <= (disk.maximum - disk.reserved) * rules.over_provisioning;
    let free = disk.available * 100 > disk.maximum * rules.minimal_available;
    open && tagged
        && (alone_on_node || rules.share_node)
        && (alone_in_zone || rules.share_zone)
        && (alone_on_disk || rules.share_disk)
        && promised
        && free
}

/// Places one copy after the other, until none fits; gives the copies.
fn fill(request: &Request, rules: &Rules, nodes: &mut [Node], wanted: usize) -> Vec<Copy> {
    let mut copies = Vec::new();
    while copies.len() < wanted {
        let Ok(place) = place(request, rules, nodes, &copies) else { break };
        let node = nodes.iter().position(|node| node.name == place.node).unwrap();
        let disk = nodes[node].disks.iter().position(|disk| disk.id == place.disk).unwrap();
        assert!(is_allowed(request, rules, nodes, &copies, node, disk), "{place:?} breaks a rule");
        nodes[node].disks[disk].scheduled += request.size;
        copies.push(copy(&place.node, &place.disk));
    }
    copies
}

/// The most copies that any order of any choices gives, and the most zones among those ways.
fn best(
    request: &Request,
    rules: &Rules,
    nodes: &mut Vec<Node>,
    copies: &mut Vec<Copy>,
    wanted: usize,
) -> (usize, usize) {
    let zones: std::collections::BTreeSet<_> = copies
        .iter()
        .filter_map(|copy| nodes.iter().find(|node| node.name == copy.node).map(|node| node.zone.clone()))
        .collect();
    let mut most = (copies.len(), zones.len());
    if copies.len() == wanted {
        return most;
    }
    for n in 0..nodes.len() {
        for d in 0..nodes[n].disks.len() {
            if !is_allowed(request, rules, nodes, copies, n, d) {
                continue;
            }
            nodes[n].disks[d].scheduled += request.size;
            copies.push(copy(&nodes[n].name.clone(), &nodes[n].disks[d].id.clone()));
            most = most.max(best(request, rules, nodes, copies, wanted));
            copies.pop();
            nodes[n].disks[d].scheduled -= request.size;
        }
    }
    most
}

fn any_disk() -> impl Strategy<Value = Disk> {
    (prop::bool::weighted(0.9), prop::bool::weighted(0.9), 1..4u64, 0..4u64, 0..2u64, 0..2u64).prop_map(
        |(ready, allows_scheduling, maximum, available, scheduled, reserved)| Disk {
            ready,
            allows_scheduling,
            maximum,
            available: available.min(maximum),
            scheduled,
            reserved: reserved.min(maximum),
            ..Disk::default()
        },
    )
}

fn any_node() -> impl Strategy<Value = Node> {
    (0..3u8, prop::bool::weighted(0.9), any::<bool>(), prop::collection::vec(any_disk(), 0..3)).prop_map(
        |(zone, ready, tagged, disks)| Node {
            zone: format!("z{zone}"),
            ready,
            allows_scheduling: true,
            tags: if tagged { vec!["fast".into()] } else { Vec::new() },
            disks,
            ..Node::default()
        },
    )
}

fn any_cluster() -> impl Strategy<Value = Vec<Node>> {
    prop::collection::vec(any_node(), 0..5).prop_map(|mut nodes| {
        for (n, node) in nodes.iter_mut().enumerate() {
            node.name = format!("n{n}");
            for (d, disk) in node.disks.iter_mut().enumerate() {
                (disk.id, disk.name) = (format!("{n}-{d}"), format!("d{d}"));
            }
        }
        nodes
    })
}

fn any_rules() -> impl Strategy<Value = Rules> {
    (any::<[bool; 3]>(), prop::sample::select(vec![50, 100, 200]), prop::sample::select(vec![0, 25, 60]))
        .prop_map(|([share_node, share_zone, share_disk], over_provisioning, minimal_available)| Rules {
            over_provisioning,
            minimal_available,
            share_node,
            share_zone,
            share_disk,
            ..Rules::default()
        })
}

proptest! {
    /// No rule is broken, and choosing one disk after the other loses neither a copy nor a zone to somebody who
    /// could look at all of them at once.
    #[test]
    fn no_way_to_place_copies_gives_more_of_them_or_more_zones(
        nodes in any_cluster(), rules in any_rules(), fast in any::<bool>(), wanted in 1..4usize,
    ) {
        let node_selector = if fast { vec!["fast".into()] } else { Vec::new() };
        let request = Request { size: 1, node_selector, ..Request::default() };
        let copies = fill(&request, &rules, &mut nodes.clone(), wanted);
        let zones: std::collections::BTreeSet<_> = copies
            .iter()
            .filter_map(|copy| nodes.iter().find(|node| node.name == copy.node).map(|node| &node.zone))
            .collect();
        let most = best(&request, &rules, &mut nodes.clone(), &mut Vec::new(), wanted);
        prop_assert_eq!((copies.len(), zones.len()), most);
    }

    /// Every disk of a cluster that takes nothing has its reason.
    #[test]
    fn a_refusal_speaks_of_every_disk(nodes in any_cluster(), rules in any_rules()) {
        let request = Request { size: 1, ..Request::default() };
        let mut filled = nodes;
        let copies = fill(&request, &rules, &mut filled, 20);
        prop_assume!(copies.len() < 20);
        let refused = place(&request, &rules, &filled, &copies).unwrap_err();
        for node in &filled {
            let whole = refused.obstacles.iter().any(|(place, _)| *place == Where::Node(node.name.clone()));
            for disk in &node.disks {
                let place = Where::Disk { node: node.name.clone(), disk: disk.name.clone() };
                prop_assert!(whole || refused.obstacles.iter().any(|(found, _)| *found == place));
            }
        }
    }
}
