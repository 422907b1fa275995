/** A Java program that loads the library by JNI: JNI-LIBRARY DIRECTORY KIND. */
public class Host {
    static native int install(String directory);
    static native void fault();
    static native void abort();

    static class Order {
        int number;
    }

    static int number(Order order) {
        return order.number;
    }

    static int deeper(int depth) {
        return deeper(depth + 1) + 1;
    }

    public static void main(String[] arguments) {
        System.load(arguments[0]);
        if (install(arguments[1]) != 0) {
            System.exit(1);
        }
        // Compiled code does not compare with null: a fault tells it.
        Order order = new Order();
        int caught = 0;
        for (int round = 0; round < 200_000; round++) {
            try {
                number(round % 2 == 1 && round > 150_000 ? null : order);
            } catch (NullPointerException expected) {
                caught++;
            }
        }
        try {
            deeper(0);
        } catch (StackOverflowError expected) {
            caught++;
        }
        System.out.println("caught " + caught);
        switch (arguments[2]) {
            case "fault" -> fault();
            case "abort" -> abort();
            default -> { }
        }
    }
}
