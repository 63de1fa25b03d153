import com.google.gson.Gson;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.openziti.Ziti;
import org.openziti.ZitiContext;

/**
 * An application on the JVM SDK. It performs the commands that stdin names, one after the other. Commands and answers
 * are JSON lines. The end of stdin ends the program.
 */
public class Sdk {
  /** To enroll, or to log in with what an earlier enrollment has stored. */
  static class Command {
    String action; // "enroll" or "login"
    String token; // file of the enrollment token, beside which the identity is stored
    String service; // that the identity should receive
    int bytes; // to send to the service, which echoes them; 0: it is not dialed
  }

  /** An identity after a command. */
  static class Member {
    String error;
    String name;
    List<String> services;
    boolean echoed; // all bytes came back unchanged
  }

  private static final Gson gson = new Gson();
  /** The SDK fails if it reads less than a whole message. */
  private static final int MESSAGE = 256 * 1024;

  private static final char[] noPassword = new char[0];

  public static void main(String[] arguments) throws Exception {
    var commands = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = commands.readLine()) != null; ) {
      var member = new Member();
      try {
        perform(gson.fromJson(line, Command.class), member);
      } catch (Throwable problem) {
        problem.printStackTrace();
        member.error = problem.toString();
      }
      System.out.println(gson.toJson(member));
    }
    Runtime.getRuntime().halt(0); // the SDK leaves threads behind
  }

  private static void perform(Command command, Member member) throws Exception {
    if (command.action.equals("enroll")) enroll(command);
    var context = Ziti.newContext(fileOf(command), noPassword);
    try {
      while (context.getStatus() == ZitiContext.Status.Loading.INSTANCE) Thread.sleep(20);
      if (context.getStatus() instanceof ZitiContext.Status.NotAuthorized refusal) throw new Exception(refusal.getEx());
      var service = context.getService(command.service); // waits until the SDK has received all
      member.name = context.getId().getName();
      member.services = service == null ? List.of() : List.of(service.getName());
      if (command.bytes > 0) member.echoed = isEchoed(context, command);
    } finally {
      Ziti.removeContext(context);
    }
  }

  private static boolean isEchoed(ZitiContext context, Command command) throws Exception {
    var sent = new byte[command.bytes];
    new Random().nextBytes(sent);
    try (var connection = context.dial(command.service)) {
      var writer = new Thread(() -> send(connection.getOutputStream(), sent));
      writer.start();
      var received = new ByteArrayOutputStream();
      var chunk = new byte[MESSAGE];
      while (received.size() < sent.length) {
        int count = connection.read(chunk, 0, chunk.length);
        if (count < 0) break;
        received.write(chunk, 0, count);
      }
      writer.join();
      return Arrays.equals(sent, received.toByteArray());
    }
  }

  private static void send(OutputStream output, byte[] bytes) {
    try {
      output.write(bytes);
      output.flush();
    } catch (IOException problem) {
      problem.printStackTrace(); // the reader ends, too
    }
  }

  /** Stores the identity. The context of the enrollment itself presents no certificate if the id has capitals. */
  private static void enroll(Command command) throws Exception {
    var store = KeyStore.getInstance("PKCS12");
    store.load(null, noPassword);
    Ziti.removeContext(Ziti.enroll(store, Files.readAllBytes(Path.of(command.token)), "member"));
    try (var file = new FileOutputStream(fileOf(command))) {
      store.store(file, noPassword);
    }
  }

  private static File fileOf(Command command) {
    return new File(command.token + ".p12");
  }
}
