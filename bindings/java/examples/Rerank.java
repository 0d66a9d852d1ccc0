import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.rankwood.Model;

/**
 * Re-ranks the candidates of a query as a search engine does, whose index lies in segments:
 *
 * <pre>java -cp rankwood.jar -Drankwood.library.path=LIBRARIES examples/Rerank.java MODEL &lt; candidates</pre>
 *
 * <p>A candidate is a line: its id, then its features ("NaN" where one is missing). The best comes first in the output.
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

    public static void main(String[] arguments) throws IOException {
        List<Segment> segments = new ArrayList<>();
        List<Hit> hits = new ArrayList<>();
        for (int segment = 0; segment < 30; segment++) {
            segments.add(new Segment(new ArrayList<>(), new ArrayList<>()));
        }
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            float[] features = new float[words.length - 1];
            for (int feature = 0; feature < features.length; feature++) {
                features[feature] = Float.parseFloat(words[feature + 1]);
            }
            int segment = hits.size() % segments.size();
            hits.add(new Hit(segment, segments.get(segment).ids().size()));
            segments.get(segment).ids().add(words[0]);
            segments.get(segment).features().add(features);
        }
        try (Model model = Model.load(Path.of(arguments[0]))) {
            for (Ranked one : new Rerank(model).rerank(hits, segments)) {
                System.out.println(one.id() + " " + one.score());
            }
        }
    }
}
