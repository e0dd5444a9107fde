//! The Plan as plain data: the mirror of `src/crown/ir/plan.py`, read from its JSON form.
//!
//! Field meanings are documented there, once; change both files together.

use serde::{Deserialize, Serialize};

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
pub enum Edge {
    Join,
    Exists,
    Anti,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Node {
    pub name: String,
    pub variables: Vec<String>,
    pub atom: Option<usize>,
    pub parent: Option<usize>,
    pub key: Vec<String>,
    pub connex: bool,
    pub edge: Edge,
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
pub struct OutputColumn {
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
    pub columns: Vec<OutputColumn>,
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
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct AggregateColumn {
    pub name: String,
    pub function: AggregateFunction,
    pub argument: Option<Expression>,
    #[serde(rename = "type")]
    pub data_type: String,
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

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct TopStage {
    pub id: String,
    pub input: String,
    pub order: Vec<OrderBy>,
    pub limit: u64,
    pub offset: u64,
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
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Route {
    pub stage: String,
    pub atom: usize,
    pub coordinates: Vec<Option<Expression>>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Routing {
    pub cells: u64,
    pub dimensions: Vec<String>,
    pub shares: Vec<u64>,
    pub routes: Vec<Route>,
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
}
