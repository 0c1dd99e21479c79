//! Whose commands the keeper writes to disk at once, and whose it gathers. Asked by a session with rings
//! once per turn in which it was answered, on the duty thread.
//!
//! An adapter whose answers do not wait for the disk has its commands written at once all the same while
//! they are few. Many are gathered: a write for every few of them takes a tenth more of the adapter's time and
//! a third more of the engine's, in interrupts and in threads that take the cores from those who work.

use touchline_protocol::message::enums::Role;

/// Answers are counted for so long, or up to twice as long where they come seldom, ns.
const WINDOW_NS: u64 = 1_000_000;

/// More answers of a session within that are many.
const FEW: u32 = 10;

/// When what a session was told is to be on disk.
#[derive(Clone, Copy, Debug)]
pub(super) enum Haste {
    /// It waits for that, always.
    Awaits,
    /// At once while that costs nobody anything.
    Adapts(Flow),
    /// When it suits the keeper.
    Gathers,
}

/// How many commands there are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    /// When the present count began, ns since the epoch.
    since_ns: u64,
    count: u32,
    /// There were many in the window before.
    is_busy: bool,
}

impl Haste {
    /// That of a session of this role, whose answers wait for the disk or not.
    pub(super) fn of(role: Role, awaits_disk: bool) -> Self {
        match (awaits_disk, role) {
            (true, _) => Self::Awaits,
            (false, Role::Adapter) => Self::Adapts(Flow::default()),
            (false, _) => Self::Gathers,
        }
    }

    /// The session was told what became of so many commands: true if that is to be on disk at once.
    #[inline]
    pub(super) const fn wants_disk(&mut self, commands: u32, now_ns: u64) -> bool {
        match self {
            Self::Awaits => true,
            Self::Adapts(flow) => flow.is_calm(commands, now_ns),
            Self::Gathers => false,
        }
    }
}

impl Flow {
    const fn is_calm(&mut self, commands: u32, now_ns: u64) -> bool {
        let passed = now_ns.saturating_sub(self.since_ns);
        if passed >= WINDOW_NS {
            // What was counted long ago says nothing about now.
            self.is_busy = self.count > FEW && passed < 2 * WINDOW_NS;
            self.since_ns = now_ns;
            self.count = 0;
        }
        self.count = self.count.saturating_add(commands);
        !self.is_busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    /// How many of a second's turns have their commands written at once, `per_turn` in each.
    fn at_once(haste: &mut Haste, begin_ns: u64, turns: u64, per_turn: u32) -> usize {
        let turns = (0..turns).map(|turn| begin_ns + turn * SECOND_NS / turns);
        turns.filter(|&now_ns| haste.wants_disk(per_turn, now_ns)).count()
    }

    #[test]
    fn an_adapter_that_does_not_wait_hurries_the_keeper_while_its_commands_are_few() {
        let mut haste = Haste::of(Role::Adapter, false);
        assert_eq!(at_once(&mut haste, SECOND_NS, 5_000, 1), 5_000);
        let many = at_once(&mut haste, 2 * SECOND_NS, 20_000, 1);
        assert!((1..=40).contains(&many), "{many}: only until that is seen");
        let few = at_once(&mut haste, 3 * SECOND_NS, 5_000, 1);
        assert!((4_980..5_000).contains(&few), "{few}");
        let many = at_once(&mut haste, 4 * SECOND_NS, 5_000, 5);
        assert!((1..=20).contains(&many), "{many}: commands are counted, not turns");
        assert!(haste.wants_disk(1, 6 * SECOND_NS), "after a silence");
        assert!(haste.wants_disk(1, 0), "and when the clock goes back");
    }

    #[test]
    fn who_waits_always_does_and_who_does_not_never_does() {
        for role in [Role::Trader, Role::ReadOnly, Role::Admin, Role::Adapter] {
            let mut waits = Haste::of(role, true);
            assert_eq!(at_once(&mut waits, SECOND_NS, 50_000, 1), 50_000);
        }
        for role in [Role::Trader, Role::ReadOnly, Role::Admin] {
            assert_eq!(at_once(&mut Haste::of(role, false), SECOND_NS, 100, 1), 0);
        }
    }
}
