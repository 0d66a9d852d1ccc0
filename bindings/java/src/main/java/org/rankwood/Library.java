package org.rankwood;

import java.nio.Buffer;
import java.nio.file.Path;

/** The functions of rankwood.h; pointers are longs, 0 is null. */
interface Library {
    int OK = 0;
    int ARGUMENT = 1;
    int FLOAT32 = 0;
    int FLOAT64 = 1;
    int SINGLE_PRECISION = 1;
    int BATCH_SIZE = 88; // of rw_batch: four integers of 4 bytes, then nine words of 8

    /** "jni" or "ffm". */
    String name();

    /** Address of the first element of a direct buffer, whatever its position. */
    long address(Buffer direct);

    /** Text that ends with a zero, in UTF-8. */
    String text(long pointer);

    long statusText(int status);

    long version();

    int abiVersion();

    long instructionSet();

    int load(long bytes, long size, long model, long message, long messageSize);

    void free(long model);

    long features(long model);

    long trees(long model);

    long leaves(long model);

    long featureName(long model, long feature);

    long fingerprint(long model);

    int hasEarlyExit(long model);

    int newWorkspace(long model, long maxQueryRows, long workspace);

    void freeWorkspace(long workspace);

    int score(long model, long batch, long workspace);

    /**
     * Loads a shared library: from the folder that the property {@code rankwood.library.path} names, else from where
     * Java looks.
     */
    static void loadNative(String name) {
        String folder = System.getProperty("rankwood.library.path");
        try {
            if (folder == null) {
                System.loadLibrary(name);
            } else {
                System.load(Path.of(folder, System.mapLibraryName(name)).toAbsolutePath().toString());
            }
        } catch (UnsatisfiedLinkError error) {
            throw new UnsatisfiedLinkError(error.getMessage() + ": -Drankwood.library.path=FOLDER must name the folder of "
                    + System.mapLibraryName(name));
        }
    }
}
