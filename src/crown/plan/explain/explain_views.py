"""Explain many views at once: what is stored, which views share it, and what one more view would add."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from html import escape
from typing import Any

from crown.ir.plan import Plan, Stage
from crown.ir.serial import encode
from crown.plan.combine_views import KEPT, sources
from crown.plan.explain.picture import plan_svg
from crown.plan.explain.report import Report
from crown.plan.explain.text import explain
from crown.wording import counted


@dataclass(frozen=True)
class ProjectView:
    """A view with its own plan, and which stage of the project each of its stages is."""

    name: str
    plan: Plan
    report: Report
    places: Mapping[str, str]

    @property
    def placed(self) -> Plan:
        """Return its plan with the stages' ids in the project."""
        plan = _renamed(self.plan, self.places)
        assert isinstance(plan, Plan)
        # One stage of the project may be two in the view's own plan.
        return replace(plan, stages=tuple({stage.id: stage for stage in plan.stages}.values()))

    @property
    def placed_report(self) -> Report:
        report = _renamed(self.report, self.places)
        assert isinstance(report, Report)
        return report


def _renamed(found: Any, names: Mapping[str, str]) -> Any:
    """Return data with these strings replaced, wherever a whole string is one of them."""
    if isinstance(found, str):
        return names.get(found, found)
    if isinstance(found, tuple):
        return tuple(_renamed(part, names) for part in found)
    if not is_dataclass(found) or isinstance(found, type):
        return found
    given = [part.name for part in fields(found) if part.init]
    return replace(found, **{name: _renamed(getattr(found, name), names) for name in given})


@dataclass(frozen=True)
class ProjectExplanation:
    """A database explained, perhaps with a view that does not exist yet. `print` it, or call `svg` or `json`."""

    project: Plan
    views: tuple[ProjectView, ...]
    tables: Mapping[str, str]
    new: ProjectView | None = None
    problems: tuple[str, ...] = ()

    def shared_by(self, stage: str) -> list[str]:
        """Return the views that read a stage."""
        return [view.name for view in self.views if stage in view.places.values()]

    def __str__(self) -> str:
        if self.new is not None:
            return self._addition(self.new)
        lines = ["TABLES"]
        lines += [f"  {name}: {note}" for name, note in self.tables.items()]
        lines += ["", "VIEWS"]
        for view in self.views:
            classes = ", ".join(dict.fromkeys(c.query_class for c in view.report.conjunctions))
            lines.append(f"  {view.name}: {classes}; {counted(len(set(view.places.values())), 'stage')}")
        lines += ["", "STAGES, each kept once"]
        lines += [f"  {self._line(stage)}" for stage in self.project.stages]
        return "\n".join(lines)

    def _line(self, stage: Stage) -> str:
        readers = self.shared_by(stage.id)
        if stage.id.startswith(KEPT):
            readers = ["views to come"]
        read = ", ".join(dict.fromkeys(sources(stage)))
        return f"{stage.id}{f' over {read}' if read else ''}: for {', '.join(readers)}"

    def _addition(self, new: ProjectView) -> str:
        known = {stage.id for stage in self.project.stages}
        shared = [place for place in dict.fromkeys(new.places.values()) if place in known]
        lines = [f"{new.name} WOULD"]
        lines += [f"  share {place} with {', '.join(self.shared_by(place))}" for place in shared]
        own = {stage.id: stage for stage in new.placed.stages if stage.id not in known}
        for name, stage in own.items():
            lines.append(f"  add {type(stage).__name__.removesuffix('Stage').lower()} {name}")
        lines += [] if own else ["  add nothing but its name"]
        lines += [f"  not be possible: {problem}" for problem in self.problems]
        return "\n".join([*lines, "", str(explain(new.placed, new.placed_report))])

    def svg(self) -> str:
        """Return all trees as one picture."""
        plan = self.project if self.new is None else self.new.placed
        return plan_svg(replace(plan, results=None))

    def json(self) -> str:
        """Return everything for machines."""
        data: dict[str, Any] = {
            "tables": dict(self.tables),
            "views": {view.name: sorted(set(view.places.values())) for view in self.views},
            "stages": {stage.id: self.shared_by(stage.id) for stage in self.project.stages},
            "plan": encode(self.project),
        }
        if self.new is not None:
            known = {stage.id for stage in self.project.stages}
            places = set(self.new.places.values())
            data["new"] = {
                "name": self.new.name,
                "shared": sorted(places & known),
                "added": sorted(places - known),
                "problems": list(self.problems),
            }
        return json.dumps(data, indent=2, ensure_ascii=False)

    def _repr_html_(self) -> str:
        return f"{self.svg()}<pre>{escape(str(self))}</pre>"
