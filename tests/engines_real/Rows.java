import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.BufferedOutputStream;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * What every program here does with its arguments: each is a folder with a model, `names.txt` (features, one a line) and `rows.bin`
 * (numbers of rows and columns as int, then rows as double, big endian). The scores go to `scores.bin`, or what the engine
 * says against the model to `error.txt`; then it is also said in a line on standard error, and the status is 3 in the end.
 */
final class Rows {

    /** An engine: it loads the model in a folder and scores rows. */
    interface Engine {
        double[] score(Path folder, List<String> names, double[][] rows) throws Exception;
    }

    static void scoreAll(String[] folders, Engine engine) throws Exception {
        int status = 0;
        for (String argument : folders) {
            Path folder = Path.of(argument);
            try {
                write(folder, engine.score(folder, Files.readAllLines(folder.resolve("names.txt")), read(folder)));
            } catch (Exception | Error error) {
                try (PrintWriter file = new PrintWriter(folder.resolve("error.txt").toFile())) {
                    error.printStackTrace(file);
                }
                System.err.println(folder + ": the engine does not take the model: " + error);
                status = 3;
            }
        }
        if (status != 0) {
            System.exit(status);
        }
    }

    static double[][] read(Path folder) throws Exception {
        Path path = folder.resolve("rows.bin");
        try (DataInputStream file = new DataInputStream(new BufferedInputStream(Files.newInputStream(path)))) {
            double[][] rows = new double[file.readInt()][file.readInt()];
            for (double[] row : rows) {
                for (int column = 0; column < row.length; column++) {
                    row[column] = file.readDouble();
                }
            }
            return rows;
        }
    }

    static void write(Path folder, double[] scores) throws Exception {
        Path path = folder.resolve("scores.bin");
        try (DataOutputStream file = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(path)))) {
            for (double score : scores) {
                file.writeDouble(score);
            }
        }
    }

    static float[] singles(double[] row) {
        float[] singles = new float[row.length];
        for (int column = 0; column < row.length; column++) {
            singles[column] = (float) row[column];
        }
        return singles;
    }

    private Rows() {}
}
