package org.rankwood;

/** What librankwood refuses: content that is no model, too little memory, an instruction set that it cannot run. */
public final class RankwoodException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    RankwoodException(String message) {
        super(message);
    }
}
