//! Rows between stages: a signed multiset in columns.

/// One value: integers, floats (one NaN, no -0), dates, timestamps, booleans and decimals of up to
/// 18 digits inline; strings, binary and wider decimals as ids of the interner. NULLs are in a
/// mask.
pub type Word = u64;

/// The columns of a row that are NULL (see [`crate::mask`]); the word of such a column is 0.
pub type Nulls = crate::mask::Mask;

/// Rows with weights: `+n` for n inserted copies, `-n` for n deleted ones.
#[derive(Clone, Debug, Default)]
pub struct Chunk {
    /// The words of each column.
    pub columns: Vec<Vec<Word>>,
    /// One mask per row, or empty when no row has a NULL.
    pub nulls: Vec<Nulls>,
    /// The weight of each row: +n for n insertions, -n for n deletions.
    pub weights: Vec<i64>,
}

impl Chunk {
    /// An empty chunk.
    pub fn new(columns: usize) -> Self {
        Chunk { columns: vec![Vec::new(); columns], nulls: Vec::new(), weights: Vec::new() }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// The NULL mask of row `index`.
    pub fn nulls_at(&self, index: usize) -> Nulls {
        self.nulls.get(index).copied().unwrap_or(0)
    }

    /// Appends a row.
    pub fn push(&mut self, words: &[Word], nulls: Nulls, weight: i64) {
        for (column, word) in self.columns.iter_mut().zip(words) {
            column.push(*word);
        }
        if nulls != 0 && self.nulls.is_empty() {
            self.nulls.resize(self.weights.len(), 0);
        }
        if nulls != 0 || !self.nulls.is_empty() {
            self.nulls.push(nulls);
        }
        self.weights.push(weight);
    }

    /// Copies row `index` into `words` and returns its NULL mask.
    pub fn read(&self, index: usize, words: &mut Vec<Word>) -> Nulls {
        words.clear();
        words.extend(self.columns.iter().map(|column| column[index]));
        self.nulls_at(index)
    }

    /// The words row after row.
    pub fn by_row(&self) -> Vec<Word> {
        let width = self.columns.len();
        let mut words = vec![0; width * self.len()];
        for (position, column) in self.columns.iter().enumerate() {
            for (index, word) in column.iter().enumerate() {
                words[index * width + position] = *word;
            }
        }
        words
    }

    /// Appends rows of the same width.
    pub fn append(&mut self, rows: &Chunk) {
        if !rows.nulls.is_empty() || !self.nulls.is_empty() {
            self.nulls.resize(self.len(), 0);
            self.nulls.extend((0..rows.len()).map(|index| rows.nulls_at(index)));
        }
        for (column, words) in self.columns.iter_mut().zip(&rows.columns) {
            column.extend_from_slice(words);
        }
        self.weights.extend_from_slice(&rows.weights);
    }

    /// Keeps the first `rows` rows.
    pub fn truncate(&mut self, rows: usize) {
        self.columns.iter_mut().for_each(|column| column.truncate(rows));
        self.nulls.truncate(rows);
        self.weights.truncate(rows);
    }

    /// Removes the first `rows` rows.
    pub fn drop_first(&mut self, rows: usize) {
        self.columns.iter_mut().for_each(|column| drop(column.drain(..rows)));
        self.nulls.drain(..rows.min(self.nulls.len()));
        self.weights.drain(..rows);
    }

    /// The rows with weights of one sign.
    pub fn of_sign(&self, sign: i64) -> Chunk {
        let mut found = Chunk::new(self.columns.len());
        let mut words = Vec::new();
        for index in (0..self.len()).filter(|index| self.weights[*index].signum() == sign) {
            let nulls = self.read(index, &mut words);
            found.push(&words, nulls, self.weights[index]);
        }
        found
    }

    /// Removes all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.columns.iter_mut().for_each(Vec::clear);
        self.nulls.clear();
        self.weights.clear();
    }
}
