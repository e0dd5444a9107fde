//! Many views over one social network: `benchmarks/many_views.py` has them in SQL.
//!
//! The inputs are there once, and whatever several views compute in the same way, too: both joins
//! are made once and then filtered for each view, as a careful user would write it.

use crate::rows::word;
use crate::stream::Totals;
use crate::{counted, Count, Rows};
use dbsp::utils::{Tup2, Tup3};

pub fn build(
    knows: &Rows<Tup2<u64, u64>>,
    message: &Rows<Tup3<u64, u64, Option<u64>>>,
    message_tag: &Rows<Tup2<u64, u64>>,
    tag: &Rows<Tup2<u64, String>>,
    number: u64,
) -> Count {
    let creators = message.map_index(|Tup3(id, creator, _)| (*id, *creator));
    let tags_of_messages = message_tag.map_index(|Tup2(message, tag)| (*message, *tag));
    let tagged = creators.join(&tags_of_messages, |_, creator, tag| Tup2(*creator, *tag));
    let names = tag.map_index(|Tup2(id, name)| (*id, name.clone()));
    // What only the second and the third kind of view read.
    let hops = (number > 1).then(|| {
        let hops = knows.map_index(|Tup2(a, b)| (*b, *a));
        hops.join(&knows.map_index(|Tup2(b, c)| (*b, *c)), |_, a, _| *a).weighted_count()
    });
    let by_creator = (number > 2).then(|| message.map_index(|Tup3(id, creator, _)| (*creator, *id)));
    let view = |view: u64| {
        let key = view / 4;
        match (view % 4, &hops, &by_creator) {
            (0, ..) => {
                let result = tagged
                    .filter(move |Tup2(creator, _)| creator % 16 != key)
                    .map(|Tup2(_, tag)| *tag)
                    .weighted_count()
                    .join(&names, |tag, count, name| Tup3(name.clone(), *tag, *count));
                counted(&result, move |totals, Tup3(name, tag, count), weight| {
                    totals.add(&[view, word(&name), tag, count as u64], weight)
                })
            }
            (1, Some(hops), _) => {
                let result = hops.filter(move |(_, count)| *count > key as i64).map(|(a, count)| Tup2(*a, *count));
                counted(&result, move |totals, Tup2(a, count), weight| totals.add(&[view, a, count as u64], weight))
            }
            (2, _, Some(by_creator)) => {
                let result = knows
                    .filter(move |Tup2(p1, _)| p1 % 16 == key)
                    .map_index(|Tup2(p1, p2)| (*p2, *p1))
                    .join(by_creator, |_, p1, message| Tup2(*p1, *message));
                counted(&result, move |totals, Tup2(p1, message), weight| totals.add(&[view, p1, message], weight))
            }
            _ => {
                let result = tagged
                    .filter(move |Tup2(_, tag)| tag % 16 != key)
                    .map(|Tup2(creator, _)| *creator)
                    .weighted_count()
                    .map(|(creator, count)| Tup2(*creator, *count));
                counted(&result, move |totals, Tup2(creator, count), weight| {
                    totals.add(&[view, creator, count as u64], weight)
                })
            }
        }
    };
    let counts: Vec<Count> = (0..number).map(view).collect();
    Box::new(move |totals: &mut Totals| {
        for count in &counts {
            count(totals);
        }
    })
}
