package org.rankwood;

import java.io.IOException;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Compares scores with Python's, bit for bit: {@code java org.rankwood.CompareBits CASES}.
 * tests/runtime/test_bindings.py makes the cases, runs this and says what is in their folders.
 */
public final class CompareBits {
    private static final int[] SIZES = {1, 2, 7, 10, 33, 100, 1000};

    private final Path folder;
    private final Model model;
    private int compared;

    private CompareBits(Path folder) throws IOException {
        this.folder = folder;
        this.model = Model.load(folder.resolve("model.rw"));
    }

    /** How rows and scores are handed over. */
    private enum Way {
        ARRAYS, DIRECT, OTHER_ORDER, MISALIGNED;

        ByteBuffer room(int bytes) {
            int shift = this == MISALIGNED ? 1 : 0;
            ByteBuffer made = this == ARRAYS ? ByteBuffer.allocate(bytes) : ByteBuffer.allocateDirect(bytes + shift);
            boolean big = (this == OTHER_ORDER) == (ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN);
            ByteOrder order = big ? ByteOrder.BIG_ENDIAN : ByteOrder.LITTLE_ENDIAN;
            return made.position(shift).slice().order(order);
        }

        FloatBuffer of(FloatBuffer values) {
            FloatBuffer made = this == ARRAYS ? FloatBuffer.allocate(values.remaining())
                    : room(values.remaining() * 4).asFloatBuffer();
            return made.put(values.duplicate()).flip();
        }

        DoubleBuffer of(DoubleBuffer values) {
            DoubleBuffer made = this == ARRAYS ? DoubleBuffer.allocate(values.remaining())
                    : room(values.remaining() * 8).asDoubleBuffer();
            return made.put(values.duplicate()).flip();
        }
    }

    public static void main(String[] arguments) throws Exception {
        int compared = 0;
        try (var folders = Files.list(Path.of(arguments[0]))) {
            for (Path folder : folders.toList()) {
                CompareBits one = new CompareBits(folder);
                try {
                    one.compareFacts();
                    for (Way way : Way.values()) {
                        one.compareScores(way, "f32");
                        one.compareScores(way, "f64");
                    }
                    one.scoreInThreads();
                    one.refuseMistakes();
                } catch (AssertionError error) {
                    throw new AssertionError(folder + ": " + error.getMessage(), error);
                }
                one.model.close();
                compared += one.compared;
            }
        }
        closeWhileScoring(Path.of(arguments[0], "exit"));
        forgetAModel(Path.of(arguments[0], "exit"));
        System.out.printf("%d comparisons by %s on Java %d, librankwood %s, %s%n", compared, Model.binding(),
                Runtime.version().feature(), Model.libraryVersion(), Model.instructionSet());
    }

    private ByteBuffer bytes(String name) throws IOException {
        return ByteBuffer.wrap(Files.readAllBytes(folder.resolve(name))).order(ByteOrder.LITTLE_ENDIAN);
    }

    private Buffer values(String name) throws IOException {
        return name.endsWith("f32") ? bytes(name).asFloatBuffer() : bytes(name).asDoubleBuffer();
    }

    private static Batch batch(Way way, Buffer values, int start, int end, DoubleBuffer scores, boolean single) {
        Buffer part = values.slice(start, end - start);
        Batch made = part instanceof FloatBuffer floats ? Batch.of(way.of(floats), scores)
                : Batch.of(way.of((DoubleBuffer) part), scores);
        return single ? made.singlePrecision() : made;
    }

    private static void require(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    private static void requireBits(DoubleBuffer got, DoubleBuffer expected, String what) {
        require(got.remaining() == expected.remaining(), what + ": another number of rows");
        for (int row = 0; row < expected.remaining(); row++) {
            require(Double.doubleToRawLongBits(got.get(row)) == Double.doubleToRawLongBits(expected.get(row)),
                    what + ": row " + row + " is " + got.get(row) + " instead of " + expected.get(row));
        }
    }

    private void compareFacts() throws IOException {
        String facts = "features %d\ntrees %d\nleaves %d\nfingerprint %s\nexit %d\n".formatted(model.featureCount(),
                model.treeCount(), model.leafCount(), model.fingerprint(), model.hasEarlyExit() ? 1 : 0);
        require(Files.readString(folder.resolve("facts")).startsWith(facts), facts);
        require(Files.readAllLines(folder.resolve("names")).equals(model.featureNames()), "" + model.featureNames());
    }

    private void compareScores(Way way, String type) throws IOException {
        int width = model.featureCount();
        Buffer rows = values("rows." + type);
        Buffer columns = values("columns." + type);
        long[] offsets = new long[bytes("offsets").remaining() / 8];
        bytes("offsets").asLongBuffer().get(offsets);
        for (String precision : List.of("double", "single")) {
            boolean single = precision.equals("single");
            String what = precision + "." + type + ", " + way;
            DoubleBuffer expected = bytes(precision + "." + type).asDoubleBuffer();
            int n = expected.remaining();
            DoubleBuffer scores = way.of(DoubleBuffer.allocate(n));
            for (int size : SIZES) {
                for (int start = 0; start < n; start += size) {
                    int end = Math.min(n, start + size);
                    // A view of a part, by position and limit: neither may be ignored.
                    scores.position(start).limit(end);
                    model.score(batch(way, rows, start * width, end * width, scores, single));
                    scores.clear();
                }
                requireBits(scores, expected, what + " in batches of " + size);
                compared++;
            }
            model.score(batch(way, columns, 0, n * width, scores, single).byColumns());
            requireBits(scores, expected, what + " by columns");

            IntBuffer trees = way == Way.ARRAYS ? IntBuffer.allocate(n) : way.room(4 * n).asIntBuffer();
            model.score(batch(way, rows, 0, n * width, scores, single).queries(offsets).trees(trees));
            requireBits(scores, bytes("exit-" + precision + "." + type).asDoubleBuffer(), what + " with early exit");
            IntBuffer expectedTrees = bytes("trees-" + precision + "." + type).asIntBuffer();
            require(trees.equals(expectedTrees), what + ": numbers of trees");
            compared += 3;
        }
    }

    private void scoreInThreads() throws Exception {
        float[] rows = new float[bytes("rows.f32").remaining() / 4];
        bytes("rows.f32").asFloatBuffer().get(rows);
        DoubleBuffer expected = bytes("double.f32").asDoubleBuffer();
        ExecutorService threads = Executors.newFixedThreadPool(80); // more than there are places for idle workspaces
        List<Future<Void>> calls = new ArrayList<>();
        for (int call = 0; call < 100; call++) {
            calls.add(threads.submit((Callable<Void>) () -> {
                DoubleBuffer scores = DoubleBuffer.allocate(expected.remaining());
                model.score(FloatBuffer.wrap(rows), scores);
                requireBits(scores, expected, "in threads");
                return null;
            }));
        }
        for (Future<Void> call : calls) {
            call.get();
        }
        threads.shutdown();
    }

    /** Calls that run while the model is closed end well; later ones are refused. */
    private static void closeWhileScoring(Path folder) throws Exception {
        byte[] content = Files.readAllBytes(folder.resolve("model.rw"));
        ExecutorService threads = Executors.newFixedThreadPool(8);
        for (int time = 0; time < 50; time++) {
            Model model = Model.load(content);
            float[] rows = new float[100 * model.featureCount()];
            List<Future<Integer>> calls = new ArrayList<>();
            for (int thread = 0; thread < 8; thread++) {
                calls.add(threads.submit(() -> {
                    for (int call = 0;; call++) {
                        try {
                            model.score(FloatBuffer.wrap(rows), DoubleBuffer.allocate(100));
                        } catch (IllegalStateException error) {
                            return call;
                        }
                    }
                }));
            }
            Thread.sleep(0, 500_000);
            model.close();
            model.close();
            for (Future<Integer> call : calls) {
                call.get();
            }
            require(model.handle.isFree(), "its memory is still there");
            requireError(IllegalStateException.class, () -> model.score(rows));
            require(model.fingerprint().length() == 64, "facts are gone with the memory");
        }
        threads.shutdown();
    }

    /** Who forgets to close a model gets the memory back in the end. */
    private static void forgetAModel(Path folder) throws Exception {
        Handle handle = Model.load(folder.resolve("model.rw")).handle;
        for (int time = 0; time < 100 && !handle.isFree(); time++) {
            System.gc();
            Thread.sleep(20);
        }
        require(handle.isFree(), "a model that nobody knows is still there");
    }

    private void refuseMistakes() throws IOException {
        requireError(IOException.class, () -> Model.load(folder.resolve("nowhere.rw")));
        requireError(RankwoodException.class, () -> Model.load(folder.resolve("rows.f64")));
        requireError(RankwoodException.class, () -> Model.load(new byte[0]));
        requireError(RankwoodException.class, () -> Model.load("no model".getBytes()));
        double[] row = new double[model.featureCount()];
        double[] score = new double[1];
        model.score(Batch.of(row, score));
        requireError(IllegalArgumentException.class, () -> model.score(Batch.of(new double[row.length + 1], score)));
        requireError(IllegalArgumentException.class, () -> model.score(new float[row.length + 1]));
        requireError(IllegalArgumentException.class,
                () -> model.score(Batch.of(row, score).trees(IntBuffer.allocate(2))));
        requireError(IllegalArgumentException.class,
                () -> model.score(DoubleBuffer.wrap(row), DoubleBuffer.wrap(score).asReadOnlyBuffer()));
        long[][] offsets = {{}, {0}, {0, 2}, {1, 1}, {0, -1, 1}, {-1, 1}, {Long.MIN_VALUE, Long.MAX_VALUE}};
        for (long[] wrong : offsets) {
            requireError(IllegalArgumentException.class, () -> model.score(Batch.of(row, score).queries(wrong)));
        }
    }

    private static void requireError(Class<? extends Exception> kind, Callable<?> call) {
        try {
            call.call();
        } catch (Exception error) {
            require(kind.isInstance(error) && error.getMessage() != null && !error.getMessage().isEmpty(), "" + error);
            return;
        }
        throw new AssertionError("no " + kind.getSimpleName());
    }

    private static void requireError(Class<? extends Exception> kind, Runnable call) {
        requireError(kind, Executors.callable(call));
    }
}
