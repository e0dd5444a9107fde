//! The queries on the social network. Rows carry the columns that a query uses, strings as strings.

use crate::rows::{word, SocialRow};
use crate::{counted, views, Family, Probe, Sums, Task};
use differential_dataflow::input::{Input, InputSession};
use timely::dataflow::Scope;

type Table<Row> = InputSession<u64, Row, isize>;

pub struct Social {
    person: Table<(u64, (String, String))>,
    knows: Table<(u64, u64)>,
    message: Table<(u64, u64, Option<u64>)>,
    message_tag: Table<(u64, u64)>,
    tag: Table<(u64, String)>,
}

impl Family for Social {
    type Row = SocialRow;

    fn build(scope: Scope<u64>, task: &Task<Self>, sums: Sums) -> (Self, Probe) {
        let filter = task.filter;
        let (person_in, person) = scope.new_collection();
        let (knows_in, knows) = scope.new_collection();
        let (message_in, message) = scope.new_collection();
        let (message_tag_in, message_tag) = scope.new_collection();
        let (tag_in, tag) = scope.new_collection();
        let tables = Social {
            person: person_in,
            knows: knows_in,
            message: message_in,
            message_tag: message_tag_in,
            tag: tag_in,
        };
        let by_chosen = || knows.clone().filter(move |(p1, _)| *p1 < filter).map(|(p1, p2)| (p2, p1));
        let posts = || {
            let posts = message.clone().filter(|(_, _, reply_of)| reply_of.is_none());
            posts.map(|(id, creator, _)| (creator, id))
        };
        let probe = match task.query.as_str() {
            "snb_q1" => {
                // Friends before messages, which are many: names are then kept once for each
                // friend.
                let result = person
                    .join_map(knows.map(|(p1, p2)| (p2, p1)), |person, names, friend| {
                        (*person, (names.clone(), *friend))
                    })
                    .join_map(message.map(|(id, creator, _)| (creator, id)), |person, (names, friend), message| {
                        (*person, names.clone(), *message, *friend)
                    });
                counted(result, sums, |totals, (person, (first, last), message, friend), weight| {
                    totals.add(&[*person, word(first), word(last), *message, *friend], weight)
                })
            }
            query @ ("snb_q2" | "snb_q3") => {
                let friends = by_chosen().join_map(knows, |b, a, c| (*c, (*a, *b)));
                let friends = if query == "snb_q3" { friends.filter(|(c, (a, _))| c != a) } else { friends };
                let result = friends
                    .join_map(posts(), |c, (a, b), message| (*message, (*a, *b, *c)))
                    .join_map(message_tag, |message, (a, b, c), tag| (*tag, (*a, *b, *c, *message)))
                    .semijoin(tag.map(|(id, _)| id));
                counted(result, sums, |totals, (tag, (a, b, c, message)), weight| {
                    totals.add(&[*a, *b, *c, *tag, *message], weight)
                })
            }
            "snb_q4" => {
                let result = by_chosen()
                    .join_map(posts(), |_, _, message| (*message, ()))
                    .join_map(message_tag, |message, (), tag| (*tag, *message))
                    .join_map(tag, |tag, message, name| (name.clone(), *tag, *message))
                    .distinct()
                    .map(|(name, tag, _)| (name, tag))
                    .count();
                counted(result, sums, |totals, ((name, tag), messages), weight| {
                    totals.add(&[word(name), *tag, *messages as u64], weight)
                })
            }
            "snb_q4_rewritten" => {
                let result = posts()
                    .semijoin(by_chosen().map(|(known, _)| known).distinct())
                    .map(|(_, message)| (message, ()))
                    .join_map(message_tag, |message, (), tag| (*tag, *message))
                    .distinct()
                    .map(|(tag, _)| tag)
                    .count()
                    .join_map(tag, |tag, messages, name| (name.clone(), *tag, *messages));
                counted(result, sums, |totals, (name, tag, messages), weight| {
                    totals.add(&[word(name), *tag, *messages as u64], weight)
                })
            }
            other => match other.strip_prefix("snb_views_") {
                Some(number) => {
                    let number = number.parse().expect("a number of views");
                    views::build(knows, message, message_tag, tag, number, sums)
                }
                None => panic!("no plan for {other}"),
            },
        };
        (tables, probe)
    }

    fn push(&mut self, row: &SocialRow, weight: isize) {
        match row {
            SocialRow::Person { id, first_name, last_name } => {
                self.person.update((*id, (first_name.clone(), last_name.clone())), weight)
            }
            SocialRow::Knows { p1, p2 } => self.knows.update((*p1, *p2), weight),
            SocialRow::Message { id, creator, reply_of } => self.message.update((*id, *creator, *reply_of), weight),
            SocialRow::MessageTag { message, tag } => self.message_tag.update((*message, *tag), weight),
            SocialRow::Tag { id, name } => self.tag.update((*id, name.clone()), weight),
        }
    }

    fn advance_to(&mut self, time: u64) {
        advance(&mut self.person, time);
        advance(&mut self.knows, time);
        advance(&mut self.message, time);
        advance(&mut self.message_tag, time);
        advance(&mut self.tag, time);
    }
}

fn advance<Row: differential_dataflow::Data>(table: &mut Table<Row>, time: u64) {
    table.advance_to(time);
    table.flush();
}
