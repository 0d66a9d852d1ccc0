import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import org.rankwood.Model;
import org.rankwood.RankwoodException;

/**
 * Re-ranks the candidates of a query as a search engine does, whose index lies in segments:
 *
 * <pre>java -cp rankwood.jar -Drankwood.library.path=LIBRARIES examples/Rerank.java MODEL &lt; candidates</pre>
 *
 * <p>A candidate is a line: its id, then its features, separated by spaces or tabs; NaN or nan is a missing one. The
 * best comes first in the output.
 *
 * <p>The hundred best hits of the first stage lie in many segments, one or two in each. Features are read segment by
 * segment, but scored in one call: a call for every segment, or for every document, would be several times slower.
 */
public final class Rerank {
    /** A hit of the first stage: a document of a segment. */
    record Hit(int segment, int document) {}

    /** A part of the index, read forwards. */
    record Segment(List<String> ids, List<float[]> features) {}

    record Ranked(String id, double score) {}

    private final Model model;
    // Buffers of one thread, which grow with the hits. A server has a Rerank per thread, and one model for all.
    private FloatBuffer rows = floats(0);
    private DoubleBuffer scores = doubles(0);

    Rerank(Model model) {
        this.model = model;
    }

    List<Ranked> rerank(List<Hit> hits, List<Segment> segments) {
        if (scores.capacity() < hits.size()) {
            rows = floats(2 * hits.size() * model.featureCount());
            scores = doubles(2 * hits.size());
        }
        // Segment by segment, documents in rising order, as iterators over an index want it.
        List<Hit> inOrder = new ArrayList<>(hits);
        inOrder.sort(Comparator.comparingInt(Hit::segment).thenComparingInt(Hit::document));
        rows.clear();
        for (Hit hit : inOrder) {
            rows.put(segments.get(hit.segment()).features().get(hit.document()));
        }
        model.score(rows.flip(), scores.clear().limit(inOrder.size()));

        List<Ranked> ranked = new ArrayList<>();
        for (Hit hit : inOrder) {
            ranked.add(new Ranked(segments.get(hit.segment()).ids().get(hit.document()), scores.get(ranked.size())));
        }
        ranked.sort(Comparator.comparingDouble(Ranked::score).reversed());
        return ranked;
    }

    private static FloatBuffer floats(int count) {
        return ByteBuffer.allocateDirect(4 * count).order(ByteOrder.nativeOrder()).asFloatBuffer();
    }

    private static DoubleBuffer doubles(int count) {
        return ByteBuffer.allocateDirect(8 * count).order(ByteOrder.nativeOrder()).asDoubleBuffer();
    }

    /** The nearest float: infinity when it is too large. */
    private static float number(String word, int line) {
        switch (word.toLowerCase(Locale.ROOT)) {
            case "nan":
                return Float.NaN;
            case "inf":
                return Float.POSITIVE_INFINITY;
            case "-inf":
                return Float.NEGATIVE_INFINITY;
            default:
                if (word.matches("[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?")) {
                    return Float.parseFloat(word);
                }
                throw new IllegalArgumentException("line " + line + ": '" + word + "' is not a number");
        }
    }

    /** Features of a line, all words but the first. */
    private static float[] features(String[] words, int line, int needed) {
        if (words[0].isEmpty()) {
            throw new IllegalArgumentException("line " + line + " is empty: it must have an id and features");
        }
        float[] features = new float[words.length - 1];
        for (int feature = 0; feature < features.length; feature++) {
            features[feature] = number(words[feature + 1], line);
        }
        if (features.length != needed) {
            throw new IllegalArgumentException(
                    "line " + line + " has " + features.length + " features, the model has " + needed);
        }
        return features;
    }

    private static void rerank(Path file) throws IOException {
        List<Segment> segments = new ArrayList<>();
        List<Hit> hits = new ArrayList<>();
        for (int segment = 0; segment < 30; segment++) {
            segments.add(new Segment(new ArrayList<>(), new ArrayList<>()));
        }
        try (Model model = Model.load(file)) {
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] words = line.strip().split("\\s+");
                Segment segment = segments.get(hits.size() % segments.size());
                segment.features().add(features(words, hits.size() + 1, model.featureCount()));
                segment.ids().add(words[0]);
                hits.add(new Hit(hits.size() % segments.size(), segment.ids().size() - 1));
            }
            for (Ranked one : new Rerank(model).rerank(hits, segments)) {
                System.out.println(one.id() + " " + one.score());
            }
        }
    }

    public static void main(String[] arguments) {
        try {
            if (arguments.length != 1) {
                throw new IllegalArgumentException("usage: Rerank MODEL < candidates");
            }
            rerank(Path.of(arguments[0]));
        } catch (IOException | RankwoodException | IllegalArgumentException | LinkageError error) {
            System.err.println(error instanceof NoSuchFileException ? error.getMessage() + ": no such file"
                    : error.getMessage());
            System.exit(1);
        }
    }
}
