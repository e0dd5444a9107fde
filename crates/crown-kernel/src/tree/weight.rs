//! The annotation of a row: its multiplicity and factors times the sums of its children that are
//! not connex (paper, equation 5).
//!
//! It is never stored, because it is a product of a few numbers that are available wherever it is
//! needed.

use super::id::RowId;
use super::ring::Value;
use super::Tree;

impl Tree {
    /// Writes w_s of a row of the semi-join view to `out`, one value per component; returns whether
    /// a product overflowed.
    ///
    /// `instead` gives one child edge's sums as they were before the update, `multiplicity`
    /// overrides the row's own.
    #[inline]
    pub(super) fn weight(
        &self,
        node: usize,
        row: RowId,
        multiplicity: u64,
        instead: Option<(usize, &[Value])>,
        out: &mut Vec<Value>,
    ) -> bool {
        if instead.is_none() {
            if let Some(product) = self.small_product(node, row, multiplicity, usize::MAX) {
                out.push(Value::from(product));
                return false;
            }
        }
        self.any_weight(node, row, multiplicity, instead, out)
    }

    /// The annotations of a row before and after the sums of its child edge `changed` were other
    /// than `old_sums`.
    #[inline]
    pub(super) fn weight_pair(
        &self,
        node: usize,
        row: RowId,
        changed: usize,
        old_sums: &[Value],
        out: &mut Vec<Value>,
    ) -> bool {
        let multiplicity = self.rows[node].multiplicity(row);
        if let Some(others) = self.small_product(node, row, multiplicity, changed) {
            let entry = self.rows[node].entry(row, self.shape.nodes[changed].link_in_parent);
            let new = self.edges[changed].values(entry)[0];
            if let (Ok(old), Ok(new)) = (i64::try_from(old_sums[0]), i64::try_from(new)) {
                let others = Value::from(others);
                out.extend([others * Value::from(old), others * Value::from(new)]);
                return false;
            }
        }
        self.any_weight(node, row, multiplicity, Some((changed, old_sums)), out)
            | self.any_weight(node, row, multiplicity, None, out)
    }

    /// The annotation of a row without the child `left_out`, when it is one exact component without
    /// factors and all numbers on the way are small: nearly always.
    #[inline(always)]
    fn small_product(&self, node: usize, row: RowId, multiplicity: u64, left_out: usize) -> Option<i64> {
        let shape = &self.shape.nodes[node];
        if !self.shape.one_exact_component || !shape.factors.is_empty() {
            return None;
        }
        let mut product = i64::try_from(multiplicity).ok()?;
        for below in shape.below.iter().filter(|below| below.annotated && below.child != left_out) {
            let sum = self.edges[below.child].values(self.rows[node].entry(row, below.link))[0];
            product = product.checked_mul(i64::try_from(sum).ok()?)?;
        }
        Some(product)
    }

    fn any_weight(
        &self,
        node: usize,
        row: RowId,
        multiplicity: u64,
        instead: Option<(usize, &[Value])>,
        out: &mut Vec<Value>,
    ) -> bool {
        let shape = &self.shape.nodes[node];
        let start = out.len();
        let mut overflowed = false;
        for component in &self.shape.components {
            out.push(component.of_count(multiplicity));
        }
        if !shape.weighted {
            return false;
        }
        let values = &mut out[start..];
        for ((component, _), factor) in shape.factors.iter().zip(self.rows[node].factors(row)) {
            let (product, over) = self.shape.components[*component].multiply(values[*component], *factor);
            values[*component] = product;
            overflowed |= over;
        }
        for below in shape.below.iter().filter(|below| below.annotated) {
            let entry = self.rows[node].entry(row, below.link);
            let sums = match instead {
                Some((edge, sums)) if edge == below.child => sums,
                _ => self.edges[below.child].values(entry),
            };
            for ((value, slot), component) in values.iter_mut().zip(&self.shape.slots).zip(&self.shape.components) {
                let (product, over) = component.multiply(*value, component.total(&sums[*slot..]));
                *value = product;
                overflowed |= over;
            }
        }
        overflowed
    }

    /// Whether every row of the node has annotation 1.
    #[inline(always)]
    pub(super) fn is_unit(&self, node: usize) -> bool {
        !self.shape.nodes[node].weighted && self.rows[node].is_plain()
    }
}
