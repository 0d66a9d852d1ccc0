import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.solr.common.util.Utils;
import org.apache.solr.core.SolrResourceLoader;
import org.apache.solr.ltr.feature.Feature;
import org.apache.solr.ltr.model.LTRScoringModel;
import org.apache.solr.ltr.norm.IdentityNormalizer;
import org.apache.solr.ltr.norm.Normalizer;
import org.apache.solr.ltr.store.FeatureStore;
import org.apache.solr.ltr.store.rest.ManagedFeatureStore;
import org.apache.solr.ltr.store.rest.ManagedModelStore;
import org.apache.solr.rest.ManagedResourceStorage;

/**
 * Solr: features and model are loaded as after an upload, and the model scores vectors of its features. A value that is NaN is
 * one that the document has not: the feature's default stands for it, which is NaN for a model that knows what is missing.
 */
public class Solr {

    private static final String FEATURE = "org.apache.solr.ltr.feature.FieldValueFeature";

    public static void main(String[] folders) throws Exception {
        SolrResourceLoader loader = new SolrResourceLoader(Path.of("."));
        Rows.scoreAll(folders, (folder, names, rows) -> {
            LTRScoringModel model = load(loader, folder, names);
            double[] scores = new double[rows.length];
            for (int row = 0; row < rows.length; row++) {
                float[] vector = vector(model, names, rows[row]);
                model.normalizeFeaturesInPlace(vector);
                scores[row] = model.score(vector);
            }
            return scores;
        });
    }

    @SuppressWarnings("unchecked")
    private static LTRScoringModel load(SolrResourceLoader loader, Path folder, List<String> names) throws Exception {
        Map<String, Object> upload = (Map<String, Object>) Utils.fromJSON(Files.readAllBytes(folder.resolve("model.json")));
        Map<String, Object> params = (Map<String, Object>) upload.get("params");
        Map<String, Object> ofFeatures = new HashMap<>(Map.of("field", "field"));
        if (params.containsKey("isNullSameAsZero")) {
            ofFeatures.put("defaultValue", "NaN");
        }
        try {
            return fromStores(loader, upload, names, ofFeatures);
        } catch (NoClassDefFoundError error) { // of Restlet, which the stores of Solr 7 need and Maven Central has not
            return withoutStores(loader, upload, ofFeatures);
        }
    }

    private static LTRScoringModel fromStores(
            SolrResourceLoader loader, Map<String, Object> upload, List<String> names, Map<String, Object> ofFeatures) {
        ManagedFeatureStore store =
            new ManagedFeatureStore("/features", loader, new ManagedResourceStorage.InMemoryStorageIO());
        List<Map<String, Object>> features = new ArrayList<>();
        Object place = upload.getOrDefault("store", FeatureStore.DEFAULT_FEATURE_STORE_NAME); // as a model without one means it
        for (String name : names) {
            features.add(Map.of("name", name, "class", FEATURE, "store", place, "params", ofFeatures));
        }
        store.applyUpdatesToManagedData(features);
        return ManagedModelStore.fromLTRScoringModelMap(loader, upload, store);
    }

    @SuppressWarnings("unchecked")
    private static LTRScoringModel withoutStores(
            SolrResourceLoader loader, Map<String, Object> upload, Map<String, Object> ofFeatures) {
        List<Feature> features = new ArrayList<>();
        List<Normalizer> norms = new ArrayList<>();
        for (Object entry : (List<Object>) upload.get("features")) {
            String name = (String) ((Map<String, Object>) entry).get("name");
            features.add(Feature.getInstance(loader, FEATURE, name, ofFeatures));
            norms.add(IdentityNormalizer.INSTANCE);
        }
        return LTRScoringModel.getInstance(loader, (String) upload.get("class"), (String) upload.get("name"), features, norms,
            (String) upload.get("store"), features, (Map<String, Object>) upload.get("params"));
    }

    /** The values of the model's features, in its order, which is that of the upload. */
    private static float[] vector(LTRScoringModel model, List<String> names, double[] row) {
        List<Feature> features = model.getFeatures();
        float[] vector = new float[features.size()];
        for (int place = 0; place < vector.length; place++) {
            float value = (float) row[names.indexOf(features.get(place).getName())];
            vector[place] = Float.isNaN(value) ? features.get(place).getDefaultValue() : value;
        }
        return vector;
    }
}
