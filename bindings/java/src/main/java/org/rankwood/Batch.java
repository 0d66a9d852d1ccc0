package org.rankwood;

import java.nio.Buffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;

/**
 * Rows to score and where their scores go, with all that scoring can do.
 *
 * <pre>{@code
 * model.score(Batch.of(features, scores).queries(0, 100, 250).singlePrecision());
 * }</pre>
 *
 * <p>A batch belongs to one thread at a time; it may be scored again after its buffers were filled anew. Direct buffers
 * in native byte order ({@code ByteBuffer.allocateDirect(n).order(ByteOrder.nativeOrder()).asFloatBuffer()}) are used
 * as they are, others are copied. What counts is between position and limit; positions do not move.
 */
public final class Batch {
    final Buffer values; // FloatBuffer or DoubleBuffer
    final DoubleBuffer scores;
    long[] offsets;
    IntBuffer trees;
    boolean byColumns;
    boolean single;

    private Batch(Buffer values, DoubleBuffer scores) {
        this.values = values;
        this.scores = scores;
    }

    /** Rows of floats that lie one behind the other, and one score for each. */
    public static Batch of(FloatBuffer rows, DoubleBuffer scores) {
        return new Batch(rows, scores);
    }

    /** Rows of doubles, which are compared exactly, and one score for each. */
    public static Batch of(DoubleBuffer rows, DoubleBuffer scores) {
        return new Batch(rows, scores);
    }

    /** Rows in arrays. */
    public static Batch of(float[] rows, double[] scores) {
        return new Batch(FloatBuffer.wrap(rows), DoubleBuffer.wrap(scores));
    }

    /** Rows in arrays. */
    public static Batch of(double[] rows, double[] scores) {
        return new Batch(DoubleBuffer.wrap(rows), DoubleBuffer.wrap(scores));
    }

    /**
     * With early exit: documents of query q are the rows from {@code offsets[q]} to before {@code offsets[q + 1]}, and
     * may stop before the last tree when they are far behind the best. Changes nothing where the model has no exit.
     */
    public Batch queries(long... offsets) {
        this.offsets = offsets;
        return this;
    }

    /** Where to write the number of trees that each row went through. */
    public Batch trees(IntBuffer trees) {
        this.trees = trees;
        return this;
    }

    /** Values lie column by column: those of the first feature, then those of the second. */
    public Batch byColumns() {
        byColumns = true;
        return this;
    }

    /** Sums in float, faster; as {@code precision="single"} in Python. */
    public Batch singlePrecision() {
        single = true;
        return this;
    }

    /** Checks that all parts fit each other, and returns the number of documents of the largest query. */
    int check(int featureCount) {
        int rows = scores.remaining();
        if (scores.isReadOnly() || (trees != null && trees.isReadOnly())) {
            throw new IllegalArgumentException("results cannot be written to a read-only buffer");
        }
        if ((long) rows * featureCount != values.remaining()) {
            throw new IllegalArgumentException(
                    values.remaining() + " values are not " + rows + " rows of " + featureCount + " features");
        }
        if (trees != null && trees.remaining() != rows) {
            throw new IllegalArgumentException(rows + " rows need as many trees, got room for " + trees.remaining());
        }
        if (offsets == null) {
            return 0;
        }
        if (offsets.length == 0 || offsets[0] != 0 || offsets[offsets.length - 1] != rows) {
            throw new IllegalArgumentException("offsets of queries must go from 0 to the number of rows, " + rows);
        }
        long longest = 0;
        for (int query = 1; query < offsets.length; query++) {
            if (offsets[query] < offsets[query - 1]) {
                throw new IllegalArgumentException("offsets of queries must not fall, but do at query " + query);
            }
            longest = Math.max(longest, offsets[query] - offsets[query - 1]);
        }
        return (int) longest;
    }
}
