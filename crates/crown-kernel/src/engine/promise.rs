//! What a stage guarantees to the stages that read it, defined in one place.
//!
//! A set operation looks up the weights of changed rows in its inputs, and reads its result from
//! the rows that they list. So each input must support look-ups, and must list each of its rows
//! once, with its total weight. A plan with an input that can't is rejected when it is loaded, not
//! when rows arrive. The planner uses the same table (`src/crown/plan/promise.py`).
//!
//! | stage | looks rows up | lists each row once |
//! |---|---|---|
//! | tree (set, bag) | yes | yes |
//! | tree (ring) | no: its sums are not kept by value | yes |
//! | bag | no | no |
//! | map | if it shows every column of its input, and that does | likewise |
//! | aggregate, distinct, materialize, top, window, recursion | yes | yes |
//! | UNION ALL | if both inputs do | if they do both, by looking each row up in the other input: only where asked for |
//! | other set operations | yes | yes |

use super::stage::{RunningStage, State};
use crate::error::{KernelError, Result};
use crate::plan::Mode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Promise {
    pub looks_up: bool,
    pub lists_once: bool,
}

/// The promise of a stage over earlier ones.
pub(super) fn promise(state: &State, inputs: &[usize], earlier: &[RunningStage]) -> Promise {
    let input = |number: usize| earlier[inputs[number]].promise;
    let (looks_up, lists_once) = match state {
        State::Tree { mode, .. } => (*mode != Mode::Ring, true),
        State::Bag { .. } | State::Port => (false, false),
        State::Map(map) => (map.injective() && input(0).looks_up, map.injective() && input(0).lists_once),
        State::Aggregate(_) | State::Distinct(_) | State::Materialize(_) => (true, true),
        State::Top(_) | State::WindowFunctions(_) | State::Recursion(_) => (true, true),
        State::SetOperation(operation) if operation.is_linear() => (input(0).looks_up && input(1).looks_up, false),
        State::SetOperation(_) => (true, true),
    };
    Promise { looks_up, lists_once }
}

/// Refuses the stage at `position` if it is a set operation over an input that can't serve it, and
/// makes every UNION ALL below it list its rows once.
pub(super) fn check(stages: &mut [RunningStage], position: usize) -> Result<()> {
    match &stages[position].state {
        State::SetOperation(operation) if !operation.is_linear() => {}
        _ => return Ok(()),
    }
    for input in stages[position].inputs.clone() {
        if !stages[input].promise.looks_up || !list_once(stages, input) {
            let message = format!(
                "the input '{1}' of the set operation '{0}' must look rows up and list each once",
                stages[position].id, stages[input].id
            );
            return Err(KernelError::plan("CROWN-PLAN-MALFORMED", message));
        }
    }
    Ok(())
}

/// Makes a stage that looks rows up list each of its rows once, if it can.
fn list_once(stages: &mut [RunningStage], position: usize) -> bool {
    if stages[position].promise.lists_once {
        return true;
    }
    let inputs = stages[position].inputs.clone();
    match &stages[position].state {
        State::Map(map) if map.injective() => {}
        State::SetOperation(_) => {}
        _ => return false,
    }
    if !inputs.into_iter().all(|input| list_once(stages, input)) {
        return false;
    }
    if let State::SetOperation(operation) = &mut stages[position].state {
        operation.gather();
    }
    stages[position].promise.lists_once = true;
    true
}
