package rankwood

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// go test hides what is skipped unless told -v.
func TestMain(m *testing.M) {
	if os.Getenv("RANKWOOD_CASES") == "" {
		fmt.Fprintln(os.Stderr, "NOTHING COMPARED: RANKWOOD_CASES is not set")
	}
	os.Exit(m.Run())
}

// folders are the cases that tests/runtime/test_bindings.py makes and describes; RANKWOOD_CASES names where.
func folders(t *testing.T) []string {
	t.Helper()
	cases := os.Getenv("RANKWOOD_CASES")
	if cases == "" {
		t.Skip("NOTHING COMPARED: RANKWOOD_CASES is not set")
	}
	found, err := filepath.Glob(filepath.Join(cases, "*"))
	must(t, err)
	return found
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func text(t *testing.T, folder, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, name))
	must(t, err)
	return string(content)
}

func values[T any](t *testing.T, folder, name string, size int) []T {
	t.Helper()
	content := text(t, folder, name)
	read := make([]T, len(content)/size)
	must(t, binary.Read(strings.NewReader(content), binary.LittleEndian, read))
	return read
}

func load(t *testing.T, folder string) *Model {
	t.Helper()
	model, err := Load(filepath.Join(folder, "model.rw"))
	must(t, err)
	t.Cleanup(model.Close)
	return model
}

func sameBits(t *testing.T, got, expected []float64, what string) {
	t.Helper()
	for row := range expected {
		if math.Float64bits(got[row]) != math.Float64bits(expected[row]) {
			t.Fatalf("%s: row %d is %v instead of %v", what, row, got[row], expected[row])
		}
	}
}

// part is the batch of the rows from start to before end.
func part(b Batch, features, start, end int) Batch {
	if b.Float64 != nil {
		b.Float64 = b.Float64[start*features : end*features]
	} else {
		b.Float32 = b.Float32[start*features : end*features]
	}
	b.Scores = b.Scores[start:end]
	return b
}

func TestScoresAreThoseOfPython(t *testing.T) {
	compared := 0
	for _, folder := range folders(t) {
		model := load(t, folder)
		offsets := values[int64](t, folder, "offsets", 8)
		for _, kind := range []string{"f32", "f64"} {
			var rows, columns Batch
			if kind == "f32" {
				rows.Float32 = values[float32](t, folder, "rows.f32", 4)
				columns.Float32 = values[float32](t, folder, "columns.f32", 4)
			} else {
				rows.Float64 = values[float64](t, folder, "rows.f64", 8)
				columns.Float64 = values[float64](t, folder, "columns.f64", 8)
			}
			for _, precision := range []string{"double", "single"} {
				what := fmt.Sprintf("%s, %s.%s", folder, precision, kind)
				expected := values[float64](t, folder, precision+"."+kind, 8)
				scores, n := make([]float64, len(expected)), len(expected)
				rows.Scores, columns.Scores = scores, scores
				rows.SinglePrecision = precision == "single"
				columns.SinglePrecision, columns.Columns = rows.SinglePrecision, true
				for _, size := range []int{1, 2, 7, 10, 33, 100, 1000} {
					for start := 0; start < n; start += size {
						some := part(rows, model.Features(), start, min(start+size, n))
						must(t, model.ScoreBatch(&some))
					}
					sameBits(t, scores, expected, fmt.Sprintf("%s in batches of %d", what, size))
					compared++
				}
				must(t, model.ScoreBatch(&columns))
				sameBits(t, scores, expected, what+" by columns")

				queries := rows
				queries.Offsets, queries.Trees = offsets, make([]int32, n)
				must(t, model.ScoreBatch(&queries))
				sameBits(t, scores, values[float64](t, folder, "exit-"+precision+"."+kind, 8), what+" with early exit")
				trees := values[int32](t, folder, "trees-"+precision+"."+kind, 4)
				for row := range trees {
					if queries.Trees[row] != trees[row] {
						t.Fatalf("%s: row %d went through %d trees, not %d", what, row, queries.Trees[row], trees[row])
					}
				}
				compared += 3
			}
		}
	}
	fmt.Println(compared, "comparisons")
}

func TestFactsAreThoseOfPython(t *testing.T) {
	for _, folder := range folders(t) {
		model := load(t, folder)
		exit := 0
		if model.HasEarlyExit() {
			exit = 1
		}
		facts := fmt.Sprintf("features %d\ntrees %d\nleaves %d\nfingerprint %s\nexit %d\n",
			model.Features(), model.Trees(), model.Leaves(), model.Fingerprint(), exit)
		if !strings.HasPrefix(text(t, folder, "facts"), facts) {
			t.Errorf("%s: %s", folder, facts)
		}
		names := ""
		for _, name := range model.FeatureNames() {
			names += name + "\n"
		}
		if names != text(t, folder, "names") {
			t.Errorf("%s: %q", folder, names)
		}
	}
}

func TestGoroutinesShareAModel(t *testing.T) {
	for _, folder := range folders(t) {
		model := load(t, folder)
		rows, expected := values[float32](t, folder, "rows.f32", 4), values[float64](t, folder, "double.f32", 8)
		var group sync.WaitGroup
		for range 100 { // more than there are places for idle workspaces
			group.Add(1)
			go func() {
				defer group.Done()
				scores := make([]float64, len(expected))
				if err := model.Score(rows, scores); err != nil {
					t.Error(err)
				}
				for row := range scores {
					if math.Float64bits(scores[row]) != math.Float64bits(expected[row]) {
						t.Errorf("row %d differs", row)
					}
				}
			}()
		}
		group.Wait()
	}
}

// Calls that run while the model is closed end well; later ones are refused.
func TestCloseWhileScoring(t *testing.T) {
	folder := folders(t)[0]
	rows, expected := values[float32](t, folder, "rows.f32", 4), values[float64](t, folder, "double.f32", 8)
	for range 30 {
		model := load(t, folder)
		var group sync.WaitGroup
		for range 8 {
			group.Add(1)
			go func() {
				defer group.Done()
				scores := make([]float64, len(expected))
				for {
					if err := model.Score(rows, scores); errors.Is(err, ErrClosed) {
						return
					} else if err != nil {
						t.Error(err)
						return
					}
				}
			}()
		}
		time.Sleep(time.Millisecond)
		model.Close()
		model.Close()
		group.Wait()
		if !errors.Is(model.Score(rows, expected), ErrClosed) {
			t.Error("a closed model scores")
		}
		if users := model.handle.users.Load(); users != closed {
			t.Errorf("%d calls are still running", users-closed)
		}
	}
}

func TestForgottenModelsAreClosed(t *testing.T) {
	folder := folders(t)[0]
	model, err := Load(filepath.Join(folder, "model.rw"))
	must(t, err)
	handle := model.handle
	runtime.KeepAlive(model)
	model = nil
	for range 100 {
		runtime.GC()
		if handle.users.Load() == closed {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the model is still open")
}

func TestNothingIsAllocated(t *testing.T) {
	for _, folder := range folders(t) {
		model := load(t, folder)
		rows, scores := values[float32](t, folder, "rows.f32", 4), values[float64](t, folder, "double.f32", 8)
		if allocations := testing.AllocsPerRun(10, func() { must(t, model.Score(rows, scores)) }); allocations != 0 {
			t.Errorf("%s: %v allocations a call", folder, allocations)
		}
	}
}

func TestMistakesAreErrors(t *testing.T) {
	status := func(err error) Status {
		var known *Error
		if !errors.As(err, &known) || known.Message == "" {
			t.Errorf("%v is not an Error with a message", err)
			return 0
		}
		return known.Status
	}
	_, err := Load("nowhere.rw")
	if status(err) != ErrorFile || !strings.Contains(err.Error(), "nowhere.rw") {
		t.Error(err)
	}
	for _, content := range [][]byte{nil, []byte("no model"), bytes.Repeat([]byte{0xff}, 100)} {
		if _, err := LoadBytes(content); status(err) != ErrorModel {
			t.Error(err)
		}
	}
	for _, folder := range folders(t) {
		model, err := LoadBytes([]byte(text(t, folder, "model.rw")))
		must(t, err)
		row, score := make([]float64, model.Features()), make([]float64, 1)
		must(t, model.Score64(row, score))
		for _, batch := range []Batch{
			{Float64: append(row, 0), Scores: score},
			{Float64: row, Float32: make([]float32, len(row)), Scores: score},
			{Float64: row, Scores: score, Trees: make([]int32, 2)},
			{Float64: row, Scores: score, Offsets: []int64{}},
			{Float64: row, Scores: score, Offsets: []int64{0}},
			{Float64: row, Scores: score, Offsets: []int64{0, 2}},
			{Float64: row, Scores: score, Offsets: []int64{1, 1}},
			{Float64: row, Scores: score, Offsets: []int64{0, -1, 1}},
			{Float64: row, Scores: score, Offsets: []int64{-1, 1}},
			{Float64: row, Scores: score, Offsets: []int64{math.MinInt64, math.MaxInt64}},
		} {
			if err := model.ScoreBatch(&batch); status(err) != ErrorArgument {
				t.Errorf("%v: %v", batch, err)
			}
		}
		model.Close()
	}
}
