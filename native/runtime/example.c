/* Re-rank the candidates of a query.
 *
 *   cc -std=c99 -O2 example.c -I. -L. -lrankwood -Wl,-rpath,'$ORIGIN' -o example
 *   ./example model.rw < candidates
 *
 * A candidate is a line: its id, then its features, separated by spaces or tabs; NaN or nan is a missing one. The best
 * comes first in the output.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rankwood.h"

typedef struct candidate {
  const char* id;
  size_t number;
  double score;
} candidate;

static int best_first(const void* a, const void* b) {
  const candidate *one = a, *other = b;
  if (one->score != other->score) return one->score > other->score ? -1 : 1;
  return one->number < other->number ? -1 : 1;
}

/* Memory, or the end of the program. */
static void* some(void* old, size_t count, size_t size) {
  void* memory = realloc(old, (count + 1) * size);
  if (memory != NULL) return memory;
  fprintf(stderr, "there is not enough memory\n");
  exit(1);
}

/* The whole standard input. */
static char* read_text(void) {
  size_t size = 0, room = 4096, got;
  char* text = some(NULL, room, 1);
  while ((got = fread(text + size, 1, room - size, stdin)) > 0) {
    if ((size += got) == room) text = some(text, room *= 2, 1);
  }
  text[size] = '\0';
  return text;
}

/* Number of the values in the words that follow; a word that is no number ends the program. */
static size_t read_values(float* values, size_t most, size_t line) {
  size_t count = 0;
  char *word, *end;
  while ((word = strtok(NULL, " \t\r")) != NULL) {
    const float value = strtof(word, &end); /* the nearest: infinity when it is too large */
    if (*end != '\0') {
      fprintf(stderr, "line %lu: '%s' is not a number\n", (unsigned long)line, word);
      exit(1);
    }
    if (count < most) values[count] = value;
    ++count;
  }
  return count;
}

int main(int argc, char** argv) {
  rw_model* model;
  rw_workspace* workspace;
  char message[256];
  char *text, *line, *next;
  size_t n = 0, n_lines = 1, width, found, i;
  int status;
  float* features;
  double* scores;
  candidate* ranked;

  if (argc != 2) {
    fprintf(stderr, "usage: example MODEL < candidates\n");
    return 1;
  }
  if (rw_load(argv[1], &model, message, sizeof message) != RW_OK) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  width = rw_n_features(model);

  text = read_text();
  for (line = text; *line != '\0'; ++line) n_lines += *line == '\n';
  features = some(NULL, n_lines * width, sizeof *features); /* one behind the other: one call is faster than many */
  scores = some(NULL, n_lines, sizeof *scores);
  ranked = some(NULL, n_lines, sizeof *ranked);
  for (line = text; *line != '\0'; line = next, ++n) {
    next = line + strcspn(line, "\n");
    if (*next != '\0') *next++ = '\0';
    ranked[n].number = n;
    ranked[n].id = strtok(line, " \t\r");
    if (ranked[n].id == NULL) {
      fprintf(stderr, "line %lu is empty: it must have an id and features\n", (unsigned long)n + 1);
      return 1;
    }
    found = read_values(features + n * width, width, n + 1);
    if (found != width) {
      fprintf(stderr, "line %lu has %lu features, the model has %lu\n", (unsigned long)n + 1, (unsigned long)found,
              (unsigned long)width);
      return 1;
    }
  }

  /* One per thread; 0, as early exit is not used here. */
  status = rw_workspace_new(model, 0, &workspace);
  if (status == RW_OK) status = rw_score_f32(model, features, n, width, scores, workspace);
  if (status != RW_OK) {
    fprintf(stderr, "%s\n", rw_status_text(status));
    return 1;
  }
  for (i = 0; i < n; ++i) ranked[i].score = scores[i];
  qsort(ranked, n, sizeof *ranked, best_first);
  for (i = 0; i < n; ++i) printf("%s %.17g\n", ranked[i].id, ranked[i].score);

  free(ranked);
  free(scores);
  free(features);
  free(text);
  rw_workspace_free(workspace);
  rw_free(model);
  return 0;
}
