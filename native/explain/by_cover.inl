// Contributions of features to the value of one tree, weighed by cover, compiled once per instruction set.
//
// A path with features j says: its value v counts with the product, over the features, of o_j (whether the document
// meets all conditions on j; 0 or 1) or of z_j (the share of training data that does), as j is known or not. Over all
// orders in which features may become known, feature i contributes
//
//   v (o_i - z_i) * integral over t in [0, 1] of the product over j != i of (t o_j + (1 - t) z_j)
//
// because the integral of t^k (1 - t)^(n - 1 - k) is k! (n - 1 - k)! / n!, the weight of Shapley. The integrand is a
// polynomial whose degree is one less than the number of features, so half as many points give it exactly; all terms
// are positive. One walk through the tree does it for several points: products of factors on the way down, sums over
// leaves on the way up, where the factor of i is divided out.

template <std::size_t kPoints>
static void cover_walk(const CoverTree& tree, std::size_t first_point, const CoverScratch& scratch,
                       double* contributions) {
  using V = VectorOf<double>;
  constexpr std::size_t kStep = kPoints * kExplainedRows;
  const std::size_t stride = tree.n_points * kCoverConstants;
  const double* const constants = tree.constants + first_point * kCoverConstants;
  for (std::size_t i = 0; i < kStep; ++i) scratch.products[i] = 1.0;
  for (std::size_t e = 0; e < tree.n_edges; ++e) {
    const ExplainedEdge& edge = tree.edges[e];
    const auto depth = static_cast<std::size_t>(edge.depth);
    double* const here = scratch.products + depth * kStep;
    double* const sums = scratch.sums + depth * kStep;
    const double* const c = constants + e * stride;
    scratch.open[depth] = static_cast<std::int32_t>(e);
    for (std::size_t row = 0; row < kExplainedRows; row += V::width) {
      const V::Counts met = V::load(scratch.met + e * kExplainedRows + row);
      V::Counts met_before{};
      if (edge.before >= 0) {
        met_before = V::load(scratch.met + static_cast<std::size_t>(edge.before) * kExplainedRows + row);
      }
      for (std::size_t p = 0; p < kPoints; ++p) {
        const double* const at = c + p * kCoverConstants;
        V::Scores factor = V::repeat(at[1]);
        if (edge.before >= 0) factor = V::select(met_before, factor, V::repeat(at[2]));
        factor = V::select(met, V::repeat(at[0]), factor);
        const std::size_t place = p * kExplainedRows + row;
        const V::Scores product = V::load(here - kStep + place) * factor;
        V::store(here + place, product);
        V::store(sums + place, edge.leaf < 0 ? V::repeat(0.0) : product * V::repeat(edge.value));
      }
    }
    for (std::size_t d = depth, end = depth - static_cast<std::size_t>(edge.n_closed); d > end; --d) {
      const auto number = static_cast<std::size_t>(scratch.open[d]);
      const ExplainedEdge& closed = tree.edges[number];
      const double* const own = constants + number * stride + 3;
      const double* const older =
          closed.before < 0 ? own : constants + static_cast<std::size_t>(closed.before) * stride + 3;
      double* const below = scratch.sums + d * kStep;
      double* const to = contributions + static_cast<std::size_t>(closed.feature) * kExplainedRows;
      for (std::size_t row = 0; row < kExplainedRows; row += V::width) {
        const V::Counts met = V::load(scratch.met + number * kExplainedRows + row);
        V::Counts met_before{};
        if (closed.before >= 0) {
          met_before = V::load(scratch.met + static_cast<std::size_t>(closed.before) * kExplainedRows + row);
        }
        V::Scores sum = V::load(to + row);
        for (std::size_t p = 0; p < kPoints; ++p) {
          const double* const at = own + p * kCoverConstants;
          V::Scores share = V::select(met, V::repeat(at[0]), V::repeat(at[1]));
          if (closed.before >= 0) {  // the edge above counts these leaves with the conditions down to there: not so
            const double* const old = older + p * kCoverConstants;
            share = share - V::select(met_before, V::repeat(old[0]), V::repeat(old[1]));
          }
          const std::size_t place = p * kExplainedRows + row;
          const V::Scores leaves = V::load(below + place);
          sum = sum + leaves * share;
          if (d > 1) V::store(below - kStep + place, V::load(below - kStep + place) + leaves);
        }
        V::store(to + row, sum);
      }
    }
  }
}

// Whether each of some documents goes left at a split: -1 or 0.
static void goes_left(const ExplainedNode& node, const double* x, std::int64_t* left) {
  using V = VectorOf<double>;
  const V::Counts missing_left = V::repeat(static_cast<std::int64_t>(node.missing_left));
  for (std::size_t row = 0; row < kExplainedRows; row += V::width) {
    const V::Scores value = V::load(x + row);
    const V::Counts known = V::ordered(value), above = V::less(V::repeat(node.threshold), value);
    V::store(left + row, (known & ~above) | (~known & missing_left));
  }
  if (node.n_further == 0) return;
  for (std::size_t row = 0; row < kExplainedRows; ++row) {
    if (!(x[row] > node.threshold)) continue;
    std::size_t low = 0, high = node.n_further;  // how many of the further thresholds lie below x
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (node.further[middle] < x[row]) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    left[row] = low % 2 == 1 ? -1 : 0;
  }
}

// Add the contributions of a tree to those of kExplainedRows documents.
//   IN  x              used features x documents
//   IO  contributions  used features x documents
static void explain_by_cover(const CoverTree& tree, const double* x, const CoverScratch& scratch,
                             double* contributions) noexcept {
  using V = VectorOf<double>;
  for (std::size_t i = 0; i < tree.n_nodes; ++i) {
    const ExplainedNode& node = tree.nodes[i];
    goes_left(node, x + static_cast<std::size_t>(node.feature) * kExplainedRows, scratch.left + i * kExplainedRows);
  }
  for (std::size_t e = 0; e < tree.n_edges; ++e) {
    const ExplainedEdge& edge = tree.edges[e];
    const V::Counts side = V::repeat(edge.is_left != 0 ? std::int64_t{0} : std::int64_t{-1});
    for (std::size_t row = 0; row < kExplainedRows; row += V::width) {
      V::Counts met = V::load(scratch.left + static_cast<std::size_t>(edge.node) * kExplainedRows + row) ^ side;
      if (edge.before >= 0) {
        met = met & V::load(scratch.met + static_cast<std::size_t>(edge.before) * kExplainedRows + row);
      }
      V::store(scratch.met + e * kExplainedRows + row, met);
    }
  }
  for (std::size_t first = 0; first < tree.n_points;) {
    const std::size_t left = tree.n_points - first;
    const std::size_t n_walks = (left + kCoverPoints - 1) / kCoverPoints, n = (left + n_walks - 1) / n_walks;
    if (n == 1) cover_walk<1>(tree, first, scratch, contributions);
    if (n == 2) cover_walk<2>(tree, first, scratch, contributions);
    if (n == 3) cover_walk<3>(tree, first, scratch, contributions);
    if (n == 4) cover_walk<4>(tree, first, scratch, contributions);
    first += n;
  }
}
