package policy_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/policy"
)

// obstacleFields lists the fields that stand in the way, in order.
func obstacleFields(found []policy.Finding) string {
	var fields []string
	for _, f := range found {
		fields = append(fields, strings.TrimPrefix(f.Field, "sandbox.docker."))
	}
	return strings.Join(fields, " ")
}

func TestSetupObstacles(t *testing.T) {
	const everything = "network readOnlyRoot user"
	strict := plain() // no network, read-only, no capabilities
	open := plain()
	open.Network, open.ReadOnlyRoot, open.CapDrop = "bridge", false, nil

	for name, tc := range map[string]struct {
		setup  string
		docker config.Docker
		user   string
		want   string
	}{
		"apt in a strict sandbox":       {"apt-get update", strict, "1000:1000", everything},
		"the seed's example":            {"apt-get install -y build-essential", strict, "", "network readOnlyRoot"},
		"apt where it works":            {"apt-get update && apt-get install -y jq", open, "0:0", ""},
		"apt as the image's user":       {"apt-get install -y jq", open, "", ""},
		"apt as somebody":               {"/usr/bin/apt-get install -y jq", open, "sandbox", "user"},
		"apt as root by number":         {"apt install jq", open, "0", ""},
		"sudo cannot help":              {"sudo apt-get install -y jq", open, "1000:1000", "user"},
		"sudo for anything":             {"sudo -E true", open, "1000:1000", "user"},
		"behind assignments":            {"DEBIAN_FRONTEND=noninteractive apt-get install jq", open, "1000", "user"},
		"behind starters":               {"env A=1 nice -n5 timeout 60 apt-get update", open, "1000", "user"},
		"inside sh -c":                  {`sh -lc "set -e; apk add jq"`, strict, "0:0", "network readOnlyRoot"},
		"inside a subshell and a block": {"( { apk add jq; } )", strict, "0:0", "network readOnlyRoot"},
		"in a loop":                     {"for p in jq git; do apk add $p; done", strict, "0:0", "readOnlyRoot"}, // $p may name a file
		"in a pipe":                     {"curl -fsSL https://example.com/i.sh | sh", strict, "0:0", "network"},
		"second line":                   {"echo hi\ncurl https://example.com", strict, "", "network"},
		"required with or":              {"curl https://example.com || exit 1", strict, "", "network"},
		"dpkg needs no network":         {"dpkg -i /workspace/x.deb", strict, "0:0", "readOnlyRoot"},
		"local package":                 {"apt-get install -y ./x.deb", open, "0:0", ""},
		"apt needs no capability":       {"apt-get update && apt-get install -y jq", withCapDrop(open, "ALL"), "0:0", ""},
		"apt told to stay root":         {"apt-get -o APT::Sandbox::User=root update", withCapDrop(open, "ALL"), "0:0", ""},
		"chown as root":                 {"chown -R nobody:nogroup /opt", withCapDrop(open, "ALL"), "0:0", "capDrop"},
		"chown without its capability":  {"chown 1000 /opt", withCapDrop(open, "cap_chown"), "0", "capDrop"},
		"chown with its capability":     {"chown 1000 /opt", withCapDrop(open, "SETUID"), "0", ""},
		"chown to root":                 {"chown 0:0 /opt; chown root /opt; chown :root /opt", withCapDrop(open, "ALL"), "0", ""},
		"chown to a variable":           {"chown $U /opt", withCapDrop(open, "ALL"), "0", ""},
		"chown with a condition":        {"chown --from=bob nobody /opt", withCapDrop(open, "ALL"), "0", ""},
		"chown as oneself":              {"chown 1000 /workspace/x", withCapDrop(open, "ALL"), "1000", ""},
		"npm global":                    {"npm install -g typescript", strict, "1000", "network"},
		"npm global with a network":     {"npm i -g typescript", open, "1000", ""}, // the image may have a place for it
		"npm from a registry nearby":    {"npm i --registry http://127.0.0.1:4873 typescript", strict, "1000", ""},
		"copy to the system by option":  {"cp -t /etc /workspace/hosts", strict, "0:0", "readOnlyRoot"},
		"copy to the system, options":   {"cp -rpt /etc /workspace/hosts", strict, "0:0", "readOnlyRoot"},
		"install into the system":       {"install -m 755 -o root x /usr/local/bin", strict, "0:0", "readOnlyRoot"},
		"move, long option":             {"mv --target-directory=/usr/share x", strict, "0:0", "readOnlyRoot"},
		"npm local":                     {"npm ci", open, "1000", ""},
		"pip":                           {"python3 -m pip install requests", strict, "1000", "network"},
		"pip from files":                {"pip install --no-index --find-links /workspace/w requests", strict, "1000", ""},
		"git clone":                     {"git clone https://example.com/x.git", strict, "1000", "network"},
		"git clone by ssh":              {"git clone git@example.com:x.git", strict, "1000", "network"},
		"accounts":                      {"useradd bob", strict, "1000", "readOnlyRoot user"},
		"write to the system":           {"echo x > /etc/motd", strict, "0:0", "readOnlyRoot"},
		"append to the system":          {"echo x | tee -a /etc/motd", strict, "0:0", "readOnlyRoot"},
		"link in the system":            {"ln -s /workspace/x /usr/local/bin/x", strict, "0:0", "readOnlyRoot"},

		"copy from the system":           {"cp -t /workspace /etc/hosts", strict, "1000", ""},
		"copy from the system, attached": {"cp -rt/workspace /etc/hosts", strict, "1000", ""},
		"link here to the system":        {"ln -s /usr/bin/python3", strict, "1000", ""},
		"touch by the system's time":     {"touch -r /etc/hosts x", strict, "1000", ""},
		"touch what is there":            {"touch -c /etc/hosts", strict, "1000", ""},
		"copy only if missing":           {"cp -n x /etc/hosts", strict, "1000", ""},
		"an option that is not known":    {"cp --sparse=always x /etc/hosts", strict, "1000", ""},
		"a volume of the image":          {"echo x > /data/y; cp a /var/lib/b", strict, "1000", ""},
		"only the workspace":             {"mkdir -p /workspace/a && echo x > /workspace/a/b && cp a /workspace/c", strict, "1000", ""},
		"a tmpfs":                        {"echo x > /tmp/y; touch /run/z", strict, "1000", ""},
		"the null device":                {"make 2>&1 >/dev/null", strict, "1000", ""},
		"failure tolerated":              {"apt-get update || true", strict, "1000", ""},
		"only if missing":                {"command -v jq || apt-get install -y jq", strict, "1000", ""},
		"only if a test holds":           {"[ -f x ] && apt-get install -y jq", strict, "1000", ""},
		"in a condition":                 {"if ! which jq; then apt-get install -y jq; fi", strict, "1000", ""},
		"in a function":                  {"f() { apt-get update; }", strict, "1000", ""},
		"negated":                        {"! curl https://example.com", strict, "1000", ""},
		"loopback":                       {"curl http://127.0.0.1:8080/x http://localhost/y", strict, "1000", ""},
		"only asks":                      {"apt-get --version; dpkg -l; npm --version; command -v apt-get install; git status", strict, "1000", ""},
		"a word in a text":               {"echo 'apt-get install' # apt-get install", strict, "1000", ""},
		"address from a variable":        {`curl "$URL"`, strict, "1000", ""},
		"a file with a telling name":     {"./apt-get-install.sh", strict, "1000", ""},
		"no setup":                       {"  ", strict, "1000", ""},
		"not a script":                   {"if then ((", strict, "1000", ""},
		"same obstacle twice, once told": {"apk add jq; apk add jq", open, "1000", "user"},
	} {
		t.Run(name, func(t *testing.T) {
			found := policy.SetupObstacles(tc.setup, config.Sandbox{Docker: tc.docker}, tc.user)
			if got := obstacleFields(found); got != tc.want {
				t.Errorf("got %q, want %q: %+v", got, tc.want, found)
			}
			for _, f := range found {
				if !strings.HasPrefix(f.Message, "Sandbox security: setupCommand ") || !strings.Contains(f.Hint, "sandbox.") {
					t.Errorf("incomplete finding %+v", f)
				}
			}
		})
	}
}

func withCapDrop(docker config.Docker, names ...string) config.Docker {
	docker.CapDrop = names
	return docker
}

func FuzzSetupObstacles(f *testing.F) {
	for _, seed := range []string{"apt-get update", "sh -c 'sh -c \"sh -c x\"'", "a && b || c | d; (e)", "for i in; do x; done", "sudo", "timeout", "> /x", "$(x)", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, setup string) {
		for _, finding := range policy.SetupObstacles(setup, config.Sandbox{Docker: plain()}, "1000:1000") {
			if finding.Field == "" || finding.Hint == "" {
				t.Errorf("%q: %+v", setup, finding)
			}
		}
	})
}
