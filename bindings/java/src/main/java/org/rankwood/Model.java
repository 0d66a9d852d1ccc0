package org.rankwood;

import java.io.IOException;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * A tree ranker that never changes, scored by librankwood: the same bits as {@code Ensemble.score} in Python.
 *
 * <pre>{@code
 * try (Model model = Model.load(Path.of("model.rw"))) {
 *     double[] scores = model.score(features);   // float[]: documents one behind the other
 * }
 * }</pre>
 *
 * <p>Any number of threads may score with one model at the same time, none of them waits for another. A missing value
 * is NaN. Native memory is given back by {@link #close}; as a safety net, also when the model became unreachable and
 * the garbage collector noticed, which may be never.
 */
public final class Model implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();
    private static final Library LIBRARY = Libraries.LIBRARY;

    static {
        if (LIBRARY.abiVersion() != 1) {
            throw new UnsatisfiedLinkError("this needs librankwood with ABI 1, found " + LIBRARY.abiVersion());
        }
    }

    final Handle handle; // which outlives the model while calls are running
    private final Cleaner.Cleanable cleanable;
    private final int featureCount;
    private final int treeCount;
    private final long leafCount;
    private final List<String> featureNames;
    private final String fingerprint;
    private final boolean earlyExit;

    private Model(long raw) {
        handle = new Handle(LIBRARY, raw);
        cleanable = CLEANER.register(this, handle::close);
        featureCount = Math.toIntExact(LIBRARY.features(raw));
        treeCount = Math.toIntExact(LIBRARY.trees(raw));
        leafCount = LIBRARY.leaves(raw);
        fingerprint = LIBRARY.text(LIBRARY.fingerprint(raw));
        earlyExit = LIBRARY.hasEarlyExit(raw) != 0;
        List<String> names = new ArrayList<>();
        for (int feature = 0; feature < featureCount; feature++) {
            long name = LIBRARY.featureName(raw, feature);
            if (name == 0) {
                break;
            }
            names.add(LIBRARY.text(name));
        }
        featureNames = List.copyOf(names);
    }

    /**
     * The model in a file ({@code .rw}).
     *
     * @throws IOException the file cannot be read
     * @throws RankwoodException it is not a model, or is damaged
     */
    public static Model load(Path path) throws IOException {
        try (FileChannel file = FileChannel.open(path)) {
            if (file.size() > Integer.MAX_VALUE) {
                throw new RankwoodException("a model file has at most 2 GB here, got " + file.size() + " bytes");
            }
            ByteBuffer content = ByteBuffer.allocateDirect((int) file.size());
            while (content.hasRemaining() && file.read(content) >= 0) {}
            return load(content.flip());
        } catch (RankwoodException error) {
            throw new RankwoodException(path + ": " + error.getMessage());
        }
    }

    /**
     * The model that a file of this content holds, from position to limit. It is not needed afterwards.
     *
     * @throws RankwoodException it is not a model, or is damaged
     */
    public static Model load(ByteBuffer content) {
        Memory memory = new Memory(LIBRARY);
        long own = memory.own(content);
        memory.reserve(Memory.bytes(content, own) + 8 + 1024);
        long bytes = memory.in(content, own);
        long model = memory.out(8);
        long message = memory.out(1024);
        int status = LIBRARY.load(bytes, content.remaining(), model, message, 1024);
        if (status != Library.OK) {
            throw new RankwoodException(LIBRARY.text(message));
        }
        long raw = memory.getLong(model);
        Reference.reachabilityFence(content);
        return new Model(raw);
    }

    /** As {@link #load(ByteBuffer)}. */
    public static Model load(byte[] content) {
        return load(ByteBuffer.wrap(content));
    }

    /** Number of features that a row must have. */
    public int featureCount() {
        return featureCount;
    }

    /** Number of trees. */
    public int treeCount() {
        return treeCount;
    }

    /** Number of leaves of all trees. */
    public long leafCount() {
        return leafCount;
    }

    /** One name per feature; empty where features have none. */
    public List<String> featureNames() {
        return featureNames;
    }

    /** 64 hexadecimal digits that tell models apart: as {@code Ensemble.fingerprint()} in Python. */
    public String fingerprint() {
        return fingerprint;
    }

    /** Whether documents may stop before the last tree when queries are known: {@link Batch#queries}. */
    public boolean hasEarlyExit() {
        return earlyExit;
    }

    /** Scores of rows that lie one behind the other in an array, in a new array. */
    public double[] score(float[] rows) {
        double[] scores = new double[rowCount(rows.length)];
        score(FloatBuffer.wrap(rows), DoubleBuffer.wrap(scores));
        return scores;
    }

    /** Scores of rows of doubles, which are compared exactly, in a new array. */
    public double[] score(double[] rows) {
        double[] scores = new double[rowCount(rows.length)];
        score(DoubleBuffer.wrap(rows), DoubleBuffer.wrap(scores));
        return scores;
    }

    private int rowCount(int values) {
        int width = Math.max(1, featureCount);
        if (values % width != 0) {
            throw new IllegalArgumentException(
                    values + " values are no whole number of rows: a row has " + featureCount + " features");
        }
        return values / width;
    }

    /**
     * Scores of rows that lie one behind the other, through all trees. There are as many rows as {@code scores} has
     * room for. Positions do not move. Direct buffers in native byte order are used as they are, others are copied.
     */
    public void score(FloatBuffer rows, DoubleBuffer scores) {
        score(Batch.of(rows, scores));
    }

    /** As {@link #score(FloatBuffer, DoubleBuffer)}, for rows of doubles, which are compared exactly. */
    public void score(DoubleBuffer rows, DoubleBuffer scores) {
        score(Batch.of(rows, scores));
    }

    /**
     * Scores a batch, with all that scoring can do.
     *
     * @throws IllegalArgumentException the parts of the batch do not fit each other or the model
     * @throws IllegalStateException the model is closed
     */
    public void score(Batch batch) {
        int longest = batch.check(featureCount);
        Handle.Workspace workspace = handle.enter(longest);
        try {
            workspace.score(batch, featureCount);
        } finally {
            handle.leave(workspace);
        }
    }

    /**
     * Gives the native memory back, as soon as the calls that are scoring now have ended. Later ones throw
     * {@link IllegalStateException}. Closing again does nothing.
     */
    @Override
    public void close() {
        cleanable.clean();
    }

    /** Version of librankwood. */
    public static String libraryVersion() {
        return LIBRARY.text(LIBRARY.version());
    }

    /** Instruction set that scoring uses on this CPU: "avx2", say. */
    public static String instructionSet() {
        return LIBRARY.text(LIBRARY.instructionSet());
    }

    /** How Java calls the library here: "jni", or "ffm" (java.lang.foreign) on Java 22 and later. */
    public static String binding() {
        return LIBRARY.name();
    }
}
