//! HyperCube routing: each change to the cells whose results may need it.
//!
//! A row goes to a cell once, with the mask of the atoms that need it there. The value itself is
//! hashed, so every process sends equal values to the same cell.
//!
//! A table with a primary key is special if a row can move to another cell when it changes, that
//! is, if some coordinate reads more than the key. Then every change is also sent to all other
//! cells with an empty mask, where it only deletes the row with that key.

use crate::arrow_check::{check, UNREADABLE, UNSUPPORTED};
use crate::arrow_in::{read_batch, Changes, InputColumn, ATOMS, CHANGE_TYPE, MULTIPLICITY};
use crate::binding::Binder;
use crate::chunk::Word;
use crate::error::{KernelError, Result};
use crate::expression::Compiled;
use crate::plan::{self, Expression, Plan};
use crate::source::Source;
use crate::store::hash::{stable_hash, stable_hash_bytes};
use crate::store::interner::Interner;
use crate::types::DataType;
use arrow::array::{ArrayRef, RecordBatch, UInt32Array, UInt64Array, UInt8Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{DataType as ArrowType, Field, Schema};
use std::collections::HashMap;
use std::sync::Arc;

/// Sends each change to the cells that need it.
pub struct Router {
    cells: usize,
    /// The narrowest type that has a bit for each route: masks travel with every row.
    mask: ArrowType,
    tables: Vec<RoutedTable>,
    interner: Interner,
}

struct RoutedTable {
    name: String,
    columns: Vec<InputColumn>,
    key: Vec<usize>,
    source: Source,
    routes: Vec<RoutedAtom>,
    /// Whether a changed row may belong to other cells than before.
    moves: bool,
}

struct RoutedAtom {
    bit: u64,
    binder: Binder,
    /// The expression that determines the coordinate along a dimension, with the dimension's share
    /// and the stride between neighbours along it.
    coordinates: Vec<(Compiled, u64, usize)>,
    /// The cells along the other dimensions, seen from the chosen place.
    spread: Vec<usize>,
}

impl Router {
    /// A router for a plan with routing.
    pub fn new(plan: &Plan) -> Result<Router> {
        let fail = |message: &str| KernelError::plan("CROWN-PLAN-MALFORMED", message);
        let routing = plan.routing.as_ref().ok_or_else(|| fail("the plan has no routing"))?;
        let product = routing.shares.iter().try_fold(1u64, |product, share| product.checked_mul(*share));
        if routing.cells == 0 || routing.cells > 1 << 20 || product != Some(routing.cells) {
            return Err(fail("the product of the shares is not the number of cells"));
        }
        let bits = RouteBits::new(plan)?;
        let mut tables = Vec::new();
        for table in &plan.tables {
            let source = Source::new(table)?;
            let columns: Vec<(String, DataType)> =
                source.columns.iter().map(|column| (column.name.clone(), column.data_type)).collect();
            let mut routed = RoutedTable {
                name: source.name.clone(),
                columns: source.columns.clone(),
                key: source.key.clone(),
                source,
                routes: Vec::new(),
                moves: false,
            };
            for (number, route) in routing.routes.iter().enumerate() {
                let atom = find_atom(plan, route).ok_or_else(|| fail("a route names an unknown atom"))?;
                if atom.source != table.name {
                    continue;
                }
                let shares = route.shares.as_ref().unwrap_or(&routing.shares);
                if route.coordinates.len() != shares.len() {
                    return Err(fail("a route does not have one coordinate per dimension"));
                }
                if shares.iter().try_fold(1u64, |product, share| product.checked_mul(*share)) != Some(routing.cells) {
                    return Err(fail("the product of the shares is not the number of cells"));
                }
                let (mut coordinates, mut spread) = (Vec::new(), vec![0]);
                let mut distance = 1;
                for (expression, share) in route.coordinates.iter().zip(shares).rev() {
                    match expression {
                        Some(expression) => {
                            coordinates.push((Compiled::new(expression, &columns)?, *share, distance));
                        }
                        None => {
                            let along = |place| spread.iter().map(move |offset| offset + place * distance);
                            spread = (0..*share as usize).flat_map(along).collect();
                        }
                    }
                    distance *= *share as usize;
                }
                let in_key = |name: &str| table.primary_key.iter().any(|column| column == name);
                let keyed = route.coordinates.iter().flatten().all(|expression| reads_only(expression, &in_key));
                routed.moves |= !routed.key.is_empty() && !keyed;
                let binder = Binder::new(atom, &columns)?;
                routed.routes.push(RoutedAtom { bit: bits.of(number), binder, coordinates, spread });
            }
            tables.push(routed);
        }
        let cells = routing.cells as usize;
        let mask = if bits.most(routing.routes.len()) < 1 << 8 { ArrowType::UInt8 } else { ArrowType::UInt64 };
        Ok(Router { cells, mask, tables, interner: Interner::default() })
    }

    /// Whether some cell reads the table.
    pub fn reads(&self, table: &str) -> bool {
        self.tables.iter().any(|routed| routed.name == table)
    }

    /// The changes that `cell` gets, by their positions among all.
    pub fn rows_of(&mut self, table: &str, batches: &[RecordBatch], cell: usize) -> Result<Vec<u64>> {
        let Router { cells, tables, interner, .. } = self;
        let Some(table) = tables.iter().find(|routed| routed.name == table) else { return Ok(Vec::new()) };
        let (mut positions, mut passed) = (Vec::new(), 0);
        for batch in batches {
            let mut changes = Changes::new(table.columns.len());
            read_batch(&table.name, &table.columns, &table.key, batch, interner, &mut changes)?;
            table.source.check_profile(&mut changes);
            let mut picked = pick(table, &changes, *cells, interner)?;
            positions.extend(picked.swap_remove(cell).0.into_iter().map(|row| passed + u64::from(row)));
            passed += batch.num_rows() as u64;
            interner.sweep();
        }
        Ok(positions)
    }

    /// For each cell that gets something: its rows in order, as record batches with an `_atoms`
    /// column.
    pub fn route(&mut self, table: &str, batches: &[RecordBatch]) -> Result<Vec<(u64, Vec<RecordBatch>)>> {
        let Router { cells, mask, tables, interner } = self;
        let table = tables.iter().find(|routed| routed.name == table).ok_or_else(|| {
            KernelError::invalid("CROWN-CHANGE-TABLE", format!("the view does not read a table '{table}'"))
        })?;
        let mut result: Vec<Vec<RecordBatch>> = vec![Vec::new(); *cells];
        for batch in batches {
            let mut changes = Changes::new(table.columns.len());
            read_batch(&table.name, &table.columns, &table.key, batch, interner, &mut changes)?;
            table.source.check_profile(&mut changes);
            let picked = pick(table, &changes, *cells, interner)?;
            let sound = sound_columns(table, batch)?;
            for (cell, (rows, masks)) in picked.into_iter().enumerate().filter(|(_, (rows, _))| !rows.is_empty()) {
                result[cell].push(with_masks(&sound, rows, masks, mask)?);
            }
            interner.sweep();
        }
        let used = |(_, batches): &(u64, Vec<RecordBatch>)| !batches.is_empty();
        Ok((0u64..).zip(result).filter(used).collect())
    }
}

/// The rows of each cell, and their masks.
fn pick(
    table: &RoutedTable,
    changes: &Changes,
    cells: usize,
    interner: &mut Interner,
) -> Result<Vec<(Vec<u32>, Vec<u64>)>> {
    table.routes.iter().for_each(|route| route.binder.prepare(&changes.rows, interner));
    let mut picked = vec![(Vec::new(), Vec::new()); cells];
    let mut masks = vec![0u64; cells];
    let mut touched: Vec<usize> = Vec::new();
    let (mut words, mut row) = (Vec::new(), Vec::new());
    let mut faults = changes.faults.iter().peekable();
    for index in 0..changes.len() {
        let nulls = changes.rows.read(index, &mut words);
        // A faulty row must be seen, and refused, by some cell.
        let faulty = faults.next_if(|fault| fault.row == index).is_some();
        if faulty {
            masks[0] = u64::MAX;
            touched.push(0);
        }
        let retracts = table.moves && changes.rows.weights[index] < 0;
        for route in table.routes.iter().filter(|_| !faulty && !retracts) {
            match route.binder.bind(&words, nulls, &mut row, interner) {
                Ok(None) => continue,
                Ok(Some(_)) => {}
                // The cell that evaluates it again reports it.
                Err(_) => {
                    masks[0] |= route.bit;
                    touched.push(0);
                    continue;
                }
            }
            let mut place = 0;
            for (expression, share, distance) in &route.coordinates {
                let value = expression.evaluate(&words, nulls, interner)?;
                place += (hash_value(value, expression.data_type(), interner) % share) as usize * distance;
            }
            for cell in route.spread.iter().map(|offset| place + offset) {
                if masks[cell] == 0 {
                    touched.push(cell);
                }
                masks[cell] |= route.bit;
            }
        }
        if table.moves && !faulty {
            touched = (0..cells).collect();
        }
        for cell in touched.drain(..) {
            picked[cell].0.push(index as u32);
            picked[cell].1.push(std::mem::take(&mut masks[cell]));
        }
    }
    Ok(picked)
}

fn hash_value(value: Option<Word>, data_type: DataType, interner: &Interner) -> u64 {
    match value {
        None => 0,
        Some(word) if data_type.interned() => stable_hash_bytes(interner.get(word)),
        Some(word) => stable_hash([word]),
    }
}

/// The columns that can be copied: those that `read_batch` has checked, and all others that are
/// sound.
fn sound_columns(table: &RoutedTable, batch: &RecordBatch) -> Result<RecordBatch> {
    let checked =
        |name: &str| [CHANGE_TYPE, MULTIPLICITY].contains(&name) || table.columns.iter().any(|c| c.name == name);
    let readable = |field: &Field| !field.metadata().keys().any(|key| key == UNREADABLE || key == UNSUPPORTED);
    let sound = |position: &usize| {
        let field = batch.schema_ref().field(*position);
        let name = field.name();
        name != ATOMS && (checked(name) || (readable(field) && check(batch.column(*position)).is_ok()))
    };
    let positions: Vec<usize> = (0..batch.num_columns()).filter(sound).collect();
    batch.project(&positions).map_err(|error| KernelError::invalid("CROWN-CHANGE-ARROW", error.to_string()))
}

fn with_masks(batch: &RecordBatch, rows: Vec<u32>, masks: Vec<u64>, mask: &ArrowType) -> Result<RecordBatch> {
    let fail = |error: arrow::error::ArrowError| KernelError::invalid("CROWN-CHANGE-ARROW", error.to_string());
    let taken = take_record_batch(batch, &UInt32Array::from(rows)).map_err(fail)?;
    let mut fields: Vec<Arc<Field>> = taken.schema().fields().iter().cloned().collect();
    let mut arrays: Vec<ArrayRef> = taken.columns().to_vec();
    fields.push(Arc::new(Field::new(ATOMS, mask.clone(), false)));
    arrays.push(match mask {
        ArrowType::UInt8 => Arc::new(UInt8Array::from_iter_values(masks.into_iter().map(|mask| mask as u8))),
        _ => Arc::new(UInt64Array::from(masks)),
    });
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(fail)
}

/// The bit of each use of a table in the mask of a row: which of the uses want the row in the cell
/// that it is sent to.
pub(crate) struct RouteBits(Vec<u64>);

/// Where a use sends rows: its coordinates, and its own shares.
type Way<'a> = (&'a [Option<Expression>], Option<&'a [u64]>);

impl RouteBits {
    /// Each use has its own bit if there are enough. Otherwise only those of a table that are sent
    /// to different cells: uses that are sent alike may share one, as each looks at its own filter
    /// again.
    pub fn new(plan: &Plan) -> Result<RouteBits> {
        let Some(routing) = plan.routing.as_ref().filter(|routing| routing.routes.len() > 64) else {
            return Ok(RouteBits((0..64).map(|number| 1 << number).collect()));
        };
        let mut known: HashMap<&str, Vec<Way>> = HashMap::new();
        let mut bits = Vec::with_capacity(routing.routes.len());
        for route in &routing.routes {
            let source = find_atom(plan, route).map_or("", |atom| atom.source.as_str());
            let sent = known.entry(source).or_default();
            let way: Way = (&route.coordinates, route.shares.as_deref());
            let number = sent.iter().position(|other| *other == way).unwrap_or_else(|| {
                sent.push(way);
                sent.len() - 1
            });
            bits.push(1u64.checked_shl(number as u32).ok_or_else(|| {
                let message = format!("the query sends the rows of table '{source}' to its cells in more than 64 ways");
                KernelError::plan("CROWN-PLAN-TOO-MANY-TABLES", message)
            })?);
        }
        Ok(RouteBits(bits))
    }

    /// The bit of a use by its number among all. Without cells there are no masks, and any bit
    /// does.
    pub fn of(&self, number: usize) -> u64 {
        self.0.get(number).copied().unwrap_or(1 << 63)
    }

    fn most(&self, uses: usize) -> u64 {
        (0..uses).map(|number| self.of(number)).max().unwrap_or(0)
    }
}

fn find_atom<'a>(plan: &'a Plan, route: &plan::Route) -> Option<&'a plan::Atom> {
    plan.stages.iter().find_map(|stage| match stage {
        plan::Stage::Tree(tree) if tree.id == route.stage => tree.atoms.get(route.atom),
        plan::Stage::Bag(bag) if bag.id == route.stage => bag.atoms.get(route.atom),
        _ => None,
    })
}

fn reads_only(expression: &Expression, allowed: &impl Fn(&str) -> bool) -> bool {
    match expression {
        Expression::Column { name, .. } => allowed(name),
        Expression::Literal { .. } => true,
        Expression::Call { arguments, .. } => arguments.iter().all(|argument| reads_only(argument, allowed)),
    }
}
