//! Rounds of everything that can go wrong at once, drawn from a seed, under a load that knows what it wrote. After each
//! round everybody is well again and nothing is lost.
//!
//! `GRANARY_ROUNDS=100` plays longer, `GRANARY_ROUNDS_SEED=7` plays the same again, as far as processes repeat.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use granary_frontend::nbd::NbdClient;
use rustix::process::Signal;

use crate::cluster::{Cluster, HANGS, MIB, Process, on_one_thread};
use crate::lab::{Lab, tell};
use crate::stamps::{Load, Stamps};

const ROUNDS: u64 = 6;

/// What can happen to a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Trouble {
    /// Healed in this order: a full disk would keep a process from starting.
    DiskFull,
    CutOff,
    Hangs,
    Killed,
}

/// What a round is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Card {
    OneReplica(Trouble),
    AllReplicas(Trouble),
    EngineKilled,
    EngineHangs,
    /// Another one takes the volume, while this one is alive or not able to notice.
    EngineReplaced {
        hangs: bool,
    },
    EverybodyKilled,
}

const DECK: [Card; 12] = [
    Card::OneReplica(Trouble::Killed),
    Card::OneReplica(Trouble::Hangs),
    Card::OneReplica(Trouble::CutOff),
    Card::OneReplica(Trouble::DiskFull),
    Card::AllReplicas(Trouble::Killed),
    Card::AllReplicas(Trouble::CutOff),
    Card::AllReplicas(Trouble::DiskFull),
    Card::EngineKilled,
    Card::EngineHangs,
    Card::EngineReplaced { hangs: true },
    Card::EngineReplaced { hangs: false },
    Card::EverybodyKilled,
];

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    async fn pause(&mut self) {
        tokio::time::sleep(Duration::from_millis(50 + self.below(600))).await;
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}

struct Game {
    /// Ends before the replicas and the lab do.
    engine: Option<Process>,
    cluster: Cluster,
    engine_name: String,
    engines: u32,
    engine_hangs: bool,
    volume: Option<NbdClient>,
    load: Option<Load>,
    troubles: [BTreeSet<Trouble>; 3],
    stamps: Stamps,
    random: Random,
    deck: Vec<Card>,
}

impl Game {
    async fn begin(seed: u64) -> Self {
        let mut game = Self {
            engine: None,
            cluster: Cluster::in_lab(64 * MIB),
            engine_name: String::new(),
            engines: 0,
            engine_hangs: false,
            volume: None,
            load: None,
            troubles: Default::default(),
            stamps: Stamps::new(1024, seed),
            random: Random(seed),
            deck: Vec::new(),
        };
        game.engine = Some(game.next_engine().await.unwrap());
        game.go_on().await;
        game
    }

    /// Each card comes once before any comes again.
    fn draw(&mut self) -> Card {
        if self.deck.is_empty() {
            self.deck = DECK.to_vec();
            self.random.shuffle(&mut self.deck);
        }
        self.deck.pop().unwrap()
    }

    /// An engine that starts while the game goes on.
    fn next_engine(&mut self) -> tokio::task::JoinHandle<Process> {
        self.engines += 1;
        self.engine_name = format!("e{}", self.engines);
        let flags = ["--stall-timeout", "3", "--start-timeout", "80"];
        let command = self.cluster.engine_command(&self.engine_name, &flags);
        tokio::task::spawn_blocking(|| Process::start(command))
    }

    /// A client for the engine there is now, and a load.
    async fn go_on(&mut self) {
        let volume = self.cluster.client(&self.engine_name).await;
        self.load = Some(self.stamps.stubborn_load(&volume));
        self.volume = Some(volume);
    }

    async fn load_ends(&mut self) {
        if let Some(load) = self.load.take() {
            load.end().await;
        }
    }

    async fn play(&mut self, card: Card) {
        let needs_engine =
            matches!(card, Card::EngineKilled | Card::EngineHangs | Card::EngineReplaced { .. });
        if needs_engine && self.engine.is_none() {
            self.heal().await;
        }
        eprintln!("    {card:?}");
        match card {
            Card::OneReplica(trouble) => {
                let victim = self.random.below(3) as usize;
                self.trouble(victim, trouble);
            }
            Card::AllReplicas(trouble) => (0..3).for_each(|victim| self.trouble(victim, trouble)),
            Card::EngineKilled => self.kill_engine().await,
            Card::EngineHangs => {
                if let Some(engine) = &self.engine {
                    engine.signal(Signal::STOP);
                    self.engine_hangs = true;
                }
            }
            Card::EngineReplaced { hangs } => self.replace_engine(hangs).await,
            Card::EverybodyKilled => {
                self.kill_engine().await;
                (0..3).for_each(|victim| self.trouble(victim, Trouble::Killed));
            }
        }
    }

    fn trouble(&mut self, victim: usize, trouble: Trouble) {
        let process = self.cluster.replicas[victim].as_ref();
        match (trouble, process) {
            _ if !self.troubles[victim].insert(trouble) => return,
            (Trouble::Killed, Some(_)) => self.cluster.kill_replica(victim),
            (Trouble::Hangs, Some(process)) => process.signal(Signal::STOP),
            (Trouble::CutOff, _) => self.cluster.lab().pull_cable(victim),
            (Trouble::DiskFull, _) => self.cluster.lab().fill_disk(victim),
            (Trouble::Killed | Trouble::Hangs, None) => {
                self.troubles[victim].remove(&trouble);
                return;
            }
        }
        eprintln!("        replica {victim}: {trouble:?}");
    }

    fn heal_replicas(&mut self) {
        for victim in 0..3 {
            for trouble in std::mem::take(&mut self.troubles[victim]) {
                match (trouble, &self.cluster.replicas[victim]) {
                    (Trouble::Killed, _) => self.cluster.start_replica(victim),
                    (Trouble::Hangs, Some(process)) => process.signal(Signal::CONT),
                    // It was killed while it hung.
                    (Trouble::Hangs, None) => {}
                    (Trouble::CutOff, _) => self.cluster.lab().plug_cable(victim),
                    (Trouble::DiskFull, _) => self.cluster.lab().free_disk(victim),
                }
            }
        }
    }

    async fn kill_engine(&mut self) {
        if let Some(engine) = self.engine.take() {
            engine.kill();
            self.engine_hangs = false;
            self.load_ends().await;
        }
    }

    /// The older one must notice that it is fenced, at the latest when it wakes up.
    async fn replace_engine(&mut self, hangs: bool) {
        // With a replica silent that may know better, the newer one would rightly refuse to start.
        self.heal().await;
        let Some(mut older) = self.engine.take() else { return };
        if hangs {
            older.signal(Signal::STOP);
        }
        self.engine = Some(self.next_engine().await.unwrap());
        older.signal(Signal::CONT);
        self.engine_hangs = false;
        assert_eq!(older.ended().await.code(), Some(8), "fenced has an exit code of its own");
        self.load_ends().await;
        self.go_on().await;
    }

    /// Everybody is helped, and the volume works as before.
    async fn heal(&mut self) {
        if self.engine.is_none() {
            let engine = self.next_engine();
            self.random.pause().await;
            self.heal_replicas();
            self.engine = Some(engine.await.unwrap());
            self.go_on().await;
        }
        self.heal_replicas();
        if let Some(engine) = self.engine.as_ref().filter(|_| self.engine_hangs) {
            engine.signal(Signal::CONT);
            self.engine_hangs = false;
        }
        let (before, began) = (self.stamps.writes(), Instant::now());
        while self.stamps.writes() < before + 100 {
            assert!(began.elapsed() < HANGS, "nothing is acknowledged although everybody is well");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn check(&mut self, snapshot: &str) {
        self.load_ends().await;
        let (cluster, name) = (&self.cluster, self.engine_name.as_str());
        cluster.until_states(name, &["inSync"; 3]).await;
        cluster.assert_equal(name);
        let verdict = cluster.ctl(name, &["verify", "--snapshot", snapshot]);
        assert_eq!(verdict["equal"], true, "{verdict}");
        let volume = self.volume.as_ref().unwrap();
        self.stamps.check_acknowledged(volume).await;
        cluster.ctl(name, &["snapshot", "remove", snapshot]);
        cluster.ctl(name, &["snapshot", "purge", "--wait"]);
        self.load = Some(self.stamps.stubborn_load(volume));
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

#[test]
fn whatever_happens_nothing_is_lost_and_all_agree_again() {
    if !Lab::is_possible("rounds of killed, hanging, cut off and full replicas and engines") {
        return;
    }
    let rounds = number("GRANARY_ROUNDS").unwrap_or(ROUNDS);
    let seed = number("GRANARY_ROUNDS_SEED").unwrap_or_else(|| {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        since.as_micros() as u64 % 1_000_000
    });
    tell(&format!("{rounds} rounds of failures; GRANARY_ROUNDS_SEED={seed} plays them again"));
    on_one_thread(async {
        let mut game = Game::begin(seed).await;
        for round in 0..rounds {
            eprintln!("round {round} of seed {seed}");
            // A snapshot makes the next writes need new space, so that a full disk is felt.
            let snapshot = format!("round-{round}");
            game.cluster.ctl(&game.engine_name, &["snapshot", "create", &snapshot]);
            for _ in 0..2 + game.random.below(2) {
                let card = game.draw();
                game.play(card).await;
                game.random.pause().await;
                if game.random.below(4) == 0 {
                    game.heal().await;
                }
            }
            game.heal().await;
            game.check(&snapshot).await;
        }
        game.load_ends().await;
        game.stamps.check_acknowledged(game.volume.as_ref().unwrap()).await;
        game.engine.take().unwrap().stop().await;
        tell(&format!("{rounds} rounds with {} engines and {} writes", game.engines, game.stamps.writes()));
    });
}
