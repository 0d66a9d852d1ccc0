import ai.onnxruntime.OnnxJavaType;
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtSession;
import ai.onnxruntime.TensorInfo;
import java.util.Map;

/** ONNX Runtime for Java: rows as the model asks for them, float or double. */
public class OnnxRuntime {

    public static void main(String[] folders) throws Exception {
        OrtEnvironment environment = OrtEnvironment.getEnvironment();
        Rows.scoreAll(folders, (folder, names, rows) -> {
            try (OrtSession session = environment.createSession(folder.resolve("model.onnx").toString())) {
                String input = session.getInputNames().iterator().next();
                TensorInfo asked = (TensorInfo) session.getInputInfo().get(input).getInfo();
                OnnxTensor tensor = asked.type == OnnxJavaType.DOUBLE
                    ? OnnxTensor.createTensor(environment, rows)
                    : OnnxTensor.createTensor(environment, singles(rows));
                Object output = session.run(Map.of(input, tensor)).get(0).getValue();
                double[] scores = new double[rows.length];
                for (int row = 0; row < rows.length; row++) {
                    scores[row] = output instanceof double[][] doubles ? doubles[row][0] : ((float[][]) output)[row][0];
                }
                return scores;
            }
        });
    }

    private static float[][] singles(double[][] rows) {
        float[][] singles = new float[rows.length][];
        for (int row = 0; row < rows.length; row++) {
            singles[row] = Rows.singles(rows[row]);
        }
        return singles;
    }
}
