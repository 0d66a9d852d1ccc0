import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.solr.client.solrj.SolrQuery;
import org.apache.solr.client.solrj.embedded.EmbeddedSolrServer;
import org.apache.solr.common.SolrDocument;
import org.apache.solr.common.SolrInputDocument;
import org.apache.solr.common.util.Utils;
import org.apache.solr.core.CoreContainer;
import org.apache.solr.core.SolrCore;
import org.apache.solr.ltr.store.FeatureStore;
import org.apache.solr.ltr.store.rest.ManagedFeatureStore;
import org.apache.solr.ltr.store.rest.ManagedModelStore;

/** A whole Solr in this process: rows are documents, features are fields of theirs, and a query is reranked by the model. */
public class SolrServer {

    private static final String FEATURE = "org.apache.solr.ltr.feature.FieldValueFeature";

    public static void main(String[] folders) throws Exception {
        try (EmbeddedSolrServer server = new EmbeddedSolrServer(Path.of("home").toAbsolutePath(), "shop")) {
            Rows.scoreAll(folders, (folder, names, rows) -> {
                String model = upload(server.getCoreContainer(), folder, names);
                index(server, rows);
                SolrQuery query = new SolrQuery("*:*").setRows(rows.length).setFields("id", "score");
                query.set("rq", "{!ltr model=" + model + " reRankDocs=" + rows.length + "}");
                double[] scores = new double[rows.length];
                for (SolrDocument found : server.query(query).getResults()) {
                    scores[Integer.parseInt((String) found.get("id"))] = (Float) found.get("score");
                }
                return scores;
            });
        }
    }

    /** Put the features and the model into their stores, in the place of earlier ones, and return the model's name. */
    @SuppressWarnings("unchecked")
    private static String upload(CoreContainer container, Path folder, List<String> names) throws Exception {
        try (SolrCore core = container.getCore("shop")) {
            Map<String, Object> model = (Map<String, Object>) Utils.fromJSON(Files.readAllBytes(folder.resolve("model.json")));
            String name = (String) model.get("name");
            String store = (String) model.getOrDefault("store", FeatureStore.DEFAULT_FEATURE_STORE_NAME);
            ManagedModelStore models = ManagedModelStore.getManagedModelStore(core);
            ManagedFeatureStore features = ManagedFeatureStore.getManagedFeatureStore(core);
            models.doDeleteChild(null, name);
            features.doDeleteChild(null, store);
            for (int column = 0; column < names.size(); column++) {
                Map<String, Object> params = Map.of("field", "column" + column + "_f");
                features.addFeature(Map.of("name", names.get(column), "class", FEATURE, "params", params), store);
            }
            models.addModel(ManagedModelStore.fromLTRScoringModelMap(core.getResourceLoader(), model, features));
            return name;
        }
    }

    /** Documents for rows; a value that is NaN is a field that the document has not. */
    private static void index(EmbeddedSolrServer server, double[][] rows) throws Exception {
        List<SolrInputDocument> documents = new ArrayList<>();
        for (int row = 0; row < rows.length; row++) {
            SolrInputDocument document = new SolrInputDocument("id", Integer.toString(row));
            for (int column = 0; column < rows[row].length; column++) {
                if (!Double.isNaN(rows[row][column])) {
                    document.addField("column" + column + "_f", (float) rows[row][column]);
                }
            }
            documents.add(document);
        }
        server.deleteByQuery("*:*");
        server.add(documents);
        server.commit();
    }
}
