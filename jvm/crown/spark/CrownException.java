package crown.spark;

/** An error of Crown: its stable code, and what is wrong, why and what to do. */
public final class CrownException extends RuntimeException {
  private final String code;

  public CrownException(String code, String text) {
    super("[" + code + "] " + text);
    this.code = code;
  }

  public String code() {
    return code;
  }

  /**
   * The same error for Spark, with the place where it happened. It is of a class that every driver has: one whose session got this
   * jar late does not find ours, and would report an unknown reason.
   */
  IllegalStateException at(String place) {
    String text = getMessage().substring(code.length() + 3);
    IllegalStateException plain = new IllegalStateException("[" + code + "] " + place + ": " + text);
    plain.setStackTrace(getStackTrace());
    return plain;
  }
}
