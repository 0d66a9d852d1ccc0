import ai.vespa.rankingexpression.importer.ImportedModel;
import ai.vespa.rankingexpression.importer.ModelImporter;
import ai.vespa.rankingexpression.importer.lightgbm.LightGBMImporter;
import ai.vespa.rankingexpression.importer.xgboost.XGBoostImporter;
import com.yahoo.searchlib.rankingexpression.RankingExpression;
import com.yahoo.searchlib.rankingexpression.evaluation.DoubleValue;
import com.yahoo.searchlib.rankingexpression.evaluation.MapContext;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Vespa: the importer that takes the file makes a ranking expression of it, which is evaluated over rank features. */
public class Vespa {

    private static final List<ModelImporter> IMPORTERS = List.of(new LightGBMImporter(), new XGBoostImporter());

    public static void main(String[] folders) throws Exception {
        Rows.scoreAll(folders, (folder, names, rows) -> {
            RankingExpression expression = load(folder);
            double[] scores = new double[rows.length];
            for (int row = 0; row < rows.length; row++) {
                MapContext context = new MapContext();
                for (int column = 0; column < names.size(); column++) {
                    context.put(names.get(column), new DoubleValue(rows[row][column]));
                }
                scores[row] = expression.evaluate(context).asDouble();
            }
            return scores;
        });
    }

    private static RankingExpression load(Path folder) throws Exception {
        Path path = Files.exists(folder.resolve("model.ubj")) ? folder.resolve("model.ubj") : folder.resolve("model.json");
        for (ModelImporter importer : IMPORTERS) {
            if (importer.canImport(path.toString())) {
                ImportedModel model = importer.importModel("model", path.toString());
                // As in a deployed application, the expression is written as text and parsed again.
                return new RankingExpression(model.expressions().values().iterator().next().toString());
            }
        }
        throw new IllegalArgumentException("none of Vespa's importers takes the file");
    }
}
