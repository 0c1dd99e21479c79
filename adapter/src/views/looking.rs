//! Whether a thread looks at the views at this moment. Asked by the history's store in builds that check
//! themselves: who waits for the disk then lets everybody wait who needs the views.

use std::cell::Cell;

thread_local! {
    static LOOKS: Cell<u32> = const { Cell::new(0) };
}

/// While it lives, this thread looks at the views.
pub(super) struct Looking(());

impl Looking {
    pub(super) fn begin() -> Self {
        if cfg!(debug_assertions) {
            LOOKS.set(LOOKS.get() + 1);
        }
        Self(())
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            LOOKS.set(LOOKS.get() - 1);
        }
    }
}

/// To be called before the disk may be waited for.
///
/// # Panics
/// In builds with debug assertions, if this thread looks at the views.
pub(crate) fn assert_ended() {
    debug_assert_eq!(LOOKS.get(), 0, "the disk is waited for while the views are held");
}
