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
   * The same error for Spark, with the place where it happened. It uses an exception class that
   * every driver has: a driver whose session received this jar late can't find ours, and would
   * report an unknown reason.
   */
  IllegalStateException at(String place) {
    String text = getMessage().substring(code.length() + 3);
    IllegalStateException plain = new IllegalStateException("[" + code + "] " + place + ": " + text);
    plain.setStackTrace(getStackTrace());
    return plain;
  }
}
