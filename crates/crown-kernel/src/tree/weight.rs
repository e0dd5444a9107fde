//! The annotation of a row: its multiplicity and factors times the sums of its children that are not connex (paper, equation 5).
//!
//! It is never stored: it is a product of a few numbers that are at hand wherever it is needed.

use super::ring::Value;
use super::Tree;

impl Tree {
    /// Writes w_s of a row of the semi-join view to `out`, one value per component; tells whether a product overflowed.
    ///
    /// `instead` gives one child edge's sums as they were before the update, `multiplicity` overrides the row's own.
    pub(super) fn weight(
        &self,
        node: usize,
        row: u32,
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
        for child in shape.children.iter().filter(|child| self.shape.nodes[**child].annotated) {
            let entry = self.rows[node].link(row, self.shape.nodes[*child].link_in_parent);
            let sums = match instead {
                Some((edge, sums)) if edge == *child => sums,
                _ => self.edges[*child].values(entry),
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
