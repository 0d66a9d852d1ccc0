package rankwood

/*
#include <rankwood.h>
*/
import "C"

import (
	"math"
	"sync/atomic"
)

// handle owns what the library allocated for a model: the model and the workspaces that nobody scores in. It is closed
// once; who is the last to leave then frees everything, so that nothing is freed under a call that is running.
type handle struct {
	model *C.rw_model
	users atomic.Int64 // calls that are running; closed is added when the model was closed
	idle  [64]atomic.Pointer[workspace]
}

const closed = math.MinInt64

type workspace struct {
	raw          *C.rw_workspace
	maxQueryRows int
}

// enter begins a call and hands out a workspace for queries of up to so many rows, or returns ErrClosed.
func (h *handle) enter(queryRows int) (*workspace, error) {
	for {
		users := h.users.Load()
		if users < 0 {
			return nil, ErrClosed
		}
		if h.users.CompareAndSwap(users, users+1) {
			break
		}
	}
	space := h.take()
	if space != nil && space.maxQueryRows >= queryRows {
		return space, nil
	}
	space.free()
	if queryRows > 0 {
		queryRows = max(64, 2*queryRows) // so that slowly growing queries do not need a new one each time
	}
	made := &workspace{maxQueryRows: queryRows}
	if err := check(C.rw_workspace_new(h.model, C.size_t(queryRows), &made.raw)); err != nil {
		h.leave(nil)
		return nil, err
	}
	return made, nil
}

// leave ends a call and takes its workspace back.
func (h *handle) leave(space *workspace) {
	if space != nil && !h.put(space) {
		space.free()
	}
	if h.users.Add(-1) == closed {
		h.free()
	}
}

func (h *handle) close() {
	for {
		users := h.users.Load()
		if users < 0 {
			return
		}
		if h.users.CompareAndSwap(users, users+closed) {
			if users == 0 {
				h.free()
			}
			return
		}
	}
}

func (h *handle) take() *workspace {
	for i := range h.idle {
		if h.idle[i].Load() != nil {
			if space := h.idle[i].Swap(nil); space != nil {
				return space
			}
		}
	}
	return nil
}

func (h *handle) put(space *workspace) bool {
	for i := range h.idle {
		if h.idle[i].Load() == nil && h.idle[i].CompareAndSwap(nil, space) {
			return true
		}
	}
	return false
}

func (h *handle) free() {
	for space := h.take(); space != nil; space = h.take() {
		space.free()
	}
	C.rw_free(h.model)
}

func (w *workspace) free() {
	if w != nil {
		C.rw_workspace_free(w.raw)
	}
}
