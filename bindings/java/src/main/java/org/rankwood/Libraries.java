package org.rankwood;

/** The library, as this version of Java reaches it. The jar has another one of these for Java 22 and later. */
final class Libraries {
    static final Library LIBRARY = new Jni();

    private Libraries() {}
}
