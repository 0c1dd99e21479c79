//! The keeper, turned by a test that cannot wait for it to do nothing. Part of the tests of the log and of the duty thread.

use touchline_engine::log::Control;

use crate::patience::eventually;

/// Has the keeper look at what there is, and waits until it has done what it finds to be done.
pub(crate) fn turn_keeper(control: &Control) {
    let begun = control.keeper_turns();
    let has_turned = || {
        control.wake_keeper();
        control.keeper_turns() > begun + 1
    };
    assert!(eventually(has_turned), "the keeper does not turn");
}
