//! The Plan as plain data: the mirror of `src/crown/ir/plan.py`, read from its JSON form.
//!
//! Field meanings are documented there, once; change both files together.

// The fields are documented in the Python module.
#![allow(missing_docs)]

use crate::error::{KernelError, Result};
use serde::{Deserialize, Serialize};

/// How deep the JSON of a plan may nest: two levels per call within a call. Reading, compiling and
/// evaluating an expression recurse, so the bound is what the smallest stack of a thread can take.
const MOST_LEVELS: usize = 1000;

/// Reads a plan's JSON form.
pub fn parse(json: &str) -> Result<Plan> {
    if levels(json) > MOST_LEVELS {
        let message = format!("an expression of the query is nested more than {} calls deep", MOST_LEVELS / 2);
        return Err(KernelError::plan("CROWN-PLAN-DEPTH", message));
    }
    let mut reader = serde_json::Deserializer::from_str(json);
    // `levels` has bounded the depth, and its bound is larger.
    reader.disable_recursion_limit();
    Plan::deserialize(&mut reader)
        .and_then(|plan| reader.end().map(|()| plan))
        .map_err(|error| KernelError::plan("CROWN-PLAN-JSON", format!("the plan can't be read: {error}")))
}

/// How deep brackets nest outside of strings.
fn levels(json: &str) -> usize {
    let (mut deepest, mut open, mut quoted) = (0, 0usize, false);
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if quoted => drop(bytes.next()),
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => open += 1,
            b']' | b'}' if !quoted => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open);
    }
    deepest
}

#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Expression {
    Column {
        name: String,
        #[serde(rename = "type")]
        data_type: String,
    },
    Literal {
        value: serde_json::Value,
        #[serde(rename = "type")]
        data_type: String,
    },
    Call {
        function: String,
        arguments: Vec<Expression>,
        #[serde(rename = "type")]
        data_type: String,
    },
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TableColumn {
    pub name: String,
    #[serde(rename = "type")]
    pub data_type: String,
    pub nullable: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Window {
    pub rows: Option<u64>,
    pub interval: Option<i64>,
    pub column: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Table {
    pub name: String,
    pub columns: Vec<TableColumn>,
    pub primary_key: Vec<String>,
    pub profile: String,
    pub window: Option<Window>,
    pub updates: f64,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Variable {
    pub name: String,
    #[serde(rename = "type")]
    pub data_type: String,
    pub nullable: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Binding {
    pub variable: String,
    pub expression: Expression,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Atom {
    pub name: String,
    pub source: String,
    pub bindings: Vec<Binding>,
    pub filter: Option<Expression>,
    pub not_null: Vec<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum EdgeKind {
    Join,
    Exists,
    Anti,
    Optional,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Node {
    pub name: String,
    pub variables: Vec<String>,
    pub atom: Option<usize>,
    pub parent: Option<usize>,
    pub key: Vec<String>,
    pub connex: bool,
    pub edge: EdgeKind,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Factor {
    pub atom: usize,
    pub expression: Expression,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct RingComponent {
    pub name: String,
    pub factors: Vec<Factor>,
    #[serde(rename = "type")]
    pub data_type: String,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Set,
    Bag,
    Ring,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Comparison {
    pub lower: String,
    pub offset: i64,
    pub upper: String,
    pub strict: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TreeStage {
    pub id: String,
    pub variables: Vec<Variable>,
    pub atoms: Vec<Atom>,
    pub nodes: Vec<Node>,
    pub outputs: Vec<String>,
    pub mode: Mode,
    pub ring: Vec<RingComponent>,
    pub residual: Vec<Expression>,
    pub always: bool,
    pub ordered: Vec<Comparison>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct BagStage {
    pub id: String,
    pub variables: Vec<Variable>,
    pub atoms: Vec<Atom>,
    pub outputs: Vec<String>,
    pub order: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct MapColumn {
    pub name: String,
    #[serde(rename = "type")]
    pub data_type: String,
    pub nullable: bool,
    pub expression: Expression,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct MapStage {
    pub id: String,
    pub input: String,
    pub columns: Vec<MapColumn>,
    pub filter: Option<Expression>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum AggregateFunction {
    Count,
    CountDistinct,
    Sum,
    Avg,
    Min,
    Max,
    VarPop,
    VarSamp,
    StddevPop,
    StddevSamp,
    CovarPop,
    CovarSamp,
    Corr,
    First,
    StringAgg,
    ArrayAgg,
    Skewness,
    Kurtosis,
    PercentileCont,
    PercentileDisc,
    Mode,
    BitAnd,
    BitOr,
    BitXor,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct AggregateColumn {
    pub name: String,
    pub function: AggregateFunction,
    pub argument: Option<Expression>,
    #[serde(rename = "type")]
    pub data_type: String,
    #[serde(default)]
    pub further: Vec<Expression>,
    #[serde(default)]
    pub order: Vec<OrderBy>,
    #[serde(default)]
    pub condition: Option<Expression>,
    #[serde(default)]
    pub distinct: bool,
    #[serde(default)]
    pub parameter: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct AggregateStage {
    pub id: String,
    pub input: String,
    pub group: Vec<String>,
    pub aggregates: Vec<AggregateColumn>,
    pub always: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct DistinctStage {
    pub id: String,
    pub input: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct MaterializeStage {
    pub id: String,
    pub input: String,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum SetOperator {
    Union,
    Except,
    Intersect,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct SetOperationStage {
    pub id: String,
    pub operator: SetOperator,
    pub all: bool,
    pub inputs: (String, String),
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct OrderBy {
    pub expression: Expression,
    pub descending: bool,
    pub nulls_first: bool,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum RankFunction {
    #[default]
    RowNumber,
    Rank,
    DenseRank,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct RankColumn {
    pub name: String,
    pub function: RankFunction,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TopStage {
    pub id: String,
    pub input: String,
    pub order: Vec<OrderBy>,
    pub limit: u64,
    pub offset: u64,
    #[serde(default)]
    pub partition: Vec<String>,
    #[serde(default)]
    pub by: RankFunction,
    #[serde(default)]
    pub ranks: Vec<RankColumn>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum FrameUnit {
    #[default]
    Rows,
    Range,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct WindowFrame {
    pub unit: FrameUnit,
    pub start: Option<i64>,
    pub end: Option<i64>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum WindowFunction {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lag,
    FirstValue,
    LastValue,
    NthValue,
    Aggregate,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct WindowColumn {
    pub name: String,
    pub function: WindowFunction,
    #[serde(rename = "type")]
    pub data_type: String,
    pub arguments: Vec<Expression>,
    pub offset: i64,
    pub ignore_nulls: bool,
    pub frame: Option<WindowFrame>,
    pub aggregate: Option<AggregateColumn>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct WindowStage {
    pub id: String,
    pub input: String,
    pub partition: Vec<String>,
    pub order: Vec<OrderBy>,
    pub columns: Vec<WindowColumn>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ValuesStage {
    pub id: String,
    pub columns: Vec<Variable>,
    pub rows: Vec<Vec<Expression>>,
}

/// What the stages of a recursion's step call the rows of the recursion itself.
pub const ITSELF: &str = "$itself";

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct RecursionStage {
    pub id: String,
    pub name: String,
    pub base: String,
    pub stages: Vec<Stage>,
    pub all: bool,
    pub limit: Option<u64>,
}

impl RecursionStage {
    /// The tables and stages that its step reads, besides its own rows and stages; each once.
    pub fn sides(&self) -> Vec<&str> {
        let mut found: Vec<&str> = Vec::new();
        for source in self.stages.iter().flat_map(Stage::sources) {
            let own = source == ITSELF || self.stages.iter().any(|stage| stage.id() == source);
            if !own && !found.contains(&source) {
                found.push(source);
            }
        }
        found
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Stage {
    Tree(TreeStage),
    Bag(BagStage),
    Map(MapStage),
    Aggregate(AggregateStage),
    Distinct(DistinctStage),
    Materialize(MaterializeStage),
    SetOperation(SetOperationStage),
    Top(TopStage),
    Values(ValuesStage),
    Window(WindowStage),
    Recursion(RecursionStage),
}

impl Stage {
    pub fn id(&self) -> &str {
        match self {
            Stage::Tree(stage) => &stage.id,
            Stage::Bag(stage) => &stage.id,
            Stage::Map(stage) => &stage.id,
            Stage::Aggregate(stage) => &stage.id,
            Stage::Distinct(stage) => &stage.id,
            Stage::Materialize(stage) => &stage.id,
            Stage::SetOperation(stage) => &stage.id,
            Stage::Top(stage) => &stage.id,
            Stage::Values(stage) => &stage.id,
            Stage::Window(stage) => &stage.id,
            Stage::Recursion(stage) => &stage.id,
        }
    }

    /// The tables and stages that it reads.
    pub fn sources(&self) -> Vec<&str> {
        match self {
            Stage::Tree(stage) => stage.atoms.iter().map(|atom| atom.source.as_str()).collect(),
            Stage::Bag(stage) => stage.atoms.iter().map(|atom| atom.source.as_str()).collect(),
            Stage::Map(stage) => vec![&stage.input],
            Stage::Aggregate(stage) => vec![&stage.input],
            Stage::Distinct(stage) => vec![&stage.input],
            Stage::Materialize(stage) => vec![&stage.input],
            Stage::SetOperation(stage) => vec![&stage.inputs.0, &stage.inputs.1],
            Stage::Top(stage) => vec![&stage.input],
            Stage::Values(_) => Vec::new(),
            Stage::Window(stage) => vec![&stage.input],
            Stage::Recursion(stage) => [stage.base.as_str()].into_iter().chain(stage.sides()).collect(),
        }
    }
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Route {
    pub stage: String,
    pub atom: usize,
    pub coordinates: Vec<Option<Expression>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<Vec<u64>>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Routing {
    pub cells: u64,
    pub dimensions: Vec<String>,
    pub shares: Vec<u64>,
    pub routes: Vec<Route>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct NamedResult {
    pub name: String,
    pub stage: String,
    pub columns: Vec<TableColumn>,
    pub bag: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Plan {
    pub version: u32,
    pub sql: String,
    pub tables: Vec<Table>,
    pub stages: Vec<Stage>,
    pub columns: Vec<TableColumn>,
    pub bag: bool,
    pub order: Vec<OrderBy>,
    pub routing: Option<Routing>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<Vec<NamedResult>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(depth: usize) -> String {
        let column = r#"{"kind": "column", "name": "a]\"[", "type": "string"}"#;
        let open = r#"{"kind": "call", "function": "upper", "type": "string", "arguments": ["#.repeat(depth);
        let order = format!(r#"{open}{column}{}"#, "]}".repeat(depth));
        format!(
            r#"{{"version": 1, "sql": "", "tables": [], "stages": [], "columns": [], "bag": false, "routing": null,
                 "order": [{{"expression": {order}, "descending": false, "nulls_first": false}}]}}"#
        )
    }

    #[test]
    fn deep_expressions_are_read_up_to_a_bound() {
        assert_eq!(levels(&plan(0)), 4, "brackets in strings don't count");
        assert!(parse(&plan(400)).is_ok());
        for depth in [600, 1_000_000] {
            assert_eq!(parse(&plan(depth)).unwrap_err().code, "CROWN-PLAN-DEPTH");
        }
        assert_eq!(parse(&"[".repeat(10_000_000)).unwrap_err().code, "CROWN-PLAN-DEPTH");
        assert_eq!(parse("{} {}").unwrap_err().code, "CROWN-PLAN-JSON");
    }
}
