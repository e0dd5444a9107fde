//! Applies the batches of a log again, after a restart.
//!
//! Nobody wants their deltas a second time. So the trees whose changes only views would show make
//! their changes without enumerating any, and count their results once, at the end.

use super::{Engine, Input, OnInvalid};
use crate::error::Result;
use crate::plan::Stage;

impl Engine {
    /// As `apply` without output. After the last batch `replayed` must follow, before anything
    /// else.
    pub fn replay(&mut self, inputs: Vec<Input>, on_invalid: OnInvalid) -> Result<()> {
        self.set_quiet(true);
        let done = self.apply(inputs, false, on_invalid, &mut Vec::new());
        self.set_quiet(false);
        self.rejected.clear(); // they were listed the first time
        done
    }

    /// Ends a replay.
    pub fn replayed(&mut self) -> Result<()> {
        self.stages.iter_mut().try_for_each(|stage| stage.loaded(&mut self.interner))
    }

    fn set_quiet(&mut self, quiet: bool) {
        self.quiet = quiet;
        for position in 0..self.stages.len() {
            let quiet = quiet && self.is_only_shown(position);
            self.stages[position].set_quiet(quiet);
        }
    }

    /// Whether no stage needs the changes of this one: maps have no state, unless rows wait for
    /// them.
    pub(super) fn is_only_shown(&self, position: usize) -> bool {
        let stages = &self.plan.stages;
        let reads = |later: &usize| stages[*later].sources().contains(&stages[position].id());
        let passes_on = |later| matches!(stages[later], Stage::Map(_)) && self.undefined.is_empty();
        (position + 1..stages.len()).filter(reads).all(|later| passes_on(later) && self.is_only_shown(later))
    }
}
