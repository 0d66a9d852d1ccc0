package org.rankwood;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.Buffer;

/** The library by java.lang.foreign, without any code in C. Pointers are passed as longs: 64-bit systems only. */
final class Ffm implements Library {
    static {
        Library.loadNative("rankwood");
    }

    // Static and final, so that the compiler sees through them.
    private static final MethodHandle STATUS_TEXT = function("rw_status_text", JAVA_LONG, JAVA_INT);
    private static final MethodHandle VERSION = function("rw_version", JAVA_LONG);
    private static final MethodHandle ABI_VERSION = function("rw_abi_version", JAVA_INT);
    private static final MethodHandle INSTRUCTION_SET = function("rw_instruction_set", JAVA_LONG);
    private static final MethodHandle LOAD =
            function("rw_load_memory", JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle FREE = function("rw_free", null, JAVA_LONG);
    private static final MethodHandle FEATURES = function("rw_n_features", JAVA_LONG, JAVA_LONG);
    private static final MethodHandle TREES = function("rw_n_trees", JAVA_LONG, JAVA_LONG);
    private static final MethodHandle LEAVES = function("rw_n_leaves", JAVA_LONG, JAVA_LONG);
    private static final MethodHandle FEATURE_NAME = function("rw_feature_name", JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle FINGERPRINT = function("rw_fingerprint", JAVA_LONG, JAVA_LONG);
    private static final MethodHandle HAS_EARLY_EXIT = function("rw_has_early_exit", JAVA_INT, JAVA_LONG);
    private static final MethodHandle NEW_WORKSPACE =
            function("rw_workspace_new", JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle FREE_WORKSPACE = function("rw_workspace_free", null, JAVA_LONG);
    private static final MethodHandle SCORE = function("rw_score", JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG);

    private static MethodHandle function(String name, MemoryLayout result, MemoryLayout... arguments) {
        MemorySegment symbol = SymbolLookup.loaderLookup().find(name).orElseThrow(() -> new UnsatisfiedLinkError(name));
        return Linker.nativeLinker().downcallHandle(symbol,
                result == null ? FunctionDescriptor.ofVoid(arguments) : FunctionDescriptor.of(result, arguments));
    }

    private static AssertionError impossible(Throwable error) {
        return new AssertionError("functions of C throw nothing", error);
    }

    @Override
    public String name() {
        return "ffm";
    }

    @Override
    public long address(Buffer direct) {
        return MemorySegment.ofBuffer(direct.duplicate().clear()).address();
    }

    @Override
    public String text(long pointer) {
        return MemorySegment.ofAddress(pointer).reinterpret(Long.MAX_VALUE).getString(0);
    }

    @Override
    public long statusText(int status) {
        try {
            return (long) STATUS_TEXT.invokeExact(status);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    @Override
    public long version() {
        try {
            return (long) VERSION.invokeExact();
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    @Override
    public int abiVersion() {
        try {
            return (int) ABI_VERSION.invokeExact();
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    @Override
    public long instructionSet() {
        try {
            return (long) INSTRUCTION_SET.invokeExact();
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    @Override
    public int load(long bytes, long size, long model, long message, long messageSize) {
        try {
            return (int) LOAD.invokeExact(bytes, size, model, message, messageSize);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    @Override
    public void free(long model) {
        try {
            FREE.invokeExact(model);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    @Override
    public long features(long model) {
        try {
            return (long) FEATURES.invokeExact(model);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    @Override
    public long trees(long model) {
        try {
            return (long) TREES.invokeExact(model);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    @Override
    public long leaves(long model) {
        try {
            return (long) LEAVES.invokeExact(model);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    @Override
    public long featureName(long model, long feature) {
        try {
            return (long) FEATURE_NAME.invokeExact(model, feature);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    @Override
    public long fingerprint(long model) {
        try {
            return (long) FINGERPRINT.invokeExact(model);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    @Override
    public int hasEarlyExit(long model) {
        try {
            return (int) HAS_EARLY_EXIT.invokeExact(model);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    @Override
    public int newWorkspace(long model, long maxQueryRows, long workspace) {
        try {
            return (int) NEW_WORKSPACE.invokeExact(model, maxQueryRows, workspace);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    @Override
    public void freeWorkspace(long workspace) {
        try {
            FREE_WORKSPACE.invokeExact(workspace);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }

    @Override
    public int score(long model, long batch, long workspace) {
        try {
            return (int) SCORE.invokeExact(model, batch, workspace);
        } catch (Throwable error) {
            throw impossible(error);
        }
    }
}
