import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.elasticsearch.common.bytes.BytesReference;
import org.elasticsearch.index.query.MatchQueryBuilder;
import org.elasticsearch.index.query.QueryBuilder;
import org.elasticsearch.xcontent.NamedXContentRegistry;
import org.elasticsearch.xcontent.ParseField;
import org.elasticsearch.xcontent.XContentParser;
import org.elasticsearch.xcontent.XContentParserConfiguration;
import org.elasticsearch.xcontent.json.JsonXContent;
import org.elasticsearch.xpack.core.ml.action.PutTrainedModelAction;
import org.elasticsearch.xpack.core.ml.inference.InferenceToXContentCompressor;
import org.elasticsearch.xpack.core.ml.inference.MlInferenceNamedXContentProvider;
import org.elasticsearch.xpack.core.ml.inference.TrainedModelConfig;
import org.elasticsearch.xpack.core.ml.inference.results.RegressionInferenceResults;
import org.elasticsearch.xpack.core.ml.inference.trainedmodel.inference.InferenceDefinition;
import org.elasticsearch.xpack.core.ml.ltr.MlLTRNamedXContentProvider;

/** Elasticsearch: the body of PUT _ml/trained_models/model is parsed and checked, and its definition infers. */
public class Elasticsearch {

    private static final XContentParserConfiguration PARSING = XContentParserConfiguration.EMPTY.withRegistry(registry());

    public static void main(String[] folders) throws Exception {
        Rows.scoreAll(folders, (folder, names, rows) -> {
            TrainedModelConfig upload = upload(folder);
            InferenceDefinition model = stored(upload);
            double[] scores = new double[rows.length];
            for (int row = 0; row < rows.length; row++) {
                Map<String, Object> fields = new HashMap<>();
                for (int column = 0; column < names.size(); column++) {
                    if (!Double.isNaN(rows[row][column])) { // a missing value is a field that is not there
                        fields.put(names.get(column), rows[row][column]);
                    }
                }
                scores[row] = ((RegressionInferenceResults) model.infer(fields, upload.getInferenceConfig())).value();
            }
            return scores;
        });
    }

    private static TrainedModelConfig upload(Path folder) throws Exception {
        byte[] body = Files.readAllBytes(folder.resolve("model.json"));
        try (XContentParser parser = JsonXContent.jsonXContent.createParser(PARSING, body)) {
            TrainedModelConfig upload =
                PutTrainedModelAction.Request.parseRequest("model", false, false, parser).getTrainedModelConfig();
            upload.ensureParsedDefinition(PARSING.registry());
            upload.getModelDefinition().getTrainedModel().validate();
            return upload;
        }
    }

    /** The definition as a node that infers reads it from its index. */
    private static InferenceDefinition stored(TrainedModelConfig upload) throws Exception {
        BytesReference stored = InferenceToXContentCompressor.deflate(upload.getModelDefinition());
        return InferenceToXContentCompressor.inflate(stored, InferenceDefinition::fromXContent, PARSING.registry());
    }

    /** What Elasticsearch can parse: trained models, their configurations, and of queries `match`. */
    private static NamedXContentRegistry registry() {
        List<NamedXContentRegistry.Entry> entries = new ArrayList<>();
        entries.addAll(new MlInferenceNamedXContentProvider().getNamedXContentParsers());
        entries.addAll(new MlLTRNamedXContentProvider().getNamedXContentParsers());
        entries.add(new NamedXContentRegistry.Entry(
            QueryBuilder.class, new ParseField("match"), parser -> MatchQueryBuilder.fromXContent(parser)));
        return new NamedXContentRegistry(entries);
    }
}
