/* Counts calls of malloc and its kin while rows are scored: there must be none. Needs glibc.
 *
 *   allocations MODEL MAX_QUERY_ROWS
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rankwood.h"

void* __libc_malloc(size_t n);
void* __libc_calloc(size_t n, size_t size);
void* __libc_realloc(void* memory, size_t n);
void* __libc_memalign(size_t alignment, size_t n);
void __libc_free(void* memory);

static volatile long n_calls;

void* malloc(size_t n) { return ++n_calls, __libc_malloc(n); }
void* calloc(size_t n, size_t size) { return ++n_calls, __libc_calloc(n, size); }
void* realloc(void* memory, size_t n) { return ++n_calls, __libc_realloc(memory, n); }
void* memalign(size_t alignment, size_t n) { return ++n_calls, __libc_memalign(alignment, n); }
void* aligned_alloc(size_t alignment, size_t n) { return ++n_calls, __libc_memalign(alignment, n); }
int posix_memalign(void** out, size_t alignment, size_t n) {
  ++n_calls;
  *out = __libc_memalign(alignment, n);
  return *out == NULL ? ENOMEM : 0;
}
void free(void* memory) {
  ++n_calls;
  __libc_free(memory);
}

int main(int argc, char** argv) {
  enum { n_rows = 700 };
  rw_model* model;
  rw_workspace* workspace;
  rw_batch batch;
  char message[256];
  size_t n_features, max_query_rows, n, i;
  double *values, scores[n_rows];
  float* singles;
  int32_t trees[n_rows];
  int64_t offsets[2] = {0, 0};
  long before;
  if (argc != 3) return 2;
  before = n_calls;
  if (rw_load(argv[1], &model, message, sizeof message) != RW_OK) return 3;
  if (n_calls - before < 10) return 4; /* calls of the library are not counted: nothing would be shown */
  max_query_rows = (size_t)atoi(argv[2]);
  if (rw_workspace_new(model, max_query_rows, &workspace) != RW_OK) return 5;
  n_features = rw_n_features(model);
  values = malloc(n_rows * n_features * sizeof *values);
  singles = malloc(n_rows * n_features * sizeof *singles);
  if (values == NULL || singles == NULL) return 1;
  srand(1);
  for (i = 0; i < n_rows * n_features; ++i) singles[i] = (float)(values[i] = rand() / (double)RAND_MAX * 6 - 3);

  before = n_calls;
  for (n = 0; n <= n_rows; n += n < 20 ? 1 : 67) {
    int kind;
    for (kind = 0; kind < 16; ++kind) {
      memset(&batch, 0, sizeof batch);
      batch.size = sizeof batch;
      batch.type = kind & 1 ? RW_FLOAT64 : RW_FLOAT32;
      batch.flags = kind & 2 ? RW_SINGLE_PRECISION : 0;
      batch.values = kind & 1 ? (const void*)values : (const void*)singles;
      batch.n_rows = n;
      batch.n_features = n_features;
      batch.row_stride = kind & 4 ? 1 : (ptrdiff_t)n_features;
      batch.feature_stride = kind & 4 ? (ptrdiff_t)n_rows : 1;
      batch.scores = scores;
      batch.trees = trees;
      if (kind & 8 && n <= max_query_rows) {
        offsets[1] = (int64_t)n;
        batch.query_offsets = offsets;
        batch.n_queries = 1;
      }
      if (rw_score(model, &batch, workspace) != RW_OK) return 6;
    }
    if (rw_score_f32(model, singles, n, n_features, scores, workspace) != RW_OK) return 7;
  }
  printf("%ld\n", n_calls - before);
  free(values);
  free(singles);
  rw_workspace_free(workspace);
  rw_free(model);
  return 0;
}
