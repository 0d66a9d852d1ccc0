import ciir.umass.edu.learning.DataPoint;
import ciir.umass.edu.learning.DenseDataPoint;
import ciir.umass.edu.learning.Ranker;
import ciir.umass.edu.learning.RankerFactory;

/** RankLib: its factory reads the model, which evaluates data points; a value that is NaN is unknown to it. */
public class RankLib {

    public static void main(String[] folders) throws Exception {
        Rows.scoreAll(folders, (folder, names, rows) -> {
            Ranker ranker = new RankerFactory().loadRankerFromFile(folder.resolve("model.txt").toString());
            double[] scores = new double[rows.length];
            for (int row = 0; row < rows.length; row++) {
                StringBuilder line = new StringBuilder("0 qid:1");
                for (int column = 0; column < names.size(); column++) {
                    line.append(' ').append(column + 1).append(':').append((float) rows[row][column]);
                }
                DataPoint point = new DenseDataPoint(line.toString());
                scores[row] = ranker.eval(point);
            }
            return scores;
        });
    }
}
