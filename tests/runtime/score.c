/* Scores rows with a model from many threads at once, in batches of every size, and writes the scores.
 *
 *   score MODEL f32|f64 double|single N_THREADS MAX_BATCH < rows, as they lie in memory > scores
 *
 * Thread t begins with batches of t + 1 rows, then one row more each time; past MAX_BATCH rows it begins again with 1.
 * So every thread scores every row, in other company. Scores must be the same bits in all of them: exit status 9 if
 * not.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rankwood.h"

typedef struct job {
  const rw_model* model;
  const char* rows;
  size_t n_rows, row_bytes, first_batch, max_batch;
  uint32_t type, flags;
  double* scores;
  int status;
} job;

static void* score_all(void* argument) {
  job* const mine = argument;
  rw_workspace* workspace;
  size_t at, n, batch_rows = mine->first_batch;
  mine->status = rw_workspace_new(mine->model, 0, &workspace);
  for (at = 0; mine->status == RW_OK && at < mine->n_rows; at += n) {
    rw_batch batch;
    memset(&batch, 0, sizeof batch);
    n = batch_rows < mine->n_rows - at ? batch_rows : mine->n_rows - at;
    batch.size = sizeof batch;
    batch.type = mine->type;
    batch.flags = mine->flags;
    batch.values = mine->rows + at * mine->row_bytes;
    batch.n_rows = n;
    batch.n_features = rw_n_features(mine->model);
    batch.row_stride = (ptrdiff_t)batch.n_features;
    batch.feature_stride = 1;
    batch.scores = mine->scores + at;
    mine->status = rw_score(mine->model, &batch, workspace);
    batch_rows = batch_rows % mine->max_batch + 1;
  }
  rw_workspace_free(workspace);
  return NULL;
}

/* The standard input; exits when there is no memory. */
static char* read_all(size_t* n) {
  size_t room = 1 << 16, got;
  char* bytes = malloc(room);
  for (*n = 0; bytes != NULL && (got = fread(bytes + *n, 1, room - *n, stdin)) > 0;) {
    *n += got;
    if (*n == room) bytes = realloc(bytes, room *= 2);
  }
  if (bytes == NULL) exit(1);
  return bytes;
}

int main(int argc, char** argv) {
  rw_model* model;
  char message[256];
  size_t n_bytes, n_rows, row_bytes, n_threads, t;
  char* rows;
  job* jobs;
  pthread_t* threads;
  if (argc != 6) return 2;
  if (rw_load(argv[1], &model, message, sizeof message) != RW_OK) {
    fprintf(stderr, "%s\n", message);
    return 3;
  }
  rows = read_all(&n_bytes);
  row_bytes = rw_n_features(model) * (strcmp(argv[2], "f32") == 0 ? sizeof(float) : sizeof(double));
  n_rows = n_bytes / row_bytes;
  n_threads = (size_t)atoi(argv[4]);
  jobs = calloc(n_threads, sizeof *jobs);
  threads = calloc(n_threads, sizeof *threads);
  if (jobs == NULL || threads == NULL) return 1;
  for (t = 0; t < n_threads; ++t) {
    jobs[t].model = model;
    jobs[t].rows = rows;
    jobs[t].n_rows = n_rows;
    jobs[t].row_bytes = row_bytes;
    jobs[t].max_batch = (size_t)atoi(argv[5]);
    jobs[t].first_batch = t % jobs[t].max_batch + 1;
    jobs[t].type = strcmp(argv[2], "f32") == 0 ? RW_FLOAT32 : RW_FLOAT64;
    jobs[t].flags = strcmp(argv[3], "single") == 0 ? RW_SINGLE_PRECISION : 0;
    jobs[t].scores = malloc((n_rows + 1) * sizeof(double));
    if (jobs[t].scores == NULL) return 1;
    if (pthread_create(&threads[t], NULL, score_all, &jobs[t]) != 0) return 4;
  }
  for (t = 0; t < n_threads; ++t) {
    if (pthread_join(threads[t], NULL) != 0 || jobs[t].status != RW_OK) return 5;
  }
  for (t = 0; t < n_threads; ++t) {
    if (memcmp(jobs[0].scores, jobs[t].scores, n_rows * sizeof(double)) != 0) return 9;
  }
  if (fwrite(jobs[0].scores, sizeof(double), n_rows, stdout) != n_rows) return 1;
  for (t = 0; t < n_threads; ++t) free(jobs[t].scores);
  free(jobs);
  free(threads);
  free(rows);
  rw_free(model);
  return 0;
}
