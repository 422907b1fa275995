/** A program in Java that crashes in C: KIND [DIRECTORY]. */
public class Host {
    static native int run(String kind, String directory);

    public static void main(String[] arguments) {
        System.load(System.getProperty("host.library"));
        System.exit(run(arguments[0], arguments.length < 2 ? "" : arguments[1]));
    }
}
