/* librankwood: tree rankers scored from any language.
 *
 *   rw_model* model;
 *   char message[256];
 *   if (rw_load("model.rw", &model, message, sizeof message) != RW_OK) { puts(message); return 1; }
 *   rw_workspace* workspace;                                    // one per thread
 *   if (rw_workspace_new(model, 0, &workspace) != RW_OK) return 1;
 *   rw_score_f32(model, features, n_documents, rw_n_features(model), scores, workspace);
 *   rw_workspace_free(workspace);
 *   rw_free(model);
 *
 * A model never changes once it is loaded: any number of threads may score with it at the same time, each with a
 * workspace of its own. Scoring allocates nothing, takes no lock, starts no thread, throws nothing and prints nothing.
 * Scores are those of rankwood's Ensemble.score in Python, to the bit, whatever the instruction set and the number of
 * rows. A missing value is NaN.
 */
#ifndef RANKWOOD_H
#define RANKWOOD_H

#include <stddef.h>
#include <stdint.h>

#if defined(RANKWOOD_STATIC)
#define RW_API
#elif defined(_WIN32) && defined(RANKWOOD_BUILD)
#define RW_API __declspec(dllexport)
#elif defined(_WIN32)
#define RW_API __declspec(dllimport)
#else
#define RW_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Functions are added, never changed or removed, while this number stays. */
#define RW_ABI_VERSION 1

typedef struct rw_model rw_model;
typedef struct rw_workspace rw_workspace;

typedef enum rw_status {
  RW_OK = 0,
  RW_ERROR_ARGUMENT = 1,  /* null, a wrong number of features, or offsets that do not fit the rows */
  RW_ERROR_FILE = 2,      /* the file cannot be read */
  RW_ERROR_MODEL = 3,     /* it is not a model, or is damaged */
  RW_ERROR_MEMORY = 4,    /* there is not enough memory */
  RW_ERROR_WORKSPACE = 5, /* the workspace is another model's, or too small for the documents of a query */
  RW_ERROR_CPU = 6        /* RANKWOOD_ISA names an instruction set that this CPU cannot run */
} rw_status;

/* What a status means, in English. */
RW_API const char* rw_status_text(int status);

/* Version of the library, its ABI, and the instruction set that scoring uses here ("avx2"; "" on RW_ERROR_CPU). */
RW_API const char* rw_version(void);
RW_API uint32_t rw_abi_version(void);
RW_API const char* rw_instruction_set(void);

/* Load a model file (.rw), or its content. On failure *model is null and `message` (may be null), with room for
 * `message_size` bytes, says what is wrong in one sentence. The bytes are not needed afterwards. */
RW_API int rw_load(const char* path, rw_model** model, char* message, size_t message_size);
RW_API int rw_load_memory(const void* bytes, size_t n_bytes, rw_model** model, char* message, size_t message_size);
RW_API void rw_free(rw_model* model); /* null does nothing */

RW_API size_t rw_n_features(const rw_model* model);
RW_API size_t rw_n_trees(const rw_model* model);
RW_API size_t rw_n_leaves(const rw_model* model);
/* Name of a feature in UTF-8, with U+FFFD for what is no character; null when features have no names or there is no such
 * feature. */
RW_API const char* rw_feature_name(const rw_model* model, size_t feature);
/* As Ensemble.fingerprint() in Python: 64 hexadecimal digits. */
RW_API const char* rw_fingerprint(const rw_model* model);
/* Whether documents may stop early (see rw_batch.query_offsets). */
RW_API int rw_has_early_exit(const rw_model* model);

/* Memory that scoring works in, for one thread at a time and this model. `max_query_rows` is the largest number of
 * documents of a query that is scored with early exit; 0 where early exit is not used. Free it before the model. */
RW_API int rw_workspace_new(const rw_model* model, size_t max_query_rows, rw_workspace** workspace);
RW_API void rw_workspace_free(rw_workspace* workspace); /* null does nothing */

/* Scores of rows that lie one behind the other, `n_features` values each; through all trees. */
RW_API int rw_score_f32(const rw_model* model, const float* rows, size_t n_rows, size_t n_features, double* scores,
                        rw_workspace* workspace);
RW_API int rw_score_f64(const rw_model* model, const double* rows, size_t n_rows, size_t n_features, double* scores,
                        rw_workspace* workspace);

enum { RW_FLOAT32 = 0, RW_FLOAT64 = 1 };
enum { RW_SINGLE_PRECISION = 1 };

/* All that scoring can do. Set everything to 0 first, then `size` to sizeof(rw_batch). */
typedef struct rw_batch {
  uint32_t size;
  uint32_t type;         /* of values: RW_FLOAT32 or RW_FLOAT64 */
  uint32_t flags;        /* RW_SINGLE_PRECISION: sums in float32, faster; as precision="single" in Python */
  uint32_t reserved;     /* 0 */
  const void* values;    /* features of the first row */
  size_t n_rows, n_features;
  ptrdiff_t row_stride, feature_stride; /* in values: (n_features, 1) row by row, (1, n_rows) column by column */
  /* With early exit: documents of query q are the rows from query_offsets[q] to before query_offsets[q + 1]; null:
   * every row goes through all trees. */
  const int64_t* query_offsets;
  size_t n_queries;
  double* scores; /* OUT one per row */
  int32_t* trees; /* OUT number of trees that each row went through; may be null */
} rw_batch;

RW_API int rw_score(const rw_model* model, const rw_batch* batch, rw_workspace* workspace);

#ifdef __cplusplus
}
#endif

#endif
