import com.microsoft.ml.lightgbm.PredictionType;
import io.github.metarank.lightgbm4j.LGBMBooster;
import java.nio.file.Files;

/** LightGBM for Java, a row at a time as a server does. */
public class LightGbm {

    public static void main(String[] folders) throws Exception {
        Rows.scoreAll(folders, (folder, names, rows) -> {
            try (LGBMBooster booster = LGBMBooster.loadModelFromString(Files.readString(folder.resolve("model.txt")))) {
                double[] scores = new double[rows.length];
                for (int row = 0; row < rows.length; row++) {
                    scores[row] = booster.predictForMatSingleRow(rows[row], PredictionType.C_API_PREDICT_RAW_SCORE);
                }
                return scores;
            }
        });
    }
}
