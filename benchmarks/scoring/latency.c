/* Times queries scored from C, for benchmarks/latency.py:
 *
 *   latency TOOL MODEL ROWS N_FEATURES SCORES             writes the scores of all rows, in queries of 100
 *   latency TOOL MODEL ROWS N_FEATURES TIMES N_DOCUMENTS N_THREADS SECONDS
 *
 * TOOL is "rankwood", or the path of lib_lightgbm with ":matrix" or ":row" behind it. ROWS holds float32, SCORES gets
 * float64, TIMES the nanoseconds of every call in float64. Prints the calls per second of all threads and the CPU time
 * over wall-clock time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <rankwood.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FLOAT32 = 0, ROW_MAJOR = 1, RAW_SCORE = 1, ALL_TREES = -1, MAX_CALLS = 4000000 };
static const char kOneThread[] = "num_threads=1";

/* LightGBM's interface in C, as far as it is used. */
static int (*booster_load)(const char*, int*, void**);
static int (*predict_matrix)(void*, const void*, int, int32_t, int32_t, int, int, int, int, const char*, int64_t*,
                             double*);
static int (*predict_row_prepare)(void*, int, int, int, int, int32_t, const char*, void**);
static int (*predict_row)(void*, const void*, int64_t*, double*);

static enum { RANKWOOD, MATRIX, ROW } tool;
static rw_model* model;
static void* booster;
static float* rows;
static size_t n_rows, n_features;

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static void* symbol(void* library, const char* name) {
  void* found = dlsym(library, name);
  require(found != NULL, name);
  return found;
}

static void load(char* name, const char* path) {
  if (!strcmp(name, "rankwood")) {
    char message[1024];
    require(rw_load(path, &model, message, sizeof message) == RW_OK, message);
    return;
  }
  char* kind = strrchr(name, ':');
  require(kind != NULL, "the path of lib_lightgbm ends with :matrix or :row");
  *kind++ = 0;
  tool = !strcmp(kind, "row") ? ROW : MATRIX;
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  require(library != NULL, "lib_lightgbm cannot be loaded");
  *(void**)&booster_load = symbol(library, "LGBM_BoosterCreateFromModelfile");
  *(void**)&predict_matrix = symbol(library, "LGBM_BoosterPredictForMat");
  *(void**)&predict_row_prepare = symbol(library, "LGBM_BoosterPredictForMatSingleRowFastInit");
  *(void**)&predict_row = symbol(library, "LGBM_BoosterPredictForMatSingleRowFast");
  int iterations;
  require(!booster_load(path, &iterations, &booster), "LightGBM cannot read the model");
}

/* What a thread needs to score: a workspace of rankwood, or a prepared row of LightGBM. */
static void* prepare(void) {
  void* made = NULL;
  if (tool == RANKWOOD) require(rw_workspace_new(model, 0, (rw_workspace**)&made) == RW_OK, "no workspace");
  if (tool == ROW) {
    require(!predict_row_prepare(booster, RAW_SCORE, 0, ALL_TREES, FLOAT32, (int32_t)n_features, kOneThread, &made),
            "LightGBM prepares no row");
  }
  return made;
}

static void score(const float* first, size_t n, double* scores, void* prepared) {
  int64_t length;
  int failed = 0;
  if (tool == RANKWOOD) {
    failed = rw_score_f32(model, first, n, n_features, scores, prepared);
  } else if (tool == MATRIX) {
    failed = predict_matrix(booster, first, FLOAT32, (int32_t)n, (int32_t)n_features, ROW_MAJOR, RAW_SCORE, 0,
                            ALL_TREES, kOneThread, &length, scores);
  } else {
    for (size_t row = 0; row < n; ++row)
      failed |= predict_row(prepared, first + row * n_features, &length, scores + row);
  }
  require(!failed, "scoring failed");
}

static double now(clockid_t clock) {
  struct timespec at;
  clock_gettime(clock, &at);
  return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

typedef struct Worker {
  pthread_t thread;
  size_t n_documents, first, n_calls;
  double seconds, *times, *scores;
  void* prepared;
} Worker;

static pthread_barrier_t barrier;

static void* work(void* argument) {
  Worker* own = argument;
  const size_t n_queries = n_rows / own->n_documents;
  for (size_t query = 0; query < 20 && query < n_queries; ++query) {
    score(rows + query * own->n_documents * n_features, own->n_documents, own->scores, own->prepared);
  }
  pthread_barrier_wait(&barrier);
  const double end = now(CLOCK_MONOTONIC) + own->seconds * 1e9;
  for (double start = 0; start < end && own->n_calls < MAX_CALLS; ++own->n_calls) {
    const size_t query = (own->first + own->n_calls) % n_queries;
    start = now(CLOCK_MONOTONIC);
    score(rows + query * own->n_documents * n_features, own->n_documents, own->scores, own->prepared);
    own->times[own->n_calls] = now(CLOCK_MONOTONIC) - start;
  }
  return NULL;
}

static void time_calls(const char* path, size_t n_documents, size_t n_threads, double seconds) {
  Worker* workers = calloc(n_threads, sizeof(Worker));
  pthread_barrier_init(&barrier, NULL, (unsigned)n_threads + 1);
  for (size_t i = 0; i < n_threads; ++i) {
    workers[i] = (Worker){.n_documents = n_documents, .first = i * (n_rows / n_documents) / n_threads};
    workers[i].seconds = seconds;
    workers[i].times = malloc(MAX_CALLS * sizeof(double)); /* pages are given out as they are written */
    workers[i].scores = malloc(n_documents * sizeof(double));
    workers[i].prepared = prepare();
    pthread_create(&workers[i].thread, NULL, work, &workers[i]);
  }
  pthread_barrier_wait(&barrier);
  const double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
  FILE* file = fopen(path, "wb");
  require(file != NULL, path);
  size_t n_calls = 0;
  for (size_t i = 0; i < n_threads; ++i) pthread_join(workers[i].thread, NULL);
  const double elapsed = now(CLOCK_MONOTONIC) - wall;
  const double share = (now(CLOCK_PROCESS_CPUTIME_ID) - cpu) / elapsed;
  for (size_t i = 0; i < n_threads; ++i) {
    fwrite(workers[i].times, sizeof(double), workers[i].n_calls, file);
    n_calls += workers[i].n_calls;
  }
  require(!fclose(file), "times cannot be written");
  printf("%.6g %.6g\n", 1e9 * (double)n_calls / elapsed, share);
}

static void write_scores(const char* path) {
  void* prepared = prepare();
  double* scores = malloc(n_rows * sizeof(double));
  for (size_t row = 0; row < n_rows; row += 100) {
    score(rows + row * n_features, n_rows - row < 100 ? n_rows - row : 100, scores + row, prepared);
  }
  FILE* file = fopen(path, "wb");
  require(file && fwrite(scores, sizeof(double), n_rows, file) == n_rows && !fclose(file), path);
}

int main(int argc, char** argv) {
  require(argc == 6 || argc == 9, "usage: see the top of the source");
  n_features = strtoul(argv[4], NULL, 10);
  FILE* file = fopen(argv[3], "rb");
  require(file != NULL, argv[3]);
  fseek(file, 0, SEEK_END);
  const size_t n_bytes = (size_t)ftell(file);
  rewind(file);
  rows = malloc(n_bytes);
  require(rows && fread(rows, 1, n_bytes, file) == n_bytes, argv[3]);
  n_rows = n_bytes / sizeof(float) / n_features;
  load(argv[1], argv[2]);
  if (argc == 6) {
    write_scores(argv[5]);
  } else {
    time_calls(argv[5], strtoul(argv[6], NULL, 10), strtoul(argv[7], NULL, 10), strtod(argv[8], NULL));
  }
  return 0;
}
