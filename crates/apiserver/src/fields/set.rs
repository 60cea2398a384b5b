//! A set of field paths as a tree, with the algebra that ownership needs.
//!
//! Owns the invariant that no node is kept which is neither a member nor has members below it. Must never
//! look at a schema or at the text form of sets.

use super::path::{Path, PathElement};

/// The paths that one manager owns, or that one write changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Set {
    /// Sorted by element.
    nodes: Vec<Node>,
}

/// One element and everything below it. A node can be a member, have members below it, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub(super) element: PathElement,
    pub(super) member: bool,
    pub(super) children: Set,
}

impl Node {
    pub fn element(&self) -> &PathElement {
        &self.element
    }

    pub fn is_member(&self) -> bool {
        self.member
    }

    pub fn children(&self) -> &Set {
        &self.children
    }

    fn counts(&self) -> bool {
        self.member || !self.children.is_empty()
    }
}

impl Set {
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn with_capacity(nodes: usize) -> Self {
        Self { nodes: Vec::with_capacity(nodes) }
    }

    /// A set of plain field paths: `Set::of_fields(&[&["metadata", "name"], &["status"]])`.
    pub fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::new();
        for path in paths {
            set.insert(&path.iter().copied().collect());
        }
        set
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.nodes.iter().map(|node| usize::from(node.member) + node.children.len()).sum()
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(super) fn nodes_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        self.nodes.iter_mut()
    }

    fn position(&self, element: &PathElement) -> Result<usize, usize> {
        self.nodes.binary_search_by(|node| node.element.cmp(element))
    }

    pub fn get(&self, element: &PathElement) -> Option<&Node> {
        self.position(element).ok().map(|at| &self.nodes[at])
    }

    /// The node of a named field, found without building a path element.
    pub(super) fn field(&self, name: &str) -> Option<&Node> {
        let found = self.nodes.binary_search_by(|node| match &node.element {
            PathElement::Field(field) => (**field).cmp(name),
            _ => std::cmp::Ordering::Greater,
        });
        found.ok().map(|at| &self.nodes[at])
    }

    /// A set of nodes in any order.
    pub(super) fn from_nodes(mut nodes: Vec<Node>) -> Self {
        nodes.retain(Node::counts);
        nodes.sort_by(|a, b| a.element.cmp(&b.element));
        nodes.dedup_by(|next, first| {
            let same = next.element == first.element;
            if same {
                first.member |= next.member;
                first.children.absorb(std::mem::take(&mut next.children));
            }
            same
        });
        Self { nodes }
    }

    /// Adds a node whose element is usually greater than all that are there; nothing if it would be empty.
    pub(super) fn push(&mut self, element: PathElement, member: bool, children: Set) {
        let node = Node { element, member, children };
        if !node.counts() {
            return;
        }
        if self.nodes.last().is_none_or(|last| last.element < node.element) {
            self.nodes.push(node);
            return;
        }
        match self.position(&node.element) {
            Ok(at) => self.nodes[at].absorb(node),
            Err(at) => self.nodes.insert(at, node),
        }
    }

    /// Makes `path` a member. The parents of a path are not members because of it; nobody owns the root.
    pub fn insert(&mut self, path: &Path) {
        let Some((last, parents)) = path.0.split_last() else { return };
        let mut set = self;
        for element in parents {
            set = &mut set.descend(element).children;
        }
        set.descend(last).member = true;
    }

    fn descend(&mut self, element: &PathElement) -> &mut Node {
        let at = self.position(element).unwrap_or_else(|at| {
            self.nodes.insert(at, Node { element: element.clone(), member: false, children: Set::new() });
            at
        });
        &mut self.nodes[at]
    }

    pub fn contains(&self, path: &Path) -> bool {
        let Some((last, parents)) = path.0.split_last() else { return false };
        let mut set = self;
        for element in parents {
            match set.get(element) {
                Some(node) => set = &node.children,
                None => return false,
            }
        }
        set.get(last).is_some_and(|node| node.member)
    }

    pub fn union(&self, other: &Set) -> Set {
        let mut union = self.clone();
        union.absorb(other.clone());
        union
    }

    /// Takes in all members of `other`.
    pub fn absorb(&mut self, other: Set) {
        if self.nodes.is_empty() {
            self.nodes = other.nodes;
            return;
        }
        let mut merged = Vec::with_capacity(self.nodes.len() + other.nodes.len());
        let mut theirs = other.nodes.into_iter().peekable();
        for mut node in std::mem::take(&mut self.nodes) {
            while let Some(smaller) = theirs.next_if(|t| t.element < node.element) {
                merged.push(smaller);
            }
            if let Some(same) = theirs.next_if(|t| t.element == node.element) {
                node.absorb(same);
            }
            merged.push(node);
        }
        merged.extend(theirs);
        self.nodes = merged;
    }

    /// All members of all sets, two by two: to add many sets to one would move that one's nodes each time.
    pub(super) fn union_all(mut sets: Vec<Set>) -> Set {
        while sets.len() > 1 {
            let mut pairs = sets.into_iter();
            let mut unions = Vec::with_capacity(pairs.len().div_ceil(2));
            while let Some(mut set) = pairs.next() {
                set.absorb(pairs.next().unwrap_or_default());
                unions.push(set);
            }
            sets = unions;
        }
        sets.pop().unwrap_or_default()
    }

    pub fn intersection(&self, other: &Set) -> Set {
        let mut both = Set::new();
        for ours in &self.nodes {
            if let Some(theirs) = other.get(&ours.element) {
                let children = ours.children.intersection(&theirs.children);
                both.push(ours.element.clone(), ours.member && theirs.member, children);
            }
        }
        both
    }

    /// The members of this set that are not members of `other`; what is below a member of `other` stays.
    pub fn difference(&self, other: &Set) -> Set {
        let mut rest = self.clone();
        rest.subtract(other);
        rest
    }

    /// As [`Set::difference`], but what is below a member of `other` goes too.
    pub fn recursive_difference(&self, other: &Set) -> Set {
        let mut rest = self.clone();
        rest.subtract_recursively(other);
        rest
    }

    /// [`Set::difference`] in place; says whether anything went.
    pub fn subtract(&mut self, other: &Set) -> bool {
        self.subtract_by(other, false)
    }

    /// [`Set::recursive_difference`] in place; says whether anything went.
    pub fn subtract_recursively(&mut self, other: &Set) -> bool {
        self.subtract_by(other, true)
    }

    /// Looks each own node up: what is taken away from many small sets may itself be large.
    fn subtract_by(&mut self, other: &Set, recursively: bool) -> bool {
        if other.is_empty() {
            return false;
        }
        let mut changed = false;
        self.nodes.retain_mut(|node| {
            let Some(same) = other.get(&node.element) else { return true };
            if same.member && recursively {
                changed = true;
                return false;
            }
            if same.member && node.member {
                node.member = false;
                changed = true;
            }
            changed |= node.children.subtract_by(&same.children, recursively);
            node.counts()
        });
        changed
    }

    /// Whether every member of this set is a member of `other`.
    pub fn is_subset(&self, other: &Set) -> bool {
        self.nodes.iter().all(|node| match other.get(&node.element) {
            Some(theirs) => (theirs.member || !node.member) && node.children.is_subset(&theirs.children),
            None => false,
        })
    }

    /// All members: those at one level before those below them.
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &mut Vec<PathElement>, out: &mut Vec<Path>) {
        for node in self.nodes.iter().filter(|node| node.member) {
            let mut path = prefix.clone();
            path.push(node.element.clone());
            out.push(Path(path));
        }
        for node in &self.nodes {
            prefix.push(node.element.clone());
            node.children.collect_paths(prefix, out);
            prefix.pop();
        }
    }
}

impl Node {
    fn absorb(&mut self, other: Node) {
        self.member |= other.member;
        self.children.absorb(other.children);
    }
}

impl FromIterator<Path> for Set {
    fn from_iter<I: IntoIterator<Item = Path>>(paths: I) -> Self {
        let mut set = Self::new();
        for path in paths {
            set.insert(&path);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn element() -> impl Strategy<Value = PathElement> {
        prop_oneof![
            4 => "[a-d]".prop_map(|name| PathElement::field(&name)),
            1 => "[a-c]".prop_map(|name| PathElement::key([("name", json!(name))])),
            1 => (0..3i32).prop_map(|n| PathElement::value(json!(n))),
            1 => (0..3i64).prop_map(PathElement::Index),
        ]
    }

    type Model = BTreeSet<Path>;

    fn model() -> impl Strategy<Value = Model> {
        prop::collection::btree_set(prop::collection::vec(element(), 1..4).prop_map(Path), 0..12)
    }

    fn set_of(model: &Model) -> Set {
        model.iter().cloned().collect()
    }

    fn model_of(set: &Set) -> Model {
        set.paths().into_iter().collect()
    }

    fn no_empty_node(set: &Set) -> bool {
        set.nodes.iter().all(|node| node.counts() && no_empty_node(&node.children))
    }

    proptest! {
        #[test]
        fn the_algebra_is_that_of_plain_sets(a in model(), b in model()) {
            let (x, y) = (set_of(&a), set_of(&b));
            prop_assert_eq!(model_of(&x.union(&y)), a.union(&b).cloned().collect::<Model>());
            prop_assert_eq!(model_of(&x.intersection(&y)), a.intersection(&b).cloned().collect::<Model>());
            prop_assert_eq!(model_of(&x.difference(&y)), a.difference(&b).cloned().collect::<Model>());
            let outside = |p: &&Path| !(1..=p.0.len()).any(|n| b.contains(&Path(p.0[..n].to_vec())));
            prop_assert_eq!(
                model_of(&x.recursive_difference(&y)),
                a.iter().filter(outside).cloned().collect::<Model>()
            );
            prop_assert_eq!(x.is_subset(&y), a.is_subset(&b));
            prop_assert_eq!(x.is_empty(), a.is_empty());
            prop_assert_eq!(x.len(), a.len());
            prop_assert!(b.iter().all(|p| x.contains(p) == a.contains(p)));
            prop_assert_eq!(Set::union_all(vec![x.clone(), y.clone(), Set::new()]), x.union(&y));
            let mut shuffled: Vec<Node> = x.nodes.iter().chain(&y.nodes).cloned().collect();
            shuffled.reverse();
            prop_assert_eq!(Set::from_nodes(shuffled), x.union(&y));
            for set in [x.union(&y), x.intersection(&y), x.difference(&y), x.recursive_difference(&y)] {
                prop_assert!(no_empty_node(&set));
            }
        }

        #[test]
        fn subtracting_says_whether_anything_went(a in model(), b in model()) {
            let mut rest = set_of(&a);
            let changed = rest.subtract(&set_of(&b));
            prop_assert_eq!(changed, rest != set_of(&a));
        }

        #[test]
        fn equal_sets_are_equal_however_they_were_built(a in model(), b in model()) {
            let (x, y) = (set_of(&a), set_of(&b));
            prop_assert_eq!(x.union(&y), y.union(&x));
            prop_assert_eq!(x.difference(&y), x.difference(&x.intersection(&y)));
        }
    }

    #[test]
    fn a_parent_survives_the_loss_of_its_child_and_the_other_way_round() {
        let set = Set::of_fields(&[&["a"], &["a", "b"]]);
        assert_eq!(set.difference(&Set::of_fields(&[&["a", "b"]])), Set::of_fields(&[&["a"]]));
        assert_eq!(set.difference(&Set::of_fields(&[&["a"]])), Set::of_fields(&[&["a", "b"]]));
        assert!(set.recursive_difference(&Set::of_fields(&[&["a"]])).is_empty());
    }

    #[test]
    fn members_of_a_level_come_before_what_is_below_it() {
        let set = Set::of_fields(&[&["a", "x"], &["b"], &["a"]]);
        let text: Vec<_> = set.paths().iter().map(ToString::to_string).collect();
        assert_eq!(text, [".a", ".b", ".a.x"]);
    }
}
