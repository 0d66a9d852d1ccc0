// Package rankwood scores documents with tree rankers, by librankwood: the same bits as Ensemble.score in Python.
//
//	model, err := rankwood.Load("model.rw")
//	if err != nil { ... }
//	defer model.Close()
//	scores := make([]float64, documents)
//	err = model.Score(features, scores) // documents one behind the other, model.Features() values each
//
// Any number of goroutines may score with one model at the same time. A missing value is NaN.
package rankwood

/*
#cgo LDFLAGS: -lrankwood
#cgo noescape score
#cgo nocallback score
#include <rankwood.h>
#include <stdlib.h>

// Pointers as arguments, because a struct that Go hands over must not hold pointers into its memory.
static int score(const rw_model* model, rw_workspace* workspace, uint32_t type, uint32_t flags, const void* values,
                 size_t n_rows, size_t n_features, ptrdiff_t row_stride, ptrdiff_t feature_stride,
                 const int64_t* query_offsets, size_t n_queries, double* scores, int32_t* trees) {
	rw_batch batch = {sizeof batch, type, flags, 0, values, n_rows, n_features, row_stride, feature_stride,
	                  query_offsets, n_queries, scores, trees};
	return rw_score(model, &batch, workspace);
}
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// ErrClosed is returned by scoring with a model that was closed.
var ErrClosed = errors.New("the model is closed")

// Status says what kind of error an [Error] is.
type Status int

// What the library can report.
const (
	ErrorArgument  Status = C.RW_ERROR_ARGUMENT  // slices or offsets do not fit each other or the model
	ErrorFile      Status = C.RW_ERROR_FILE      // the file cannot be read
	ErrorModel     Status = C.RW_ERROR_MODEL     // it is not a model, or is damaged
	ErrorMemory    Status = C.RW_ERROR_MEMORY    // there is not enough memory
	ErrorWorkspace Status = C.RW_ERROR_WORKSPACE // not met: the package takes care of workspaces
	ErrorCPU       Status = C.RW_ERROR_CPU       // RANKWOOD_ISA names an instruction set that this CPU cannot run
)

// Error is what the library reports; Message is one sentence.
type Error struct {
	Status  Status
	Message string
}

func (e *Error) Error() string { return e.Message }

func check(status C.int) error {
	if status == C.RW_OK {
		return nil
	}
	return &Error{Status(status), C.GoString(C.rw_status_text(status))}
}

func wrong(format string, values ...any) error {
	return &Error{ErrorArgument, fmt.Sprintf(format, values...)}
}

// Model is a ranker. It never changes; goroutines may share it.
type Model struct {
	handle                  *handle
	features, trees, leaves int
	names                   []string
	fingerprint             string
	earlyExit               bool
}

// Load reads a model file (.rw).
func Load(path string) (*Model, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var message [1024]C.char
	var raw *C.rw_model
	status := C.rw_load(name, &raw, &message[0], C.size_t(len(message)))
	return loaded(status, raw, &message)
}

// LoadBytes reads a model from the content of a file, which is not needed afterwards.
func LoadBytes(content []byte) (*Model, error) {
	var message [1024]C.char
	var raw *C.rw_model
	bytes := unsafe.Pointer(unsafe.SliceData(content))
	status := C.rw_load_memory(bytes, C.size_t(len(content)), &raw, &message[0], C.size_t(len(message)))
	return loaded(status, raw, &message)
}

func loaded(status C.int, raw *C.rw_model, message *[1024]C.char) (*Model, error) {
	if status != C.RW_OK {
		return nil, &Error{Status(status), C.GoString(&message[0])}
	}
	model := &Model{
		handle:      &handle{model: raw},
		features:    int(C.rw_n_features(raw)),
		trees:       int(C.rw_n_trees(raw)),
		leaves:      int(C.rw_n_leaves(raw)),
		fingerprint: C.GoString(C.rw_fingerprint(raw)),
		earlyExit:   C.rw_has_early_exit(raw) != 0,
	}
	for feature := range model.features {
		name := C.rw_feature_name(raw, C.size_t(feature))
		if name == nil {
			break
		}
		model.names = append(model.names, C.GoString(name))
	}
	runtime.AddCleanup(model, (*handle).close, model.handle) // for who forgets Close
	return model, nil
}

// Close gives the model's memory back, once the calls of Score that are running have ended. Later ones return
// [ErrClosed]. Closing twice does nothing. A model that nobody refers to any more is closed in the end, but the garbage
// collector does not see how much memory it holds: call Close.
func (m *Model) Close() { m.handle.close() }

// Features is the number of features that a row must have.
func (m *Model) Features() int { return m.features }

// Trees is the number of trees.
func (m *Model) Trees() int { return m.trees }

// Leaves is the number of leaves of all trees.
func (m *Model) Leaves() int { return m.leaves }

// FeatureNames has one name per feature, or none at all.
func (m *Model) FeatureNames() []string { return append([]string(nil), m.names...) }

// Fingerprint is 64 hexadecimal digits that tell models apart: as Ensemble.fingerprint() in Python.
func (m *Model) Fingerprint() string { return m.fingerprint }

// HasEarlyExit tells whether documents may stop before the last tree when [Batch.Offsets] are given.
func (m *Model) HasEarlyExit() bool { return m.earlyExit }

// Score computes the score of every row; rows lie one behind the other. There are as many rows as scores.
func (m *Model) Score(rows []float32, scores []float64) error {
	return m.ScoreBatch(&Batch{Float32: rows, Scores: scores})
}

// Score64 is Score for rows of float64, which are compared exactly.
func (m *Model) Score64(rows []float64, scores []float64) error {
	return m.ScoreBatch(&Batch{Float64: rows, Scores: scores})
}

// Batch is all that scoring can do. Either Float32 or Float64 holds the values of len(Scores) rows.
type Batch struct {
	Float32 []float32
	Float64 []float64
	Columns bool // values lie column by column: those of the first feature, then those of the second

	// SinglePrecision sums in float32, which is faster; as precision="single" in Python.
	SinglePrecision bool

	// Offsets, with early exit: documents of query q are the rows from Offsets[q] to before Offsets[q+1], and may stop
	// before the last tree when they are far behind the best. Nil: every row goes through all trees.
	Offsets []int64

	Scores []float64 // OUT one per row
	Trees  []int32   // OUT number of trees that each row went through; may be nil
}

// ScoreBatch scores a batch. It allocates nothing once a model has been used by as many goroutines at a time as use it.
func (m *Model) ScoreBatch(b *Batch) error {
	kind, values, length := C.uint32_t(C.RW_FLOAT32), unsafe.Pointer(unsafe.SliceData(b.Float32)), len(b.Float32)
	if b.Float64 != nil {
		kind, values, length = C.RW_FLOAT64, unsafe.Pointer(unsafe.SliceData(b.Float64)), len(b.Float64)
	}
	rows := len(b.Scores)
	switch {
	case b.Float32 != nil && b.Float64 != nil:
		return wrong("a batch has either Float32 or Float64, got both")
	case length != rows*m.features:
		return wrong("%d values are not %d rows of %d features", length, rows, m.features)
	case b.Trees != nil && len(b.Trees) != rows:
		return wrong("%d rows need as many Trees, got room for %d", rows, len(b.Trees))
	case b.Offsets != nil && len(b.Offsets) == 0:
		return wrong("Offsets of queries end with the number of rows, got none")
	}
	queries, longest := 0, int64(0)
	for q := 1; q < len(b.Offsets); q++ {
		queries, longest = q, max(longest, b.Offsets[q]-b.Offsets[q-1])
	}
	if longest > int64(rows) {
		return wrong("a query has %d documents of %d rows", longest, rows)
	}
	rowStride, featureStride := m.features, 1
	if b.Columns {
		rowStride, featureStride = 1, rows
	}
	var flags C.uint32_t
	if b.SinglePrecision {
		flags = C.RW_SINGLE_PRECISION
	}
	space, err := m.handle.enter(int(longest))
	if err != nil {
		return err
	}
	status := C.score(m.handle.model, space.raw, kind, flags, values, C.size_t(rows), C.size_t(m.features),
		C.ptrdiff_t(rowStride), C.ptrdiff_t(featureStride), (*C.int64_t)(unsafe.SliceData(b.Offsets)),
		C.size_t(queries), (*C.double)(unsafe.SliceData(b.Scores)), (*C.int32_t)(unsafe.SliceData(b.Trees)))
	m.handle.leave(space)
	return check(status)
}

// Version of the library.
func Version() string { return C.GoString(C.rw_version()) }

// InstructionSet is what scoring uses on this CPU: "avx2", say.
func InstructionSet() string { return C.GoString(C.rw_instruction_set()) }
