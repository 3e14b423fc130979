package inspect_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/egress/inspect"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

const javaProgram = `import java.net.*;
class Get { public static void main(String[] a) throws Exception {
  System.out.println(new String(new URL(a[0]).openConnection().getInputStream().readAllBytes()));
} }
`

// TestJavaTrustsTheCA has Java read the store by the variable alone. Its root
// certificates are those of the host and the sandbox's CA.
func TestJavaTrustsTheCA(t *testing.T) {
	need.Time(t, "it starts a Java machine")
	java := need.Program(t, "java", "default-jre-headless")
	w := newWorld(t, http.HandlerFunc(echo))
	_, text, err := net.SplitHostPort(w.front)
	check(t, err)
	port, err := strconv.Atoi(text)
	check(t, err)
	w.change(func() { w.port = port })
	dir := t.TempDir()
	files, err := w.inspector.Files(dir)
	check(t, err)
	files = append(files, inspect.File{Name: "Get.java", Data: []byte(javaProgram)}, inspect.File{Name: "hosts", Data: []byte("127.0.0.1 " + site + "\n")})
	for _, f := range files {
		check(t, os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o600))
	}
	cmd := exec.CommandContext(t.Context(), java, "-Djdk.net.hosts.file="+filepath.Join(dir, "hosts"), filepath.Join(dir, "Get.java"), fmt.Sprintf("https://%s:%d/java", site, port))
	for name, value := range inspect.Environment(dir) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), fmt.Sprintf("GET /java %s:%d", site, port)) {
		t.Errorf("%v %s", err, out)
	}
	if roots := bytes.Count(files[1].Data, []byte("BEGIN CERTIFICATE")); roots < 2 {
		t.Errorf("%d roots", roots)
	}
}
