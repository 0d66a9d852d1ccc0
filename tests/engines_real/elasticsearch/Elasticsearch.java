import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.elasticsearch.common.bytes.BytesReference;
import org.elasticsearch.xcontent.NamedXContentRegistry;
import org.elasticsearch.xcontent.XContentParser;
import org.elasticsearch.xcontent.XContentParserConfiguration;
import org.elasticsearch.xcontent.json.JsonXContent;
import org.elasticsearch.xpack.core.ml.action.PutTrainedModelAction;
import org.elasticsearch.xpack.core.ml.inference.InferenceToXContentCompressor;
import org.elasticsearch.xpack.core.ml.inference.MlInferenceNamedXContentProvider;
import org.elasticsearch.xpack.core.ml.inference.TrainedModelConfig;
import org.elasticsearch.xpack.core.ml.inference.results.RegressionInferenceResults;
import org.elasticsearch.xpack.core.ml.inference.trainedmodel.RegressionConfig;
import org.elasticsearch.xpack.core.ml.inference.trainedmodel.inference.InferenceDefinition;

/** Elasticsearch: the body of PUT _ml/trained_models/model is parsed and checked, and its definition infers. */
public class Elasticsearch {

    private static final XContentParserConfiguration PARSING = XContentParserConfiguration.EMPTY.withRegistry(
        new NamedXContentRegistry(new MlInferenceNamedXContentProvider().getNamedXContentParsers()));

    public static void main(String[] folders) throws Exception {
        Rows.scoreAll(folders, (folder, names, rows) -> {
            InferenceDefinition model = load(folder);
            double[] scores = new double[rows.length];
            for (int row = 0; row < rows.length; row++) {
                Map<String, Object> fields = new HashMap<>();
                for (int column = 0; column < names.size(); column++) {
                    if (!Double.isNaN(rows[row][column])) { // a missing value is a field that is not there
                        fields.put(names.get(column), rows[row][column]);
                    }
                }
                scores[row] = ((RegressionInferenceResults) model.infer(fields, RegressionConfig.EMPTY_PARAMS)).value();
            }
            return scores;
        });
    }

    private static InferenceDefinition load(Path folder) throws Exception {
        TrainedModelConfig upload;
        try (XContentParser parser = parser(Files.readAllBytes(folder.resolve("model.json")))) {
            upload = PutTrainedModelAction.Request.parseRequest("model", false, false, parser).getTrainedModelConfig();
        }
        upload.ensureParsedDefinition(PARSING.registry());
        upload.getModelDefinition().getTrainedModel().validate();
        // As the node that infers reads it from its index.
        BytesReference stored = InferenceToXContentCompressor.deflate(upload.getModelDefinition());
        return InferenceToXContentCompressor.inflate(stored, InferenceDefinition::fromXContent, PARSING.registry());
    }

    private static XContentParser parser(byte[] content) throws Exception {
        return JsonXContent.jsonXContent.createParser(PARSING, content);
    }
}
