//! The kernel's errors. The binding maps each variant to one Python exception; `code` is stable.

use std::fmt;

/// What an error is about; the binding raises one exception for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Malformed plan data.
    Plan,
    /// A change that does not fit; the engine is as it was.
    InvalidChange,
    /// Saved state that is corrupt or belongs to another plan.
    State,
}

/// Why the kernel refused a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelError {
    /// What it is about.
    pub kind: Kind,
    /// The stable error code.
    pub code: &'static str,
    /// What is wrong, and what to do.
    pub message: String,
    /// The change that was refused, when it was one.
    pub change: Option<Box<RefusedChange>>,
}

/// Which change of a batch was refused, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedChange {
    /// The table of the change.
    pub table: String,
    /// Among the changes of its table.
    pub row: u64,
    /// Among all changes of the call.
    pub position: u64,
    /// Why it was refused.
    pub reason: String,
}

/// The result of a call that may be refused.
pub type Result<T> = std::result::Result<T, KernelError>;

impl KernelError {
    /// An error in the plan.
    pub fn plan(code: &'static str, message: impl Into<String>) -> Self {
        KernelError { kind: Kind::Plan, code, message: message.into(), change: None }
    }

    /// An invalid change or call.
    pub fn invalid(code: &'static str, message: impl Into<String>) -> Self {
        KernelError { kind: Kind::InvalidChange, code, message: message.into(), change: None }
    }

    /// A change that was refused.
    pub fn refused(code: &'static str, change: RefusedChange) -> Self {
        let message = format!("table '{}', row {}: {}", change.table, change.row, change.reason);
        KernelError { kind: Kind::InvalidChange, code, message, change: Some(Box::new(change)) }
    }

    /// An error in saved state.
    pub fn state(code: &'static str, message: impl Into<String>) -> Self {
        KernelError { kind: Kind::State, code, message: message.into(), change: None }
    }
}

/// A value or a count beyond what its type holds.
pub fn overflow() -> KernelError {
    KernelError::invalid("CROWN-OVERFLOW", "an aggregate is out of the range of its type")
}

impl fmt::Display for KernelError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "[{}] {}", self.code, self.message)
    }
}

impl std::error::Error for KernelError {}

/// Why a change of this kind can't be taken, and what to do about it.
pub fn advice(code: &str) -> (Option<&'static str>, Option<&'static str>) {
    match code {
        "CROWN-CHANGE-ABSENT" => (
            Some("a deletion must match a row that exists at that point of the batch"),
            Some("check the row, or set on_invalid='quarantine' to skip such changes"),
        ),
        "CROWN-CHANGE-DIFFERS" => (
            Some("a deletion from a table with a PRIMARY KEY must match the row with that key"),
            Some("give only the key (NULL elsewhere), or the stored row"),
        ),
        "CROWN-CHANGE-NULL" => {
            (Some("the column is declared NOT NULL or PRIMARY KEY"), Some("give a value, or relax the schema"))
        }
        "CROWN-CHANGE-TYPE" | "CROWN-CHANGE-VALUE" => {
            (Some("values must fit the type of the column in the schema"), Some("convert the column first"))
        }
        "CROWN-CHANGE-PROFILE" => (
            Some("the planner relies on the declared profile"),
            Some("declare the table arbitrary (or fifo) if its rows are deleted"),
        ),
        "CROWN-CHANGE-ARROW" => {
            (Some("the data is not valid Arrow"), Some("write it with another library or version, or give rows"))
        }
        "CROWN-CHANGE-COLUMN" => (
            Some("a change must have every column that the view reads (a deletion by PRIMARY KEY only the key)"),
            Some("add the column, or name the columns as the schema does"),
        ),
        "CROWN-ITERATION" => (
            Some("there were too many remaining rows to copy them"),
            Some("use to_arrow(), which reads the whole result at one point in time"),
        ),
        "CROWN-FORKED" => (
            Some("the thread that used it does not exist in this process"),
            Some("fork while the view is idle, start processes with 'spawn', or load the view in the child"),
        ),
        "CROWN-RECURSION-LIMIT" => (
            Some("rows that lead back to themselves, with UNION ALL or with newly computed values, have no end"),
            Some("write UNION and compute no new values in the step, or bound the depth in its WHERE"),
        ),
        _ => (None, None),
    }
}

/// A number of things, as messages have it.
pub fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
