package crown.spark;

import java.io.IOException;
import java.io.OutputStream;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;

/** Where rejected changes go: a directory that every executor can write to, one small file per batch and origin. */
public final class Rejects implements Serializable {
  /** A change's position is its source partition and its row number there, in one number. */
  static final int PARTITION_SHIFT = 40;

  private final String directory;
  private final String view;

  /** @param view whose changes they are: a stream may hold several views, which may share the directory */
  public Rejects(String directory, String view) {
    this.directory = directory;
    this.view = view;
  }

  static long row(long position) {
    return position & ((1L << PARTITION_SHIFT) - 1);
  }

  /** One rejected change; the kernel writes those that it finds in the same form. */
  static String line(long batch, String origin, String table, long position, String reason, String row) {
    return String.format(
        "{\"batch\":%d,\"cell\":%s,\"table\":%s,\"partition\":%d,\"position\":%d,\"reason\":%s,\"row\":%s}",
        batch, quoted(origin), quoted(table), position >> PARTITION_SHIFT, row(position), quoted(reason), quoted(row));
  }

  /**
   * Writes all lines at once. The name is that of the stream, the view, the batch and the origin, so a retry replaces the file and
   * nothing else does.
   */
  void write(String query, long batch, String origin, String lines) {
    try {
      String name = String.format("%012d-%s-%s-%s.json", batch, brief(query), brief(view), origin);
      Path target = new Path(directory, name);
      Path early = new Path(directory, "_" + target.getName() + ".part");
      Configuration settings = new Configuration();
      FileSystem files = target.getFileSystem(settings);
      files.mkdirs(target.getParent());
      try (OutputStream out = files.create(early, true)) {
        out.write((lines.strip() + "\n").getBytes(StandardCharsets.UTF_8));
      }
      FileContext.getFileContext(files.getUri(), settings)
          .rename(files.makeQualified(early), files.makeQualified(target), Options.Rename.OVERWRITE);
    } catch (IOException error) {
      throw new UncheckedIOException("rejected changes can't be written to " + directory, error);
    }
  }

  private static String brief(String id) {
    return id.substring(0, Math.min(8, id.length()));
  }

  private static String quoted(String text) {
    StringBuilder out = new StringBuilder("\"");
    for (char c : text.toCharArray()) {
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < ' ') {
        out.append(String.format("\\u%04x", (int) c));
      } else {
        out.append(c);
      }
    }
    return out.append('"').toString();
  }
}
