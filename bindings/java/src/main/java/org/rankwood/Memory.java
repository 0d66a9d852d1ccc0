package org.rankwood;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;

/** Addresses for the library: a direct buffer in native order has one, others are copied into memory that is kept. */
final class Memory {
    private static final int KEPT = 1 << 20; // bytes; what is larger goes after the call

    private final Library library;
    private ByteBuffer kept = allocate(1024);
    private ByteBuffer room = kept;
    private long start; // address of `room`
    private int used;

    Memory(Library library) {
        this.library = library;
        start = library.address(room);
    }

    private static ByteBuffer allocate(int bytes) {
        return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
    }

    /** Address of the content of a buffer that can be used as it is; 0 for others, and for null. */
    long own(Buffer buffer) {
        if (buffer == null || !buffer.isDirect() || order(buffer) != ByteOrder.nativeOrder()) {
            return 0;
        }
        long address = library.address(buffer) + ((long) buffer.position() << shift(buffer));
        return (address & ((1 << shift(buffer)) - 1)) == 0 ? address : 0; // a view may begin anywhere
    }

    /** Bytes to reserve for a buffer with that address of its own. */
    static long bytes(Buffer buffer, long own) {
        return buffer == null || own != 0 ? 0 : ((long) buffer.remaining() << shift(buffer)) + 7;
    }

    /** Forgets all and makes room for so much. */
    void reserve(long bytes) {
        if (bytes > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(bytes + " bytes cannot be copied at once: use direct buffers");
        }
        used = 0;
        ByteBuffer before = room;
        if (bytes > kept.capacity() && bytes <= KEPT) {
            kept = allocate((int) Math.min(KEPT, 2 * bytes));
        }
        room = bytes <= kept.capacity() ? kept : allocate((int) bytes);
        if (room != before) {
            start = library.address(room);
        }
    }

    /** Where the library finds the content of a buffer; 0 for null. */
    long in(Buffer buffer, long own) {
        long address = out(buffer, own);
        if (address != own) {
            copy(buffer, slice(address, buffer), true);
        }
        return address;
    }

    /** Where the library writes what is to come into a buffer; 0 for null. `copyOut` comes afterwards. */
    long out(Buffer buffer, long own) {
        return buffer == null || own != 0 ? own : out(buffer.remaining() << shift(buffer));
    }

    /** Brings what was written to an address to its buffer, unless it is there already. */
    void copyOut(Buffer buffer, long own, long address) {
        if (address != own) {
            copy(buffer, slice(address, buffer), false);
        }
    }

    /** Address of so many bytes. */
    long out(int bytes) {
        int place = used;
        used += (bytes + 7) & -8;
        return start + place;
    }

    long getLong(long address) {
        return room.getLong((int) (address - start));
    }

    void putInts(long address, int... values) {
        for (int i = 0; i < values.length; i++) {
            room.putInt((int) (address - start) + 4 * i, values[i]);
        }
    }

    void putLongs(long address, long... values) {
        for (int i = 0; i < values.length; i++) {
            room.putLong((int) (address - start) + 8 * i, values[i]);
        }
    }

    private ByteBuffer slice(long address, Buffer buffer) {
        return room.slice((int) (address - start), buffer.remaining() << shift(buffer)).order(ByteOrder.nativeOrder());
    }

    private static int shift(Buffer buffer) {
        return buffer instanceof ByteBuffer ? 0 : buffer instanceof FloatBuffer || buffer instanceof IntBuffer ? 2 : 3;
    }

    private static ByteOrder order(Buffer buffer) {
        if (buffer instanceof FloatBuffer floats) {
            return floats.order();
        }
        if (buffer instanceof DoubleBuffer doubles) {
            return doubles.order();
        }
        return buffer instanceof IntBuffer ints ? ints.order() : ByteOrder.nativeOrder(); // of bytes, or an array's
    }

    private static void copy(Buffer buffer, ByteBuffer bytes, boolean in) {
        if (buffer instanceof FloatBuffer floats) { // rows are not written
            bytes.asFloatBuffer().put(floats.duplicate());
        } else if (buffer instanceof LongBuffer longs) {
            bytes.asLongBuffer().put(longs.duplicate());
        } else if (buffer instanceof ByteBuffer content) {
            bytes.put(content.duplicate());
        } else if (buffer instanceof IntBuffer ints) {
            ints.duplicate().put(bytes.asIntBuffer());
        } else if (in) {
            bytes.asDoubleBuffer().put(((DoubleBuffer) buffer).duplicate());
        } else {
            ((DoubleBuffer) buffer).duplicate().put(bytes.asDoubleBuffer());
        }
    }
}
