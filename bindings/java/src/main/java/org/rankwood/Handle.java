package org.rankwood;

import java.lang.ref.Reference;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * What the library allocated for a model: the model, and workspaces that nobody scores in. It is closed once; who is
 * the last to leave then frees everything, so that nothing is freed under a call that is running.
 */
final class Handle {
    private static final long CLOSED = Long.MIN_VALUE;

    private final Library library;
    private final long model;
    private final AtomicLong users = new AtomicLong(); // calls that are running; plus CLOSED when it was closed
    private final AtomicReferenceArray<Workspace> idle = new AtomicReferenceArray<>(64);

    Handle(Library library, long model) {
        this.library = library;
        this.model = model;
    }

    /** Begins a call; hands out a workspace for queries of up to so many rows. */
    Workspace enter(int queryRows) {
        long before = users.getAndUpdate(count -> count < 0 ? count : count + 1);
        if (before < 0) {
            throw new IllegalStateException("the model is closed");
        }
        Workspace workspace = take();
        try {
            if (workspace == null) {
                workspace = new Workspace();
            }
            workspace.grow(queryRows);
            return workspace;
        } catch (Throwable error) {
            leave(workspace);
            throw error;
        }
    }

    /** Ends a call. */
    void leave(Workspace workspace) {
        if (workspace != null && !put(workspace)) {
            workspace.free();
        }
        if (users.decrementAndGet() == CLOSED) {
            free();
        }
    }

    void close() {
        if (users.getAndUpdate(count -> count < 0 ? count : count + CLOSED) == 0) {
            free();
        }
    }

    /** Whether it is closed and nobody is left. */
    boolean isFree() {
        return users.get() == CLOSED;
    }

    private Workspace take() {
        for (int place = 0; place < idle.length(); place++) {
            if (idle.get(place) != null) {
                Workspace workspace = idle.getAndSet(place, null);
                if (workspace != null) {
                    return workspace;
                }
            }
        }
        return null;
    }

    private boolean put(Workspace workspace) {
        for (int place = 0; place < idle.length(); place++) {
            if (idle.get(place) == null && idle.compareAndSet(place, null, workspace)) {
                return true;
            }
        }
        return false;
    }

    private void free() {
        for (Workspace workspace = take(); workspace != null; workspace = take()) {
            workspace.free();
        }
        library.free(model);
    }

    /** Memory that one thread at a time scores in. */
    final class Workspace {
        private long raw; // null at first
        private int maxQueryRows;
        private final Memory memory = new Memory(library);

        private void grow(int queryRows) {
            if (raw != 0 && queryRows <= maxQueryRows) {
                return;
            }
            free();
            // Twice as much, so that slowly growing queries do not need a new one each time.
            maxQueryRows = queryRows == 0 ? 0 : (int) Math.max(64, Math.min(Integer.MAX_VALUE, 2L * queryRows));
            memory.reserve(8);
            long made = memory.out(8);
            check(library.newWorkspace(model, maxQueryRows, made));
            raw = memory.getLong(made);
        }

        void score(Batch batch, int featureCount) {
            int rows = batch.scores.remaining();
            LongBuffer offsets = batch.offsets == null ? null : LongBuffer.wrap(batch.offsets);
            long ownValues = memory.own(batch.values);
            long ownScores = memory.own(batch.scores);
            long ownTrees = memory.own(batch.trees);
            memory.reserve(Library.BATCH_SIZE + Memory.bytes(batch.values, ownValues) + Memory.bytes(offsets, 0)
                    + Memory.bytes(batch.scores, ownScores) + Memory.bytes(batch.trees, ownTrees));
            long struct = memory.out(Library.BATCH_SIZE);
            long scores = memory.out(batch.scores, ownScores);
            long trees = memory.out(batch.trees, ownTrees);
            int type = batch.values instanceof FloatBuffer ? Library.FLOAT32 : Library.FLOAT64;
            memory.putInts(struct, Library.BATCH_SIZE, type, batch.single ? Library.SINGLE_PRECISION : 0, 0);
            memory.putLongs(struct + 16, memory.in(batch.values, ownValues), rows, featureCount,
                    batch.byColumns ? 1 : featureCount, batch.byColumns ? rows : 1,
                    memory.in(offsets, 0), offsets == null ? 0 : offsets.remaining() - 1, scores, trees);
            check(library.score(model, struct, raw));
            memory.copyOut(batch.scores, ownScores, scores);
            memory.copyOut(batch.trees, ownTrees, trees);
            memory.reserve(0); // lets go of what was too large to keep
            Reference.reachabilityFence(batch);
        }

        private void check(int status) {
            if (status == Library.ARGUMENT) {
                throw new IllegalArgumentException(library.text(library.statusText(status)));
            }
            if (status != Library.OK) {
                throw new RankwoodException(library.text(library.statusText(status)));
            }
        }

        private void free() {
            library.freeWorkspace(raw);
            raw = 0;
        }
    }
}
