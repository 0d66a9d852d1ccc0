/* ${title}
 * Written by rankwood ${version}.
 * Model (SHA-256 of what decides its scores): ${fingerprint}
 */
#ifndef ${guard}
#define ${guard}

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ${NAME}_N_FEATURES ${n_features}
#define ${NAME}_N_TREES ${n_trees}

/* Score of one row: an array of ${n_features} features. A missing value is NaN. */
double ${name}_score(const float *row);

/* Scores of n_rows rows, of which each starts stride elements after the one before. Floats and doubles are compared
 * with the model's thresholds exactly. Sums are made in double, or with single != 0 as rankwood's precision="single"
 * does. Returns 0, or -1 when there is no memory for a converted copy of some rows. */
int ${name}_score_f32(const float *rows, size_t n_rows, size_t stride, int single, double *scores);
int ${name}_score_f64(const double *rows, size_t n_rows, size_t stride, int single, double *scores);

/* The same scores, one row after the other: a row passes all trees before the next one, whose address depends on its
 * score, is begun. So the time of a call over n_rows is that from one row to its score. */
int ${name}_score_alone_f32(const float *rows, size_t n_rows, size_t stride, int single, double *scores);
int ${name}_score_alone_f64(const double *rows, size_t n_rows, size_t stride, int single, double *scores);

/* Number of the leaf that each row reaches in each tree: n_rows x ${n_trees} entries, row after row. Returns as above. */
int ${name}_leaves_f32(const float *rows, size_t n_rows, size_t stride, int32_t *leaves);
int ${name}_leaves_f64(const double *rows, size_t n_rows, size_t stride, int32_t *leaves);

/* 0 when scores and leaves of some built-in rows are what they must be, bit for bit; else the number of the first row
 * that is wrong, counted from 1, or -1 when there is no memory. */
int ${name}_self_test(void);

/* Which model, written by which version, and how it was compiled. */
extern const char ${name}_info[];

#ifdef __cplusplus
}
#endif

#endif
