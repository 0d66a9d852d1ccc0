package org.rankwood;

/** The library by java.lang.foreign, or by JNI where the property {@code rankwood.binding} is "jni". */
final class Libraries {
    static final Library LIBRARY = "jni".equals(System.getProperty("rankwood.binding")) ? new Jni() : new Ffm();

    private Libraries() {}
}
