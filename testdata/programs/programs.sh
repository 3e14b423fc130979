# Runs programs as their users do, by the names in the arguments, each in a directory of its
# own: prints "ok NAME", or "FAILED NAME" with what it said.
here=$PWD
export HOME=$here/home GOTOOLCHAIN=local GOFLAGS=-mod=mod GOSUMDB=off GOPROXY=https://goproxy.example.org
mkdir -p home
chmod 600 key

# page NAME: reads an answer of the web server to a request for /NAME.
page() { grep -qx "GET web.example.org/$1"; }

run_curl() { curl -sS https://web.example.org/curl | page curl; }
run_curl4() { curl -sS4 https://web.example.org/curl4 | page curl4; }
run_plain() { curl -sS http://web.example.org/plain | page plain; }
run_wget() { wget -qO- https://web.example.org/wget | page wget; }
run_python() { /usr/bin/python3 -c 'import urllib.request as r; print(r.urlopen("https://web.example.org/python").read().decode(), end="")' | page python; }
run_node() { node -e 'fetch("https://web.example.org/node").then(r => r.text()).then(t => process.stdout.write(t))' | page node; }
run_cares() { node -e 'require("dns").promises.resolve4("web.example.org").then(a => console.log(a[0]))' | grep -q '^127\.77\.'; }
run_java() { java "$here/Fetch.java" https://web.example.org/java | page java; }
run_musl() { "$here/fetch-musl" web.example.org /musl | page musl; }
run_static() { "$here/fetch-go" https://web.example.org/static | page static; }

run_git() { git clone -q https://git.example.org/hello.git && git -C hello log --oneline | grep -q one; }
run_ssh() {
	export GIT_SSH_COMMAND="ssh -i $here/key -o UserKnownHostsFile=$here/known_hosts -o BatchMode=yes"
	git clone -q "ssh://root@ssh.example.org$REPOSITORY" hello && git -C hello log --oneline | grep -q one
}
# A push is refused by the rule: the server would take it.
run_push() {
	git clone -q https://git.example.org/hello.git || return
	if git -C hello push https://git.example.org/hello.git main:refs/heads/pushed; then return 1; fi
}
run_npm() { npm install --no-audit --no-fund --registry https://npm.example.org/ hello && test -e node_modules/hello/package.json; }
run_pip() {
	/usr/bin/python3 -m pip install -q --disable-pip-version-check --index-url https://pip.example.org/simple --target . hello
	/usr/bin/python3 hello.py | grep -qx hello
}
run_cargo() {
	mkdir -p .cargo src && : >src/lib.rs
	printf '[registries.local]\nindex = "sparse+https://crates.example.org/index/"\n' >.cargo/config.toml
	printf '[package]\nname = "mine"\nversion = "1.0.0"\n[dependencies]\nhello = { version = "1.0.0", registry = "local" }\n' >Cargo.toml
	# Debian's cargo has the protocol, and wants to be told so.
	RUSTC_BOOTSTRAP=1 /usr/bin/cargo -Z sparse-registry fetch && ls "$HOME"/.cargo/registry/cache/*/hello-1.0.0.crate
}
run_go() { printf 'module mine\n' >go.mod && "$GO" mod download example.org/hello@v1.0.0 && test -e "$HOME/go/pkg/mod/example.org/hello@v1.0.0/hello.go"; }
run_apt() {
	mkdir -p state/lists/partial cache/archives/partial && : >status
	echo 'deb [trusted=yes] http://apt.example.org/ flat/' >sources.list
	printf 'Dir::%s;\n' "State \"$PWD/state\"" "State::status \"$PWD/status\"" "Cache \"$PWD/cache\"" "Etc::sourcelist \"$PWD/sources.list\"" 'Etc::sourceparts "/dev/null"' >apt.conf
	echo 'APT::Sandbox::User "root";' >>apt.conf
	export APT_CONFIG=$PWD/apt.conf
	apt-get -q update && apt-get -q download hello && test -s hello_1.0_all.deb
}

for name; do
	mkdir -p "$here/work/$name" && cd "$here/work/$name" || exit
	if (run_$name) >"$here/said" 2>&1; then echo "ok $name"; else echo "FAILED $name: $(cat "$here/said")"; fi
done
