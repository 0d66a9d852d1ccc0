package org.rankwood;

import java.nio.Buffer;
import java.nio.charset.StandardCharsets;

/** The library by JNI: src/main/c/rankwood_jni.c. */
final class Jni implements Library {
    static {
        Library.loadNative("rankwood"); // first, so that the next one finds it wherever it lies
        Library.loadNative("rankwood_jni");
    }

    @Override
    public String name() {
        return "jni";
    }

    @Override
    public String text(long pointer) {
        return new String(bytes(pointer), StandardCharsets.UTF_8);
    }

    private static native byte[] bytes(long pointer);

    @Override
    public native long address(Buffer direct);

    @Override
    public native long statusText(int status);

    @Override
    public native long version();

    @Override
    public native int abiVersion();

    @Override
    public native long instructionSet();

    @Override
    public native int load(long bytes, long size, long model, long message, long messageSize);

    @Override
    public native void free(long model);

    @Override
    public native long features(long model);

    @Override
    public native long trees(long model);

    @Override
    public native long leaves(long model);

    @Override
    public native long featureName(long model, long feature);

    @Override
    public native long fingerprint(long model);

    @Override
    public native int hasEarlyExit(long model);

    @Override
    public native int newWorkspace(long model, long maxQueryRows, long workspace);

    @Override
    public native void freeWorkspace(long workspace);

    @Override
    public native int score(long model, long batch, long workspace);
}
