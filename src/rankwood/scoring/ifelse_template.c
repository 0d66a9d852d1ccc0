/* ${title}
 * Written by rankwood ${version}.
 * Model (SHA-256 of what decides its scores): ${fingerprint}
 *
 * C99 without dependencies; ${header} says how to call it. Compile it like this (-O2 takes twice as long to compile and
 * scores no faster; -ffast-math would lose missing values):
 *     cc -std=c99 -O1 -c ${file}
 * Scores are those of rankwood, bit for bit, and ${name}_self_test() tells whether they are: leaf values carry the
 * weights of their trees, so that no multiplication could be fused with an addition, and sums have one order.
${features} */
#include "${header}"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "-ffast-math loses missing and infinite values"
#endif

typedef ${real} real;   /* what trees compare */
typedef ${other} other; /* rows of this type are converted */

const char ${name}_info[] = "${info}";

${trees}
enum {
  GROUP = ${group},   /* trees of a function, and of a sum in single precision */
  BLOCK = 2048, /* rows that pass through a group's code while it is near */
  COPIES = ${copies}, /* rows that are converted at a time */
  TESTS = ${n_tests}
};

static const size_t n_features = ${n_features}, n_trees = ${n_trees}, n_used = ${n_used}, n_tested = ${n_tested};
static const double base = ${base};
static const int fits_single = ${fits_single}; /* whether float holds the leaf values */

/* Leaf values times the weights of their trees, and where those of each tree start. */
static const double value[] = ${values};
static const int32_t first_leaf[] = ${first_leaf};

typedef void group_function(const real *x, int32_t *leaf);
static group_function *const groups[] = ${groups};

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

static void score_block(const real *rows, size_t n_rows, size_t stride, int single, double *scores) {
  for (size_t i = 0; i < n_rows; ++i) scores[i] = base;
  for (size_t tree = 0; tree < n_trees; tree += GROUP) {
    const size_t n = smaller(GROUP, n_trees - tree);
    const int32_t *first = first_leaf + tree;
    for (size_t i = 0; i < n_rows; ++i) {
      int32_t leaf[GROUP];
      groups[tree / GROUP](rows + i * stride, leaf);
      if (single && fits_single) {
        float sum = 0.0f;
        for (size_t t = 0; t < n; ++t) sum += (float)value[first[t] + leaf[t]];
        scores[i] += (double)sum;
      } else {
        double sum = scores[i];
        for (size_t t = 0; t < n; ++t) sum += value[first[t] + leaf[t]];
        scores[i] = sum;
      }
    }
  }
}

static void find_leaves(const real *rows, size_t n_rows, size_t stride, int32_t *leaves) {
  for (size_t tree = 0; tree < n_trees; tree += GROUP) {
    for (size_t i = 0; i < n_rows; ++i) groups[tree / GROUP](rows + i * stride, leaves + i * n_trees + tree);
  }
}

/* Always 0, which the compiler cannot know. */
static const volatile uint64_t nothing = 0;

/* 0, known no sooner than the score: added to the address of the next row, it keeps a processor from starting early. */
static size_t offset_after(const double *score) {
  uint64_t bits;
  memcpy(&bits, score, sizeof bits);
  return (size_t)(bits & nothing);
}

int ${name}_score_${real_suffix}(const real *rows, size_t n_rows, size_t stride, int single, double *scores) {
  for (size_t i = 0; i < n_rows; i += BLOCK) {
    score_block(rows + i * stride, smaller(BLOCK, n_rows - i), stride, single, scores + i);
  }
  return 0;
}

int ${name}_score_alone_${real_suffix}(const real *rows, size_t n_rows, size_t stride, int single, double *scores) {
  size_t offset = 0;
  for (size_t i = 0; i < n_rows; ++i) {
    score_block(rows + i * stride + offset, 1, stride, single, scores + i);
    offset = offset_after(scores + i);
  }
  return 0;
}

int ${name}_leaves_${real_suffix}(const real *rows, size_t n_rows, size_t stride, int32_t *leaves) {
  for (size_t i = 0; i < n_rows; i += BLOCK) {
    find_leaves(rows + i * stride, smaller(BLOCK, n_rows - i), stride, leaves + i * n_trees);
  }
  return 0;
}

/* Features that trees look at. */
static const int32_t used[] = ${used};

${convert}
static real *new_copy(size_t n_rows) { return malloc((smaller(COPIES, n_rows) * n_features + 1) * sizeof(real)); }

static void copy_rows(const other *rows, size_t n_rows, size_t stride, real *copy) {
  for (size_t i = 0; i < n_rows; ++i) {
    for (size_t u = 0; u < n_used; ++u) copy[i * n_features + used[u]] = convert(rows[i * stride + used[u]], u);
  }
}

int ${name}_score_${other_suffix}(const other *rows, size_t n_rows, size_t stride, int single, double *scores) {
  real *copy = new_copy(n_rows);
  if (copy == NULL) return -1;
  for (size_t i = 0; i < n_rows; i += COPIES) {
    const size_t n = smaller(COPIES, n_rows - i);
    copy_rows(rows + i * stride, n, stride, copy);
    score_block(copy, n, n_features, single, scores + i);
  }
  free(copy);
  return 0;
}

int ${name}_score_alone_${other_suffix}(const other *rows, size_t n_rows, size_t stride, int single, double *scores) {
  real *copy = new_copy(1);
  size_t offset = 0;
  if (copy == NULL) return -1;
  for (size_t i = 0; i < n_rows; ++i) {
    copy_rows(rows + i * stride + offset, 1, stride, copy);
    score_block(copy, 1, n_features, single, scores + i);
    offset = offset_after(scores + i);
  }
  free(copy);
  return 0;
}

int ${name}_leaves_${other_suffix}(const other *rows, size_t n_rows, size_t stride, int32_t *leaves) {
  real *copy = new_copy(n_rows);
  if (copy == NULL) return -1;
  for (size_t i = 0; i < n_rows; i += COPIES) {
    const size_t n = smaller(COPIES, n_rows - i);
    copy_rows(rows + i * stride, n, stride, copy);
    find_leaves(copy, n, n_features, leaves + i * n_trees);
  }
  free(copy);
  return 0;
}

double ${name}_score(const float *row) {
  double score;
  return ${name}_score_f32(row, 1, n_features, 0, &score) == 0 ? score : NAN;
}

/* Rows on thresholds, one step beside them, and with missing values; features that are not listed are 0. */
static const int32_t tested[] = ${tested};
static const float test_f32[] = ${test_f32};
static const double test_f64[] = ${test_f64};
/* For each row: the score of its floats in double and in single precision, that of its doubles in both. */
static const double expected_scores[] = ${expected_scores};
/* For each row: the leaves of its floats and those of its doubles, mixed. */
static const uint32_t expected_leaves[] = ${expected_leaves};

static uint32_t mix(const int32_t *leaves) {
  uint32_t mixed = 0;
  for (size_t t = 0; t < n_trees; ++t) mixed = mixed * 31 + (uint32_t)leaves[t];
  return mixed;
}

static int test_row(size_t test, float *floats, double *doubles, int32_t *leaves) {
  double scores[4];
  uint32_t mixed[2];
  for (size_t k = 0; k < n_tested; ++k) {
    floats[tested[k]] = test_f32[test * n_tested + k];
    doubles[tested[k]] = test_f64[test * n_tested + k];
  }
  for (int single = 0; single < 2; ++single) {
    if (${name}_score_f32(floats, 1, n_features, single, scores + single) != 0) return -1;
    if (${name}_score_f64(doubles, 1, n_features, single, scores + 2 + single) != 0) return -1;
  }
  if (${name}_leaves_f32(floats, 1, n_features, leaves) != 0) return -1;
  mixed[0] = mix(leaves);
  if (${name}_leaves_f64(doubles, 1, n_features, leaves) != 0) return -1;
  mixed[1] = mix(leaves);
  return memcmp(scores, expected_scores + test * 4, sizeof scores) != 0 ||
         memcmp(mixed, expected_leaves + test * 2, sizeof mixed) != 0;
}

int ${name}_self_test(void) {
  float *floats = calloc(n_features + 1, sizeof *floats);
  double *doubles = calloc(n_features + 1, sizeof *doubles);
  int32_t *leaves = calloc(n_trees + 1, sizeof *leaves);
  int result = floats == NULL || doubles == NULL || leaves == NULL ? -1 : 0;
  for (int test = 0; test < TESTS && result == 0; ++test) {
    result = test_row((size_t)test, floats, doubles, leaves);
    if (result > 0) result = test + 1;
  }
  free(floats);
  free(doubles);
  free(leaves);
  return result;
}
