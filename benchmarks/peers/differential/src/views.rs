//! Many views over one social network: `benchmarks/many_views.py` has them in SQL.
//!
//! The inputs are there once, and whatever several views compute in the same way, too: both joins
//! are made once and then filtered for each view, as a careful user would write it.

use crate::rows::word;
use crate::{count_with, Probe, Rows, Sums};

pub fn build<'scope>(
    knows: Rows<'scope, (u64, u64)>,
    message: Rows<'scope, (u64, u64, Option<u64>)>,
    message_tag: Rows<'scope, (u64, u64)>,
    tag: Rows<'scope, (u64, String)>,
    number: u64,
    sums: Sums,
) -> Probe {
    let creators = message.clone().map(|(id, creator, _)| (id, creator));
    let tagged = creators.join_map(message_tag, |_, creator, tag| (*creator, *tag));
    let names = tag.arrange_by_key();
    // What only the second and the third kind of view read.
    let hops = (number > 1).then(|| {
        let by_target = knows.clone().map(|(a, b)| (b, a));
        by_target.join_map(knows.clone(), |_, a, _| *a).count()
    });
    let by_creator = (number > 2).then(|| message.map(|(id, creator, _)| (creator, id)).arrange_by_key());
    let probe = Probe::new();
    for view in 0..number {
        let key = view / 4;
        match (view % 4, &hops, &by_creator) {
            (0, ..) => {
                let counts = tagged
                    .clone()
                    .filter(move |(creator, _)| creator % 16 != key)
                    .map(|(_, tag)| tag)
                    .count()
                    .arrange_by_key();
                let result =
                    counts.join_core(names.clone(), |tag, count, name| Some((name.clone(), *tag, *count as u64)));
                count_with(result, sums.clone(), &probe, move |totals, (name, tag, count), weight| {
                    totals.add(&[view, word(name), *tag, *count], weight)
                });
            }
            (1, Some(hops), _) => {
                let result = hops.clone().filter(move |(_, count)| *count > key as isize);
                count_with(result, sums.clone(), &probe, move |totals, (a, count), weight| {
                    totals.add(&[view, *a, *count as u64], weight)
                });
            }
            (2, _, Some(by_creator)) => {
                let chosen = knows.clone().filter(move |(p1, _)| p1 % 16 == key).map(|(p1, p2)| (p2, p1));
                let result =
                    chosen.arrange_by_key().join_core(by_creator.clone(), |_, p1, message| Some((*p1, *message)));
                count_with(result, sums.clone(), &probe, move |totals, (p1, message), weight| {
                    totals.add(&[view, *p1, *message], weight)
                });
            }
            _ => {
                let result = tagged.clone().filter(move |(_, tag)| tag % 16 != key).map(|(creator, _)| creator).count();
                count_with(result, sums.clone(), &probe, move |totals, (creator, count), weight| {
                    totals.add(&[view, *creator, *count as u64], weight)
                });
            }
        }
    }
    probe
}
