import ml.dmlc.xgboost4j.java.Booster;
import ml.dmlc.xgboost4j.java.DMatrix;
import ml.dmlc.xgboost4j.java.XGBoost;

/** XGBoost for Java: margins of a dense matrix in which NaN is missing. */
public class XgBoost {

    public static void main(String[] folders) throws Exception {
        Rows.scoreAll(folders, (folder, names, rows) -> {
            Booster booster = XGBoost.loadModel(folder.resolve("model.ubj").toString());
            float[] values = new float[rows.length * names.size()];
            for (int row = 0; row < rows.length; row++) {
                System.arraycopy(Rows.singles(rows[row]), 0, values, row * names.size(), names.size());
            }
            float[][] margins = booster.predict(new DMatrix(values, rows.length, names.size(), Float.NaN), true);
            double[] scores = new double[rows.length];
            for (int row = 0; row < rows.length; row++) {
                scores[row] = margins[row][0];
            }
            return scores;
        });
    }
}
