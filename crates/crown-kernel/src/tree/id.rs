//! The ids of rows and entries, as types that cannot be confused.
//!
//! Following an id is most of what an update does, so it is not checked in release builds. What
//! stands in for the check is this law: **an id is only used with the slab that it was made for,
//! and every link to a slot is removed before the slot is freed.** Ids never come from outside.
//! They are made by `new`, where the store that hands them out argues that the slot exists, and are
//! read back from links and lists that hold nothing else. Debug builds, in which all tests run,
//! check every access.

macro_rules! id {
    ($name:ident, $hint:ident, $what:literal) => {
        #[doc = concat!("The id of ", $what, ".")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(transparent)]
        pub(super) struct $name(u32);

        impl $name {
            /// The least id: the root's only entry, and a bound or a placeholder elsewhere.
            pub const FIRST: $name = $name(0);
            /// No id is greater. Only a bound: it is never followed.
            pub const LAST: $name = $name(u32::MAX);

            /// # Safety
            /// The slab that the id is used with has a slot of this number.
            #[inline(always)]
            pub const unsafe fn new(number: u32) -> $name {
                $name(number)
            }

            #[inline(always)]
            pub const fn number(self) -> u32 {
                self.0
            }

            #[inline(always)]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        #[doc = concat!("An id of ", $what, " that is likely to be needed, or none. It may be out of date.")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(transparent)]
        pub(super) struct $hint(u32);

        impl $hint {
            pub const NONE: $hint = $hint(u32::MAX);

            /// Whether there is no hint.
            #[inline(always)]
            pub const fn is_none(self) -> bool {
                self.0 == u32::MAX
            }

            /// The slot of the hint, for access that is checked; out of range if there is none.
            #[inline(always)]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// # Safety
            /// The hint is not `NONE`, and the slab has had the slot ever since the hint was made.
            #[inline(always)]
            pub const unsafe fn id(self) -> $name {
                $name(self.0)
            }
        }

        impl From<Option<$name>> for $hint {
            #[inline(always)]
            fn from(id: Option<$name>) -> $hint {
                id.map_or($hint::NONE, $hint::from)
            }
        }

        impl From<$name> for $hint {
            #[inline(always)]
            fn from(id: $name) -> $hint {
                $hint(id.0)
            }
        }
    };
}

id!(RowId, RowHint, "a row of a node");
id!(EntryId, EntryHint, "an entry of an edge");
