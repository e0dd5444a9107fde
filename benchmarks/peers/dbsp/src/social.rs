//! The queries on the social network. Rows carry the columns that a query uses, strings as strings.

use crate::rows::{word, SocialRow};
use crate::{counted, views, Count, Family};
use dbsp::utils::{Tup2, Tup3, Tup4, Tup5};
use dbsp::{RootCircuit, ZSetHandle};

pub struct Social {
    person: ZSetHandle<Tup3<u64, String, String>>,
    knows: ZSetHandle<Tup2<u64, u64>>,
    message: ZSetHandle<Tup3<u64, u64, Option<u64>>>,
    message_tag: ZSetHandle<Tup2<u64, u64>>,
    tag: ZSetHandle<Tup2<u64, String>>,
}

impl Family for Social {
    type Row = SocialRow;

    fn build(circuit: &mut RootCircuit, query: &str, filter: u64) -> (Self, Count) {
        let (person, person_in) = circuit.add_input_zset();
        let (knows, knows_in) = circuit.add_input_zset();
        let (message, message_in) = circuit.add_input_zset();
        let (message_tag, message_tag_in) = circuit.add_input_zset();
        let (tag, tag_in) = circuit.add_input_zset();
        let tables = Social {
            person: person_in,
            knows: knows_in,
            message: message_in,
            message_tag: message_tag_in,
            tag: tag_in,
        };
        let chosen = || knows.filter(move |Tup2(p1, _)| *p1 < filter);
        let posts = || {
            let posts = message.filter(|Tup3(_, _, reply_of)| reply_of.is_none());
            posts.map_index(|Tup3(id, creator, _)| (*creator, *id))
        };
        let tags_of_messages = || message_tag.map_index(|Tup2(message, tag)| (*message, *tag));
        let count = match query {
            "snb_q1" => {
                let names = person.map_index(|Tup3(id, first, last)| (*id, Tup2(first.clone(), last.clone())));
                let friends = knows.map_index(|Tup2(p1, p2)| (*p2, *p1));
                let messages = message.map_index(|Tup3(id, creator, _)| (*creator, *id));
                // Friends before messages, which are many: names are then kept once for each
                // friend.
                let result = names
                    .join_index(&friends, |person, names, friend| Some((*person, Tup2(names.clone(), *friend))))
                    .join(&messages, |person, Tup2(names, friend), message| {
                        Tup4(*person, names.clone(), *message, *friend)
                    });
                counted(&result, |totals, Tup4(person, Tup2(first, last), message, friend), weight| {
                    totals.add(&[person, word(&first), word(&last), message, friend], weight)
                })
            }
            "snb_q2" | "snb_q3" => {
                let others_only = query == "snb_q3";
                let result = chosen()
                    .map_index(|Tup2(a, b)| (*b, *a))
                    .join_index(&knows.map_index(|Tup2(b, c)| (*b, *c)), move |b, a, c| {
                        (!others_only || a != c).then_some((*c, Tup2(*a, *b)))
                    })
                    .join_index(&posts(), |c, Tup2(a, b), message| Some((*message, Tup3(*a, *b, *c))))
                    .join_index(&tags_of_messages(), |message, Tup3(a, b, c), tag| {
                        Some((*tag, Tup4(*a, *b, *c, *message)))
                    })
                    .join(&tag.map_index(|Tup2(id, _)| (*id, ())), |tag, Tup4(a, b, c, message), ()| {
                        Tup5(*a, *b, *c, *tag, *message)
                    });
                counted(&result, |totals, Tup5(a, b, c, tag, message), weight| {
                    totals.add(&[a, b, c, tag, message], weight)
                })
            }
            "snb_q4" => {
                let result = chosen()
                    .map_index(|Tup2(_, p2)| (*p2, ()))
                    .join_index(&posts(), |_, (), message| Some((*message, ())))
                    .join_index(&tags_of_messages(), |message, (), tag| Some((*tag, *message)))
                    .join(&tag.map_index(|Tup2(id, name)| (*id, name.clone())), |tag, message, name| {
                        Tup3(name.clone(), *tag, *message)
                    })
                    .distinct()
                    .map(|Tup3(name, tag, _)| Tup2(name.clone(), *tag))
                    .weighted_count()
                    .map(|(Tup2(name, tag), messages)| Tup3(name.clone(), *tag, *messages));
                counted(&result, |totals, Tup3(name, tag, messages), weight| {
                    totals.add(&[word(&name), tag, messages as u64], weight)
                })
            }
            "snb_q4_rewritten" => {
                let known = chosen().map(|Tup2(_, p2)| *p2).distinct().map_index(|p2| (*p2, ()));
                let result = known
                    .join_index(&posts(), |_, (), message| Some((*message, ())))
                    .join(&tags_of_messages(), |message, (), tag| Tup2(*tag, *message))
                    .distinct()
                    .map(|Tup2(tag, _)| *tag)
                    .weighted_count()
                    .join(&tag.map_index(|Tup2(id, name)| (*id, name.clone())), |tag, messages, name| {
                        Tup3(name.clone(), *tag, *messages)
                    });
                counted(&result, |totals, Tup3(name, tag, messages), weight| {
                    totals.add(&[word(&name), tag, messages as u64], weight)
                })
            }
            other => match other.strip_prefix("snb_views_") {
                Some(number) => {
                    let number = number.parse().expect("a number of views");
                    views::build(&knows, &message, &message_tag, &tag, number)
                }
                None => panic!("no plan for {other}"),
            },
        };
        (tables, count)
    }

    fn push(&self, row: &SocialRow, weight: i64) {
        match row {
            SocialRow::Person { id, first_name, last_name } => {
                self.person.push(Tup3(*id, first_name.clone(), last_name.clone()), weight)
            }
            SocialRow::Knows { p1, p2 } => self.knows.push(Tup2(*p1, *p2), weight),
            SocialRow::Message { id, creator, reply_of } => self.message.push(Tup3(*id, *creator, *reply_of), weight),
            SocialRow::MessageTag { message, tag } => self.message_tag.push(Tup2(*message, *tag), weight),
            SocialRow::Tag { id, name } => self.tag.push(Tup2(*id, name.clone()), weight),
        }
    }
}
