"""Chains of binary joins, as Pathway's users write them; `_rewritten` variants add semi-joins and early counts."""

from __future__ import annotations

from typing import Any


def plan(pw: Any, query: str, tables: dict[str, Any], threshold: int) -> Any:
    """The answer's table; None where there is no program."""
    if "G" in tables:
        return _graph(pw, query, tables, threshold)
    if "knows" in tables:
        return _social(pw, query, tables, threshold)
    return None


def _graph(pw: Any, query: str, tables: dict[str, Any], threshold: int) -> Any:
    edges = tables["G"]
    first, second, third, fourth = (edges.copy() for _ in range(4))
    match query:
        case "three_hop":
            last = edges.filter(pw.this.dst > threshold)
            pairs = first.join(second, first.dst == second.src).select(a=first.src, b=second.src, c=second.dst)
            return pairs.join(last, pairs.c == last.src).select(pairs.a, pairs.b, pairs.c, d=last.dst)
        case "four_hop":
            last = edges.filter(pw.this.dst > threshold)
            pairs = first.join(second, first.dst == second.src).select(a=first.src, b=second.src, c=second.dst)
            triples = pairs.join(third, pairs.c == third.src).select(pairs.a, pairs.b, pairs.c, d=third.dst)
            joined = triples.join(last, triples.d == last.src)
            return joined.select(triples.a, triples.b, triples.c, triples.d, e=last.dst)
        case "four_hop_project":
            pairs = first.join(second, first.dst == second.src).select(b=second.src, c=second.dst)
            triples = pairs.join(third, pairs.c == third.src).select(pairs.b, pairs.c, d=third.dst)
            joined = triples.join(fourth, triples.d == fourth.src).select(triples.b, triples.c, triples.d)
            return joined.groupby(joined.b, joined.c, joined.d).reduce(joined.b, joined.c, joined.d)
        case "four_hop_project_rewritten":
            starts = first.groupby(first.dst).reduce(first.dst)
            ends = fourth.groupby(fourth.src).reduce(fourth.src)
            left = second.join(starts, second.src == starts.dst).select(b=second.src, c=second.dst)
            right = third.join(ends, third.dst == ends.src).select(c=third.src, d=third.dst)
            return left.join(right, left.c == right.c).select(left.b, left.c, right.d)
        case "two_comb":
            starts, ends = tables["V1"], tables["V2"]
            left = first.join(starts, first.src == starts.v).select(a=first.src, b=first.dst)
            right = third.join(ends, third.dst == ends.v).select(c=third.src, d=third.dst)
            pairs = left.join(second, left.b == second.src).select(left.a, left.b, c=second.dst)
            return pairs.join(right, pairs.c == right.c).select(pairs.a, pairs.b, pairs.c, right.d)
        case "star":
            pairs = first.join(second, first.src == second.src).select(s=first.src)
            triples = pairs.join(third, pairs.s == third.src).select(pairs.s)
            joined = triples.join(fourth, triples.s == fourth.src).select(triples.s)
            return joined.groupby(joined.s).reduce(joined.s, n=pw.reducers.count())
        case "star_rewritten":
            counts = edges.groupby(edges.src).reduce(edges.src, n=pw.reducers.count())
            return counts.select(counts.src, n=counts.n * counts.n * counts.n * counts.n)
        case "dumbbell" | "dumbbell_project" | "dumbbell_project_rewritten":
            pairs = first.join(second, first.dst == second.src).select(a=first.src, b=second.src, c=second.dst)
            closed = pairs.join(third, pairs.c == third.src, pairs.a == third.dst)
            triangles = closed.select(pairs.a, pairs.b, pairs.c)
            if query == "dumbbell_project_rewritten":
                triangles = triangles.groupby(triangles.a).reduce(triangles.a)
            others = triangles.copy()
            left = fourth.join(triangles, fourth.src == triangles.a).select(*triangles, q=fourth.dst)
            joined = left.join(others, left.q == others.a)
            match query:
                case "dumbbell":
                    return joined.select(left.a, left.b, left.c, left.q, u=others.b, w=others.c)
                case "dumbbell_project":
                    ends = joined.select(left.a, left.q)
                    return ends.groupby(ends.a, ends.q).reduce(ends.a, ends.q)
                case _:
                    return joined.select(left.a, left.q)
        case _:
            return None


def _social(pw: Any, query: str, tables: dict[str, Any], threshold: int) -> Any:
    knows, message = tables["knows"], tables["message"]
    if query == "snb_q1":
        person = tables["person"]
        # Friends before messages, which are many: names are then kept once for each friend.
        people = person.join(knows, person.key == knows.p2).select(
            person.key, person.first_name, person.last_name, friend=knows.p1
        )
        return people.join(message, people.key == message.creator).select(
            people.key, people.first_name, people.last_name, message=message.key, friend=people.friend
        )
    tag, message_tag = tables["tag"], tables["message_tag"]
    posts = message.filter(pw.this.reply_of.is_none())
    chosen = knows.filter(pw.this.p1 < threshold)
    match query:
        case "snb_q2" | "snb_q3":
            friends = chosen.join(knows, chosen.p2 == knows.p1).select(a=chosen.p1, b=chosen.p2, c=knows.p2)
            if query == "snb_q3":
                friends = friends.filter(pw.this.c != pw.this.a)
            written = friends.join(posts, friends.c == posts.creator).select(*friends, message=posts.key)
            tagged = written.join(message_tag, written.message == message_tag.message).select(
                *written, tag=message_tag.tag
            )
            return tagged.join(tag, tagged.tag == tag.key).select(
                tagged.a, tagged.b, tagged.c, tagged.tag, tagged.message
            )
        case "snb_q4":
            written = chosen.join(posts, chosen.p2 == posts.creator).select(message=posts.key)
            tagged = written.join(message_tag, written.message == message_tag.message).select(
                written.message, message_tag.tag
            )
            named = tagged.join(tag, tagged.tag == tag.key).select(tag.name, tagged.tag, tagged.message)
            once = named.groupby(named.name, named.tag, named.message).reduce(named.name, named.tag, named.message)
            return once.groupby(once.name, once.tag).reduce(once.name, once.tag, messages=pw.reducers.count())
        case "snb_q4_rewritten":
            known = chosen.groupby(chosen.p2).reduce(chosen.p2)
            written = known.join(posts, known.p2 == posts.creator).select(message=posts.key)
            tagged = written.join(message_tag, written.message == message_tag.message).select(
                written.message, message_tag.tag
            )
            once = tagged.groupby(tagged.tag, tagged.message).reduce(tagged.tag, tagged.message)
            counts = once.groupby(once.tag).reduce(once.tag, messages=pw.reducers.count())
            return counts.join(tag, counts.tag == tag.key).select(tag.name, counts.tag, counts.messages)
        case _:
            return None
