/* Re-rank the candidates of a query.
 *
 *   cc -std=c99 -O2 example.c -I. -L. -lrankwood -Wl,-rpath,'$ORIGIN' -o example
 *   ./example model.rw < candidates.txt
 *
 * Standard input holds the features of one candidate after another, separated by blanks or new lines; a missing value
 * is nan. Candidates come out best first: their number, counted from 0, and their score.
 */
#include <stdio.h>
#include <stdlib.h>

#include "rankwood.h"

typedef struct candidate {
  size_t number;
  double score;
} candidate;

static int best_first(const void* a, const void* b) {
  const candidate *one = a, *other = b;
  if (one->score != other->score) return one->score > other->score ? -1 : 1;
  return one->number < other->number ? -1 : 1;
}

/* All numbers of the standard input; exits when there is no memory. */
static float* read_numbers(size_t* n) {
  size_t room = 1024;
  float value, *values = malloc(room * sizeof *values);
  for (*n = 0; values != NULL && scanf("%f", &value) == 1; values[(*n)++] = value) {
    if (*n + 1 == room) values = realloc(values, (room *= 2) * sizeof *values);
  }
  if (values == NULL) exit(1);
  return values;
}

int main(int argc, char** argv) {
  rw_model* model;
  rw_workspace* workspace;
  char message[256];
  size_t n_values, n, i;
  float* features;
  double* scores;
  candidate* ranked;

  if (argc != 2) {
    fprintf(stderr, "usage: example MODEL < CANDIDATES\n");
    return 2;
  }
  if (rw_load(argv[1], &model, message, sizeof message) != RW_OK) {
    fprintf(stderr, "%s\n", message);
    return 2;
  }
  /* One per thread; 0, as early exit is not used here. */
  if (rw_workspace_new(model, 0, &workspace) != RW_OK) return 1;

  features = read_numbers(&n_values);
  if (rw_n_features(model) == 0 || n_values % rw_n_features(model) != 0) {
    fprintf(stderr, "candidates must have %lu features each\n", (unsigned long)rw_n_features(model));
    return 2;
  }
  n = n_values / rw_n_features(model);
  scores = malloc((n + 1) * sizeof *scores);
  ranked = malloc((n + 1) * sizeof *ranked);
  if (scores == NULL || ranked == NULL) return 1;

  if (rw_score_f32(model, features, n, rw_n_features(model), scores, workspace) != RW_OK) return 1;
  for (i = 0; i < n; ++i) {
    ranked[i].number = i;
    ranked[i].score = scores[i];
  }
  qsort(ranked, n, sizeof *ranked, best_first);
  for (i = 0; i < n; ++i) printf("%lu %.17g\n", (unsigned long)ranked[i].number, ranked[i].score);

  free(ranked);
  free(scores);
  free(features);
  rw_workspace_free(workspace);
  rw_free(model);
  return 0;
}
